"""What carries the order: the bench's first grid, as the marker page reads it.

Twelve cells, each trained with a few seeds by one recipe: positions or none, a causal
mask or none, and three readouts. The sentences say what the runs show and no more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from core import grid_cell
from core.grid_presets import PRESETS
from core.grid_story import HALF, LEARNED, reach_sentence
from core.grid_table import GridTable, read_shipped
from core.training import TrainConfig

PRESET = PRESETS["order"]
NORMAL = PRESETS["order_normal"]
RECIPE = PRESET.base


class Cell(NamedTuple):
    """One cell of the grid: what may carry the order, and what is read.

    Attributes:
        positional: Positions added to the tokens: "sinusoidal" or "none".
        causal: Whether position t attends to positions 0 to t alone.
        readout: What the answer is read from: "mean", "last" or "first".
    """

    positional: str
    causal: bool
    readout: str

    @property
    def setting(self) -> str:
        """What may carry the order, in words: the row of the grid."""
        positions = "no positions" if self.positional == "none" else "positions"
        return f"{positions}, {'causal mask' if self.causal else 'no mask'}"

    @property
    def name(self) -> str:
        """The whole cell in words."""
        return f"{self.setting}, {self.readout}"

    @classmethod
    def of(cls, cell: grid_cell.Cell) -> "Cell":
        """Return what a cell of the bench adds to the recipe."""
        return cls(cell.positional, cell.causal, cell.readout)

    def config(self, seed: int) -> TrainConfig:
        """Return the run of this cell with a seed, measured on the way as well."""
        config = replace(RECIPE, **self._asdict()).config(seed)
        return replace(config, eval_every=TrainConfig.eval_every)


class CellResult(NamedTuple):
    """The runs of one cell together.

    Attributes:
        cell: The cell.
        accuracies: Test accuracy of each seed, in [0, 1].
    """

    cell: Cell
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean accuracy over the seeds."""
        return sum(self.accuracies) / len(self.accuracies)

    @property
    def learns(self) -> bool:
        """Whether every seed reaches 95 %."""
        return min(self.accuracies) >= LEARNED

    @property
    def stays_near_half(self) -> bool:
        """Whether every seed ends at 40 to 60 %."""
        return all(HALF[0] <= accuracy <= HALF[1] for accuracy in self.accuracies)


CELLS = tuple(map(Cell.of, PRESET.cells))


def read_order() -> GridTable:
    """Return the shipped table of the grid."""
    return read_shipped(PRESET.name)


def noise_sentence() -> str:
    """Return what cells without positions and mask reach, by the noise around."""
    ends = []
    for preset in (PRESET, NORMAL):
        results = cell_results(read_shipped(preset.name).results)
        blind = [r for r in results if r.cell[:2] == ("none", False)]
        own = (r for r in blind if r.cell.readout != "first")
        ends.append(" and ".join(f"{r.cell.readout} {_percent(r)}" for r in own))
    return (
        "Without positions and mask only the marker's size can tell: in uniform noise, "
        f"which lies between -1 and +1, {ends[0]}; in normal noise, which reaches "
        f"beyond, {ends[1]}."
    )


def cell_results(runs: Sequence[grid_cell.Result]) -> list[CellResult]:
    """Return the cells in the order of the runs, their seeds together."""
    found: dict[Cell, list[float]] = {}
    for run in runs:
        found.setdefault(Cell.of(run.cell), []).append(run.accuracy)
    return [CellResult(cell, tuple(numbers)) for cell, numbers in found.items()]


def grid_sentences(results: Sequence[CellResult]) -> list[str]:
    """Return what the whole grid shows and no more.

    Args:
        results: One of every cell in ``CELLS``.
    """
    by_cell = {result.cell: result for result in results}
    near = [result.cell.name for result in results if result.stays_near_half]
    return [
        reach_sentence(sum(result.learns for result in results), len(results), near),
        _leak_sentence(by_cell),
        _hiding_sentence(by_cell),
        *_size_sentences(by_cell),
    ]


def recipe_sentence() -> str:
    """Return how all cells were trained."""
    layers = "one layer" if RECIPE.num_layers == 1 else f"{RECIPE.num_layers} layers"
    return (
        f"All cells: {layers} of width {RECIPE.d_model}, {RECIPE.max_steps} steps, "
        f"batch {RECIPE.batch_size}, learning rate {RECIPE.learning_rate:g}, dropout "
        f"{RECIPE.dropout:g}; {PRESET.num_seeds} seeds. Another recipe may fill the "
        "grid otherwise."
    )


def _leak_sentence(by_cell: Mapping[Cell, CellResult]) -> str:
    """Return what the causal mask does to each readout that is not at the marker."""
    without, under = (
        {name: by_cell[Cell("none", causal, name)] for name in ("mean", "last")}
        for causal in (False, True)
    )
    leaks = min(under["mean"].accuracies) > max(without["mean"].accuracies)
    says = (
        "a causal mask leaks order to the mean"
        if leaks
        else "these seeds show no leak of order through a causal mask to the mean"
    )
    same = without["last"].accuracies == under["last"].accuracies
    last = (
        f"the last position, which sees every token either way, stays at "
        f"{_percent(under['last'])}"
        if same
        else f"last: {_percent(without['last'])} without it, "
        f"{_percent(under['last'])} with it"
    )
    return (
        f"Without positions {says}: {_percent(without['mean'])} without the mask, "
        f"{_percent(under['mean'])} with it; {last}."
    )


def _hiding_sentence(by_cell: Mapping[Cell, CellResult]) -> str:
    first = [result for cell, result in by_cell.items() if cell.readout == "first"]
    if all(result.learns for result in first):
        lowest = min(first, key=lambda result: result.mean)
        least = "" if lowest.mean == 1 else "at least "
        return (
            "A readout at position 0 stands on the marker and hides the ablation: "
            f"{least}{_percent(lowest)} in every row."
        )
    numbers = (f"{result.cell.setting} {_percent(result)}" for result in first)
    return f"A readout at position 0 does not learn in every row: {'; '.join(numbers)}."


def _size_sentences(by_cell: Mapping[Cell, CellResult]) -> list[str]:
    """Return where the grid is above half though no order is left to learn from."""
    blind = [by_cell[Cell("none", False, name)] for name in ("mean", "last")]
    above = [result for result in blind if min(result.accuracies) > HALF[1]]
    if not above:
        return []
    numbers = " and ".join(f"{r.cell.readout} {_percent(r)}" for r in above)
    return [
        "Without positions and mask nothing tells which token came first, yet "
        f"{numbers}: the marker is -1 or +1 and noise lies between, so its size gives "
        "it away."
    ]


def _percent(result: CellResult) -> str:
    return f"{100 * result.mean:.1f} %"
