"""What the maps of a trained model say in numbers, and what they do not say.

Layers and heads are counted from 1 here, as on the page; head 0 is the mean of all
heads of a layer.
"""

import math
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from core import captions
from core.captions import counted
from core.charts.palette import nice_limit
from core.checks import RefusedError
from core.masks import causal_mask
from core.models import ClassifierConfig
from core.reading import NUM_SEQUENCES, ManyReadings, Reading
from core.trained import TrainedModel

MEAN = 0  # number of the "head" that is the mean of all
_LEARNED = 0.75
_TIMES_EVEN = 6  # at the end of the colours
_LONGEST = 2.0  # seconds that a page may work on one picture
_READERS = {
    "cls": "CLS",
    "mean": "the mean query",
    "last": "the last position",
    "first": "the first position",
}


def run_words(trained: TrainedModel, whose: str, *, sound: bool) -> str:
    """Return whose maps these are, and the model's steps, accuracy and size.

    One that is not sound, whose answers are no numbers, has no accuracy.
    """
    config = trained.config
    if not sound:
        measured = "no test accuracy"
    elif trained.accuracy is None:
        measured = "test accuracy not measured"
    else:
        measured = f"test accuracy {percent(trained.accuracy)}"
    parts = [
        whose,
        counted(trained.steps, "training step"),
        measured,
        f"length {config.seq_len}",
        counted(config.num_layers, "layer"),
        counted(config.num_heads, "head"),
        f"readout {config.readout}",
        *(["causal mask"] if config.causal else []),
    ]
    return " · ".join(parts)


def doubts(trained: TrainedModel, *, sound: bool) -> list[str]:
    """Return what a reader of these maps has to know first; none of a good run.

    Of one that is not sound there are no maps to read.
    """
    said: list[str] = []
    if not sound:
        return said
    if trained.accuracy is not None and trained.accuracy < _LEARNED:
        said.append(
            "This run has not learned the task: it answers "
            f"{percent(trained.accuracy)} right, a coin 50 %. Its maps show no "
            "solution."
        )
    if trained.config.causal:
        said.append(_causal_words(trained.config))
    return said


def _causal_words(config: ClassifierConfig) -> str:
    """Return what a causal mask makes of the first row, and of an answer from it."""
    first = "CLS" if config.readout == "cls" else "0"
    said = (
        f"Causal mask: row {first} of every map is all on key {first} by necessity, "
        "for it may read nothing else."
    )
    reached = {"cls": "no input", "first": "no input but position 0"}
    if config.readout not in reached:
        return said
    inputs = reached[config.readout]
    return f"{said} The answer is read from that row: {inputs} reaches it."


def map_name(layer: int, head: int, num_heads: int) -> str:
    """Return whose map it is: of one head, or the mean of all heads of a layer."""
    if head == MEAN:
        return f"Layer {layer}, mean of {counted(num_heads, 'head')}"
    return f"Layer {layer}, head {head}"


def of_head(tensors: Tensor, layer: int, head: int) -> Tensor:
    """Return the entry of a layer and head of (L, H, ...), or the mean of its heads."""
    heads = tensors[layer - 1]
    return heads.mean(dim=0) if head == MEAN else heads[head - 1]


def percent(share: float) -> str:
    """Return a share with one decimal, "100 %" for all of them alone."""
    return "100 %" if share == 1 else f"{min(100 * share, 99.9):.1f} %"


def require_sound(reading: Reading) -> Reading:
    """Return the reading if its weights and its answer are numbers.

    Raises:
        RefusedError: If they are not; the model has diverged.
    """
    if not (math.isfinite(reading.logit) and reading.maps.isfinite().all()):
        raise RefusedError(
            "The attention or the answer of this model is no longer made of numbers, "
            "so there is nothing to read."
        )
    return reading


def key_names(labels: Sequence[str]) -> list[str]:
    """Return the positions as a sentence names them: "CLS", "position 0", ..."""
    return [f"position {name}" if name.isdigit() else name for name in labels]


def map_axes(config: ClassifierConfig) -> dict[str, list[str]]:
    """Return the names along both axes of a map; CLS stands before position 0."""
    before = ["CLS"] * (config.num_positions - config.seq_len)
    names = [*before, *(str(position) for position in range(config.seq_len))]
    return {"query": names, "key": names}


def reader(config: ClassifierConfig) -> str:
    """Return who reads: the query whose vector the answer is taken from."""
    return _READERS[config.readout]


def row_panels(
    reading: Reading, layers: Sequence[int]
) -> list[list[tuple[str, np.ndarray]]]:
    """Return, layer by layer, the readout's row in each head and their mean."""
    heads = range(1, reading.rows.shape[1] + 1)
    return [
        [
            (
                map_name(layer, head, len(heads)),
                of_head(reading.rows, layer, head).numpy(),
            )
            for head in (*heads, MEAN)
        ]
        for layer in layers
    ]


