"""What the start of the forget gate decides: an LSTM on the marker task.

``python -m core.forget_bias`` trains the runs that the page quotes and writes them to
``assets/tables/forget_bias.csv``.
"""

import argparse
import functools
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from core.initial import generator_from
from core.recurrent import RecurrentClassifier
from core.shipped import TABLES, origin_of, read_table, write_table
from core.training import TrainConfig, Trainer

FORGET_BIAS = TABLES / "forget_bias.csv"
BIASES = (None, 1.0, 2.0, 3.0)
SEEDS = (0, 1, 2)
HIDDEN_SIZE = 16
RECIPE = TrainConfig(max_steps=250, eval_every=250, learning_rate=3e-3, dropout=0.0)
_COLUMNS = ("forget_bias", "seed", "steps", "accuracy")


class LstmRun(NamedTuple):
    """How one run of an LSTM ended.

    Attributes:
        forget_bias: Of its forget gate at the start; None for PyTorch's default.
        seed: Its seed.
        steps: Steps it took.
        accuracy: Share of right answers on the test sequences after them, in [0, 1].
    """

    forget_bias: float | None
    seed: int
    steps: int
    accuracy: float


class ShippedRuns(NamedTuple):
    """Runs trained before, and what made them, as a sentence."""

    origin: str
    runs: list[LstmRun]


def train_lstm(forget_bias: float | None, seed: int) -> LstmRun:
    """Train an LSTM on the marker task, 60 tokens long, from a start of its gate.

    Args:
        forget_bias: What the biases of the forget gate add up to; None is PyTorch's
            default.
        seed: Decides initial weights and order.
    """
    model = RecurrentClassifier(
        "lstm",
        hidden_size=HIDDEN_SIZE,
        forget_bias=forget_bias,
        generator=generator_from(seed),
    )
    trainer = Trainer(replace(RECIPE, seed=seed), model=model)
    while not trainer.finished:
        trainer.step()
    return LstmRun(forget_bias, seed, len(trainer.records), trainer.evaluate())


@functools.cache
def read_runs(path: Path = FORGET_BIAS) -> ShippedRuns:
    """Return the shipped runs.

    Args:
        path: A file that ``write_runs`` wrote.
    """
    made_by, rows = read_table(path)
    runs = [
        LstmRun(
            None if row["forget_bias"] == "default" else float(row["forget_bias"]),
            int(row["seed"]),
            int(row["steps"]),
            float(row["accuracy"]),
        )
        for row in rows
    ]
    return ShippedRuns(origin_of(made_by), runs)


def write_runs(path: Path, runs: Sequence[LstmRun]) -> None:
    """Write runs as CSV, below lines on their origin.

    Args:
        path: File to write.
        runs: Runs with the seeds ``SEEDS``.
    """
    rows = (
        (
            "default" if run.forget_bias is None else f"{run.forget_bias:g}",
            run.seed,
            run.steps,
            f"{run.accuracy:.4f}",
        )
        for run in runs
    )
    seeds = f"{SEEDS[0]} to {SEEDS[-1]}"
    write_table(path, _COLUMNS, rows, command="python -m core.forget_bias", seed=seeds)


def main() -> None:
    """Train every start with every seed and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--path", type=Path, default=FORGET_BIAS)
    path = parser.parse_args().path
    write_runs(path, [train_lstm(*each) for each in product(BIASES, SEEDS)])


if __name__ == "__main__":
    main()
