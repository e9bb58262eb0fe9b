"""What a run of the marker task says in numbers: its curves and its sentences."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.shipped import ShippedRun
from core.training import TrainConfig, Trainer, TrainRecord, TrainSnapshot

COIN_FLIP = math.log(2)
_STUCK_STEPS = 100
_STUCK_WITHIN = 0.03
_LEARNED = 0.95
_STAYS = 0.9


class MovedMarker(NamedTuple):
    """How a trained model answers sequences whose marker stands elsewhere.

    Attributes:
        position: Where the marker stands, counted without the CLS token.
        accuracy: Share of right answers on the test sequences, in [0, 1].
        snapshot: What the model attends to in the first of them.
    """

    position: int
    accuracy: float
    snapshot: TrainSnapshot


def move_marker(trainer: Trainer, position: int) -> MovedMarker:
    """Return accuracy and attention with the marker moved to ``position``.

    Raises:
        ValueError: If the position is not one of the sequence.
    """
    return MovedMarker(
        position,
        trainer.evaluate(position=position),
        trainer.snapshot(position=position),
    )


def run_label(config: TrainConfig) -> str:
    """Return a short name of a run: what differs from the preset, and the seed."""
    preset = TrainConfig()
    names = {
        "seq_len": "length",
        "d_model": "width",
        "num_heads": "heads",
        "num_layers": "layers",
        "dropout": "dropout",
        "learning_rate": "rate",
        "batch_size": "batch",
        "positional": "positions",
        "causal": "causal",
        "readout": "readout",
        "train_samples": "samples",
    }
    changed = [
        f"{shown} {getattr(config, name)}"
        for name, shown in names.items()
        if getattr(config, name) != getattr(preset, name)
    ]
    return ", ".join([*(changed or ["preset"]), f"seed {config.seed}"])


def marker_column(config: TrainConfig, position: int = 0) -> int:
    """Return the column of the marker in the maps; a CLS token stands before it."""
    return position + (config.readout == "cls")


def notes_on(config: TrainConfig) -> list[str]:
    """Return what follows from the settings alone, before any training."""
    notes = []
    if config.causal and config.readout == "cls":
        notes.append(
            "Under the causal mask CLS, at position 0, may read itself alone: every "
            "sequence gets the same answer. Read the last position or the mean."
        )
    if config.causal and config.positional == "none" and config.readout != "cls":
        notes.append(
            "No positions are added, yet a causal mask leaks order: position t sees "
            "t + 1 tokens."
        )
    return notes


def last_test(records: Sequence[TrainRecord]) -> tuple[int, float] | None:
    """Return step and accuracy of the last evaluation; None before the first."""
    tests = ((r.step, r.accuracy) for r in reversed(records) if r.accuracy is not None)
    return next(tests, None)


def is_stuck(records: Sequence[TrainRecord]) -> bool:
    """Return whether the last 100 losses lie around ln 2, as a coin flip's would."""
    losses = [record.loss for record in records[-_STUCK_STEPS:]]
    if len(losses) < _STUCK_STEPS:
        return False
    return abs(sum(losses) / len(losses) - COIN_FLIP) < _STUCK_WITHIN


def progress_sentence(records: Sequence[TrainRecord], num_tested: int) -> str:
    """Return where the run stands, in one sentence.

    Args:
        records: Records of the run so far.
        num_tested: Test sequences of an evaluation.
    """
    if not records:
        return f"Before training; a coin flip has the loss ln 2 = {COIN_FLIP:.3f}."
    last, tested = records[-1], last_test(records)
    measured = (
        "test accuracy not measured yet"
        if tested is None
        else f"test accuracy {100 * tested[1]:.1f} % at step {tested[0]}, "
        f"on {num_tested:,} sequences"
    )
    coin = (
        f" The last {_STUCK_STEPS} losses stay around ln 2 = {COIN_FLIP:.3f}, "
        "a coin flip."
        if is_stuck(records)
        else ""
    )
    if not math.isfinite(last.loss):
        return f"Step {last.step}: the loss is no longer finite; {measured}."
    return f"Step {last.step}: loss {last.loss:.3f}, {measured}.{coin}"


def shipped_sentence(run: ShippedRun) -> str:
    """Return what a shipped run reached, and what made it."""
    first = next(r.step for r in run.records if (r.accuracy or 0) >= _LEARNED)
    made = run.made_by
    return (
        f"Grey: a shipped run of the preset, {100 * _LEARNED:.0f} % or more from "
        f"step {first} ({made['command']}, seed {made['seed']}, {made['versions']})."
    )


def readout_sentence(rows: Tensor, config: TrainConfig, *, position: int = 0) -> str:
    """Return where the readout peaks and what the marker gets, layer by layer.

    Args:
        rows: Weights of the readout, (num_layers, H, S).
        config: Settings of the run.
        position: Where the marker stands in the sequence.
    """
    column = marker_column(config, position)
    name = {"cls": "CLS", "mean": "the mean query"}.get(
        config.readout, f"the {config.readout} position"
    )
    parts = []
    for number, weights in enumerate(rows.mean(dim=1), start=1):
        peak = int(torch.argmax(weights))
        parts.append(
            f"layer {number}: peak at position {peak} with "
            f"{100 * weights[peak]:.1f} %, marker {100 * weights[column]:.1f} %"
        )
    return f"Weights of {name}, mean over heads. " + "; ".join(parts) + "."


def moved_sentence(moved: MovedMarker, records: Sequence[TrainRecord]) -> str:
    """Return what moving the marker did to the accuracy."""
    tested = last_test(records)
    trained = "not measured" if tested is None else f"{100 * tested[1]:.1f} %"
    return (
        f"Test accuracy {100 * moved.accuracy:.1f} % with the marker at position "
        f"{moved.position}; at position 0, where training had it: {trained}."
    )


def has_learned(records: Sequence[TrainRecord]) -> bool:
    """Return whether the last test accuracy is at least 95 %."""
    tested = last_test(records)
    return tested is not None and tested[1] >= _LEARNED


def fate_of_accuracy(moved: MovedMarker) -> int:
    """Return 0 where the accuracy stays high, 1 where it is in between, 2 near 0 %."""
    if moved.accuracy >= _STAYS:
        return 0
    return 1 if moved.accuracy > 1 - _STAYS else 2
