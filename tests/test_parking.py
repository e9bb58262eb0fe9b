import weakref

import pytest

from core.attempt import RunState, StaleRunError
from core.scheduler import Scheduler
from tests.fake_trainers import (
    Clock,
    FakeTrainer,
    Gate,
    expected_records,
    held_worker,
    start_together,
    wait_until,
)

MANY = 1_000_000


@pytest.fixture
def make_scheduler():
    made = []

    def make(**settings) -> Scheduler:
        made.append(Scheduler(**settings))
        return made[-1]

    yield make
    for scheduler in made:
        scheduler.stop()


def test_a_trainer_goes_after_its_grace_and_the_curve_stays(make_scheduler):
    clock, trainers = Clock(), []
    scheduler = make_scheduler(clock=clock, grace_seconds=600.0)

    def make() -> FakeTrainer:
        trainer = FakeTrainer(seed=3, finish_at=9)
        trainers.append(weakref.ref(trainer))
        return trainer

    run = scheduler.submit(make, max_steps=MANY)
    run.step(5)
    wait_until(lambda: run.state is RunState.PAUSED)
    run.park()
    clock.advance(599.0)
    with held_worker(scheduler):
        assert trainers[0]() is not None
    clock.advance(1.0)
    with held_worker(scheduler):
        assert trainers[0]() is None
    assert run.state is RunState.PARKED
    assert "The model was let go while the page was away" in run.message
    run.unpark()
    assert run.state is RunState.PAUSED
    assert run.status().let_go
    assert run.message.endswith("Training begins again at step 0.")
    assert run.records == expected_records(3, 5)
    with pytest.raises(StaleRunError, match="The model was let go"):
        run.ask(lambda trainer: trainer.count).result(0)
    run.start()
    wait_until(lambda: run.state is RunState.FINISHED)
    assert run.records == expected_records(3, 9)
    assert (run.message, run.generation) == ("enough after 9 steps", 1)
    assert not run.status().let_go


def test_a_running_run_whose_model_is_gone_comes_back_paused(make_scheduler):
    clock = Clock()
    scheduler = make_scheduler(clock=clock, grace_seconds=10.0)
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    run.start()
    wait_until(lambda: run.step_count > 3)
    run.park()
    question = run.ask(lambda trainer: trainer.count)
    clock.advance(10.0)
    with held_worker(scheduler):
        run.unpark()
        assert run.state is RunState.PAUSED
    with pytest.raises(StaleRunError, match="The model was let go"):
        question.result(5)


def test_a_grace_ends_while_nobody_trains(make_scheduler):
    scheduler = make_scheduler(grace_seconds=0.1)
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    run.step()
    wait_until(lambda: run.state is RunState.PAUSED)
    run.park()
    wait_until(lambda: "let go" in run.message)


def test_an_unseen_run_parks_itself_and_a_look_wakes_it(make_scheduler):
    clock = Clock()
    scheduler = make_scheduler(clock=clock, unseen_seconds=120.0)
    trainers = [FakeTrainer(), FakeTrainer()]
    seen, lost = start_together(scheduler, trainers)
    clock.advance(119.0)
    seen.touch()
    clock.advance(1.0)
    wait_until(lambda: lost.state is RunState.PARKED)
    count = seen.step_count
    wait_until(lambda: seen.step_count > count)
    assert seen.state is RunState.RUNNING
    lost.touch()
    assert lost.state is RunState.RUNNING
    clock.advance(120.0)
    wait_until(lambda: lost.state is RunState.PARKED)
    lost.pause()
    assert lost.state is RunState.PAUSED


def test_a_look_does_not_wake_a_run_that_its_page_parked(make_scheduler):
    scheduler = make_scheduler()
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    run.start()
    run.park()
    run.touch()
    assert run.state is RunState.PARKED


def test_a_parked_run_stands_still_and_goes_on_with_its_own_model(make_scheduler):
    scheduler = make_scheduler()
    run = scheduler.submit(lambda: FakeTrainer(seed=4), max_steps=MANY)
    run.start()
    wait_until(lambda: run.step_count > 3)
    run.park()
    assert run.state is RunState.PARKED
    with held_worker(scheduler):
        count = run.step_count
    assert run.message == f"Parked after {count} steps: no page looks."
    with held_worker(scheduler):
        assert run.step_count == count
    run.unpark()
    assert run.state is RunState.RUNNING
    wait_until(lambda: run.step_count > count)
    run.pause()
    assert run.records == expected_records(4, run.step_count)


def test_parking_remembers_that_a_run_was_paused(make_scheduler):
    scheduler = make_scheduler()
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    run.step()
    wait_until(lambda: run.state is RunState.PAUSED)
    run.park()
    run.unpark()
    assert run.state is RunState.PAUSED


def test_a_command_to_a_parked_run_waits_for_the_page(make_scheduler):
    scheduler = make_scheduler()
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    run.park()
    run.start()
    answer = run.ask(lambda trainer: trainer.count)
    with held_worker(scheduler):
        assert run.state is RunState.PARKED
    assert not answer.done()
    run.unpark()
    assert answer.result(5) >= 0
    wait_until(lambda: run.step_count > 0)


def test_parking_interrupts_single_steps_and_remembers_them(make_scheduler):
    scheduler, gate = make_scheduler(), Gate()
    run = scheduler.submit(lambda: FakeTrainer(before_step=gate), max_steps=MANY)
    run.step(7)
    gate.wait_inside()
    run.park()
    gate.open()
    with held_worker(scheduler):
        assert (run.state, run.step_count) == (RunState.PARKED, 1)
    run.unpark()
    wait_until(lambda: run.state is RunState.PAUSED)
    assert run.step_count == 7


def test_single_steps_of_an_unseen_run_stop_too(make_scheduler):
    clock = Clock()
    scheduler = make_scheduler(clock=clock, unseen_seconds=120.0)
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    run.step(MANY)
    wait_until(lambda: run.step_count > 0)
    clock.advance(120.0)
    wait_until(lambda: run.state is RunState.PARKED)
