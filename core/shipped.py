"""Result tables that ship with the project, each with what made it.

``python -m core.shipped`` trains the preset of the marker task and writes its curve, so
that its page opens on a picture before anybody has pressed Run. ``core.experiments``
writes the tables of the bench.
"""

import argparse
import csv
import functools
import io
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from core.training import TrainConfig, TrainRecord, train

TABLES = Path(__file__).parent.parent / "assets" / "tables"
MARKER_PRESET = TABLES / "marker_preset.csv"
_COMMAND = "python -m core.shipped"
_RUN_COLUMNS = ("step", "epoch", "loss", "accuracy")


class ShippedRun(NamedTuple):
    """The curve of a run that was trained before, and what made it.

    Attributes:
        made_by: Field to text: command, seed, versions, machine.
        records: One record a step.
    """

    made_by: dict[str, str]
    records: list[TrainRecord]

    @property
    def origin(self) -> str:
        """What made it, as a sentence."""
        return origin_of(self.made_by)


def write_run(path: Path, records: Sequence[TrainRecord], *, seed: int) -> None:
    """Write the curve of a run as CSV, below ``# field: text`` lines on its origin.

    Args:
        path: File to write.
        records: Records of the run.
        seed: Its seed.
    """
    rows = (
        (
            r.step,
            r.epoch,
            f"{r.loss:.6f}",
            "" if r.accuracy is None else f"{r.accuracy:.4f}",
        )
        for r in records
    )
    write_table(path, _RUN_COLUMNS, rows, command=_COMMAND, seed=str(seed))


@functools.cache
def read_run(path: Path = MARKER_PRESET) -> ShippedRun:
    """Return a shipped curve.

    Args:
        path: A file that ``write_run`` wrote.
    """
    made_by, rows = read_table(path)
    records = [
        TrainRecord(
            step=int(row["step"]),
            epoch=int(row["epoch"]),
            loss=float(row["loss"]),
            gradient_norm=float("nan"),
            accuracy=float(row["accuracy"]) if row["accuracy"] else None,
        )
        for row in rows
    ]
    return ShippedRun(made_by, records)


def origin_of(made: dict[str, str]) -> str:
    """Return what made a table, as a sentence."""
    return f"Made by {made['command']}, seed {made['seed']}, {made['versions']}."


def write_table(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    command: str,
    seed: str,
) -> None:
    """Write a table as CSV, below ``# field: text`` lines on what made it.

    Args:
        path: File to write.
        columns: Names of the columns.
        rows: The rows.
        command: What to type to make the table again.
        seed: Its seed, or its seeds in words.
    """
    text = table_text(made_here(command, seed), columns, rows)
    path.write_text(text, encoding="utf-8", newline="")


def made_here(command: str, seed: str) -> dict[str, str]:
    """Return what makes a table that is written here: field to text."""
    return {
        "command": command,
        "seed": seed,
        "versions": f"torch {torch.__version__}, Python {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
    }


def table_text(
    made_by: Mapping[str, str], columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> str:
    """Return a table as CSV, below ``# field: text`` lines on what made it."""
    file = io.StringIO(newline="")
    file.writelines(f"# {field}: {text}\n" for field, text in made_by.items())
    table = csv.writer(file, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    return file.getvalue()


def read_table(path: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return what made a table, and its rows by the names of the columns."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("# ")]
    made_by = dict(line[2:].split(": ", maxsplit=1) for line in head)
    return made_by, list(csv.DictReader(lines[len(head) :]))


def _make_preset(path: Path) -> None:
    preset = TrainConfig()
    write_run(path, list(train(preset)), seed=preset.seed)


def main() -> None:
    """Train the preset of the marker page and write its curve."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--path", type=Path, default=MARKER_PRESET)
    _make_preset(parser.parse_args().path)


if __name__ == "__main__":
    main()
