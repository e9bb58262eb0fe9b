import time
from collections import Counter
from threading import Thread, current_thread

import pytest

from core.attempt import RunState, StaleRunError
from core.scheduler import Scheduler, shared_scheduler
from tests.fake_trainers import (
    Clock,
    FakeTrainer,
    Gate,
    expected_records,
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


@pytest.fixture
def scheduler(make_scheduler):
    return make_scheduler()


def test_the_trainer_is_built_and_stepped_in_the_worker_alone(scheduler):
    gate, trainers = Gate(), []

    def make() -> FakeTrainer:
        gate()
        trainers.append(FakeTrainer())
        return trainers[0]

    run = scheduler.submit(make, max_steps=50)
    run.start()
    gate.wait_inside()
    assert (run.state, run.step_count) == (RunState.RUNNING, 0)
    gate.open()
    wait_until(lambda: run.state is RunState.FINISHED)
    (worker,) = trainers[0].threads
    assert worker is not current_thread()
    assert worker.daemon
    assert worker.name == "trainer-cpu"


def test_the_lock_of_a_run_is_held_while_its_trainer_is_touched(scheduler):
    held = []
    trainer = FakeTrainer(before_step=lambda: held.append(lock.locked()))
    run = scheduler.submit(lambda: trainer, max_steps=2)
    lock = run._seat.trainer_lock
    run.ask(lambda trainer: held.append(lock.locked())).result(5)
    run.start()
    wait_until(lambda: run.state is RunState.FINISHED)
    assert held == [True, True, True]
    wait_until(lambda: not lock.locked())


def test_equal_runs_get_equal_shares(make_scheduler):
    clock, log = Clock(), []
    scheduler = make_scheduler(clock=clock, slice_seconds=0.5, unseen_seconds=1e9)
    trainers = [
        FakeTrainer(clock=clock, seconds=0.125, log=log, name=name) for name in "abcde"
    ]
    runs = start_together(scheduler, trainers, max_steps=200)
    wait_until(lambda: all(run.state is RunState.FINISHED for run in runs))
    for upto in range(1, 901):
        counts = Counter(log[:upto])
        shares = [counts[trainer.name] for trainer in trainers]
        assert max(shares) - min(shares) <= 4  # one slice of 0.5 s


def test_slow_steps_hold_others_up_for_one_step_and_gain_nothing(make_scheduler):
    clock, log = Clock(), []
    scheduler = make_scheduler(clock=clock, slice_seconds=0.5, unseen_seconds=1e9)
    slow = FakeTrainer(clock=clock, seconds=4.0, log=log, name="s")
    quick = [FakeTrainer(clock=clock, seconds=0.125, log=log, name=n) for n in "qr"]
    start_together(scheduler, [slow, *quick], max_steps=640)
    wait_until(lambda: len(log) >= 1280)
    while_all = log[: log.index("q", 600)]
    counts = Counter(while_all)
    assert "ss" not in "".join(while_all)
    assert abs(counts["s"] * 4.0 - counts["q"] * 0.125) <= 4.0


def test_a_single_step_comes_right_after_the_step_under_way(make_scheduler):
    gate, log = Gate(), []
    scheduler = make_scheduler(max_active=12, slice_seconds=5.0)
    others = [FakeTrainer(log=log, name="o", before_step=gate) for _ in range(10)]
    start_together(scheduler, others, max_steps=50)
    gate.wait_inside()
    run = scheduler.submit(lambda: FakeTrainer(log=log, name="me"), max_steps=MANY)
    run.step(2)
    gate.open()
    wait_until(lambda: run.state is RunState.PAUSED)
    wait_until(lambda: len(log) == 502)
    assert log[:4] == ["o", "me", "me", "o"]


def test_a_single_step_answers_fast_beside_ten_busy_runs(make_scheduler):
    scheduler = make_scheduler(max_active=10)
    start_together(scheduler, [FakeTrainer(seconds=0.02) for _ in range(10)])
    run = scheduler.submit(lambda: FakeTrainer(seconds=0.02), max_steps=MANY)
    for presses in range(1, 4):
        began = time.perf_counter()
        run.step()
        wait_until(lambda: run.state is RunState.PAUSED)
        assert time.perf_counter() - began < 0.5
        assert run.step_count == presses
        began = time.perf_counter()
        run.ask(lambda trainer: trainer.count).result(5)
        assert time.perf_counter() - began < 0.5


def test_commands_answer_while_a_slow_step_runs(scheduler):
    gate = Gate()
    run = scheduler.submit(lambda: FakeTrainer(before_step=gate), max_steps=MANY)
    run.start()
    gate.wait_inside()
    began = time.perf_counter()
    for command in (run.pause, run.start, run.step, run.park, run.unpark, run.reset):
        command()
    assert time.perf_counter() - began < 0.5
    gate.open()


def test_a_single_step_needs_no_place(make_scheduler):
    scheduler = make_scheduler(max_active=1)
    (busy,) = start_together(scheduler, [FakeTrainer(seconds=0.001)])
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    run.step(3)
    wait_until(lambda: run.state is RunState.PAUSED)
    assert (run.step_count, busy.state) == (3, RunState.RUNNING)


def test_the_rest_wait_in_a_queue_and_see_their_place(make_scheduler):
    scheduler = make_scheduler(max_active=2)
    trainers = [FakeTrainer(seconds=0.001) for _ in range(6)]
    first, second, third, fourth, fifth, sixth = start_together(scheduler, trainers)
    wait_until(lambda: second.step_count > 0)
    places = [run.queue_place for run in (first, second, third, fourth, fifth, sixth)]
    assert places == [None, None, 1, 2, 3, 4]
    assert fourth.state is RunState.QUEUED
    assert fourth.message == "Waits for a free place: number 2 in the queue."
    first.pause()
    assert (third.queue_place, third.state) == (None, RunState.RUNNING)
    second.park()
    third.close()
    fourth.reset()
    fifth.pause()
    assert (sixth.state, second.queue_place) == (RunState.RUNNING, None)
    wait_until(lambda: sixth.step_count > 0)
    assert fifth.step_count == 0


@pytest.mark.parametrize("end", [{"finish_at": 3}, {"fail_at": 3}])
def test_the_end_of_a_run_frees_its_place(make_scheduler, end):
    scheduler = make_scheduler(max_active=1)
    ended, waiting = start_together(scheduler, [FakeTrainer(**end), FakeTrainer()])
    wait_until(lambda: waiting.step_count > 0)
    assert waiting.queue_place is None
    assert ended._seat.attempt.trainer is None or ended.state is RunState.FINISHED
    waiting.pause()
    ended.start()
    waiting.start()
    assert waiting.state is RunState.RUNNING


@pytest.mark.parametrize("alone", [True, False])
def test_a_curve_is_its_own_alone_or_beside_ten_others(make_scheduler, alone):
    scheduler = make_scheduler(slice_seconds=0.0, max_active=20)
    others = [] if alone else [FakeTrainer(seed=7) for _ in range(10)]
    start_together(scheduler, others)
    run = scheduler.submit(lambda: FakeTrainer(seed=7), max_steps=100)
    for _ in range(2):
        run.start()
        wait_until(lambda: run.state is RunState.FINISHED)
        assert run.records == expected_records(7, 100)
        run.reset()


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), SystemExit("bye")])
def test_an_error_stays_in_its_run(make_scheduler, error):
    scheduler = make_scheduler()
    bad = FakeTrainer(seed=1, fail_at=6, error=error)
    sick, well = start_together(scheduler, [bad, FakeTrainer()], max_steps=50)
    wait_until(lambda: well.state is RunState.FINISHED)
    wait_until(lambda: sick.state is RunState.FAILED)
    name = type(error).__name__
    assert sick.message == f"Stopped by an error after 5 steps: {error} ({name})"
    assert sick.records == expected_records(1, 5)
    sick.start()
    sick.step()
    assert (sick.state, sick.step_count) == (RunState.FAILED, 5)


