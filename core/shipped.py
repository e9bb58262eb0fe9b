"""Result tables that ship with the project, each with what made it.

``python -m core.shipped`` trains the preset of the marker task and writes its curve, so
that the page opens on a picture before anybody has pressed Run.
"""

import argparse
import csv
import functools
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from core.training import TrainConfig, TrainRecord, train

MARKER_PRESET = Path(__file__).parent.parent / "assets" / "tables" / "marker_preset.csv"
_COLUMNS = ("step", "epoch", "loss", "accuracy")


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
        made = self.made_by
        return f"Made by {made['command']}, seed {made['seed']}, {made['versions']}."


def write_run(path: Path, records: Sequence[TrainRecord], *, seed: int) -> None:
    """Write the curve of a run as CSV, below ``# field: text`` lines on its origin.

    Args:
        path: File to write.
        records: Records of the run.
        seed: Its seed.
    """
    made_by = {
        "command": "python -m core.shipped",
        "seed": str(seed),
        "versions": f"torch {torch.__version__}, Python {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {field}: {text}\n" for field, text in made_by.items())
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_COLUMNS)
        for r in records:
            measured = "" if r.accuracy is None else f"{r.accuracy:.4f}"
            rows.writerow((r.step, r.epoch, f"{r.loss:.6f}", measured))


@functools.cache
def read_run(path: Path = MARKER_PRESET) -> ShippedRun:
    """Return a shipped curve.

    Args:
        path: A file that ``write_run`` wrote.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("# ")]
    made_by = dict(line[2:].split(": ", maxsplit=1) for line in head)
    records = [
        TrainRecord(
            step=int(row["step"]),
            epoch=int(row["epoch"]),
            loss=float(row["loss"]),
            gradient_norm=float("nan"),
            accuracy=float(row["accuracy"]) if row["accuracy"] else None,
        )
        for row in csv.DictReader(lines[len(head) :])
    ]
    return ShippedRun(made_by, records)


def main() -> None:
    """Train the preset and write its curve."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, default=MARKER_PRESET)
    preset = TrainConfig()
    write_run(parser.parse_args().out, list(train(preset)), seed=preset.seed)


if __name__ == "__main__":
    main()
