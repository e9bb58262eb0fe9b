"""A grid in two processes, beside the same grid in one.

    python -m tests.bench.experiments

Both train the same runs into a fresh file, as many as the grid of what carries position
has, and the start of the processes is counted in. The two take turns, so that a busy
machine slows both, and the ratio is the median over the turns. The tables must be
equal, row for row. What two processes give that share nothing and have started already
is printed beside it: the most that this machine lets a grid reach.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from core.grid_cell import Cell, run_cell
from core.grid_runner import run_grid
from core.grid_table import grid_made_here, read_grid

SMALLEST_RATIO = 1.7
CELL = Cell(max_steps=300)
RUNS_APART = 4


def seconds_of(path: Path, processes: int, runs: int) -> float:
    """Return the seconds that so many runs take in so many processes."""
    made_by = grid_made_here("tests.bench.experiments", runs)
    start = time.perf_counter()
    run_grid([CELL], runs, path, made_by, processes=processes)
    return time.perf_counter() - start


def race(turns: int, runs: int) -> list[tuple[float, float]]:
    """Return the seconds of one and of two processes in each turn.

    Every second turn goes the other way round.

    Raises:
        RuntimeError: If the two tables differ.
    """
    seconds = []
    for turn in range(turns):
        taken, results = {}, {}
        with tempfile.TemporaryDirectory() as folder:
            for processes in (1, 2)[:: -1 if turn % 2 else 1]:
                path = Path(folder) / f"{processes}.csv"
                taken[processes] = seconds_of(path, processes, runs)
                results[processes] = read_grid(path).results
        if results[1] != results[2]:
            raise RuntimeError("one process and two wrote different rows")
        seconds.append((taken[1], taken[2]))
    return seconds


def gained_apart(turns: int) -> float:
    """Return how much more two processes do that share nothing than one of them."""
    spawning = multiprocessing.get_context("spawn")
    pipes = []
    for _ in range(2):
        ours, theirs = spawning.Pipe()
        spawning.Process(target=_work_apart, args=(theirs,), daemon=True).start()
        pipes.append(ours)
    _seconds_apart(pipes)  # both have started
    alone, beside = zip(
        *((_seconds_apart(pipes[:1]), _seconds_apart(pipes)) for _ in range(turns)),
        strict=True,
    )
    for pipe in pipes:
        pipe.send(False)
    return statistics.median(2 * a / b for a, b in zip(alone, beside, strict=True))


def _seconds_apart(pipes: list[Connection]) -> float:
    start = time.perf_counter()
    for pipe in pipes:
        pipe.send(True)
    for pipe in pipes:
        pipe.recv()
    return time.perf_counter() - start


def _work_apart(pipe: Connection) -> None:
    torch.set_num_threads(1)
    while pipe.recv():
        for seed in range(RUNS_APART):
            run_cell(CELL, seed)
        pipe.send(None)


def main() -> int:
    """Print the ratio; exit 1 where it is too small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--runs", type=int, default=36)
    given = parser.parse_args()
    apart = gained_apart(given.turns)
    seconds = race(given.turns, given.runs)
    one, two = (statistics.median(column) for column in zip(*seconds, strict=True))
    ratio = statistics.median(a / b for a, b in seconds)
    sys.stdout.write(
        f"one process {one:.1f} s, two {two:.1f} s: {ratio:.2f} times as fast, at "
        f"least {SMALLEST_RATIO:g} asked for; two that share nothing: {apart:.2f}\n"
    )
    return int(ratio < SMALLEST_RATIO)


if __name__ == "__main__":
    sys.exit(main())
