import gc
import weakref

import pytest

from core.attempt import RunState, StaleRunError
from core.run import RunStatus
from core.scheduler import Scheduler
from tests.fake_trainers import (
    Clock,
    FakeTrainer,
    Gate,
    expected_records,
    held_worker,
    wait_until,
)

MANY = 1_000_000


@pytest.fixture
def scheduler():
    scheduler = Scheduler()
    yield scheduler
    scheduler.stop()


def finished(run) -> bool:
    return run.state is RunState.FINISHED


def test_a_new_run_says_so_and_takes_no_step(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=7)
    assert run.status() == RunStatus(
        state=RunState.NEW,
        message="Not trained yet.",
        version=0,
        generation=0,
        step_count=0,
        max_steps=7,
        elapsed=0.0,
        steps_per_second=0.0,
        queue_place=None,
        snapshot_count=0,
        let_go=False,
    )
    assert (run.records, run.snapshots) == ([], [])


def test_a_started_run_ends_with_its_trainers_reason(scheduler):
    run = scheduler.submit(lambda: FakeTrainer(seed=3, finish_at=11), max_steps=MANY)
    run.start()
    wait_until(lambda: finished(run))
    assert run.message == "enough after 11 steps"
    assert run.records == expected_records(3, 11)
    assert run.records_since(9) == expected_records(3, 11)[9:]
    assert run.records_since(11) == []


def test_the_cap_on_steps_holds_whatever_the_trainer_says(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=13)
    run.start()
    wait_until(lambda: finished(run))
    assert run.message == "Stopped at the cap of 13 steps."
    run.start()
    run.step(5)
    assert run.ask(lambda trainer: trainer.count).result(5) == 13
    assert (run.state, run.step_count) == (RunState.FINISHED, 13)


def test_a_trainer_with_nothing_to_do_is_finished_without_a_step(scheduler):
    run = scheduler.submit(lambda: FakeTrainer(finish_at=0), max_steps=5)
    run.start()
    wait_until(lambda: finished(run))
    assert (run.message, run.records) == ("enough after 0 steps", [])


def test_snapshots_come_at_the_start_on_the_stride_and_at_the_end(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=11, snapshot_every=3)
    run.start()
    wait_until(lambda: finished(run))
    assert run.snapshots == [(step, step) for step in (0, 3, 6, 9, 11)]


def test_records_and_snapshots_are_copies(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=3, snapshot_every=1)
    run.start()
    wait_until(lambda: finished(run))
    run.records.clear()
    run.snapshots.clear()
    assert (len(run.records), len(run.snapshots)) == (3, 4)


def test_a_look_is_taken_at_one_moment(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=MANY, snapshot_every=1)
    run.start()
    looks = [run.look()]
    while looks[-1].status.step_count < 300:
        looks.append(run.look())
    run.pause()
    for look in looks:
        assert look.status.step_count == len(look.records)
        assert look.status.snapshot_count == len(look.snapshots)


def test_pause_answers_at_once_and_ends_with_the_step_under_way(scheduler):
    gate = Gate()
    run = scheduler.submit(lambda: FakeTrainer(before_step=gate), max_steps=MANY)
    run.start()
    gate.wait_inside()
    run.pause()
    assert (run.state, run.step_count) == (RunState.PAUSED, 0)
    gate.open()
    run.ask(lambda trainer: None).result(5)
    assert run.status()[:2] == (RunState.PAUSED, "Paused after 1 step.")
    run.start()
    wait_until(lambda: run.step_count > 5)


def test_single_steps_leave_the_run_paused(scheduler):
    run = scheduler.submit(lambda: FakeTrainer(seed=2), max_steps=MANY)
    run.step()
    wait_until(lambda: run.state is RunState.PAUSED)
    assert run.records == expected_records(2, 1)
    run.step(5)
    assert run.state in (RunState.RUNNING, RunState.PAUSED)
    wait_until(lambda: run.state is RunState.PAUSED)
    assert run.records == expected_records(2, 6)


