"""The bench without a page: run a grid on all cores and write its table.

``python -m core.experiments PRESET --seeds 5 --out FILE.csv`` trains one grid; started
again after a kill it goes on where it was. ``python -m core.experiments all`` makes
every table that ships, each with its own number of seeds.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from core.checks import RefusedError, require_int
from core.grid_presets import MAX_SEEDS, PRESETS, Preset, cell_words
from core.grid_runner import Progress, run_grid
from core.grid_table import GRID_TABLES, grid_made_here

ALL = "all"


def command_of(preset: Preset, num_seeds: int) -> str:
    """Return what to type for the table of a preset with so many seeds."""
    return f"python -m core.experiments {preset.name} --seeds {num_seeds}"


def make_table(
    preset: Preset, path: Path, *, num_seeds: int | None = None, processes: int = 1
) -> None:
    """Train a preset and write its table, telling every run that ends.

    Args:
        preset: The grid.
        path: Its table; finished runs in it are kept.
        num_seeds: Seeds of every cell, from 0 on; None means the preset's own number.
        processes: Processes at once.

    Raises:
        ValueError: If a number is out of range, or the file cannot be written.
    """
    seeds = preset.num_seeds if num_seeds is None else num_seeds
    require_int("seeds", seeds, 1, MAX_SEEDS)
    run_grid(
        preset.cells,
        seeds,
        path,
        grid_made_here(command_of(preset, seeds), seeds),
        processes=processes,
        told=_teller(preset),
    )


def _teller(preset: Preset) -> Callable[[Progress], None]:
    """Return what writes a line a run, with the time that is left."""
    start, before = time.monotonic(), 0

    def tell(progress: Progress) -> None:
        nonlocal before
        if progress.latest is None:
            before = progress.done
            sys.stdout.write(f"{preset.name}: {progress.done} of {progress.total}\n")
            sys.stdout.flush()
            return
        each = (time.monotonic() - start) / (progress.done - before)
        left = each * (progress.total - progress.done)
        run = progress.latest
        sys.stdout.write(
            f"{progress.done}/{progress.total} {cell_words(run.cell, preset.factors)}, "
            f"seed {run.seed}: {100 * run.accuracy:.1f} %, about {left:.0f} s left\n"
        )
        sys.stdout.flush()

    return tell


def main(arguments: Sequence[str] | None = None) -> int:
    """Train a grid and write its table; started again, it goes on where it was."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("preset", choices=(*PRESETS, ALL))
    parser.add_argument("--seeds", type=int, help="seeds of every cell, from 0 on")
    parser.add_argument("--out", type=Path, help="the table, a CSV file")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args(arguments)
    if given.preset == ALL and given.out:
        parser.error("--out names the table of one preset, not of all")
    chosen = PRESETS if given.preset == ALL else {given.preset: PRESETS[given.preset]}
    try:
        for name, preset in chosen.items():
            path = given.out or GRID_TABLES / f"{name}.csv"
            make_table(preset, path, num_seeds=given.seeds, processes=given.processes)
    except RefusedError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    except RuntimeError as fault:
        sys.stderr.write(f"{fault}; the runs that ended are in the file\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped; the runs that ended are in the file\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
