"""What came of a race: curves over steps or seconds, medians, rulers, standings."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import NamedTuple

from core.fair_fight import LOSSES_TOGETHER, FightStep
from core.grid_story import HALF, LEARNED

RunKey = tuple[str, int]


class Point(NamedTuple):
    """One point of a curve: the steps and seconds it took, and what is drawn."""

    step: int
    seconds: float
    value: float


class Standing(NamedTuple):
    """How the seeds of one contender stand at their last look.

    Attributes:
        name: The contender.
        steps: Steps taken by each seed.
        accuracies: Of each seed, in [0, 1].
        reached: Steps and seconds until 95 % of each seed that came there.
    """

    name: str
    steps: tuple[int, ...]
    accuracies: tuple[float, ...]
    reached: tuple[tuple[int, float], ...]

    @property
    def learned(self) -> bool:
        """Whether every seed stands at 95 % or more."""
        return min(self.accuracies) >= LEARNED

    @property
    def near_half(self) -> bool:
        """Whether every seed stands at 40 to 60 %."""
        return all(HALF[0] <= share <= HALF[1] for share in self.accuracies)

    def costs(self, of: str) -> tuple[float, ...]:
        """Return what 95 % cost each seed; nothing unless every seed stands there.

        Args:
            of: "steps" or "seconds".
        """
        place = ("steps", "seconds").index(of)
        return tuple(pair[place] for pair in self.reached) if self.learned else ()


def seed_curves(steps: Sequence[FightStep], kind: str) -> dict[RunKey, list[Point]]:
    """Return the curve of every run: accuracy in percent, or the loss.

    A point of the loss is the mean over ten steps, since single batches jump.

    Args:
        steps: Results of a race.
        kind: "accuracy" or "loss".
    """
    points = _accuracies if kind == "accuracy" else _losses
    return {key: points(run) for key, run in _runs(steps).items()}


def median_curves(curves: Mapping[RunKey, Sequence[Point]]) -> dict[str, list[Point]]:
    """Return for each contender the medians over the seeds that came so far."""
    found: dict[str, dict[int, list[Point]]] = {}
    for (name, _), points in curves.items():
        by_step = found.setdefault(name, {})
        for point in points:
            by_step.setdefault(point.step, []).append(point)
    return {
        name: [_median_point(by_step[step]) for step in sorted(by_step)]
        for name, by_step in found.items()
    }


def rulers(
    steps: Sequence[FightStep], moment: str = "before"
) -> dict[str, tuple[float, ...]]:
    """Return the gradient ruler of each contender, the median over its seeds.

    Args:
        steps: Results of a race.
        moment: "before" training, or "after" the last look so far.
    """
    place = 0 if moment == "before" else -1
    found: dict[str, list[tuple[float, ...]]] = {}
    for (name, _), run in _runs(steps).items():
        read = [step.ruler for step in run if step.ruler is not None]
        if read:
            found.setdefault(name, []).append(read[place])
    return {
        name: tuple(map(median, zip(*read, strict=True)))
        for name, read in found.items()
    }


def standings(steps: Sequence[FightStep]) -> list[Standing]:
    """Return how every contender stands that has been looked at."""
    found: dict[str, list[list[Point]]] = {}
    for (name, _), points in seed_curves(steps, "accuracy").items():
        if points:
            found.setdefault(name, []).append(points)
    return [_standing(name, runs) for name, runs in found.items()]


def step_times(steps: Sequence[FightStep]) -> dict[str, list[float]]:
    """Return the seconds a step of each seed, by contender."""
    found: dict[str, list[float]] = {}
    for (name, _), run in _runs(steps).items():
        if run[-1].step:
            found.setdefault(name, []).append(run[-1].seconds / run[-1].step)
    return found


def seconds_end(steps: Sequence[FightStep]) -> float:
    """Return the end of an axis of seconds: 1, 2 or 5 times a power of ten."""
    longest = max((step.seconds for step in steps), default=0.0)
    ends = (size * 10.0**power for power in range(5) for size in (1, 2, 5))
    return next((end for end in ends if end >= longest), longest)


def _runs(steps: Sequence[FightStep]) -> dict[RunKey, list[FightStep]]:
    found: dict[RunKey, list[FightStep]] = {}
    for step in steps:
        found.setdefault((step.contender, step.seed), []).append(step)
    return found


def _accuracies(run: Sequence[FightStep]) -> list[Point]:
    return [
        Point(step.step, step.seconds, 100 * step.accuracy)
        for step in run
        if step.accuracy is not None
    ]


def _losses(run: Sequence[FightStep]) -> list[Point]:
    trained = [step for step in run if step.loss is not None]
    points = []
    for _, group in groupby(trained, lambda s: -(-s.step // LOSSES_TOGETHER)):
        together = list(group)
        mean = sum(step.loss or 0.0 for step in together) / len(together)
        points.append(Point(together[-1].step, together[-1].seconds, mean))
    return points


def _median_point(points: Sequence[Point]) -> Point:
    seconds, values = (median(column) for column in list(zip(*points, strict=True))[1:])
    return Point(points[0].step, seconds, values)


def _standing(name: str, runs: Sequence[Sequence[Point]]) -> Standing:
    reached = []
    for points in runs:
        first = next((p for p in points if p.value >= 100 * LEARNED), None)
        if first is not None:
            reached.append((first.step, first.seconds))
    return Standing(
        name,
        tuple(points[-1].step for points in runs),
        tuple(points[-1].value / 100 for points in runs),
        tuple(reached),
    )
