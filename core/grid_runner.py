"""A grid on all cores: one run a process, every finished run in the file at once.

The file is written anew beside itself and put in its place in one move, so a kill at
any moment leaves a whole table. A lock of the operating system on a file beside it
keeps a second grid away; it goes with the process that holds it.
"""

import errno
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import torch

from core.checks import RefusedError, require_int
from core.grid_cell import Cell, Result, run_cell
from core.grid_table import grid_text, read_grid

MAX_PROCESSES = 256
_SAME = ("versions", "machine")  # runs of others do not belong into one table
Run = tuple[Cell, int]
_Worker = Any  # a process that was spawned


class Progress(NamedTuple):
    """How far a grid is.

    Attributes:
        done: Runs in the file.
        total: Runs of the grid.
        latest: The run that ended last; None where the file held those so far.
    """

    done: int
    total: int
    latest: Result | None


def run_grid(
    cells: Sequence[Cell],
    num_seeds: int,
    path: Path,
    made_by: Mapping[str, str],
    *,
    processes: int,
    told: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Train every cell with every seed and write the table, keeping finished runs.

    The rows do not depend on the number of processes: each computes with one thread.

    Args:
        cells: The cells of the grid.
        num_seeds: Seeds of each, from 0 on.
        path: The table; runs it already holds are not trained again.
        made_by: What makes it: field to text.
        processes: Processes at once.
        told: Called at the start and after every run.

    Raises:
        ValueError: If another process writes this file, or it holds something else.
        RuntimeError: If a process ended before its run did.
    """
    require_int("processes", processes, 1, MAX_PROCESSES)
    wanted = [(cell, seed) for cell in cells for seed in range(num_seeds)]
    with only_writer(path):
        done = _done_before(path, wanted, made_by)
        told(Progress(len(done), len(wanted), None))
        if not done:
            _write(path, made_by, [])
        missing = [run for run in wanted if run not in done]
        for result in _run_all(missing, min(processes, len(missing))):
            done[result.cell, result.seed] = result
            _write(path, made_by, [done[run] for run in wanted if run in done])
            told(Progress(len(done), len(wanted), result))


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the lock of a table while it is written.

    Raises:
        ValueError: If another process holds it, or its folder cannot be written.
    """
    with _writing(path):
        if not path.name or path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        file = path.with_name(f"{path.name}.lock").open("a+b")
    with file:
        _lock(file, path)
        yield


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say in a sentence what the system has against writing a table."""
    try:
        yield
    except OSError as fault:
        if not path.parent.is_dir():
            raise RefusedError(f"there is no folder {path.parent}") from None
        raise RefusedError(f"{path} cannot be written: {fault.strerror}") from None


def _lock(file: Any, path: Path) -> None:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise RefusedError(
            f"another process is writing {path}; wait for it, or name another file"
        ) from None


def _done_before(
    path: Path, wanted: Sequence[Run], made_by: Mapping[str, str]
) -> dict[Run, Result]:
    """Return the runs that the file holds already."""
    if not path.exists():
        return {}
    table = read_grid(path)
    for field in _SAME:
        there, here = table.made_by.get(field, "something unknown"), made_by[field]
        if there != here:
            raise RefusedError(
                f"{path} was made with {there}, this is {here}; name another file"
            )
    done = {(run.cell, run.seed): run for run in table.results}
    for cell, seed in done:
        if (cell, seed) not in wanted:
            raise RefusedError(
                f"{path} holds a run of another grid ({cell.model}, seed {seed}, "
                f"{cell.max_steps} steps); name another file"
            )
    return done


def _write(path: Path, made_by: Mapping[str, str], results: list[Result]) -> None:
    beside = path.with_name(f"{path.name}.new")
    with _writing(path):
        with beside.open("w", encoding="utf-8", newline="") as file:
            file.write(grid_text(made_by, results))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)


def _run_all(runs: Sequence[Run], processes: int) -> Iterator[Result]:
    """Yield every result as it comes, from so many processes at once."""
    if not runs:
        return
    ahead, workers = iter(runs), dict(_start_worker() for _ in range(processes))
    busy = list(workers)
    try:
        for pipe in busy:
            pipe.send(next(ahead))
        while busy:
            pipe, result = _next_result(busy)
            if (following := next(ahead, None)) is None:
                busy.remove(pipe)
            pipe.send(following)
            yield result
    finally:
        for pipe, worker in workers.items():
            pipe.close()
            worker.terminate()
            worker.join()


def _start_worker() -> tuple[Connection, _Worker]:
    # Spawned, not forked: a fork would inherit the lock, and threads of torch.
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    worker = spawning.Process(target=_work, args=(theirs,), daemon=True)
    worker.start()
    theirs.close()
    return ours, worker


def _next_result(pipes: list[Connection]) -> tuple[Connection, Result]:
    pipe = wait(pipes)[0]
    assert isinstance(pipe, Connection)
    try:
        answer = pipe.recv()
    except EOFError:
        raise RuntimeError("a process ended before its run did") from None
    if isinstance(answer, Exception):
        raise answer
    return pipe, answer


def _work(pipe: Connection) -> None:
    """Train what comes through the pipe until nothing comes, or nobody is there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    torch.set_num_threads(1)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while (run := pipe.recv()) is not None:
            try:
                pipe.send(run_cell(*run))
            except (RefusedError, RuntimeError) as fault:
                pipe.send(fault)
