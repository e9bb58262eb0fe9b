"""A grid in processes: killed, started again, locked, and equal to one never killed."""

import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from core import grid_runner
from core.checks import RefusedError
from core.grid_runner import only_writer, run_grid
from core.grid_table import grid_made_here, grid_text, read_grid
from tests.tiny_grid import BASE, CELLS, NUM_SEEDS

ROOT = Path(__file__).parent.parent
ALL = len(CELLS) * NUM_SEEDS
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="no such folder")
MADE_BY = grid_made_here("tests", NUM_SEEDS)


def start(path: Path, processes: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.tiny_grid", str(path), str(processes)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def rows_of(path: Path) -> list[str]:
    return [x for x in path.read_text("utf-8").splitlines() if not x.startswith("#")]


def wait_for_rows(path: Path, count: int) -> None:
    end = time.monotonic() + 120
    while not path.exists() or len(rows_of(path)) - 1 < count:
        assert time.monotonic() < end, "no run ever ended"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The table of a grid that was never killed, from one process."""
    path = tmp_path_factory.mktemp("whole") / "grid.csv"
    run_grid(CELLS, NUM_SEEDS, path, MADE_BY, processes=1)
    return path


def test_the_rows_stand_in_the_order_of_the_grid(whole):
    runs = [(run.cell, run.seed) for run in read_grid(whole).results]
    assert runs == [(cell, seed) for cell in CELLS for seed in range(NUM_SEEDS)]


def test_a_killed_grid_started_again_equals_one_never_killed(whole, tmp_path):
    path = tmp_path / "grid.csv"
    with start(path, 2) as process:
        wait_for_rows(path, 2)
        process.send_signal(signal.SIGKILL)
    kept = rows_of(path)
    assert 3 <= len(kept) < ALL + 1
    at = path.stat().st_mtime_ns
    told = []
    run_grid(CELLS, NUM_SEEDS, path, MADE_BY, processes=2, told=told.append)
    assert path.stat().st_mtime_ns != at
    assert rows_of(path) == rows_of(whole)  # also: two processes give what one does
    assert told[0].done == len(kept) - 1  # what had ended was not trained again
    assert len(told) == 1 + ALL - told[0].done
    assert [look.done for look in told] == list(range(told[0].done, ALL + 1))


def test_a_second_process_on_the_same_file_is_refused(tmp_path):
    path = tmp_path / "grid.csv"
    with start(path, 1) as process:
        wait_for_rows(path, 1)
        with pytest.raises(
            RefusedError, match=r"another process is writing .*grid.csv"
        ):
            run_grid(CELLS, NUM_SEEDS, path, MADE_BY, processes=1)
        process.kill()
    with only_writer(path):  # the lock went with the process that held it
        pass


def test_a_grid_that_is_done_starts_no_process_and_changes_nothing(whole):
    before, told = whole.read_bytes(), []
    run_grid(CELLS, NUM_SEEDS, whole, MADE_BY, processes=2, told=told.append)
    assert whole.read_bytes() == before
    assert [look[:2] for look in told] == [(ALL, ALL)]


def test_a_file_of_another_grid_is_left_as_it_was_found(whole):
    before = whole.read_bytes()
    with pytest.raises(RefusedError, match="holds a run of another grid"):
        run_grid(CELLS[:2], NUM_SEEDS, whole, MADE_BY, processes=1)
    assert whole.read_bytes() == before


@pytest.mark.parametrize("field", ["versions", "machine"])
def test_runs_of_other_versions_or_machines_are_not_mixed_in(tmp_path, field):
    path = tmp_path / "grid.csv"
    text = grid_text(MADE_BY | {field: "elsewhere"}, [])
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RefusedError, match="was made with elsewhere, this is"):
        run_grid(CELLS, NUM_SEEDS, path, MADE_BY, processes=1)
    assert path.read_text("utf-8") == text


def test_a_damaged_file_is_left_as_it_was(tmp_path):
    path = tmp_path / "grid.csv"
    path.write_text("what is this", encoding="utf-8")
    with pytest.raises(RefusedError, match="line 1, column 1"):
        run_grid(CELLS, NUM_SEEDS, path, MADE_BY, processes=1)
    assert path.read_text("utf-8") == "what is this"


def test_what_goes_wrong_in_a_process_is_told_here(tmp_path):
    broken = BASE.__class__(**{**BASE.__dict__})
    object.__setattr__(broken, "model", "gone")  # refused where it is trained
    with pytest.raises(RefusedError, match="cell must be one of"):
        run_grid([broken], 1, tmp_path / "grid.csv", MADE_BY, processes=1)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RefusedError, match="there is no folder"):
        run_grid(CELLS, 1, tmp_path / "no" / "grid.csv", MADE_BY, processes=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", r"\. cannot be written: Is a directory"),
        ("folder", "folder cannot be written: Is a directory"),
        ("file/grid.csv", "there is no folder file"),
        pytest.param("/proc/grid.csv", "cannot be written", marks=ON_LINUX),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_trains(
    tmp_path, monkeypatch, name, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    told = []
    with pytest.raises(RefusedError, match=words):
        run_grid(CELLS, 1, Path(name), MADE_BY, processes=1, told=told.append)
    assert not told
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "file"}


def test_a_disk_that_is_full_is_told_and_the_table_stays(whole, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = whole.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    run = read_grid(whole).results[0]
    with pytest.raises(RefusedError, match="cannot be written: No space left"):
        grid_runner._write(whole, MADE_BY, [run])
    assert whole.read_bytes() == before


def test_windows_locks_by_its_own_call(tmp_path, monkeypatch):
    calls = []

    def locking(descriptor: int, mode: int, count: int) -> None:
        if calls:
            raise PermissionError(13, "Permission denied")
        calls.append((mode, count))

    fake = SimpleNamespace(LK_NBLCK=2, locking=locking)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setattr(grid_runner, "os", SimpleNamespace(name="nt"))
    path = tmp_path / "grid.csv"
    with only_writer(path):
        assert calls == [(2, 1)]
    with pytest.raises(RefusedError, match="another process is writing"):
        only_writer(path).__enter__()


def test_no_process_is_no_number_of_processes(tmp_path):
    with pytest.raises(RefusedError, match=r"processes \(0\) must be between 1"):
        run_grid(CELLS, 1, tmp_path / "grid.csv", MADE_BY, processes=0)


def test_a_process_without_work_does_not_end_a_grid_whose_others_still_train(tmp_path):
    long = replace(BASE, max_steps=2000, readout="mean")
    made_by = grid_made_here("tests", 1)
    path = tmp_path / "grid.csv"
    run_grid([CELLS[0], long], 1, path, made_by, processes=2)
    assert [run.steps for run in read_grid(path).results] == [60, 2000]
