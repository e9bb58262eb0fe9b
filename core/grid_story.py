"""What a grid of the bench shows: means and spreads, points, and sentences.

A sentence says what these runs show and no more.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.grid_cell import Cell, GridStep, Result, middle, watch_cell
from core.grid_presets import FACTORS, cell_words, short_words

LEARNED = 0.95
HALF = (0.4, 0.6)
_BLIND = 0.1  # a cell that moves less than this when the marker moves
MEASURES = {  # field of a result -> words
    "accuracy": "test accuracy",
    "moved": "test accuracy, marker moved",
    "loss": "final loss",
}


class Summary(NamedTuple):
    """All seeds of one cell together.

    Attributes:
        cell: The cell.
        runs: Its runs, one a seed.
    """

    cell: Cell
    runs: tuple[Result, ...]

    def values(self, measure: str) -> tuple[float, ...]:
        """Return what every seed brought of a measure, see ``MEASURES``."""
        return tuple(getattr(run, measure) for run in self.runs)

    def mean(self, measure: str = "accuracy") -> float:
        """Return the mean over the seeds."""
        return sum(self.values(measure)) / len(self.runs)

    @property
    def learned(self) -> bool:
        """Whether every seed reaches 95 %."""
        return min(self.values("accuracy")) >= LEARNED

    @property
    def near_half(self) -> bool:
        """Whether every seed ends at 40 to 60 %."""
        return all(HALF[0] <= share <= HALF[1] for share in self.values("accuracy"))


Point = tuple[str, str, tuple[float, ...], str]


def summaries(results: Sequence[Result]) -> list[Summary]:
    """Return the cells in the order of the runs, their seeds together."""
    found: dict[Cell, list[Result]] = {}
    for run in results:
        found.setdefault(run.cell, []).append(run)
    return [Summary(cell, tuple(runs)) for cell, runs in found.items()]


def runs_of(cells: Sequence[Cell], results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the runs that are of these cells."""
    own = set(cells)
    return tuple(run for run in results if run.cell in own)


