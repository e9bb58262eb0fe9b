"""Shipped tables say what made them, and their numbers can be had again."""

from itertools import islice

from core.shipped import MARKER_PRESET, read_run, write_run
from core.training import TrainConfig, TrainRecord, train


def test_a_written_run_reads_back_the_same(tmp_path):
    records = [TrainRecord(1, 1, 0.5, 2.0, None), TrainRecord(2, 1, 0.25, 1.0, 0.75)]
    write_run(tmp_path / "run.csv", records, seed=5)
    run = read_run(tmp_path / "run.csv")
    assert run.made_by["seed"] == "5"
    assert run.origin.startswith("Made by python -m core.shipped, seed 5, torch ")
    assert [(r.step, r.loss, r.accuracy) for r in run.records] == [
        (1, 0.5, None),
        (2, 0.25, 0.75),
    ]


def test_the_shipped_run_names_command_seed_versions_and_machine():
    made_by = read_run(MARKER_PRESET).made_by
    assert made_by["command"] == "python -m core.shipped"
    assert set(made_by) == {"command", "seed", "versions", "machine"}


def test_the_first_steps_of_the_shipped_run_come_out_again():
    shipped = read_run(MARKER_PRESET).records
    assert len(shipped) == TrainConfig().max_steps
    for ours, theirs in zip(islice(train(TrainConfig()), 10), shipped, strict=False):
        assert abs(ours.loss - theirs.loss) < 2e-3  # other machines round otherwise