def test_an_error_while_building_stays_in_its_run(scheduler):
    def make() -> FakeTrainer:
        raise ValueError("d_model (10) must be divisible by num_heads (3)")

    run = scheduler.submit(make, max_steps=50)
    answer = run.ask(lambda trainer: trainer.count)
    with pytest.raises(ValueError, match=r"d_model \(10\)"):
        answer.result(5)
    assert run.state is RunState.FAILED
    assert "d_model (10) must be divisible by num_heads (3)" in run.message
    well = scheduler.submit(FakeTrainer, max_steps=1)
    assert well.ask(lambda trainer: trainer.count).result(5) == 0


def test_an_idle_worker_costs_nothing(scheduler):
    runs = [scheduler.submit(FakeTrainer, max_steps=MANY) for _ in range(10)]
    for run in runs:
        run.step()
        run.ask(lambda trainer: None).result(5)
    runs[0].park()
    over = scheduler.submit(FakeTrainer, max_steps=1)
    over.start()
    wait_until(lambda: over.state is RunState.FINISHED)
    over.start()
    over.step()
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1


def test_stop_closes_all_runs_and_takes_no_more(scheduler):
    gate = Gate()
    busy = scheduler.submit(lambda: FakeTrainer(before_step=gate), max_steps=MANY)
    busy.start()
    gate.wait_inside()
    answer = busy.ask(lambda trainer: trainer.count)
    scheduler.stop(timeout=0.0)
    with pytest.raises(StaleRunError, match="This run is closed"):
        answer.result(0)
    gate.open()
    scheduler.stop()
    assert not scheduler._thread.is_alive()
    assert busy.state is RunState.CLOSED
    with pytest.raises(RuntimeError, match="the scheduler was stopped"):
        scheduler.submit(FakeTrainer, max_steps=1)