def table_rows(
    cells: Sequence[Summary], factors: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return a row a cell: its levels, mean and range of accuracy, moved, loss, seeds.

    Args:
        cells: The cells.
        factors: The factors that vary.
    """
    return [
        (
            *(short_words(summary.cell, name) for name in factors),
            _percent(summary.mean()),
            _range(summary.values("accuracy")),
            _percent(summary.mean("moved")),
            f"{summary.mean('loss'):.3f}",
            str(len(summary.runs)),
        )
        for summary in cells
    ]


def sentences(cells: Sequence[Summary], factors: Sequence[str]) -> list[str]:
    """Return what the runs of a grid show.

    Args:
        cells: At least one.
        factors: The factors that vary.
    """
    said = [_reach(cells, factors), _moved(cells)]
    return [*said, _spread(cells, factors)] if len(cells) > 1 else said


def settings_sentence(base: Cell, factors: Sequence[str]) -> str:
    """Return what all cells of a grid have in common."""
    shared = [
        name
        for name in (
            "seq_len",
            "noise",
            "d_model",
            "num_layers",
            "num_heads",
            "dropout",
        )
        if name not in factors
    ]
    words = cell_words(base, shared)
    return (
        f"All cells: {words}; {base.max_steps} steps, batch {base.batch_size}, "
        f"learning rate {base.learning_rate:g}. Another recipe may rank them otherwise."
    )


def missing_runs(
    cells: Sequence[Cell], num_seeds: int, done: Sequence[Result] = ()
) -> list[tuple[Cell, int]]:
    """Return the runs of a grid that are not done yet, every seed of a cell in turn."""
    there = {(run.cell, run.seed) for run in done}
    wanted = [(cell, seed) for cell in cells for seed in range(num_seeds)]
    return [run for run in wanted if run not in there]


def budget_sentence(
    cells: Sequence[Cell], num_seeds: int, done: Sequence[Result] = ()
) -> str:
    """Return what a grid costs, before it starts; runs that are done cost nothing."""
    runs = missing_runs(cells, num_seeds, done)
    total = len(cells) * num_seeds
    kept = total - len(runs)
    there = f", {kept} of them in your table" if kept else ""
    seconds = sum(cell.seconds for cell, _ in runs)
    return (
        f"{_count(len(cells), 'cell')} × {_count(num_seeds, 'seed')} = "
        f"{_count(total, 'run')}{there}: about "
        f"{duration(seconds)} where nothing else computes."
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def earlier_sentence(name: str) -> str:
    """Return that a table stays which came before one that was refused."""
    return f"What stands below is of your earlier table, {name}."


def brought_sentence(own: int, total: int) -> str:
    """Return how many runs of a table from elsewhere belong to a grid."""
    rest = total - own
    others = f"; {rest} are of other cells and not drawn" if rest else ""
    return f"Your table: {own} of its {_count(total, 'run')} are of this grid{others}."


def left_sentence(done: int, total: int, elapsed: float, latest: str) -> str:
    """Return how far a grid that runs is, and how long the rest takes at this pace."""
    if not done:
        return latest
    left = elapsed * (total - done) / done
    return f"{latest} About {duration(left)} of computing left."


def duration(seconds: float) -> str:
    """Return a length of time in words."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min"


def num_steps(runs: Sequence[tuple[Cell, int]]) -> int:
    """Return how many steps watching runs takes: each is measured in one more."""
    return sum(cell.max_steps + 1 for cell, _ in runs)


def watch_runs(runs: Sequence[tuple[Cell, int]]) -> Iterator[GridStep]:
    """Train runs of a grid one after the other, one step a result."""
    for cell, seed in runs:
        yield from watch_cell(cell, seed)


def results_of(steps: Sequence[GridStep]) -> tuple[Result, ...]:
    """Return the runs that have ended among the steps of a grid that is watched."""
    return tuple(step.result for step in steps if step.result is not None)


def now_sentence(step: GridStep, factors: Sequence[str]) -> str:
    """Return what a grid that is watched trained last."""
    cell = cell_words(step.cell, factors)
    return f"{cell}, seed {step.seed}: step {step.step} of {step.cell.max_steps}."


def points(
    cells: Sequence[Summary],
    grid: Sequence[Cell],
    factors: Sequence[str],
    axes: tuple[str, str | None],
    measure: str,
) -> tuple[list[Point], tuple[str, ...], tuple[str, ...]]:
    """Return the points of a grid over its factors, for ``experiments_frame``.

    Args:
        cells: The cells that have runs.
        grid: All cells, which keep their colours and places from the start.
        factors: The factors that vary.
        axes: The factor across, and the factor of the colour; None colours all alike.
        measure: See ``MEASURES``.

    Returns:
        The points, and the places side by side with the name of the colour of each:
        first these names, then the places.
    """
    across, colour = axes
    rest = [name for name in factors if name != across]

    def series(cell: Cell) -> str:
        if colour is None:
            return "all cells"
        return cell_words(cell, [colour]) or f"has no {FACTORS[colour]}"

    def place(cell: Cell) -> str:
        ordered = sorted(rest, key=lambda name: name != colour)
        return cell_words(cell, ordered) or series(cell)

    found = [
        (
            short_words(summary.cell, across),
            place(summary.cell),
            summary.values(measure),
            cell_words(summary.cell, factors),
        )
        for summary in cells
    ]
    names = dict.fromkeys(map(series, grid))
    by_colour = sorted(grid, key=lambda cell: list(names).index(series(cell)))
    named = {place(cell): series(cell) for cell in by_colour}
    return found, tuple(named.values()), tuple(named)


def reach_sentence(learned: int, total: int, near_half: Sequence[str]) -> str:
    """Return how many cells learned, and which stay near half.

    Args:
        learned: Cells that reach 95 % with every seed.
        total: All cells.
        near_half: Names of those that end near half with every seed.
    """
    half = f"near half ({100 * HALF[0]:.0f} to {100 * HALF[1]:.0f} %)"
    stay = f"none stays {half}"
    if near_half:
        verb = "stays" if len(near_half) == 1 else "stay"
        stay = f"{len(near_half)} {verb} {half}: {'; '.join(near_half)}"
    return (
        f"{learned} of {total} cells reach {100 * LEARNED:.0f} % or more with every "
        f"seed; {stay}."
    )


def _reach(cells: Sequence[Summary], factors: Sequence[str]) -> str:
    near = [cell_words(s.cell, factors) for s in cells if s.near_half]
    return reach_sentence(sum(s.learned for s in cells), len(cells), near)


def _moved(cells: Sequence[Summary]) -> str:
    """Return what becomes of the cells that learned when the marker moves."""
    learned = [summary for summary in cells if summary.learned]
    if not learned:
        return "No cell learned with every seed, so nothing is said of a moved marker."
    places = sorted({middle(summary.cell.seq_len) for summary in learned})
    ends = [summary.mean("moved") for summary in learned]
    kept = [s for s in learned if s.mean() - s.mean("moved") < _BLIND]
    where = " or ".join(map(str, places))
    rest = f" {len(kept)} of them keep what they had." if kept else ""
    one = len(learned) == 1
    those = "that one reaches" if one else f"those {len(learned)} reach"
    return (
        f"With the marker at position {where} instead of 0, {those} "
        f"{_range(ends)}.{rest}"
    )


def _spread(cells: Sequence[Summary], factors: Sequence[str]) -> str:
    """Return how far the cells differ, beside how far the seeds of one do."""
    between = _width([summary.mean() for summary in cells])
    start = f"The means of the cells differ by up to {100 * between:.1f} points"
    if max(len(summary.runs) for summary in cells) == 1:
        return f"{start}; one seed each cannot tell that from chance."
    widest = max(cells, key=lambda summary: _width(summary.values("accuracy")))
    within = _width(widest.values("accuracy"))
    name = f" ({cell_words(widest.cell, factors)})" if within else ""
    return f"{start}, the seeds of one cell by up to {100 * within:.1f}{name}."


def _width(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    if f"{100 * low:.1f}" == f"{100 * high:.1f}":
        return _percent(low)
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