def test_a_run_is_running_until_its_single_step_is_done(scheduler):
    gate = Gate()
    run = scheduler.submit(lambda: FakeTrainer(before_step=gate), max_steps=MANY)
    run.step()
    gate.wait_inside()
    assert run.state is RunState.RUNNING
    gate.open()
    wait_until(lambda: run.state is RunState.PAUSED)
    assert run.step_count == 1


def test_a_single_step_is_done_only_with_its_snapshot(scheduler):
    gate, counts = Gate(), []

    class Slow(FakeTrainer):
        def snapshot(self) -> int:
            counts.append(self.count)
            if self.count:
                gate()
            return self.count

    run = scheduler.submit(Slow, max_steps=MANY, snapshot_every=1)
    run.step()
    gate.wait_inside()
    assert (run.state, run.step_count) == (RunState.RUNNING, 1)
    gate.open()
    wait_until(lambda: run.state is RunState.PAUSED)
    assert [snapshot.step for snapshot in run.snapshots] == counts == [0, 1]


def test_a_snapshot_that_fails_keeps_the_record_of_its_step(scheduler):
    class Blind(FakeTrainer):
        def snapshot(self) -> int:
            return 1 // (1 - self.count)

    run = scheduler.submit(Blind, max_steps=MANY, snapshot_every=1)
    run.start()
    wait_until(lambda: run.state is RunState.FAILED)
    assert run.records == expected_records(0, 1)
    assert run.message.startswith("Stopped by an error after 1 step: ")


def test_step_in_a_running_run_pauses_it(scheduler):
    gate = Gate()
    run = scheduler.submit(lambda: FakeTrainer(before_step=gate), max_steps=MANY)
    run.start()
    gate.wait_inside()
    run.step(3)
    gate.open()
    wait_until(lambda: run.state is RunState.PAUSED)
    assert run.step_count == 4  # the one under way and three more


def test_pause_takes_back_single_steps(scheduler):
    gate = Gate()
    run = scheduler.submit(lambda: FakeTrainer(before_step=gate), max_steps=MANY)
    run.step(100)
    gate.wait_inside()
    run.pause()
    assert run.state is RunState.PAUSED
    run.step(2)
    gate.open()
    wait_until(lambda: run.state is RunState.PAUSED)
    assert run.step_count == 3


def test_single_steps_stop_at_the_cap(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=4)
    run.step(9)
    wait_until(lambda: finished(run))
    assert run.step_count == 4


def test_reset_answers_at_once_and_throws_away_the_step_under_way(scheduler):
    gate, made = Gate(), []

    def make() -> FakeTrainer:
        made.append(FakeTrainer(seed=5, before_step=gate))
        return made[-1]

    run = scheduler.submit(make, max_steps=4, snapshot_every=1)
    run.start()
    gate.wait_inside()
    run.reset()
    assert (run.state, run.records, run.snapshots) == (RunState.NEW, [], [])
    assert (run.step_count, run.elapsed, run.generation) == (0, 0.0, 1)
    run.start()
    gate.open()
    wait_until(lambda: finished(run))
    assert [trainer.count for trainer in made] == [1, 4]
    assert run.records == expected_records(5, 4)
    assert run.snapshots == [(step, step) for step in range(5)]


def test_a_reset_step_that_fails_late_is_nobodys_failure(scheduler):
    gate = Gate()
    run = scheduler.submit(
        lambda: FakeTrainer(before_step=gate, fail_at=1), max_steps=4
    )
    run.start()
    gate.wait_inside()
    run.reset()
    gate.open()
    with held_worker(scheduler):
        assert run.state is RunState.NEW


def test_reset_brings_back_a_failed_and_a_finished_run(scheduler):
    lives = iter([FakeTrainer(fail_at=3), FakeTrainer(), FakeTrainer(seed=1)])
    run = scheduler.submit(lambda: next(lives), max_steps=5)
    for seed, state in ((0, "failed"), (0, "finished"), (1, "finished")):
        run.start()
        wait_until(lambda: run.state not in (RunState.QUEUED, RunState.RUNNING))
        assert run.state == state
        steps = 2 if state == "failed" else 5
        assert run.records == expected_records(seed, steps)
        run.reset()
    assert run.state is RunState.NEW


