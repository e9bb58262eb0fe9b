from concurrent.futures import Future
from itertools import pairwise

import pytest

from core.attempt import (
    Attempt,
    Pace,
    Question,
    RunState,
    Snapshot,
    SnapshotShelf,
    StaleRunError,
    refuse,
)


def shelf_after(steps: int, *, every: int, limit: int) -> list[int]:
    shelf = SnapshotShelf(every, limit)
    for step in range(steps + 1):
        last = step == steps
        if shelf.due(step, last=last):
            shelf.keep(Snapshot(step, None), last=last)
    return [snapshot.step for snapshot in shelf.items]


def test_snapshots_keep_their_stride_while_there_is_room():
    assert shelf_after(12, every=3, limit=200) == [0, 3, 6, 9, 12]


def test_a_full_shelf_doubles_its_stride():
    # 0 3 6 9 is full at 12: 0 6 stay; 18 finds 0 6 12 and fills it.
    assert shelf_after(12, every=3, limit=4) == [0, 6, 12]
    assert shelf_after(18, every=3, limit=4) == [0, 6, 12, 18]
    assert shelf_after(24, every=3, limit=4) == [0, 12, 24]


def test_the_last_snapshot_is_kept_off_the_stride():
    assert shelf_after(13, every=3, limit=200) == [0, 3, 6, 9, 12, 13]
    assert shelf_after(0, every=3, limit=200) == [0]


@pytest.mark.parametrize("limit", [2, 3, 5, 7, 200])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 199, 200, 997, 2003])
def test_snapshots_stay_bounded_and_even(limit, steps):
    kept = shelf_after(steps, every=1, limit=limit)
    assert len(kept) <= limit
    assert (kept[0], kept[-1]) == (0, steps)
    inner = kept[:-1]
    gaps = {later - earlier for earlier, later in pairwise(inner)}
    assert len(gaps) <= 1
    assert len(kept) >= min(limit, steps + 1) // 2


def test_a_shelf_without_stride_keeps_nothing():
    shelf = SnapshotShelf(None, 200)
    assert not shelf.due(0)
    assert not shelf.due(7, last=True)


def test_pace_counts_steps_over_the_last_two_seconds():
    pace = Pace()
    assert pace.steps_per_second() == 0
    pace.begin(10.0, 100)
    assert pace.steps_per_second() == 0
    for second in (11, 12, 13, 14):
        pace.mark(second, 100 + 5 * (second - 10))
    assert pace.steps_per_second() == 5
    pace.mark(15.0, 120)
    pace.mark(16.0, 120)
    assert pace.steps_per_second() == 0


def test_pace_reaches_back_over_a_step_longer_than_its_window():
    pace = Pace()
    pace.begin(0.0, 0)
    pace.mark(10.0, 1)
    pace.mark(20.0, 2)
    assert pace.steps_per_second() == 0.1


def test_pace_forgets_a_rest():
    pace = Pace()
    pace.begin(0.0, 0)
    pace.mark(1.0, 7)
    pace.begin(500.0, 7)
    pace.mark(501.0, 18)
    assert pace.steps_per_second() == 11


def test_single_steps_are_claimed_before_the_run_rests():
    attempt = Attempt(max_steps=10, snapshot_every=None, max_snapshots=200)
    assert not attempt.claim_step(active=True)
    attempt.go_by_hand(2)
    assert [attempt.claim_step(active=False) for _ in range(3)] == [True, True, False]
    assert attempt.stepping_by_hand
    attempt.add(0.5, 0.25)
    assert (attempt.step_count, attempt.elapsed) == (1, 0.25)
    attempt.rest()
    assert not attempt.stepping_by_hand


def test_a_run_takes_steps_only_with_a_place():
    attempt = Attempt(max_steps=10, snapshot_every=None, max_snapshots=200)
    attempt.go()
    assert not attempt.claim_step(active=False)
    assert attempt.claim_step(active=True)
    attempt.end(RunState.FINISHED, "done")
    assert not attempt.claim_step(active=True)


def test_an_attempt_without_steps_loses_nothing_with_its_trainer():
    attempt = Attempt(max_steps=10, snapshot_every=None, max_snapshots=200)
    attempt.go()
    assert attempt.drop_trainer() == []
    assert attempt.wanted
    assert not attempt.let_go
    attempt.add(0.5, 0.25)
    attempt.drop_trainer()
    assert not attempt.wanted
    assert attempt.let_go


def test_a_refused_question_raises_for_its_asker():
    question = Question(lambda trainer: 1, Future())
    refuse([question], StaleRunError("gone"))
    with pytest.raises(StaleRunError, match="gone"):
        question.answer.result(0)


def test_a_cancelled_question_is_not_asked():
    asked = []
    question = Question(asked.append, Future())
    assert question.answer.cancel()
    question.put(None, still_asked=lambda: True)
    assert asked == []


def test_a_cancelled_question_is_not_refused():
    question = Question(print, Future())
    assert question.answer.cancel()
    refuse([question], StaleRunError("gone"))
    assert question.answer.cancelled()
