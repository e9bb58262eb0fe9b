"""What stands beside a weight in numbers: influence, and what is left without heads.

Layers and heads are counted from 1 here, as on the page; head 0 is the mean of all
heads of a layer.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from torch import Tensor

from core import captions
from core.influence import Influences
from core.models import ClassifierConfig
from core.reading import NUM_SEQUENCES, Reading
from core.reading_story import of_head, percent, share

_AMONG = 5  # inputs that move the answer most
_FLAT = 10  # times the largest slope that noise has to move a flat answer


class Largest(IntEnum):
    """How far the input with the largest weight moves the answer, beside the others."""

    FIRST = 0
    AMONG_FIVE = 1
    FURTHER_DOWN = 2


class Measure(NamedTuple):
    """One number for each input: the weight, or a measure of influence."""

    key: str
    title: str
    unit: str
    values: Tensor
    signed: bool
    own: bool  # whether it belongs to the map that is named, not to the whole model

    @property
    def largest(self) -> float:
        """Largest size among them."""
        return float(self.values.abs().max())


def measures(found: Influences) -> list[Measure]:
    """Return the weight and the three measures of influence, in the order drawn."""
    return [
        Measure("weight", "weight", "weight", found.weight, False, True),
        Measure(
            "occlusion",
            "Input replaced by noise",
            "change of logit",
            found.occlusion,
            False,
            False,
        ),
        Measure(
            "contribution",
            "what it hands on",
            "‖a·v·W_O‖",
            found.contribution,
            False,
            True,
        ),
        Measure(
            "gradient", "Gradient × input", "x · ∂logit/∂x", found.gradient, True, False
        ),
    ]


def largest_input(reading: Reading, layer: int, head: int) -> int | None:
    """Return which input has the largest weight in the readout's row; CLS is none.

    None where the row gives no input any weight.
    """
    row = of_head(reading.rows, layer, head)[-len(reading.inputs) :]
    return int(row.argmax()) if row.any() else None


def correlation_sentence(found: Influences) -> str:
    """Return the rank correlation of each measure of influence with the weight."""
    said = []
    for measure in measures(found)[1:]:
        found_at = found.correlations[measure.key]
        size = ", by size" if measure.signed else ""
        shown = "not defined" if found_at is None else f"{found_at:+.2f}"
        said.append(f"{measure.title.lower()}{size} {shown}")
    return f"Rank correlation with the weight: {'; '.join(said)}."


def cls_sentence(reading: Reading, layer: int, head: int) -> str:
    """Return how much of the readout's row lies on CLS, "" where there is none."""
    if len(reading.labels) == len(reading.inputs):
        return ""
    cls = of_head(reading.rows, layer, head)[0]
    return (
        f"CLS itself holds {share(cls)} of this row; the panel shows the inputs, "
        f"{share(1 - cls)} in all."
    )


def influence_sentence(found: Influences, name: str) -> str:
    """Return which input has the largest weight, and which moves the answer most."""
    weight, moved = int(found.weight.argmax()), int(found.occlusion.argmax())
    most = captions.distance(float(found.occlusion[moved]))
    if not found.weight.any():
        return (
            f"{name}: no input has a weight; position {moved} moves the logit most, "
            f"by {most}."
            if found.occlusion.any()
            else f"{name}: no input has a weight, and none moves the logit."
        )
    rank = rank_of_largest(found)
    said = (
        f"{name}: position {weight} has the largest weight of the inputs, "
        f"{share(found.weight[weight])}; replaced by noise, it moves the logit by "
        f"{captions.distance(float(found.occlusion[weight]))}, rank {rank} of "
        f"{len(found.weight)}."
    )
    if weight == moved:
        return said
    return f"{said} Position {moved} moves it most, by {most}."


def slope_sentence(found: Influences) -> str:
    """Return that slopes near 0 are no small influence, "" where they are not so."""
    moved, steepest = int(found.occlusion.argmax()), float(found.gradient.abs().max())
    most = float(found.occlusion[moved])
    if steepest * _FLAT >= most:
        return ""
    return (
        f"The answer is flat here: gradient × input is at most "
        f"{captions.distance(steepest)} in size, though noise at position {moved} "
        f"moves the logit by {captions.distance(most)}. A slope tells of a small step "
        "alone."
    )


