"""The grids of the bench: which factors, which levels, which question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from core.checks import RefusedError, require_choice, require_int
from core.grid_cell import Cell

MAX_CELLS = 16
MAX_RUNS = 64
MAX_SEEDS = 100

FACTORS = {  # name -> words on the page
    "model": "model",
    "positional": "positions",
    "causal": "causal mask",
    "readout": "readout",
    "num_heads": "heads",
    "num_layers": "layers",
    "d_model": "width",
    "seq_len": "length",
    "noise": "noise",
    "dropout": "dropout",
    "norm": "norm",
    "warmup_steps": "warm-up steps",
}
_CAUSAL = {False: "no mask", True: "causal mask"}


@dataclass(frozen=True)
class Preset:
    """A grid: a cell to start from, and the levels of the factors that vary.

    Attributes:
        name: Its name on the command line and of its table.
        title: Its name on the page.
        levels: Factor to the values it takes.
        base: All other factors.
        num_seeds: Seeds of the shipped table, from 0 on.
        colour: Factor that the picture colours at first; None means its first.
    """

    name: str
    title: str
    levels: Mapping[str, Sequence[Any]]
    base: Cell = field(default_factory=Cell)
    num_seeds: int = 3
    colour: str | None = None

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, the last factor varying fastest."""
        return cells_of(self.base, self.levels)

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors that vary."""
        return tuple(self.levels)


def cells_of(base: Cell, levels: Mapping[str, Sequence[Any]]) -> tuple[Cell, ...]:
    """Return the cells of a grid, each once.

    Cells that differ only in what their model has not are one cell.

    Args:
        base: The factors that do not vary.
        levels: Factor to the values it takes.

    Raises:
        ValueError: If a factor is unknown or has no level, or a cell cannot be run.
    """
    for name, values in levels.items():
        require_choice("factor", name, FACTORS)
        if not values:
            raise RefusedError(f"{FACTORS[name]} needs at least one level")
    combined = product(*levels.values())
    made = (replace(base, **dict(zip(levels, c, strict=True))) for c in combined)
    return tuple(dict.fromkeys(cell.plain for cell in made))


def check_size(levels: Mapping[str, Sequence[Any]], num_seeds: int) -> None:
    """Refuse a grid of a page that is too large, before any of its cells is made.

    Raises:
        ValueError: If it has too many cells or runs.
    """
    require_int("seeds", num_seeds, 1, MAX_SEEDS)
    cells, product_text = 1, " × ".join(str(len(v)) for v in levels.values())
    for values in levels.values():
        cells *= len(values)
    if cells > MAX_CELLS:
        raise RefusedError(
            f"{product_text} levels make {cells} cells; at most {MAX_CELLS} are allowed"
        )
    if cells * num_seeds > MAX_RUNS:
        raise RefusedError(
            f"{cells} cells with {num_seeds} seeds make {cells * num_seeds} runs; at "
            f"most {MAX_RUNS} are allowed"
        )


def level_words(factor: str, value: Any) -> str:
    """Return a level in words that stand alone: "4 heads", "no positions"."""
    name = FACTORS[factor]
    if factor == "causal":
        return _CAUSAL[value]
    if factor == "positional":
        return "no positions" if value == "none" else f"{value} positions"
    if factor == "model":
        return str(value)
    if factor == "noise":
        return f"{value} noise"
    if factor == "norm":
        return f"{value}-norm"
    if factor == "readout":
        return f"readout {value}"
    return f"{name} {value:g}"


def short_words(cell: Cell, factor: str) -> str:
    """Return a level without the name of its factor; a dash where there is none."""
    if not cell.has(factor):
        return "–"
    value = getattr(cell, factor)
    if factor == "causal":
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def cell_words(cell: Cell, factors: Sequence[str]) -> str:
    """Return the levels of a cell in words."""
    own = [name for name in factors if cell.has(name)]
    return ", ".join(level_words(name, getattr(cell, name)) for name in own)


_ORDER = {
    "positional": ("sinusoidal", "none"),
    "causal": (False, True),
    "readout": ("mean", "last", "first"),
}
_ALL = (
    Preset("order", "What carries position?", _ORDER),
    Preset(
        "order_normal",
        "Position in normal noise",
        _ORDER,
        Cell(noise="normal"),
    ),
    Preset(
        "heads",
        "Heads at one width",
        {"num_heads": (1, 2, 4, 8, 16)},
        Cell(max_steps=30),  # on the way: at the end every cell has learned
        num_seeds=6,
    ),
    Preset(
        "pooling",
        "Pooling",
        {"readout": ("cls", "mean", "last", "first"), "causal": (False, True)},
        Cell(seq_len=30, max_steps=200),
    ),
    Preset(
        "length",
        "Length 300",
        {"model": ("transformer", "lstm bias +3"), "seq_len": (60, 150, 300)},
        Cell(max_steps=300),
    ),
    Preset(
        "positions",
        "Learned against sinusoidal",
        {
            "positional": ("sinusoidal", "learned", "none"),
            "readout": ("cls", "mean"),
        },
        Cell(seq_len=30, max_steps=200),
    ),
    Preset(
        "moved",
        "Move the marker",
        {"model": ("transformer", "rnn", "gru", "lstm", "lstm bias +3")},
    ),
    Preset(
        "depth",
        "Warm-up and norm at depth",
        {"num_layers": (2, 12), "norm": ("pre", "post"), "warmup_steps": (0, 75)},
        Cell(seq_len=20, batch_size=32, train_samples=2000, max_steps=150),
        colour="norm",
    ),
)
PRESETS = {preset.name: preset for preset in _ALL}
