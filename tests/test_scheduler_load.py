import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from core.attempt import RunState, StaleRunError
from core.scheduler import Scheduler
from tests.fake_trainers import FakeTrainer, expected_records, wait_until

ROOT = Path(__file__).parent.parent
MANY = 1_000_000


def hammer(runs, seed: int, end: float, errors: list[BaseException]) -> None:
    choose = random.Random(seed)
    commands = [
        lambda run: run.start(),
        lambda run: run.pause(),
        lambda run: run.step(choose.randint(1, 5)),
        lambda run: run.reset(),
        lambda run: run.park(),
        lambda run: run.unpark(),
        lambda run: run.touch(),
        lambda run: run.status(),
        lambda run: run.ask(lambda trainer: trainer.count),
    ]
    try:
        while time.perf_counter() < end:
            choose.choice(commands)(choose.choice(runs))
            time.sleep(0.0001)
    except BaseException as error:
        errors.append(error)


def test_random_commands_from_many_threads_break_nothing():
    scheduler = Scheduler(slice_seconds=0.002, max_active=3, grace_seconds=0.01)
    runs = [
        scheduler.submit(
            lambda seed=seed: FakeTrainer(seed=seed, seconds=0.0001, finish_at=400),
            max_steps=500,
            snapshot_every=1,
            max_snapshots=10,
        )
        for seed in range(20)
    ]
    errors: list[BaseException] = []
    end = time.perf_counter() + 2.0
    threads = [
        Thread(target=hammer, args=(runs, seed, end, errors)) for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
    for run in runs:
        run.unpark()
        run.pause()
    scheduler.submit(FakeTrainer, max_steps=1).ask(lambda trainer: None).result(10)
    for seed, run in enumerate(runs):
        assert run.state in (RunState.NEW, RunState.PAUSED, RunState.FINISHED)
        assert run.queue_place is None
        assert run.records == expected_records(seed, run.step_count)
        assert len(run.snapshots) <= 10
        assert all(step == content for step, content in run.snapshots)
    assert any(run.step_count for run in runs)
    for run in runs:
        run.reset()
        run.start()
    wait_until(lambda: all(run.state is RunState.FINISHED for run in runs), 20)
    for seed, run in enumerate(runs):
        assert run.records == expected_records(seed, 400)
    scheduler.stop()


def test_every_question_gets_an_answer_however_the_run_is_treated():
    scheduler = Scheduler(slice_seconds=0.001)
    run = scheduler.submit(FakeTrainer, max_steps=MANY)
    run.start()
    answers = []
    for turn in range(200):
        answers.append(run.ask(lambda trainer: trainer.count))
        if turn % 5 == 0:
            answers[-1].exception(5)
        if turn % 7 == 0:
            run.reset()
        if turn % 11 == 0:
            run.start()
    run.close()
    for answer in answers:
        error = answer.exception(5)
        assert error is None or isinstance(error, StaleRunError)
    assert any(answer.exception(0) is None for answer in answers)
    scheduler.stop()


SCRIPT = """
import atexit, sys, time
import torch
from core.scheduler import shared_scheduler

class Busy:
    finished, stop_reason = False, None
    def __init__(self):
        self.weights = torch.randn(200, 200, requires_grad=True)
    def step(self):
        (self.weights @ self.weights).sum().backward()
    def snapshot(self):
        return None

end = []
atexit.register(lambda: print(time.perf_counter() - end[0]))
runs = [shared_scheduler().submit(Busy, max_steps=10**9) for _ in range(3)]
for run in runs:
    run.start()
while not all(run.step_count for run in runs):
    time.sleep(0.01)
try:
    print("training", flush=True)
    {wait}
except KeyboardInterrupt:
    pass
end.append(time.perf_counter())
"""


@pytest.mark.parametrize(
    ("wait", "interrupted"), [("time.sleep(60)", True), ("pass", False)]
)
def test_a_process_that_trains_ends_at_once_and_quietly(wait, interrupted):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(wait=wait)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        if interrupted:
            process.send_signal(signal.SIGINT)
        seconds_to_end, complaints = process.communicate(timeout=20)
    assert (process.returncode, complaints) == (0, "")
    assert float(seconds_to_end) < 3


def test_real_trainers_train_together_as_if_alone():
    training = pytest.importorskip("core.training")
    config = training.TrainConfig(
        seq_len=7,
        d_model=8,
        num_heads=2,
        train_samples=64,
        test_samples=32,
        batch_size=16,
        max_steps=11,
        eval_every=4,
        dropout=0.25,
    )
    alone = list(training.train(config))
    scheduler = Scheduler(slice_seconds=0.0)
    runs = [
        scheduler.submit(
            lambda: training.Trainer(config), max_steps=MANY, snapshot_every=4
        )
        for _ in range(3)
    ]
    for run in runs:
        run.start()
    wait_until(lambda: all(run.state is RunState.FINISHED for run in runs))
    for run in runs:
        assert run.records == alone
        assert [snapshot.step for snapshot in run.snapshots] == [0, 4, 8, 11]
        assert "the cap of 11 steps is reached" in run.message
    accuracy = runs[0].ask(lambda trainer: trainer.evaluate(position=3)).result(5)
    assert 0 <= accuracy <= 1
    scheduler.stop()


def test_a_page_can_hold_a_run_before_torch_is_loaded():
    code = "import sys, core.scheduler; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"
