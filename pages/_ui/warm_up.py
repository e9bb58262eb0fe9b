"""Loading torch in the background, once a process, while the student reads."""

import atexit
import gc
import importlib
import logging
import threading

# The first page leaves the server before the imports take the interpreter's lock.
_HEAD_START_SECONDS = 0.7
_MODULES = (
    "altair",
    "core.device",
    "core.charts",
    "core.scaling",
    "core.masking",
    "core.precision",
    "core.positional_story",
    "core.lookup_story",
    "core.heads_story",
    "core.block_story",
    "core.recurrence_story",
    "core.marker_story",
    "core.scheduler",
)


_LONGEST_GOODBYE_SECONDS = 4.0
_begun = threading.Lock()
_leaving = threading.Event()
ready = threading.Event()
failed = threading.Event()


def begin() -> None:
    """Start the one warm-up thread of this process, at the first call."""
    if _begun.acquire(blocking=False):
        thread = threading.Thread(target=_load, name="warm-up", daemon=True)
        atexit.register(_stop, thread)
        thread.start()


def _load() -> None:
    _leaving.wait(_HEAD_START_SECONDS)
    try:
        for module in _MODULES:
            if _leaving.is_set():
                return
            importlib.import_module(module)
        ready.set()
        _take_one_step()
    except Exception:
        if not _leaving.is_set():  # an interpreter that goes away refuses imports
            failed.set()
            logging.getLogger(__name__).exception("torch or core could not be loaded")
    # What is loaded by now lives as long as the server. Frozen, it is no longer
    # walked by the collector: a rerun takes tens of milliseconds, not hundreds.
    gc.collect()
    gc.freeze()


def _stop(thread: threading.Thread) -> None:
    # A daemon inside torch when the interpreter goes away would abort the process.
    _leaving.set()
    thread.join(_LONGEST_GOODBYE_SECONDS)


def _take_one_step() -> None:
    """Train a tiny model for a step: torch loads its optimizers only when one is made.

    That takes seconds, which would fall on the first run of the first student.
    """
    from core.training import TrainConfig, Trainer

    tiny = TrainConfig(
        seq_len=2, d_model=2, num_heads=1, num_layers=1, train_samples=2, test_samples=2
    )
    Trainer(tiny).step()
