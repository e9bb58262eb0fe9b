"""One attempt of a live run: all that happened between its first step and a reset.

An attempt knows no thread. Whoever owns it guards it; a reset puts a new attempt in
its place, so what a late step still writes goes to the old one and is seen by nobody.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

RATE_WINDOW_SECONDS = 2.0

RESET = "The run was reset before the answer came."
CLOSED = "This run is closed."
LET_GO = "The model was let go while the page was away, and its curve was kept."
BEGINS_AGAIN = "Training begins again at step 0."


class RunState(StrEnum):
    """What a run does now."""

    NEW = "new"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    PARKED = "parked"
    FINISHED = "finished"
    FAILED = "failed"
    CLOSED = "closed"


class Steppable(Protocol):
    """A trainer: one step at a time, and no knowledge of threads or screens."""

    @property
    def finished(self) -> bool:
        """Whether no further step makes sense."""

    @property
    def stop_reason(self) -> str | None:
        """Why it finished, as a sentence."""

    def step(self) -> Any:
        """Train one step and return its record."""

    def snapshot(self) -> Any:
        """Return what a page draws of the model as it is now."""


class Snapshot(NamedTuple):
    """What a trainer showed after a step.

    Attributes:
        step: Steps done; 0 is the model before training.
        content: What ``snapshot()`` of the trainer returned.
    """

    step: int
    content: Any


class StaleRunError(RuntimeError):
    """The model that a question was about is gone."""


class Question(NamedTuple):
    """A function to call with the trainer, and where its answer goes."""

    function: Callable[[Any], Any]
    answer: Future

    def put(self, trainer: Steppable, *, still_asked: Callable[[], bool]) -> None:
        """Answer with what the function returns or raises.

        Args:
            trainer: The trainer to ask.
            still_asked: Whether the trainer is still the run's own afterwards; where
                it is not, the answer is a ``StaleRunError``.
        """
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            result = self.function(trainer)
        except BaseException as error:  # whatever it is, the asker gets it
            self.answer.set_exception(error)
        else:
            if still_asked():
                self.answer.set_result(result)
            else:
                self.answer.set_exception(StaleRunError(RESET))


def refuse(questions: list[Question], error: BaseException) -> None:
    """Answer questions with an error, where somebody still waits."""
    for question in questions:
        if question.answer.set_running_or_notify_cancel():
            question.answer.set_exception(error)


class SnapshotShelf:
    """At most ``limit`` snapshots, evenly spaced over all steps so far.

    When the shelf is full, every second snapshot goes and the stride doubles.
    """

    def __init__(self, every: int | None, limit: int) -> None:
        """Keep one snapshot each ``every`` steps (None: none); ``limit`` is over 1."""
        self.items: list[Snapshot] = []
        self._stride = every
        self._limit = limit

    def due(self, step: int, *, last: bool = False) -> bool:
        """Return whether a snapshot after ``step`` belongs on the shelf.

        Args:
            step: Steps done.
            last: Whether this is the final step, which is kept wherever it falls.
        """
        if self._stride is None or (self.items and self.items[-1].step == step):
            return False
        return last or step % self._stride == 0

    def keep(self, snapshot: Snapshot, *, last: bool = False) -> None:
        """Add a snapshot, thinning the others first where the shelf is full."""
        while self._stride is not None and len(self.items) >= self._limit:
            stride = self._stride = 2 * self._stride
            self.items = [kept for kept in self.items if kept.step % stride == 0]
        if self.due(snapshot.step, last=last):
            self.items.append(snapshot)


class Pace:
    """Steps per second of wall time over the last two seconds or so."""

    def __init__(self) -> None:
        """Begin without a rate."""
        self._marks: deque[tuple[float, int]] = deque()

    def begin(self, now: float, step_count: int) -> None:
        """Forget the rate: stepping starts, or starts again after a rest."""
        self._marks.clear()
        self._marks.append((now, step_count))

    def mark(self, now: float, step_count: int) -> None:
        """Note the steps done by ``now``, in seconds."""
        self._marks.append((now, step_count))
        while len(self._marks) > 2 and now - self._marks[1][0] >= RATE_WINDOW_SECONDS:
            self._marks.popleft()

    def steps_per_second(self) -> float:
        """Return the rate between the oldest and the newest mark, 0 without two."""
        if len(self._marks) < 2:
            return 0.0
        (start, before), (end, after) = self._marks[0], self._marks[-1]
        return (after - before) / (end - start) if end > start else 0.0


class Attempt:
    """The trainer of a run, its curve, and what is still asked of it.

    Attributes:
        trainer: The trainer, or None before it is built and after it is let go.
        let_go: Whether a trainer that had taken steps was dropped to save memory.
        records: What each step returned, in order.
        shelf: Snapshots along the way.
        elapsed: Seconds spent in steps.
        started: Whether any step was ever asked for.
        wanted: Whether the run shall train on.
        extra: Steps asked for one by one and not yet begun.
        extra_in_flight: Whether such a step is being taken now.
        questions: Functions that wait for their answer.
        outcome: FINISHED or FAILED at the end, else None.
        reason: Why it ended.
    """

    def __init__(
        self, *, max_steps: int, snapshot_every: int | None, max_snapshots: int
    ) -> None:
        """Begin at step 0, without a trainer."""
        self.max_steps = max_steps
        self.trainer: Steppable | None = None
        self.let_go = False
        self.records: list[Any] = []
        self.shelf = SnapshotShelf(snapshot_every, max_snapshots)
        self.pace = Pace()
        self.elapsed = 0.0
        self.started = False
        self.wanted = False
        self.extra = 0
        self.extra_in_flight = False
        self.questions: deque[Question] = deque()
        self.outcome: RunState | None = None
        self.reason = ""

    @property
    def step_count(self) -> int:
        """Steps done."""
        return len(self.records)

    @property
    def steps_done(self) -> str:
        """Steps done, in words."""
        return "1 step" if self.step_count == 1 else f"{self.step_count} steps"

    @property
    def capped(self) -> bool:
        """Whether the cap on steps is reached."""
        return self.step_count >= self.max_steps

    @property
    def stepping_by_hand(self) -> bool:
        """Whether single steps are waiting or under way."""
        return self.extra > 0 or self.extra_in_flight

    def go(self) -> None:
        """Train on, step after step."""
        self.started = True
        self.wanted = True

    def go_by_hand(self, count: int) -> None:
        """Take ``count`` more single steps, then rest."""
        self.started = True
        self.wanted = False
        self.extra += count

    def rest(self) -> None:
        """Ask for no further step."""
        self.wanted = False
        self.extra = 0
        self.extra_in_flight = False

    def end(self, outcome: RunState, reason: str) -> None:
        """Take no further step, ever."""
        self.rest()
        self.outcome = outcome
        self.reason = reason

    def claim_step(self, *, active: bool) -> bool:
        """Return whether a step may begin now: a single one, or one of an active run.

        Args:
            active: Whether the run has a place among those that train.
        """
        if self.extra:
            self.extra -= 1
            self.extra_in_flight = True
            return True
        return active and self.wanted

    def add(self, record: Any, seconds: float) -> None:
        """Append the record of a step that took ``seconds``."""
        self.records.append(record)
        self.elapsed += seconds

    def drop_trainer(self) -> list[Question]:
        """Let the trainer go and return the questions nobody can answer any more.

        A trainer that has not stepped yet is built again when it is needed.
        """
        self.trainer = None
        if self.step_count == 0:
            return []
        self.let_go = True
        self.rest()
        return self.drop_questions()

    def drop_questions(self) -> list[Question]:
        """Return the waiting questions and forget them."""
        waiting = list(self.questions)
        self.questions.clear()
        return waiting
