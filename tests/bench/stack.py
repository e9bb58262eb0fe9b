"""The ``Trainer``'s step with our stack, beside the same with PyTorch's own.

    python -m tests.bench.stack

Both classifiers start from the same weights and train on the same batches, with the
same rate of dropout: ours at our layers, PyTorch's at ``nn.TransformerEncoder``. Two
sizes are raced: the lab's, and six layers of width 256. The two take turns in short
blocks, so that a busy machine slows both, and the ratio is the median over the turns.

That race is of the steps a learner waits for, not of the stacks alone: our classifier
computes only the CLS position in its last layer, and our dropout draws four entries at
once. So every size is also raced, without being judged, with the mean of all positions
as the readout, where both compute the same, and then without dropout as well.
"""

import argparse
import statistics
import sys
import time
from dataclasses import replace
from itertools import product

from core.built_in import BuiltInClassifier
from core.train_config import MAX_STEPS, TrainConfig
from core.training import Trainer

ALLOWANCE = 0.05  # of noise; ours may not be slower than that
SIZES = {  # name -> configuration, steps a block
    "lab: 2 layers of width 32": (TrainConfig(), 20),
    "6 layers of width 256": (
        TrainConfig(
            d_model=256, num_heads=8, num_layers=6, seq_len=32, batch_size=16,
            train_samples=512, test_samples=64,
        ),
        3,
    ),
}  # fmt: skip


VARIATIONS = {  # words -> changes; only the first is judged
    "as it trains": {},
    "readout mean": {"readout": "mean"},
    "readout mean, no dropout": {"readout": "mean", "dropout": 0.0},
}


def make_pair(config: TrainConfig) -> tuple[Trainer, Trainer]:
    """Return a trainer of our stack and one of the built-in stack."""
    model = BuiltInClassifier(config.model)
    return Trainer(config), Trainer(config, model=model)


def block_seconds(trainer: Trainer, steps: int) -> float:
    """Return the seconds of so many steps."""
    start = time.perf_counter()
    for _ in range(steps):
        trainer.step()
    return time.perf_counter() - start


def race(config: TrainConfig, steps: int, turns: int) -> list[tuple[float, float]]:
    """Return the seconds of both in each turn, after one turn to warm up.

    Every second turn goes the other way round.
    """
    pair = make_pair(config)
    seconds = []
    for turn in range(turns + 1):
        order = pair[:: -1 if turn % 2 else 1]
        taken = [block_seconds(trainer, steps) for trainer in order]
        ours, built_in = taken[:: -1 if turn % 2 else 1]
        if turn:
            seconds.append((ours, built_in))
    return seconds


def race_and_tell(name: str, config: TrainConfig, steps: int, turns: int) -> float:
    """Race one configuration, print its line, and return the ratio."""
    without_tests = replace(config, max_steps=MAX_STEPS, eval_every=MAX_STEPS)
    seconds = race(without_tests, steps, turns)
    ours, built_in = (
        1000 * statistics.median(column) / steps
        for column in zip(*seconds, strict=True)
    )
    ratio = statistics.median(a / b for a, b in seconds)
    sys.stdout.write(
        f"{name:<51} ours {ours:7.1f} ms a step   built-in {built_in:7.1f} ms"
        f"   ratio {ratio:.2f}\n"
    )
    return ratio


def main() -> int:
    """Print a line a race; exit 1 where our step, as it trains, is too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15)
    turns, worst = parser.parse_args().turns, 0.0
    for (name, (config, steps)), (words, changes) in product(
        SIZES.items(), VARIATIONS.items()
    ):
        said = f"{name}, {words}"
        ratio = race_and_tell(said, replace(config, **changes), steps, turns)
        if not changes:
            worst = max(worst, ratio)
    bound = 1 + ALLOWANCE
    sys.stdout.write(f"largest ratio as it trains {worst:.2f}, bound {bound:.2f}\n")
    return int(worst > bound)


if __name__ == "__main__":
    sys.exit(main())
