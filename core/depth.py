"""How far signals, gradients and learning carry through a deep stack: measured.

``python -m core.depth`` trains the marker task at a few depths, in both orders of the
norms, with and without shortcuts, with a few seeds and without warm-up, and writes what
it found to ``assets/tables/depth.csv``; stacks with shortcuts also at a smaller
learning rate.
"""

import argparse
import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from core.checks import require_int
from core.models import MAX_LAYERS, TransformerClassifier
from core.shipped import TABLES, origin_of, read_table, write_table
from core.tasks import marker_task
from core.training import TRAIN_SEED, TrainConfig, Trainer

DEPTH_TABLE = TABLES / "depth.csv"
DEPTHS = (2, 6, 12, 24)
SEEDS = (0, 1, 2)
LIVE_SEEDS = (0, 1)
RATES = (3e-3, 1e-3)  # the first is the recipe's
MOMENTS = ("at the start", "after training")
RECIPE = TrainConfig(
    seq_len=20,
    dropout=0.0,
    learning_rate=RATES[0],
    batch_size=32,
    train_samples=2000,
    test_samples=500,
    max_steps=150,
    eval_every=150,
)
_LAST_STEPS = 10  # the final loss is the mean over them
_COLUMNS = (
    "rate", "depth", "norm", "shortcuts", "seed", "steps", "loss", "accuracy",
    "moment", "layer", "rms", "gradient",
)  # fmt: skip


class Variant(NamedTuple):
    """One kind of stack.

    Attributes:
        norm_first: True for pre-norm, False for post-norm.
        residual: Whether there are shortcuts.
    """

    norm_first: bool
    residual: bool

    @property
    def name(self) -> str:
        """The variant in words."""
        order = "pre-norm" if self.norm_first else "post-norm"
        return order if self.residual else f"{order}, no shortcuts"


VARIANTS = tuple(Variant(*parts) for parts in product((True, False), (True, False)))


class LayerNorms(NamedTuple):
    """Sizes along a stack of N layers, on one batch.

    Attributes:
        activations: Root mean square of the tokens before the first layer and after
            each, (N + 1,).
        gradients: Length of the gradient of the loss by the parameters of each layer,
            (N,).
    """

    activations: Tensor
    gradients: Tensor


class DepthRun(NamedTuple):
    """One short training run of one variant at one depth.

    Attributes:
        variant: The kind of stack.
        depth: Its number of layers N.
        seed: Its seed.
        rate: Its learning rate.
        steps: Steps it took.
        loss: Mean loss over its last steps.
        accuracy: Share of right test answers after them, in [0, 1].
        norms: Moment, as in ``MOMENTS``, to the sizes along the stack.
    """

    variant: Variant
    depth: int
    seed: int
    rate: float
    steps: int
    loss: float
    accuracy: float
    norms: dict[str, LayerNorms]


class ShippedDepth(NamedTuple):
    """The shipped runs and, as a sentence, what made them."""

    origin: str
    runs: list[DepthRun]


class DepthStep(NamedTuple):
    """One training step of one of the runs that are watched together.

    Attributes:
        variant: Its variant.
        seed: Its seed.
        step: Number of the step, from 1.
        loss: Loss of the batch.
        accuracy: Test accuracy after the last step; None before.
    """

    variant: Variant
    seed: int
    step: int
    loss: float
    accuracy: float | None


def variants_with(residual: bool) -> tuple[Variant, ...]:
    """Return pre-norm and post-norm, both with or both without shortcuts."""
    return tuple(variant for variant in VARIANTS if variant.residual == residual)


def depth_config(
    variant: Variant, depth: int, seed: int, rate: float = RATES[0]
) -> TrainConfig:
    """Return the run of a variant at a depth; all else is the recipe's.

    Raises:
        ValueError: If the depth is not between 1 and ``MAX_LAYERS``.
    """
    require_int("depth", depth, 1, MAX_LAYERS)
    return replace(
        RECIPE, **variant._asdict(), num_layers=depth, seed=seed, learning_rate=rate
    )


def norms_by_layer(
    model: TransformerClassifier, inputs: Tensor, targets: Tensor
) -> LayerNorms:
    """Measure the tokens after each layer, and the gradient that reaches each layer.

    The loss is the binary cross-entropy of the batch, as in training, without dropout.
    The gradients of the model are left as they were.

    Args:
        model: The classifier.
        inputs: Sequences, (B, T, 1).
        targets: Classes 0 or 1, (B, 1).
    """
    was_training = model.training
    model.eval()
    tokens = model.tokens_of(inputs)
    mask, activations = model.mask_of(tokens), [_rms(tokens)]
    for block in model.blocks:
        tokens = block(tokens, mask=mask)
        activations.append(_rms(tokens))
    read = tokens[:, model.config.positions_read or slice(None)]
    loss = F.binary_cross_entropy_with_logits(model.answer(read), targets)
    model.train(was_training)
    return LayerNorms(torch.stack(activations), _gradients_by_layer(loss, model))


def norms_at_start(
    variant: Variant, depth: int, seed: int, *, batch_size: int = 32
) -> LayerNorms:
    """Measure a fresh stack on the first sequences of the marker task.

    Args:
        variant: The kind of stack.
        depth: Number of layers, 1 to ``MAX_LAYERS``.
        seed: Seed of the weights.
        batch_size: Number of sequences.

    Raises:
        ValueError: If a number is out of range.
    """
    config = depth_config(variant, depth, seed)
    data = marker_task(batch_size, config.seq_len, seed=TRAIN_SEED)
    return norms_by_layer(TransformerClassifier(config.model), *data)


