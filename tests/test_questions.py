from concurrent.futures import CancelledError

import pytest

from core.attempt import RunState, StaleRunError
from core.scheduler import Scheduler
from tests.fake_trainers import (
    Clock,
    FakeTrainer,
    Gate,
    held_worker,
    start_together,
    wait_until,
)


@pytest.fixture
def scheduler():
    scheduler = Scheduler()
    yield scheduler
    scheduler.stop()


def test_a_question_is_answered_by_the_trainer_as_it_is(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=6)
    assert run.ask(lambda trainer: trainer.count).result(5) == 0
    assert run.state is RunState.NEW
    run.start()
    wait_until(lambda: run.state is RunState.FINISHED)
    assert run.ask(lambda trainer: trainer.count).result(5) == 6


def test_what_a_question_raises_goes_to_its_asker_alone(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=6)
    with pytest.raises(ZeroDivisionError):
        run.ask(lambda trainer: 1 / 0).result(5)
    with pytest.raises(SystemExit):
        run.ask(lambda trainer: exit()).result(5)
    assert run.ask(lambda trainer: "still here").result(5) == "still here"
    assert run.state is RunState.NEW


def test_a_cancelled_question_is_never_asked(scheduler):
    run, asked = scheduler.submit(FakeTrainer, max_steps=6), []
    with held_worker(scheduler):
        answer = run.ask(asked.append)
        assert answer.cancel()
    run.ask(lambda trainer: None).result(5)
    assert asked == []
    with pytest.raises(CancelledError):
        answer.result(0)


def test_a_question_about_a_model_that_was_reset_is_refused(scheduler):
    gate = Gate()
    run = scheduler.submit(FakeTrainer, max_steps=6)
    under_way = run.ask(lambda trainer: gate())
    gate.wait_inside()
    waiting = run.ask(lambda trainer: trainer.count)
    run.reset()
    with pytest.raises(StaleRunError, match="reset before the answer came"):
        waiting.result(0)
    gate.open()
    with pytest.raises(StaleRunError, match="reset before the answer came"):
        under_way.result(5)


def test_a_failed_run_refuses_questions_with_its_reason(scheduler):
    run = scheduler.submit(lambda: FakeTrainer(fail_at=1), max_steps=6)
    run.start()
    wait_until(lambda: run.state is RunState.FAILED)
    with pytest.raises(StaleRunError, match="boom"):
        run.ask(lambda trainer: trainer.count).result(0)


def test_answers_come_in_the_order_of_the_questions(scheduler):
    run, order = scheduler.submit(FakeTrainer, max_steps=6), []
    with held_worker(scheduler):
        answers = [run.ask(lambda trainer, n=n: order.append(n)) for n in range(5)]
    for answer in answers:
        answer.result(5)
    assert order == [0, 1, 2, 3, 4]


def test_a_question_is_refused_where_its_run_closes_meanwhile(scheduler):
    gate = Gate()
    run = scheduler.submit(FakeTrainer, max_steps=6)
    answer = run.ask(lambda trainer: gate())
    gate.wait_inside()
    run.close()
    gate.open()
    with pytest.raises(StaleRunError):
        answer.result(5)


def test_slow_questions_leave_turns_to_the_others():
    clock, order = Clock(), []
    scheduler = Scheduler(clock=clock, slice_seconds=0.5)
    busy = FakeTrainer(clock=clock, seconds=0.5, before_step=lambda: order.append("s"))

    def slow(trainer: FakeTrainer) -> None:
        clock.advance(0.5)
        order.append("q")

    run = scheduler.submit(FakeTrainer, max_steps=6)
    (other,) = start_together(scheduler, [busy], max_steps=9)
    with held_worker(scheduler):
        answers = [run.ask(slow) for _ in range(3)]
    for answer in answers:
        answer.result(5)
    scheduler.stop()
    assert "qsq" in "".join(order)
    assert "qq" not in "".join(order)
    assert other.step_count <= 9