def test_a_closed_run_keeps_its_curve_and_frees_its_model(scheduler):
    trainers: list[weakref.ref] = []

    def make() -> FakeTrainer:
        trainer = FakeTrainer()
        trainers.append(weakref.ref(trainer))
        return trainer

    run = scheduler.submit(make, max_steps=6)
    run.step(2)
    wait_until(lambda: run.step_count == 2)
    run.close()
    for command in (run.start, run.pause, run.step, run.reset, run.park, run.unpark):
        command()
    assert (run.state, run.message) == (RunState.CLOSED, "This run is closed.")
    assert run.records == expected_records(0, 2)
    with pytest.raises(StaleRunError, match="This run is closed"):
        run.ask(lambda trainer: trainer.count).result(0)
    wait_until(lambda: gc.collect() >= 0 and trainers[0]() is None)


def test_a_run_closed_while_it_is_built_frees_its_model(scheduler):
    gate, built = Gate(), []

    def make() -> FakeTrainer:
        gate()
        trainer = FakeTrainer()
        built.append(weakref.ref(trainer))
        return trainer

    run = scheduler.submit(make, max_steps=6)
    run.start()
    gate.wait_inside()
    run.close()
    gate.open()
    wait_until(lambda: bool(built))
    wait_until(lambda: gc.collect() >= 0 and built[0]() is None)


def test_a_run_nobody_holds_leaves_nothing_behind(scheduler):
    def held_for_a_step() -> list[weakref.ref]:
        trainer = FakeTrainer()
        run = scheduler.submit(lambda: trainer, max_steps=6)
        run.step()
        wait_until(lambda: run.state is RunState.PAUSED)
        return [weakref.ref(run._seat), weakref.ref(trainer)]

    left = held_for_a_step()
    scheduler.submit(FakeTrainer, max_steps=1).ask(lambda other: None).result(5)
    wait_until(lambda: gc.collect() >= 0 and [ref() for ref in left] == [None, None])


def test_every_change_is_a_new_version_and_nothing_else_is(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    versions = [run.version]
    for command in (run.step, run.start, run.pause, run.park, run.unpark, run.reset):
        command()
        versions.append(run.version)
    assert versions == sorted(set(versions))
    run.step()
    wait_until(lambda: run.state is RunState.PAUSED)
    run.ask(lambda trainer: None).result(5)
    with held_worker(scheduler):
        version = run.version
        run.touch()
        run.status()
    with held_worker(scheduler):
        assert run.version == version


def test_time_and_rate_are_those_of_the_steps():
    clock = Clock()
    scheduler = Scheduler(clock=clock, slice_seconds=0.5)
    gates = {40: Gate(), 46: Gate()}
    trainer = FakeTrainer(clock=clock, seconds=0.25)
    trainer.before_step = lambda: gates.get(trainer.count, lambda: None)()
    run = scheduler.submit(lambda: trainer, max_steps=60)
    run.start()
    gates[40].wait_inside()
    assert (run.step_count, run.elapsed) == (40, 10.0)
    assert run.steps_per_second == 4.0
    run.pause()
    assert run.steps_per_second == 0.0
    gates[40].open()
    run.ask(lambda trainer: None).result(5)
    clock.advance(60.0)  # a rest does not count
    run.start()
    gates[46].wait_inside()
    assert run.steps_per_second == 4.0
    gates[46].open()
    scheduler.stop()


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_step_refuses_a_count_below_one(scheduler, count):
    run = scheduler.submit(FakeTrainer, max_steps=6)
    with pytest.raises(ValueError, match="count"):
        run.step(count)


def test_records_since_refuses_a_negative_start(scheduler):
    run = scheduler.submit(FakeTrainer, max_steps=6)
    with pytest.raises(ValueError, match=r"start \(-1\) must be at least 0"):
        run.records_since(-1)
