import itertools

import pytest

from core.measuring import Measurement
from core.scheduler import Scheduler
from tests.fake_trainers import wait_until


def test_each_step_brings_the_next_result_until_all_are_there():
    measurement = Measurement(iter("abc"), 3)
    assert [measurement.step() for _ in range(3)] == ["a", "b", "c"]
    assert measurement.finished
    assert measurement.stop_reason == "Measured: 3 results."


def test_nothing_is_worked_out_before_it_is_asked_for():
    asked = []
    measurement = Measurement((asked.append(n) or n for n in range(5)), 5)
    assert not asked
    measurement.step()
    assert asked == [0]
    assert not measurement.finished


def test_a_source_that_ends_early_is_an_error_and_not_a_shorter_result():
    measurement = Measurement(iter("a"), 2)
    measurement.step()
    with pytest.raises(RuntimeError, match="only 1 of 2 results came"):
        measurement.step()


def test_no_results_at_all_are_refused():
    with pytest.raises(ValueError, match=r"total \(0\) must be at least 1"):
        Measurement(iter(""), 0)


def test_the_scheduler_runs_a_measurement_stops_it_and_goes_on():
    scheduler = Scheduler(name="measuring")
    try:
        run = scheduler.submit(lambda: Measurement(itertools.count(1), 5), max_steps=5)
        run.step(2)
        wait_until(lambda: run.step_count == 2)
        assert run.state == "paused"
        run.start()
        wait_until(lambda: run.state == "finished")
        assert run.records == [1, 2, 3, 4, 5]
        assert run.message == "Measured: 5 results."
    finally:
        scheduler.stop()