def rank_of_largest(found: Influences) -> int:
    """Return the rank by occlusion, from 1, of the input with the largest weight."""
    moved = found.occlusion
    return 1 + int((moved > moved[found.weight.argmax()]).sum())


def fate_of_largest(found: Influences) -> Largest:
    """Return where the input with the largest weight stands among the influential."""
    rank = rank_of_largest(found)
    if rank == 1:
        return Largest.FIRST
    return Largest.AMONG_FIVE if rank <= _AMONG else Largest.FURTHER_DOWN


def off_choices(config: ClassifierConfig) -> dict[str, frozenset[tuple[int, int]]]:
    """Return what can be switched off: whole layers, then single heads, from 0."""
    layers, heads = range(config.num_layers), range(config.num_heads)
    whole = {f"layer {i + 1}": frozenset((i, h) for h in heads) for i in layers}
    single = {
        f"layer {i + 1}, head {h + 1}": frozenset({(i, h)})
        for i in layers
        for h in heads
    }
    return whole | single


def off_sentence(before: float, after: float, picked: Sequence[str], count: int) -> str:
    """Return what switching off did to the accuracy, and on how many sequences."""
    on = _tested_words(count)
    if not picked:
        return f"Nothing is off: {percent(before)} right of {on}."
    return (
        f"Off: {'; '.join(picked)}. Test accuracy {percent(before)} before, "
        f"{percent(after)} after, on {on}; nothing is trained again."
    )


def _tested_words(count: int) -> str:
    """Return how many test sequences are answered, and why not all of them."""
    if count == NUM_SEQUENCES:
        return f"all {count:,} test sequences"
    return (
        f"the first {count:,} of {NUM_SEQUENCES:,} test sequences, as many as are "
        "answered while you wait"
    )


def more_off_sentence(
    heads: Tensor, layers: Tensor, off: frozenset[tuple[int, int]], after: float
) -> str:
    """Return that less off is worse, "" where no part of what is off is worse.

    Args:
        heads: Accuracies with one head off at a time, (L, H), in [0, 1].
        layers: Accuracies with one layer off at a time, (L,).
        off: Pairs (layer, head) that are off together, both from 0.
        after: Accuracy with all of them off, on the same sequences.
    """
    num_heads = heads.shape[1]
    parts = {
        f"layer {i + 1}, head {h + 1}": (frozenset({(i, h)}), heads[i, h])
        for i, h in off
    }
    for i, accuracy in enumerate(layers):
        whole = frozenset((i, h) for h in range(num_heads))
        parts[f"layer {i + 1}"] = whole, accuracy
    worse = {
        name: float(accuracy)
        for name, (part, accuracy) in sorted(parts.items())
        if part < off and float(accuracy) < after
    }
    if not worse:
        return ""
    name = min(worse, key=lambda each: worse[each])
    return (
        f"More off is not always worse: {name} alone off leaves "
        f"{percent(worse[name])}, all that is off here {percent(after)}."
    )


def ablation_rows(heads: Tensor, layers: Tensor) -> list[list[str]]:
    """Return the accuracy with one head off at a time, and with a whole layer off.

    Args:
        heads: Accuracies, (L, H), in [0, 1].
        layers: Accuracies, (L,).
    """
    return [
        [
            f"layer {number}",
            *(percent(accuracy) for accuracy in row.tolist()),
            f"**{percent(whole)}**",
        ]
        for number, (row, whole) in enumerate(
            zip(heads, layers.tolist(), strict=True), start=1
        )
    ]


def ablation_sentence(heads: Tensor, layers: Tensor, before: float) -> str:
    """Return which single head, and which layer, costs most when it is off."""
    layer, head = divmod(int(heads.argmin()), heads.shape[1])
    least = float(heads.min())
    if least >= before:
        single = "No single head lowers the accuracy"
    else:
        single = (
            f"The head whose loss costs most is layer {layer + 1}, head {head + 1}: "
            f"{percent(least)} without it"
        )
    return (
        f"{single}; of whole layers, layer {int(layers.argmin()) + 1} off leaves "
        f"{percent(float(layers.min()))}, {percent(before)} with all on."
    )


def points(change: float) -> str:
    """Return a change of a share in percentage points, with its sign."""
    return f"{100 * change:+.1f} points"
