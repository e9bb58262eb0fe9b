"""A grid small enough to be killed, started again and compared within seconds."""

import sys
from pathlib import Path

from core.grid_cell import Cell
from core.grid_presets import cells_of
from core.grid_runner import run_grid
from core.grid_table import grid_made_here

BASE = Cell(seq_len=6, d_model=8, num_heads=2, train_samples=64, max_steps=60)
LEVELS = {"positional": ("sinusoidal", "none"), "readout": ("mean", "last", "first")}
CELLS = cells_of(BASE, LEVELS)
NUM_SEEDS = 3


def write(path: Path, processes: int) -> None:
    """Train the tiny grid and write its table."""
    made_by = grid_made_here("tests", NUM_SEEDS)
    run_grid(CELLS, NUM_SEEDS, path, made_by, processes=processes)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
