"""What the page on the bottleneck says of its runs, by length of the source."""

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile

from core.bottleneck import (
    LENGTHS,
    SEEDS,
    LengthResult,
    LengthRun,
    WatchRecord,
    latest_results,
)
from core.captions import listed, unbroken
from core.captions import percent as spaced_percent

NAMES = {"none": "no attention", "additive": "additive", "dot": "dot product"}
MEASURES = {
    "exact": "whole strings right",
    "letters": "letters right, given the true ones before",
}
HALF = 0.5
_BANDS = (8, LENGTHS[-1])  # lengths at which the answers of the prediction change

Points = list[tuple[int, float]]


def percent(share: float) -> str:
    """Return a share as a whole percentage in which no line breaks."""
    return unbroken(spaced_percent(share))


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
    """Say up to which tested length each curve has at least half of the strings right.

    Lengths between those tested are not spoken of.
    """
    curves = median_curves(seed_curves(runs, "exact", by_context=by_context))
    parts = [
        f"{_reached(reach_of(points))} ({name})" for name, points in curves.items()
    ]
    tested = [result.length for result in runs[0].results]
    return (
        f"Whole strings, of the lengths tested ({_series(tested)}): at least half are "
        f"right {listed(parts)}."
    )


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


def here_sentence(
    records: Sequence[WatchRecord], measure: str, *, max_steps: int
) -> str:
    """Say what a run made here has, and after how many steps while it is not done.

    Args:
        records: What it has brought, at least one tested length.
        measure: Name in ``MEASURES``.
        max_steps: Steps of the whole run.
    """
    tested = {r.result.length: r.step for r in records if r.result is not None}
    first, last = min(tested.values()), max(tested.values())
    done = first == max_steps and len(tested) == len(LENGTHS)
    steps = f"{first} to {last}" if first < last else str(last)
    so_far = "" if done else f"so far, after {steps} steps, "
    shares = _by_length(points_of(latest_results(records), measure))
    return f"Run here, {so_far}{MEASURES[measure]}: {shares}."


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


def _by_length(points: Points) -> str:
    """Return the share at each length; equal ones at the end are told once."""
    told = [(length, percent(share)) for length, share in points]
    same = len([*takewhile(lambda found: found[1] == told[-1][1], reversed(told))])
    if same == 1:
        return listed([f"{share} at {length}" for length, share in told]) + " letters"
    parts = [f"{share} at {length}" for length, share in told[:-same]]
    from_on = f"at every tested length from {told[-same][0]} letters on"
    return listed([*parts, f"{told[-1][1]} {from_on}"])


def _series(lengths: Sequence[int]) -> str:
    """Return even steps in short, such as ``2, 4, … 16``."""
    if len(lengths) < 3:
        return ", ".join(map(str, lengths))
    return f"{lengths[0]}, {lengths[1]}, … {lengths[-1]}"


def _reached(length: int) -> str:
    return f"up to {length} letters" if length else "at no length"