def run_depth(
    variant: Variant, depth: int, seed: int, rate: float = RATES[0]
) -> DepthRun:
    """Train one variant at one depth with one seed, and measure it before and after."""
    trainer = Trainer(depth_config(variant, depth, seed, rate))
    data = marker_task(RECIPE.batch_size, RECIPE.seq_len, seed=TRAIN_SEED)
    norms = {MOMENTS[0]: norms_by_layer(_stack_of(trainer), *data)}
    while not trainer.finished:
        trainer.step()
    norms[MOMENTS[1]] = norms_by_layer(_stack_of(trainer), *data)
    last = [record.loss for record in trainer.records[-_LAST_STEPS:]]
    return DepthRun(
        variant,
        depth,
        seed,
        rate,
        steps=len(trainer.records),
        loss=sum(last) / len(last),
        accuracy=trainer.evaluate(),
        norms=norms,
    )


def watch_depth(
    depth: int, *, residual: bool, rate: float = RATES[0]
) -> Iterator[DepthStep]:
    """Train both orders of the norms with a few seeds, one step a result, in turn.

    Args:
        depth: Number of layers, 1 to ``MAX_LAYERS``.
        residual: Whether there are shortcuts.
        rate: Learning rate.

    Raises:
        ValueError: If the depth is out of range.
    """
    runs = [
        (variant, seed, Trainer(depth_config(variant, depth, seed, rate)))
        for seed in LIVE_SEEDS
        for variant in variants_with(residual)
    ]
    while any(not trainer.finished for _, _, trainer in runs):
        for variant, seed, trainer in runs:
            if not trainer.finished:
                record = trainer.step()
                yield DepthStep(
                    variant, seed, record.step, record.loss, record.accuracy
                )


def num_watched() -> int:
    """Return how many steps ``watch_depth`` takes in all."""
    return len(LIVE_SEEDS) * 2 * RECIPE.max_steps


def write_depth(path: Path, runs: Sequence[DepthRun]) -> None:
    """Write runs as CSV: one row a run, moment and layer, below lines on the origin.

    Layer 0 stands for what enters the stack; it has no gradient.
    """
    rows = (
        (*_cells_of(run), moment, layer, f"{norm:.5g}", gradient)
        for run in runs
        for moment, norms in run.norms.items()
        for layer, (norm, gradient) in enumerate(_by_layer(norms))
    )
    seeds = f"{SEEDS[0]} to {SEEDS[-1]}"
    write_table(path, _COLUMNS, rows, command="python -m core.depth", seed=seeds)


@functools.cache
def read_depth(path: Path = DEPTH_TABLE) -> ShippedDepth:
    """Return the runs of a file that ``write_depth`` wrote."""
    made_by, rows = read_table(path)
    by_run: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        by_run.setdefault(tuple(row[name] for name in _COLUMNS[:5]), []).append(row)
    return ShippedDepth(origin_of(made_by), [_run_of(own) for own in by_run.values()])


def _stack_of(trainer: Trainer) -> TransformerClassifier:
    assert isinstance(trainer.model, TransformerClassifier)
    return trainer.model


def _rms(tokens: Tensor) -> Tensor:
    return tokens.detach().square().mean().sqrt()


def _gradients_by_layer(loss: Tensor, model: TransformerClassifier) -> Tensor:
    by_layer = [tuple(block.parameters()) for block in model.blocks]
    gradients = iter(torch.autograd.grad(loss, [p for own in by_layer for p in own]))
    return torch.stack(
        [torch.cat([next(gradients).flatten() for _ in own]).norm() for own in by_layer]
    )


def _cells_of(run: DepthRun) -> tuple[str | int, ...]:
    return (
        f"{run.rate:g}",
        run.depth,
        "pre" if run.variant.norm_first else "post",
        "yes" if run.variant.residual else "no",
        run.seed,
        run.steps,
        f"{run.loss:.4f}",
        f"{run.accuracy:.4f}",
    )


def _by_layer(norms: LayerNorms) -> list[tuple[float, str]]:
    gradients = ["", *(f"{number:.5g}" for number in norms.gradients.tolist())]
    return list(zip(norms.activations.tolist(), gradients, strict=True))


def _run_of(rows: Sequence[dict[str, str]]) -> DepthRun:
    first, norms = rows[0], {}
    for moment in MOMENTS:
        own = [row for row in rows if row["moment"] == moment]
        norms[moment] = LayerNorms(
            torch.tensor([float(row["rms"]) for row in own]),
            torch.tensor([float(row["gradient"]) for row in own[1:]]),
        )
    return DepthRun(
        Variant(first["norm"] == "pre", first["shortcuts"] == "yes"),
        depth=int(first["depth"]),
        seed=int(first["seed"]),
        rate=float(first["rate"]),
        steps=int(first["steps"]),
        loss=float(first["loss"]),
        accuracy=float(first["accuracy"]),
        norms=norms,
    )


def main() -> None:
    """Train every variant at every depth with every seed, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--path", type=Path, default=DEPTH_TABLE)
    path = parser.parse_args().path
    wanted = [
        (variant, depth, seed, rate)
        for rate, variant, depth, seed in product(RATES, VARIANTS, DEPTHS, SEEDS)
        if variant.residual or rate == RATES[0]
    ]
    write_depth(path, [run_depth(*parts) for parts in wanted])


if __name__ == "__main__":
    main()