def test_a_device_has_one_scheduler_in_the_process(monkeypatch):
    def slowly_made(**settings) -> Scheduler:
        time.sleep(0.02)
        return Scheduler(**settings)

    monkeypatch.setattr("core.scheduler.Scheduler", slowly_made)
    monkeypatch.setattr("core.scheduler._shared", {})
    found: list[Scheduler] = []
    threads = [
        Thread(target=lambda: found.append(shared_scheduler("mps"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert set(found) == {shared_scheduler("mps")}
    assert shared_scheduler() is shared_scheduler("cpu") is not found[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_active": 0}, r"max_active \(0\) must be at least 1"),
        ({"slice_seconds": -1}, r"slice_seconds \(-1\) must be at least 0"),
        ({"grace_seconds": float("nan")}, "grace_seconds must be finite"),
        ({"unseen_seconds": "2"}, "unseen_seconds must be a number"),
    ],
)
def test_a_scheduler_refuses_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Scheduler(**settings)


@pytest.mark.parametrize(
    ("caps", "message"),
    [
        ({"max_steps": 0}, r"max_steps \(0\) must be at least 1"),
        ({"max_steps": 5, "snapshot_every": 0}, r"snapshot_every \(0\) must be"),
        ({"max_steps": 5, "max_snapshots": 1}, r"max_snapshots \(1\) must be between"),
        ({"max_steps": 5, "max_snapshots": 201}, r"max_snapshots \(201\) must be"),
    ],
)
def test_a_run_refuses_bad_caps(scheduler, caps, message):
    with pytest.raises(ValueError, match=message):
        scheduler.submit(FakeTrainer, **caps)


def test_an_unknown_device_has_no_scheduler():
    with pytest.raises(ValueError, match="device must be one of 'cuda', 'mps', 'cpu'"):
        shared_scheduler("tpu")
