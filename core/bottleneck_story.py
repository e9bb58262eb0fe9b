"""What the page on the bottleneck says, worked out from its runs and maps."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from core.bottleneck import LENGTHS, SEEDS, LengthResult, LengthRun
from core.bottleneck_reading import END_SIGN, Change, Reading, spread_of
from core.captions import figure, listed, percent, row_sentence
from core.text_tasks import TextTask
from core.tokens import token_labels

NAMES = {"none": "no attention", "additive": "additive", "dot": "dot product"}
MEASURES = {
    "exact": "whole strings right",
    "letters": "letters right, given the true ones before",
}
HALF = 0.5
_BANDS = (8, LENGTHS[-1])  # lengths at which the answers of the prediction change

Points = list[tuple[int, float]]


def points_of(results: Sequence[LengthResult], measure: str) -> Points:
    """Return (length, share) of the results of one run."""
    return [(result.length, getattr(result, measure)) for result in results]


def name_of(run: LengthRun, *, by_context: bool = False) -> str:
    """Return what a run is called in a picture."""
    if by_context:
        return f"{run.passed_on} numbers"
    return NAMES[run.attention]


def seed_curves(
    runs: Sequence[LengthRun], measure: str, *, by_context: bool = False
) -> dict[tuple[str, int], Points]:
    """Return the curve of every run, by its name and seed."""
    return {
        (name_of(run, by_context=by_context), run.seed): points_of(run.results, measure)
        for run in runs
    }


def median_curves(curves: Mapping[tuple[str, int], Points]) -> dict[str, Points]:
    """Return the median over the seeds at each length, by name."""
    grouped: dict[str, list[Points]] = {}
    for (name, _), points in curves.items():
        grouped.setdefault(name, []).append(points)
    return {
        name: [
            (same[0][0], statistics.median(share for _, share in same))
            for same in zip(*found, strict=True)
        ]
        for name, found in grouped.items()
    }


def reach_of(points: Points, share: float = HALF) -> int:
    """Return the longest length up to which every share is at least ``share``.

    Args:
        points: (length, share), lengths ascending.
        share: The least share.

    Returns:
        The length; 0 where the first one already falls below.
    """
    reached = 0
    for length, found in points:
        if found < share:
            break
        reached = length
    return reached


def length_sentence(runs: Sequence[LengthRun], measure: str) -> str:
    """Say what the median share of each model is at the shortest and longest length."""
    curves = median_curves(seed_curves(runs, measure))
    parts = [
        f"{percent(points[0][1])} to {percent(points[-1][1])} ({name})"
        for name, points in curves.items()
    ]
    first, last = runs[0].results[0].length, runs[0].results[-1].length
    return (
        f"{MEASURES[measure].capitalize()}, from {first} to {last} letters, median of "
        f"{len(SEEDS)} seeds: {listed(parts)}."
    )


def reach_sentence(runs: Sequence[LengthRun], *, by_context: bool = False) -> str:
    """Say up to which length each curve has at least half of the strings right."""
    curves = median_curves(seed_curves(runs, "exact", by_context=by_context))
    parts = [
        f"{_reached(reach_of(points))} ({name})" for name, points in curves.items()
    ]
    return f"At least half of the strings are right {listed(parts)}."


def width_sentence(runs: Sequence[LengthRun]) -> str:
    """Say whether a larger context reached further, width after width."""
    curves = median_curves(seed_curves(runs, "exact", by_context=True))
    reached = [reach_of(points) for points in curves.values()]
    names = list(curves)
    grew = all(a <= b for a, b in pairwise(reached))
    if grew and reached[0] < reached[-1]:
        return (
            f"The length reached never falls as the context grows from {names[0]} to "
            f"{names[-1]}."
        )
    return "The length reached does not grow with every step of the context."


def apart_sentence(runs: Sequence[LengthRun], measure: str) -> str:
    """Say the median share of each width where the widths lie furthest apart.

    Args:
        runs: Without attention, of several widths of the context.
        measure: Name in ``MEASURES``.
    """
    curves = median_curves(seed_curves(runs, measure, by_context=True))
    by_length = list(zip(*curves.values(), strict=True))
    shares = [[share for _, share in same] for same in by_length]
    at = max(range(len(shares)), key=lambda n: max(shares[n]) - min(shares[n]))
    parts = [
        f"{percent(share)} ({name})"
        for share, name in zip(shares[at], curves, strict=True)
    ]
    return (
        f"{MEASURES[measure].capitalize()} at {by_length[at][0][0]} letters, median of "
        f"{len(SEEDS)} seeds: {listed(parts)}."
    )


def here_sentence(results: Sequence[LengthResult], measure: str) -> str:
    """Say what a run made here has so far."""
    points = points_of(results, measure)
    shares = [f"{percent(share)} at {length}" for length, share in points]
    return f"Run here, {MEASURES[measure]}: {listed(shares)} letters."


def right_band(runs: Sequence[LengthRun]) -> int:
    """Return which answer of the prediction is right: how far no attention reaches.

    Returns:
        0 for every length tested, 1 for 8 letters and more, 2 for fewer, 3 for none.
    """
    plain = [run for run in runs if run.attention == "none"]
    (points,) = median_curves(seed_curves(plain, "exact")).values()
    reached = reach_of(points)
    if reached >= _BANDS[1]:
        return 0
    return 1 if reached >= _BANDS[0] else 2 if reached else 3


def answer_sentence(reading: Reading, task: TextTask) -> str:
    """Say what the model wrote and whether it is right.

    Args:
        reading: The answer.
        task: What the model was trained on.
    """
    ended = reading.answer[-1:] == (END_SIGN,)
    written = task.write(reading.answer[: len(reading.answer) - ended])
    stopped = "" if ended else ", cut off at the limit"
    said = f'From "{task.write(reading.source)}" the model writes "{written}"{stopped}'
    if not reading.wrong:
        return f"{said}: right."
    return f'{said}; right is "{task.write(reading.right[:-1])}".'


def step_sentence(reading: Reading, step: int) -> str:
    """Say where one step of the decoder puts most of its weight.

    Args:
        reading: Of a model with attention.
        step: The step, from 0.
    """
    assert reading.weights is not None
    keys, label = token_labels(reading.source), output_labels(reading)[step]
    said = row_sentence(reading.weights[step], label, keys)
    return f"Step {step}: {said}."


def output_labels(reading: Reading) -> list[str]:
    """Return a label for each output, no two equal."""
    return token_labels(reading.answer)


def alignment_sentences(reading: Reading) -> list[str]:
    """Say how spread the rows of the map are and where their mass lies.

    Args:
        reading: Of a model with attention.
    """
    assert reading.weights is not None
    spread = spread_of(reading.weights)
    num_keys = reading.weights.shape[1]
    rows = len(spread.on_source)
    offset, count = Counter(spread.offsets.tolist()).most_common(1)[0]
    low, high = float(spread.entropy.min()), float(spread.entropy.max())
    mean = float(spread.entropy.mean())
    return [
        f"Entropy of a row: {figure(mean)} bits on average, {figure(low)} to "
        f"{figure(high)}; even weights would have log₂ {num_keys} = "
        f"{figure(math.log2(num_keys))}.",
        f"On the letter that an output has to write lies "
        f"{percent(float(spread.on_source.mean()))} of its weight on average, and "
        f"{percent(float(spread.near_source.mean()))} on it and its neighbours. Of "
        f"these {rows} outputs, {count} have their largest weight {_beside(offset)}.",
    ]


def row_numbers(reading: Reading) -> list[tuple[str, str, str, str]]:
    """Return output, entropy in bits, its first key and that weight, one row each."""
    assert reading.weights is not None
    spread = spread_of(reading.weights)
    keys = token_labels(reading.source)
    return [
        (label, figure(float(entropy)), keys[int(row.argmax())], _max_percent(row))
        for label, entropy, row in zip(
            output_labels(reading), spread.entropy, reading.weights, strict=True
        )
    ]


def change_sentence(reading: Reading, change: Change, state: str) -> str:
    """Say which outputs moved, by how much, and which first choices changed.

    Args:
        reading: Before the change.
        change: What it moved.
        state: What was done, such as ``State 3 ("e") set to zeros``.
    """
    moved, labels = change.moved.double(), output_labels(reading)
    if not bool((moved > 0).any()):
        return f"{state}: no output moves, all distances are exactly 0."
    still = int((moved == 0).sum())
    stayed = f"{still} of {len(moved)} do not move" if still else "all of them move"
    most = int(moved.argmax())
    new = [
        f'"{label}" becomes "{after}"'
        for label, before, after in zip(
            labels, reading.answer, change.choices, strict=True
        )
        if before != after
    ]
    said = f"{listed(new)}" if new else "every first choice stays"
    size = figure(float(moved[most]))
    return (
        f'{state}: output "{labels[most]}" moves most, by {size}; '
        f"{stayed}. Of the first choices, {said}."
    )


def _beside(offset: int) -> str:
    """Return where a state lies beside the letter to be written, in words."""
    if offset == 0:
        return "on the state of that letter"
    count = f"{abs(offset)} {'letter' if abs(offset) == 1 else 'letters'}"
    if offset > 0:
        return f"{count} further right, on a state that has read that letter too"
    return f"{count} further left, on a state that has not read that letter yet"


def _reached(length: int) -> str:
    return f"up to {length} letters" if length else "at no length"


def _max_percent(row: object) -> str:
    return percent(float(row.max()))  # type: ignore[attr-defined]