def answer_sentence(reading: Reading) -> str:
    """Return what the model answers to the sequence."""
    right = (reading.logit > 0) == (reading.target == 1)
    marker = reading.labels[reading.marker_at]
    return (
        f"Test sequence {reading.sequence}: the marker at position {marker} is "
        f"{'+1' if reading.target else '-1'}; the model gives p = "
        f"{captions.figure(reading.probability)} to class 1, which is "
        f"{'right' if right else 'wrong'}."
    )


def row_sentences(
    reading: Reading, config: ClassifierConfig, *, head: int = MEAN
) -> list[str]:
    """Return, layer by layer, where the readout reads, beside the same for every key.

    The rows are those of one head in every layer, or the means over all heads.
    """
    layers = [
        f"{map_name(layer, head, config.num_heads)}: {reader(config)} reads "
        f"{peak_words(of_head(reading.rows, layer, head), reading)}."
        for layer in range(1, config.num_layers + 1)
    ]
    even = share(1 / len(reading.labels))
    return [*layers, f"Dashed: the same weight for each of the keys, {even}."]


def peak_words(row: Tensor, reading: Reading) -> str:
    """Return where a row is largest, and what it gives to the marker."""
    peak, at = int(row.argmax()), reading.marker_at
    name = key_names(reading.labels)[peak]
    if peak == at:
        return f"most from the marker, {name}, with {share(row[at])}"
    return f"most from {name}, {share(row[peak])}, and {share(row[at])} from the marker"


def map_sentence(reading: Reading, layer: int, head: int) -> str:
    """Return the largest weight of a map, and where the readout's row is largest."""
    matrix = of_head(reading.maps, layer, head)
    top = captions.map_sentence(matrix, reading.labels, reading.labels)
    name = map_name(layer, head, reading.maps.shape[1])
    row = peak_words(of_head(reading.rows, layer, head), reading)
    return f"{name}, {top}. The readout reads {row}."


def preset_limit(config: ClassifierConfig) -> float:
    """Return where the colours end at first: some times the same weight for all."""
    return min(1.0, nice_limit(_TIMES_EVEN / config.num_positions))


def every_words(limit: float) -> str:
    """Return what the picture of all maps shows."""
    end = "1 (yellow)" if limit == 1 else f"{limit:g} or more (yellow)"
    return f"All maps on one scale, 0 (dark) to {end}; rows read, columns are read."


def mask_of(config: ClassifierConfig) -> Tensor | None:
    """Return the mask of the model's maps, (S, S), True = may attend, if it has one."""
    return causal_mask(config.num_positions) if config.causal else None


def many_sentence(many: ManyReadings, layer: int, head: int) -> str:
    """Return what the readout gives to the marker, on average and with its spread."""
    mean, spread = (
        of_head(rows, layer, head)[many.marker_at]
        for rows in (many.rows_mean, many.rows_spread)
    )
    own = " (mean of the heads' own)" if head == MEAN else ""
    return (
        f"{map_name(layer, head, many.mean.shape[1])}, over {many.count:,} test "
        f"sequences: the readout gives the marker {share(mean)} on average, "
        f"with a standard deviation of {share(spread)}{own}."
    )


def affordable(
    config: ClassifierConfig, passes: int, *, seconds: float, fewest: int
) -> int:
    """Return how many test sequences can be answered ``passes`` times in that time.

    Args:
        config: Sizes of the model.
        passes: How often each sequence is answered.
        seconds: About how long two CPU cores may take.
        fewest: What is returned where not even that many can be afforded.

    Returns:
        At least ``fewest`` and at most all test sequences.
    """
    each = passes * config.test_seconds
    return min(NUM_SEQUENCES, max(fewest, int(seconds / each)))


def is_affordable(config: ClassifierConfig, answers: int) -> bool:
    """Return whether so many answers take no longer than anybody waits for a page."""
    return answers * config.test_seconds <= _LONGEST


def require_affordable(config: ClassifierConfig, answers: int) -> None:
    """Refuse what would keep a page from answering.

    Raises:
        RefusedError: If so many answers of the model take too long.
    """
    if not is_affordable(config, answers):
        raise RefusedError(
            f"{counted(config.num_layers, 'layer')}, "
            f"{counted(config.num_heads, 'head')} and length {config.seq_len} would "
            f"take about {answers * config.test_seconds:.0f} s here; it must be at "
            f"most {_LONGEST:g} s. Read a smaller run."
        )


def share(weight: Tensor | float) -> str:
    """Return a weight as a percentage with one decimal."""
    return f"{100 * float(weight):.1f} %"
