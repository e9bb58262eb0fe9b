"""What a run of the marker task says in numbers: its curves and its sentences."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any, NamedTuple

import torch
from torch import Tensor

from core.checks import RefusedError
from core.shipped import ShippedRun
from core.tasks import marker_task
from core.training import TEST_SEED, TrainConfig, Trainer, TrainRecord, TrainSnapshot

HALF_LOSS = math.log(2)  # of always answering p = 1/2
_STUCK_STEPS = 100
_STUCK_WITHIN = 0.1
_GOOD = 0.95
_LEARNED = 0.75
_STAYS_WITHIN = 0.05
_NEAR_ZERO = 0.1
_HALF = (0.4, 0.6)
_NAMES = {
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


class Fate(IntEnum):
    """What moving the marker can do to the accuracy, in the order of a question."""

    STAYS = 0
    HALF = 1
    NEAR_ZERO = 2
    BETWEEN = 3


class Tested(NamedTuple):
    """An evaluation: after which step, and the share of right answers in [0, 1]."""

    step: int
    accuracy: float


class MovedMarker(NamedTuple):
    """How a trained model answers sequences whose marker stands elsewhere.

    Attributes:
        position: Where the marker stands, counted without the CLS token.
        accuracy: Share of right answers on the test sequences, in [0, 1].
        unmoved: The same model's share where the marker stands at 0, as in training.
        snapshot: What the model attends to in the first of them.
    """

    position: int
    accuracy: float
    unmoved: float
    snapshot: TrainSnapshot


class OtherLength(NamedTuple):
    """How a model answers sequences of another length, beside those of its own.

    Attributes:
        seq_len: The other length.
        num_tested: Sequences of that length it was tested on.
        accuracy: Share of right answers there, in [0, 1].
        own_len: Length it was trained at.
        own_accuracy: Share of right answers at that length, by the same model.
    """

    seq_len: int
    num_tested: int
    accuracy: float
    own_len: int
    own_accuracy: float


def test_at_length(trainer: Trainer, seq_len: int) -> OtherLength:
    """Return the accuracy on test sequences of another length, marker at position 0.

    Raises:
        RefusedError: If the length is out of range, or runs past learned positions.
    """
    config = trainer.config
    return OtherLength(
        seq_len,
        config.num_tested_at(seq_len),
        trainer.evaluate(seq_len=seq_len),
        config.seq_len,
        trainer.evaluate(),
    )


def length_sentence(found: OtherLength) -> str:
    """Return what the other length did to the accuracy."""
    return (
        f"Trained at length {found.own_len}: test accuracy "
        f"{100 * found.own_accuracy:.1f} % there, {100 * found.accuracy:.1f} % at "
        f"length {found.seq_len}, on {found.num_tested:,} sequences."
    )


def move_marker(trainer: Trainer, position: int) -> MovedMarker:
    """Return accuracy and attention with the marker moved to ``position``.

    Raises:
        ValueError: If the position is not one of the sequence, or if the attention is
            no longer made of numbers.
    """
    snapshot = trainer.snapshot(position=position)
    if not is_sound(snapshot):
        raise RefusedError(
            "The attention of this model is no longer made of numbers, so the marker "
            "cannot be tested elsewhere."
        )
    unmoved = trainer.evaluate()
    return MovedMarker(position, trainer.evaluate(position=position), unmoved, snapshot)


def is_sound(snapshot: TrainSnapshot) -> bool:
    """Return whether all weights of a snapshot are finite numbers."""
    rows = snapshot.readout_rows
    return rows is None or bool(torch.isfinite(rows).all())


def failing_step(records: Sequence[Any]) -> int | None:
    """Return the step whose loss or gradient is not finite; None without one."""
    if not records:
        return None
    last = records[-1]
    sound = math.isfinite(last.loss) and math.isfinite(last.gradient_norm)
    return None if sound else last.step


@functools.lru_cache(maxsize=64)
def first_test(config: TrainConfig) -> tuple[Tensor, int]:
    """Return the first test sequence (T,) of a run, and its class y."""
    inputs, targets = marker_task(config.test_samples, config.seq_len, seed=TEST_SEED)
    return inputs[0, :, 0], int(targets[0])


def task_sentence(target: int) -> str:
    """Return what a sequence of class ``target`` is, and what y and p stand for."""
    sign = "+1" if target else "-1"
    return (
        f"The marker at position 0 is {sign}, so y = {target}; the rest is noise. "
        "y is 1 where the marker is +1, else 0; p is the model's answer, the "
        "probability it gives to y = 1."
    )


def run_label(config: TrainConfig) -> str:
    """Return a short name of a run: what differs from the preset, and the seed."""
    preset = TrainConfig()
    changed = [
        f"{shown} {plain(getattr(config, name))}"
        for name, shown in _NAMES.items()
        if getattr(config, name) != getattr(preset, name)
    ]
    return ", ".join([*(changed or ["preset"]), f"seed {config.seed}"])


def differences(
    own: Any,
    other: Any,
    names: Mapping[str, str] | None = None,
    said: Callable[[str, Any], str] | None = None,
) -> str:
    """Return what differs between the settings of a run and others, in words.

    Args:
        own: Settings of the run, a dataclass.
        other: Others of the same kind.
        names: Field to its name in words; those of the marker task where None.
        said: Writes the value of a field; as it is where None.
    """
    names = _NAMES if names is None else names
    said = said or (lambda _, value: plain(value))
    parts = []
    for name in (field.name for field in fields(own)):
        mine, theirs = getattr(own, name), getattr(other, name)
        if mine != theirs:
            shown = names.get(name, name.replace("_", " "))
            parts.append(f"{shown} {said(name, mine)} here, {said(name, theirs)} there")
    return "; ".join(parts)


def plain(value: object) -> str:
    """Return a setting as it is written, a number without needless digits."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def estimate_sentence(config: TrainConfig) -> str:
    """Return about how long a whole run takes at this size."""
    tests = config.max_steps / config.eval_every * config.num_tested
    seconds = (
        config.max_steps * config.batch_size * config.model.step_seconds
        + tests * config.model.test_seconds
    )
    time = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(1, seconds):.0f} s"
    return f"{config.max_steps:,} steps: about {time} at this size on two CPU cores."


