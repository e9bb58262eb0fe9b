"""Result tables that ship with the project, each with what made it.

``python -m core.shipped`` trains what the tables hold and writes them: the curve of
the marker task's preset, so that its page opens on a picture before anybody has
pressed Run, and the grid of what carries the order.
"""

import argparse
import csv
import functools
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from core.order_grid import SEEDS, Cell, CellRun, run_grid
from core.training import TrainConfig, TrainRecord, train

TABLES = Path(__file__).parent.parent / "assets" / "tables"
MARKER_PRESET = TABLES / "marker_preset.csv"
ORDER_GRID = TABLES / "order_grid.csv"
_COMMAND = "python -m core.shipped"
_RUN_COLUMNS = ("step", "epoch", "loss", "accuracy")
_GRID_COLUMNS = ("positional", "causal", "readout", "seed", "steps", "accuracy")


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


class ShippedGrid(NamedTuple):
    """The grid of what carries the order, trained before, and what made it.

    Attributes:
        made_by: Field to text: command, seed, versions, machine.
        runs: One run a cell and seed.
    """

    made_by: dict[str, str]
    runs: list[CellRun]

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


def write_grid(path: Path, runs: Sequence[CellRun]) -> None:
    """Write the grid as CSV, one row a cell and seed, below lines on its origin.

    Args:
        path: File to write.
        runs: Runs of the grid, with the seeds ``SEEDS``.
    """
    rows = (
        (
            run.cell.positional,
            "yes" if run.cell.causal else "no",
            run.cell.readout,
            run.seed,
            run.steps,
            f"{run.accuracy:.4f}",
        )
        for run in runs
    )
    command, seeds = f"{_COMMAND} order_grid", f"{SEEDS[0]} to {SEEDS[-1]}"
    write_table(path, _GRID_COLUMNS, rows, command=command, seed=seeds)


@functools.cache
def read_grid(path: Path = ORDER_GRID) -> ShippedGrid:
    """Return the shipped grid.

    Args:
        path: A file that ``write_grid`` wrote.
    """
    made_by, rows = read_table(path)
    runs = [
        CellRun(
            Cell(row["positional"], row["causal"] == "yes", row["readout"]),
            seed=int(row["seed"]),
            steps=int(row["steps"]),
            accuracy=float(row["accuracy"]),
        )
        for row in rows
    ]
    return ShippedGrid(made_by, runs)


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
    made_by = {
        "command": command,
        "seed": seed,
        "versions": f"torch {torch.__version__}, Python {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {field}: {text}\n" for field, text in made_by.items())
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows(rows)


def read_table(path: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return what made a table, and its rows by the names of the columns."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("# ")]
    made_by = dict(line[2:].split(": ", maxsplit=1) for line in head)
    return made_by, list(csv.DictReader(lines[len(head) :]))


def _make_preset(path: Path) -> None:
    preset = TrainConfig()
    write_run(path, list(train(preset)), seed=preset.seed)


def _make_grid(path: Path) -> None:
    write_grid(path, run_grid())


_MAKERS = {"marker_preset": _make_preset, "order_grid": _make_grid}


def main() -> None:
    """Train what the tables hold and write them, or only the one that is named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("table", nargs="?", choices=tuple(_MAKERS))
    parser.add_argument("--folder", type=Path, default=TABLES)
    given = parser.parse_args()
    for name in [given.table] if given.table else _MAKERS:
        _MAKERS[name](given.folder / f"{name}.csv")


if __name__ == "__main__":
    main()
