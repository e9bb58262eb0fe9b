"""A live run as a page sees it: what to poll and what to command.

Every method answers at once, whatever the worker is doing, and may be called from any
thread. A page that lost its lease parks the run; coming back, it unparks it.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from core.attempt import (
    BEGINS_AGAIN,
    CLOSED,
    LET_GO,
    RESET,
    Question,
    RunState,
    Snapshot,
    StaleRunError,
    refuse,
)
from core.checks import require_int
from core.turns import Seat, Turns

Answer = TypeVar("Answer")


class RunStatus(NamedTuple):
    """Everything a page polls, taken at one moment.

    Attributes:
        state: What the run does now.
        message: The same as a sentence.
        version: Grows with every change; the same version needs no redraw.
        generation: Resets so far; records of two generations do not belong together.
        step_count: Steps done.
        max_steps: The cap on steps.
        elapsed: Seconds spent in steps.
        steps_per_second: Steps a second of wall time, 0 unless it trains on.
        queue_place: Place in the queue from 1, or None where it does not wait.
        snapshot_count: Snapshots kept.
        let_go: Whether the model is gone and the next step is step 1 of a new curve.
    """

    state: RunState
    message: str
    version: int
    generation: int
    step_count: int
    max_steps: int
    elapsed: float
    steps_per_second: float
    queue_place: int | None
    snapshot_count: int
    let_go: bool


class RunLook(NamedTuple):
    """A run at one moment: all a page draws of it.

    Attributes:
        status: Its numbers.
        records: A copy of all records since the last reset.
        snapshots: A copy of the snapshots since the last reset, evenly spaced.
    """

    status: RunStatus
    records: list[Any]
    snapshots: list[Snapshot]


class Run:
    """Handle of one live run; made by ``Scheduler.submit``."""

    def __init__(self, seat: Seat, turns: Turns, clock: Callable[[], float]) -> None:
        """Wrap the seat of a run."""
        self._seat = seat
        self._turns = turns
        self._clock = clock

    # What to poll

    def status(self) -> RunStatus:
        """Return all of the run's numbers, taken at one moment."""
        with self._turns.changed:
            seat, attempt, state = self._seat, self._seat.attempt, self._seat.state
            rate = (
                attempt.pace.steps_per_second()
                if seat.active and attempt.wanted
                else 0.0
            )
            return RunStatus(
                state=state,
                message=_message(seat, state),
                version=seat.version,
                generation=seat.generation,
                step_count=attempt.step_count,
                max_steps=attempt.max_steps,
                elapsed=attempt.elapsed,
                steps_per_second=rate,
                queue_place=seat.place,
                snapshot_count=len(attempt.shelf.items),
                let_go=attempt.let_go,
            )

    def look(self) -> RunLook:
        """Return numbers, records and snapshots that belong together."""
        with self._turns.changed:
            return RunLook(self.status(), self.records, self.snapshots)

    @property
    def state(self) -> RunState:
        """What the run does now."""
        return self.status().state

    @property
    def message(self) -> str:
        """What the run does now, as a sentence."""
        return self.status().message

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return self.status().version

    @property
    def generation(self) -> int:
        """Resets so far."""
        return self.status().generation

    @property
    def step_count(self) -> int:
        """Steps done since the last reset."""
        return self.status().step_count

    @property
    def elapsed(self) -> float:
        """Seconds spent in steps since the last reset."""
        return self.status().elapsed

    @property
    def steps_per_second(self) -> float:
        """Steps a second of wall time over the last two seconds, 0 unless running."""
        return self.status().steps_per_second

    @property
    def queue_place(self) -> int | None:
        """Place in the queue from 1, or None where the run does not wait."""
        return self.status().queue_place

    @property
    def records(self) -> list[Any]:
        """A copy of all records since the last reset."""
        return self.records_since(0)

    def records_since(self, start: int) -> list[Any]:
        """Return a copy of the records from number ``start`` on.

        Args:
            start: How many records the caller has. They are of use only while
                ``generation`` is what it was.
        """
        require_int("start", start, 0)
        with self._turns.changed:
            return self._seat.attempt.records[start:]

    @property
    def snapshots(self) -> list[Snapshot]:
        """A copy of the snapshots since the last reset, evenly spaced over steps."""
        with self._turns.changed:
            return list(self._seat.attempt.shelf.items)

    def touch(self) -> None:
        """Say that a page looks at this run, so that it does not park itself."""
        with self._turns.changed:
            self._seat.seen_at = self._clock()
            if self._seat.unseen:
                self._return()
                self._turns.settle(self._seat)

    # What to command

    def start(self) -> None:
        """Train on until paused, capped or finished; after the end this is nothing.

        A run whose model was let go begins again at step 0, with an empty curve.
        """
        with self._changing() as seat:
            if seat.may_step and not seat.attempt.wanted:
                seat.fresh_attempt().go()

    def pause(self) -> None:
        """Take no step after the one under way."""
        with self._changing() as seat:
            seat.attempt.rest()

    def step(self, count: int = 1) -> None:
        """Pause, take ``count`` more steps before anybody else's, and stay paused.

        Args:
            count: Steps to take, at least 1.

        Raises:
            ValueError: If ``count`` is less than 1.
        """
        require_int("count", count, 1)
        with self._changing(urgent=True) as seat:
            if seat.may_step:
                seat.fresh_attempt().go_by_hand(count)

    def reset(self) -> None:
        """Go back to step 0 at once; a step still under way is thrown away."""
        stale: list[Question] = []
        with self._changing() as seat:
            if not seat.closed:
                stale = seat.renew()
        refuse(stale, StaleRunError(RESET))

    def park(self) -> None:
        """Cost no more time until ``unpark``, and remember what was going on."""
        with self._changing() as seat:
            if seat.parked_at is None:
                seat.parked_at = self._clock()

    def unpark(self) -> None:
        """Go on where ``park`` stopped."""
        with self._changing():
            self._return()

    def close(self) -> None:
        """End the run for good and let its trainer go; the curve can still be read."""
        with self._turns.changed:
            stale = self._turns.close(self._seat)
        refuse(stale, StaleRunError(CLOSED))

    def ask(self, function: Callable[[Any], Answer]) -> Future[Answer]:
        """Call ``function(trainer)`` in the worker, before anybody's next step.

        The trainer is built if there is none yet. The function must leave it as it
        was, or the curve is no longer the one of its seed. While the run is parked
        the question waits.

        Returns:
            The answer, or what the function raised; a ``StaleRunError`` where the
            model is gone, because the run was closed, failed, or reset meanwhile.
        """
        question = Question(function, Future())
        with self._changing(urgent=True) as seat:
            refusal = _refusal(seat)
            if not refusal:
                seat.attempt.questions.append(question)
        if refusal:
            refuse([question], StaleRunError(refusal))
        return question.answer

    @contextmanager
    def _changing(self, *, urgent: bool = False) -> Iterator[Seat]:
        with self._turns.changed:
            self._seat.seen_at = self._clock()
            if self._seat.unseen:
                self._return()
            yield self._seat
            self._turns.settle(self._seat, urgent=urgent)

    def _return(self) -> None:
        self._seat.parked_at = None
        self._seat.unseen = False


def _refusal(seat: Seat) -> str:
    if seat.closed:
        return CLOSED
    if seat.attempt.let_go:
        return LET_GO
    return seat.attempt.reason if seat.state is RunState.FAILED else ""


def _message(seat: Seat, state: RunState) -> str:
    attempt, done = seat.attempt, seat.attempt.steps_done
    sentences = {
        RunState.NEW: "Not trained yet.",
        RunState.QUEUED: f"Waits for a free place: number {seat.place} in the queue.",
        RunState.RUNNING: f"Trains: {done} done.",
        RunState.PAUSED: f"Paused after {done}.",
        RunState.PARKED: f"Parked after {done}: no page looks.",
        RunState.CLOSED: CLOSED,
    }
    sentence = attempt.reason if attempt.outcome is state else sentences[state]
    if not attempt.let_go:
        return sentence
    return " ".join([sentence, LET_GO, *([BEGINS_AGAIN] if seat.may_step else [])])
