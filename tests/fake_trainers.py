"""Trainers and clocks whose every move a test decides."""

import random
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event, Lock, Thread, current_thread
from typing import Any

from core.run import Run
from core.scheduler import Scheduler


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self._now = 0.0
        self._lock = Lock()

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds


@dataclass
class FakeTrainer:
    """Takes numbers from its own generator; each option makes it misbehave."""

    seed: int = 0
    seconds: float = 0.0
    clock: Clock | None = None
    finish_at: int | None = None
    fail_at: int | None = None
    error: BaseException = field(default_factory=lambda: RuntimeError("boom"))
    log: list[str] | None = None
    name: str = ""
    before_step: Callable[[], None] = lambda: None
    count: int = 0
    threads: set[Thread] = field(default_factory=lambda: {current_thread()})
    inside: Any = field(default_factory=Lock)

    @cached_property
    def generator(self) -> random.Random:
        return random.Random(self.seed)

    @property
    def finished(self) -> bool:
        return self.count == self.finish_at

    @property
    def stop_reason(self) -> str | None:
        return f"enough after {self.count} steps" if self.finished else None

    def step(self) -> float:
        assert self.inside.acquire(blocking=False), "two threads step one trainer"
        try:
            self.threads.add(current_thread())
            self.before_step()
            self._spend()
            if self.count + 1 == self.fail_at:
                raise self.error
            self.count += 1
            if self.log is not None:
                self.log.append(self.name)
            return self.generator.random()
        finally:
            self.inside.release()

    def snapshot(self) -> int:
        return self.count

    def _spend(self) -> None:
        if self.clock is not None:
            self.clock.advance(self.seconds)
        elif self.seconds:
            time.sleep(self.seconds)


class Gate:
    """A step or constructor that waits until the test opens it."""

    def __init__(self) -> None:
        self.entered = Event()
        self._open = Event()

    def __call__(self) -> None:
        self.entered.set()
        assert self._open.wait(10), "the test never opened its gate"

    def open(self) -> None:
        self._open.set()

    def wait_inside(self) -> None:
        assert self.entered.wait(10), "nobody came to the gate"


def expected_records(seed: int, count: int) -> list[float]:
    """Return what a ``FakeTrainer`` of this seed must bring."""
    generator = random.Random(seed)
    return [generator.random() for _ in range(count)]


def wait_until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return once ``true()`` holds; fail after ``seconds``."""
    end = time.perf_counter() + seconds
    while not true():
        assert time.perf_counter() < end, "it never came true"
        time.sleep(0.001)


@contextmanager
def held_worker(scheduler: Scheduler):
    """Keep the worker busy, so that what is commanded inside starts at one moment."""
    gate = Gate()
    run = scheduler.submit(lambda: FakeTrainer(before_step=gate), max_steps=1)
    run.start()
    gate.wait_inside()
    yield
    gate.open()


def start_together(
    scheduler: Scheduler, trainers: list[FakeTrainer], *, max_steps: int = 1_000_000
) -> list[Run]:
    """Return one run a trainer, all in line before the first of them steps."""
    runs = [
        scheduler.submit(lambda trainer=trainer: trainer, max_steps=max_steps)
        for trainer in trainers
    ]
    with held_worker(scheduler):
        for run in runs:
            run.start()
    return runs
