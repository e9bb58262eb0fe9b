"""The one worker of a device, which takes all live runs in turn.

Training in the threads that draw pages would starve every page; so each device has
one worker thread, and it alone steps trainers: about 50 ms for one run, then for the
next. Pages hold a ``Run`` and poll it.
"""

import atexit
import logging
import time
from collections.abc import Callable
from functools import partial
from threading import Lock, Thread, current_thread
from weakref import WeakSet

from core.attempt import (
    CLOSED,
    LET_GO,
    Attempt,
    Question,
    RunState,
    Snapshot,
    StaleRunError,
    Steppable,
    refuse,
)
from core.checks import require_choice, require_int, require_number
from core.run import Run
from core.turns import Seat, Turns

logger = logging.getLogger(__name__)

DEVICES = ("cuda", "mps", "cpu")


class Scheduler:
    """Steps any number of runs fairly in one background thread.

    A run that raises fails alone. A run nobody looked at for ``unseen_seconds`` parks
    itself, and a run parked for ``grace_seconds`` loses its trainer but not its curve.
    """

    def __init__(
        self,
        *,
        slice_seconds: float = 0.05,
        max_active: int = 8,
        grace_seconds: float = 600.0,
        unseen_seconds: float = 120.0,
        name: str = "cpu",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Wait for a first run; the thread starts with it.

        Args:
            slice_seconds: Time a run steps before the next one's turn.
            max_active: How many runs train at once; the others wait in a queue.
            grace_seconds: How long a parked run keeps its trainer.
            unseen_seconds: How long a run trains without a page that looks at it.
            name: Name of the device, for the name of the thread.
            clock: Seconds that never go back.

        Raises:
            ValueError: If a number is out of its range.
        """
        self._slice_seconds = require_number("slice_seconds", slice_seconds, 0.0)
        self._grace_seconds = require_number("grace_seconds", grace_seconds, 0.0)
        self._unseen_seconds = require_number("unseen_seconds", unseen_seconds, 0.0)
        self._clock = clock
        self._turns = Turns(require_int("max_active", max_active, 1), clock)
        self._seats: WeakSet[Seat] = WeakSet()
        self._stopping = False
        self._thread = Thread(target=self._work, name=f"trainer-{name}", daemon=True)

    def submit(
        self,
        make: Callable[[], Steppable],
        *,
        max_steps: int,
        snapshot_every: int | None = None,
        max_snapshots: int = 200,
    ) -> Run:
        """Return a new run, which waits for ``start``.

        Args:
            make: Builds the trainer, in the worker and when it is first needed; the
                same one each time, bit for bit.
            max_steps: Steps after which the run is finished whatever its trainer says.
            snapshot_every: Steps between two snapshots; None takes none.
            max_snapshots: Snapshots kept; where there would be more, every second one
                goes. From 2 to 200.

        Raises:
            ValueError: If a number is out of its range.
            RuntimeError: If the scheduler was stopped.
        """
        if snapshot_every is not None:
            require_int("snapshot_every", snapshot_every, 1)
        new_attempt = partial(
            Attempt,
            max_steps=require_int("max_steps", max_steps, 1),
            snapshot_every=snapshot_every,
            max_snapshots=require_int("max_snapshots", max_snapshots, 2, 200),
        )
        seat = Seat(make, new_attempt, self._clock())
        with self._turns.changed:
            if self._stopping:
                raise RuntimeError("the scheduler was stopped and takes no more runs")
            self._seats.add(seat)
            self._ensure_worker()
        return Run(seat, self._turns, self._clock)

    def stop(self, timeout: float = 2.0) -> None:
        """Close all runs and end the thread after the step under way.

        Args:
            timeout: Seconds to wait for that step.
        """
        stale: list[Question] = []
        with self._turns.changed:
            self._stopping = True
            for seat in list(self._seats):
                stale += self._turns.close(seat)
            self._turns.changed.notify_all()
        refuse(stale, StaleRunError(CLOSED))
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join(timeout)
        atexit.unregister(self.stop)

    def _ensure_worker(self) -> None:
        if not self._thread.ident:
            # A daemon that is inside a tensor library when the interpreter goes away
            # would abort the process, so it is asked to end first.
            atexit.register(self.stop)
            self._thread.start()

    # The worker

    def _work(self) -> None:
        while not self._stopping:
            self._take_turn()

    def _take_turn(self) -> None:
        """Serve whose turn it is, or wait until somebody wants one."""
        with self._turns.changed:
            self._park_unseen()
            stale = self._let_trainers_go()
            seat = self._turns.pick()
            if seat is None and not stale and not self._stopping:
                self._turns.changed.wait(self._seconds_of_grace())
        refuse(stale, StaleRunError(LET_GO))
        if seat is not None:
            self._serve(seat)

    def _park_unseen(self) -> None:
        now = self._clock()
        for seat in [*self._turns.line, *self._turns.guests]:
            if now - seat.seen_at >= self._unseen_seconds:
                seat.parked_at, seat.unseen = now, True
                self._turns.settle(seat)

    def _let_trainers_go(self) -> list[Question]:
        """Drop trainers whose grace is over; return the questions left behind."""
        stale: list[Question] = []
        for seat, until in self._parked_until():
            if until <= self._clock():
                stale += seat.attempt.drop_trainer()
                self._turns.settle(seat)
        return stale

    def _seconds_of_grace(self) -> float | None:
        """Return the seconds until the next trainer goes, or None without one."""
        ends = [until for _, until in self._parked_until()]
        return max(min(ends) - self._clock(), 0.0) if ends else None

    def _parked_until(self) -> list[tuple[Seat, float]]:
        return [
            (seat, seat.parked_at + self._grace_seconds)
            for seat in self._seats
            if seat.parked_at is not None and seat.attempt.trainer is not None
        ]

    def _serve(self, seat: Seat) -> None:
        """Answer questions and step until the slice is over; errors stay inside."""
        began, attempt = self._clock(), seat.attempt
        with seat.trainer_lock:
            try:
                self._advance(seat, attempt, began + self._slice_seconds)
            except BaseException as error:  # even SystemExit must not end the worker
                logger.exception("a live run failed")
                self._fail(attempt, error)
        with self._turns.changed:
            self._turns.charge(seat, self._clock() - began)
            self._turns.settle(seat)

    def _advance(self, seat: Seat, attempt: Attempt, deadline: float) -> None:
        trainer = attempt.trainer
        if trainer is None:
            trainer = self._build(seat, attempt)
        while question := self._next_question(attempt):
            question.put(trainer, still_asked=lambda: seat.holds(attempt))
            if self._clock() >= deadline:
                break
        first = True
        while self._claim_step(seat, attempt, None if first else deadline):
            self._step(seat, attempt, trainer)
            time.sleep(0)  # lets a page that waits for the interpreter go first
            first = False

    def _build(self, seat: Seat, attempt: Attempt) -> Steppable:
        trainer = seat.make()
        with self._turns.changed:
            if seat.holds(attempt):
                attempt.trainer = trainer
        self._look(seat, attempt, trainer)
        return trainer

    def _next_question(self, attempt: Attempt) -> Question | None:
        with self._turns.changed:
            return attempt.questions.popleft() if attempt.questions else None

    def _claim_step(self, seat: Seat, attempt: Attempt, deadline: float | None) -> bool:
        """Return whether to take a step; the first of a turn has no deadline."""
        with self._turns.changed:
            late = deadline is not None and (
                bool(self._turns.urgent) or self._clock() >= deadline
            )
            if late or not (seat.holds(attempt) and seat.present):
                return False
            return attempt.claim_step(active=seat.active)

    def _step(self, seat: Seat, attempt: Attempt, trainer: Steppable) -> None:
        began = self._clock()
        record = trainer.step()
        with self._turns.changed:
            attempt.add(record, self._clock() - began)
            seat.version += 1
        self._look(seat, attempt, trainer)

    def _look(self, seat: Seat, attempt: Attempt, trainer: Steppable) -> None:
        """Keep the snapshot that is due, and end an attempt that is over."""
        step, reason = attempt.step_count, _reason_to_end(attempt, trainer)
        due = attempt.shelf.due(step, last=bool(reason))
        snapshots = [Snapshot(step, trainer.snapshot())] if due else []
        with self._turns.changed:
            for snapshot in snapshots:
                attempt.shelf.keep(snapshot, last=bool(reason))
            attempt.extra_in_flight = False
            if reason:
                attempt.end(RunState.FINISHED, reason)
            seat.version += 1

    def _fail(self, attempt: Attempt, error: BaseException) -> None:
        text = f"{error} ({type(error).__name__})".strip()
        with self._turns.changed:
            attempt.trainer = None
            attempt.end(
                RunState.FAILED,
                f"Stopped by an error after {attempt.steps_done}: {text}",
            )
            stale = attempt.drop_questions()
        refuse(stale, error)


def _reason_to_end(attempt: Attempt, trainer: Steppable) -> str:
    if trainer.finished:
        return trainer.stop_reason or f"Finished after {attempt.steps_done}."
    return f"Stopped at the cap of {attempt.max_steps} steps." if attempt.capped else ""


_shared: dict[str, Scheduler] = {}
_shared_lock = Lock()


def shared_scheduler(device: str = "cpu") -> Scheduler:
    """Return the one scheduler of a device in this process, made when first asked for.

    Args:
        device: "cuda", "mps" or "cpu".

    Raises:
        ValueError: If ``device`` is none of these.
    """
    require_choice("device", device, DEVICES)
    with _shared_lock:
        if device not in _shared:
            _shared[device] = Scheduler(name=device)
        return _shared[device]