def marker_column(config: TrainConfig, position: int = 0) -> int:
    """Return the column of the marker in the maps; a CLS token stands before it."""
    return position + (config.readout == "cls")


def notes_on(config: TrainConfig) -> list[str]:
    """Return what follows from the settings alone, before any training."""
    notes = []
    if config.causal and config.readout == "cls":
        notes.append(
            "Under the causal mask CLS, before the sequence, may read itself alone: "
            "every sequence gets the same answer. Read the last position or the mean."
        )
    if config.causal and config.positional == "none" and config.readout != "cls":
        notes.append(
            "No positions are added, yet a causal mask leaks order: position t sees "
            "t + 1 tokens."
        )
    return notes


def last_test(records: Sequence[TrainRecord]) -> Tested | None:
    """Return the last evaluation; None before the first."""
    for record in reversed(records):
        if record.accuracy is not None:
            return Tested(record.step, record.accuracy)
    return None


def is_stuck(records: Sequence[TrainRecord]) -> bool:
    """Return whether each of the last 100 losses lies within 0.1 of ln 2."""
    last = records[-_STUCK_STEPS:]
    near = (abs(record.loss - HALF_LOSS) <= _STUCK_WITHIN for record in last)
    return len(last) == _STUCK_STEPS and all(near)


def progress_sentence(records: Sequence[TrainRecord], num_tested: int) -> str:
    """Return where the run stands, in one sentence.

    Args:
        records: Records of the run so far.
        num_tested: Test sequences of an evaluation.
    """
    if not records:
        return (
            "Before training; always answering p = 1/2 has the loss ln 2 = "
            f"{HALF_LOSS:.3f}."
        )
    last, tested = records[-1], last_test(records)
    measured = (
        "test accuracy not measured yet"
        if tested is None
        else f"test accuracy {100 * tested.accuracy:.1f} % at step {tested.step}, "
        f"on {num_tested:,} sequences"
    )
    coin = (
        f" The last {_STUCK_STEPS} losses all lie within {_STUCK_WITHIN} of "
        f"ln 2 = {HALF_LOSS:.3f}, the loss of always answering p = 1/2."
        if is_stuck(records)
        else ""
    )
    if failing_step(records) is not None:
        return (
            f"Step {last.step}: loss or gradient is no longer finite; "
            f"{_last_finite(records)}{measured}."
        )
    return f"Step {last.step}: loss {last.loss:.3f}, {measured}.{coin}"


def _last_finite(records: Sequence[TrainRecord]) -> str:
    finite = [record for record in records if math.isfinite(record.loss)]
    if not finite:
        return ""
    return f"last finite loss {finite[-1].loss:.4g} at step {finite[-1].step}; "


def shipped_sentence(run: ShippedRun) -> str:
    """Return what a shipped run reached."""
    learned = [r.step for r in run.records if (r.accuracy or 0) >= _GOOD]
    good = f"at {100 * _GOOD:.0f} % or more"
    reached = f"first {good} at step {learned[0]}" if learned else f"never {good}"
    return f"Grey: a shipped run of the preset, {reached}."


def readout_sentence(
    rows: Tensor, config: TrainConfig, *, step: int, position: int = 0
) -> str:
    """Return where the readout peaks and what the marker gets, layer by layer.

    Args:
        rows: Weights of the readout, (num_layers, H, S).
        config: Settings of the run.
        step: Steps the model was trained.
        position: Where the marker stands, counted without the CLS token.
    """
    start = marker_column(config, 0)  # the columns of the sequence begin here
    name = {"cls": "CLS", "mean": "the mean query"}.get(
        config.readout, f"the {config.readout} position"
    )
    parts = []
    for number, weights in enumerate(rows.mean(dim=1), start=1):
        peak = int(torch.argmax(weights))
        place = "CLS" if peak < start else f"position {peak - start}"
        parts.append(
            f"layer {number}: peak at {place} with {100 * weights[peak]:.1f} %, "
            f"marker {100 * weights[start + position]:.1f} %"
        )
    head = f"Weights of {name} after step {step}, mean over heads. "
    return head + "; ".join(parts) + "."


def moved_sentence(moved: MovedMarker) -> str:
    """Return what moving the marker did to the accuracy."""
    return (
        f"Test accuracy {100 * moved.accuracy:.1f} % with the marker at position "
        f"{moved.position}; at position 0, where training had it: "
        f"{100 * moved.unmoved:.1f} %."
    )


def has_learned(moved: MovedMarker) -> bool:
    """Return whether the accuracy is at least 75 % where the marker was trained."""
    return moved.unmoved >= _LEARNED


def fate_of_accuracy(moved: MovedMarker) -> Fate:
    """Return the fate: it stays within 5 points, is 40 to 60 %, or at most 10 %."""
    if moved.accuracy >= moved.unmoved - _STAYS_WITHIN:
        return Fate.STAYS
    if _HALF[0] <= moved.accuracy <= _HALF[1]:
        return Fate.HALF
    return Fate.NEAR_ZERO if moved.accuracy <= _NEAR_ZERO else Fate.BETWEEN
