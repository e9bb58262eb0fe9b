"""Whose turn it is: the line of live runs on one device, and what goes before it.

Turns hold no thread and never touch a trainer. Pages change a seat and settle it; the
worker picks the next one. All of it happens under the one lock ``Turns.changed``,
which nobody holds while a step is taken, so a command never waits for a step.
"""

from collections import deque
from collections.abc import Callable
from threading import Condition, Lock

from core.attempt import Attempt, Question, RunState, Steppable

URGENT_IN_A_ROW = 8


class Seat:
    """A run as the scheduler sees it.

    Attributes:
        make: Builds a fresh trainer; the same one each time, bit for bit.
        new_attempt: Returns an empty attempt with the run's caps.
        attempt: The attempt since the last reset.
        generation: Resets so far.
        version: Grows with every change a page could draw.
        trainer_lock: Held while the trainer of this run is touched.
        seen_at: When a page last looked, in seconds of the clock.
        parked_at: When the run was parked, or None where it is not.
        unseen: Whether it parked itself because no page looked.
        closed: Whether it is over for good.
        active: Whether it is one of those that train now.
        place: Place in the queue from 1, or None where it does not wait.
        served: Seconds of worker time used, for fairness.
    """

    def __init__(
        self,
        make: Callable[[], Steppable],
        new_attempt: Callable[[], Attempt],
        now: float,
    ) -> None:
        """Take a seat without asking for a turn."""
        self.make = make
        self.new_attempt = new_attempt
        self.attempt = new_attempt()
        self.generation = 0
        self.version = 0
        self.trainer_lock = Lock()
        self.seen_at = now
        self.parked_at: float | None = None
        self.unseen = False
        self.closed = False
        self.active = False
        self.place: int | None = None
        self.served = 0.0

    @property
    def present(self) -> bool:
        """Whether a page is there: neither parked nor closed."""
        return self.parked_at is None and not self.closed

    @property
    def wants_slot(self) -> bool:
        """Whether it shall train on, and so stand in line."""
        return self.present and self.attempt.wanted

    @property
    def wants_service(self) -> bool:
        """Whether single steps or questions wait, which need no place in line."""
        return self.present and bool(self.attempt.extra or self.attempt.questions)

    def holds(self, attempt: Attempt) -> bool:
        """Whether ``attempt`` is still the one that counts."""
        return self.attempt is attempt and not self.closed

    @property
    def may_step(self) -> bool:
        """Whether the run has not come to an end."""
        return not self.closed and self.attempt.outcome is None

    @property
    def state(self) -> RunState:
        """What the run does now."""
        if self.closed:
            return RunState.CLOSED
        if self.attempt.outcome is not None:
            return self.attempt.outcome
        if self.parked_at is not None:
            return RunState.PARKED
        if self.attempt.stepping_by_hand or self.active:
            return RunState.RUNNING
        if self.attempt.wanted:
            return RunState.QUEUED
        return RunState.PAUSED if self.attempt.started else RunState.NEW

    def fresh_attempt(self) -> Attempt:
        """Return the attempt, a new and empty one where its trainer was let go."""
        if self.attempt.let_go:
            self.renew()
        return self.attempt

    def renew(self) -> list[Question]:
        """Begin again at step 0 and return the questions asked of the old attempt."""
        stale = self.attempt.drop_questions()
        self.attempt = self.new_attempt()
        self.generation += 1
        return stale


class Turns:
    """The order in which seats are served.

    The first ``max_active`` seats of the line train; the others wait in the order in
    which they came. Of those that train, the one that was served least goes next, so
    each gets the same time however long its steps are. Single steps and questions go
    first, but at most eight in a row.

    Attributes:
        changed: The lock around all seats, and the bell that wakes the worker.
        line: Seats that shall train, first come first.
        guests: Seats with single steps or questions, active or not.
        urgent: Guests whose newest request nobody has looked at yet.
    """

    def __init__(self, max_active: int, clock: Callable[[], float]) -> None:
        """Begin with nobody in line."""
        self.changed = Condition()
        self.line: list[Seat] = []
        self.guests: list[Seat] = []
        self.urgent: deque[Seat] = deque()
        self._max_active = max_active
        self._clock = clock
        self._floor = 0.0
        self._urgent_in_a_row = 0

    def settle(self, seat: Seat, *, urgent: bool = False) -> None:
        """Put a changed seat where it belongs and wake the worker.

        Args:
            seat: The seat that changed.
            urgent: Whether it has a new request, to be served before the line.
        """
        _keep_in(self.line, seat, seat.wants_slot)
        _keep_in(self.guests, seat, seat.wants_service)
        waiting = seat.wants_service and (urgent or seat in self.urgent)
        _keep_in(self.urgent, seat, waiting)
        if not seat.wants_slot:
            seat.active, seat.place = False, None
        seat.version += 1
        self._number_the_line()
        self.changed.notify_all()

    def close(self, seat: Seat) -> list[Question]:
        """End a run for good and return the questions nobody will answer."""
        seat.closed = True
        seat.attempt.rest()
        seat.attempt.trainer = None
        self.settle(seat)
        return seat.attempt.drop_questions()

    def pick(self) -> Seat | None:
        """Return the seat to serve next, or None where nobody wants a turn."""
        waiting = self.line[: self._max_active] + self.guests
        if not waiting:
            return None
        if self.urgent and self._urgent_in_a_row < URGENT_IN_A_ROW:
            self._urgent_in_a_row += 1
            seat = self.urgent[0]
        else:
            self._urgent_in_a_row = 0
            seat = min(waiting, key=self._use)
            self._floor = self._use(seat)
        _keep_in(self.urgent, seat, False)
        return seat

    def charge(self, seat: Seat, seconds: float) -> None:
        """Count a turn of ``seconds`` against the seat that had it."""
        seat.served = self._use(seat) + seconds
        if seat.active:
            seat.attempt.pace.mark(self._clock(), seat.attempt.step_count)
            seat.version += 1

    def _use(self, seat: Seat) -> float:
        # Time spent away is not saved up: nobody comes back owed more than the rest.
        return max(seat.served, self._floor)

    def _number_the_line(self) -> None:
        for index, seat in enumerate(self.line):
            active = index < self._max_active
            place = None if active else index - self._max_active + 1
            if active and not seat.active:
                seat.attempt.pace.begin(self._clock(), seat.attempt.step_count)
            if (active, place) != (seat.active, seat.place):
                seat.active, seat.place = active, place
                seat.version += 1


def _keep_in(seats: list[Seat] | deque[Seat], seat: Seat, wanted: bool) -> None:
    if wanted and seat not in seats:
        seats.append(seat)
    elif not wanted and seat in seats:
        seats.remove(seat)
