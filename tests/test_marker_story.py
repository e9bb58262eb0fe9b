"""Sentences and labels of a marker run, each from numbers worked out by hand."""

import math

import pytest
import torch

from core import marker_story as story
from core.shipped import ShippedRun
from core.training import TrainConfig, Trainer, TrainRecord


def record(step, loss, accuracy=None):
    return TrainRecord(step, 1, loss, 1.0, accuracy)


def test_the_preset_is_called_the_preset_and_changes_are_named():
    assert story.run_label(TrainConfig(seed=7)) == "preset, seed 7"
    changed = TrainConfig(positional="none", num_layers=3)
    assert story.run_label(changed) == "layers 3, positions none, seed 0"


def test_the_marker_column_counts_the_cls_token():
    assert story.marker_column(TrainConfig(), 4) == 5
    assert story.marker_column(TrainConfig(readout="mean"), 4) == 4


def test_a_causal_cls_is_named_as_reading_itself_alone():
    (note,) = story.notes_on(TrainConfig(causal=True))
    assert "itself alone" in note
    assert story.notes_on(TrainConfig()) == []


def test_a_causal_mask_without_positions_is_named_as_leaking_order():
    config = TrainConfig(causal=True, positional="none", readout="mean")
    (note,) = story.notes_on(config)
    assert "leaks order" in note


def test_a_hundred_losses_around_ln_2_are_called_a_coin_flip():
    flat = [record(step, math.log(2) + 0.02) for step in range(1, 101)]
    assert story.is_stuck(flat)
    assert "coin flip" in story.progress_sentence(flat, 100)
    assert not story.is_stuck(flat[:99])
    assert not story.is_stuck([record(step, 0.5) for step in range(1, 101)])


def test_progress_names_the_last_loss_and_the_last_measured_accuracy():
    records = [record(1, 0.7), record(2, 0.4, 0.875), record(3, 0.25)]
    said = story.progress_sentence(records, 1000)
    assert said == (
        "Step 3: loss 0.250, test accuracy 87.5 % at step 2, on 1,000 sequences."
    )


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_named(loss):
    said = story.progress_sentence([record(1, 0.7, 0.5), record(2, loss)], 9)
    assert said.startswith("Step 2: the loss is no longer finite; test accuracy 50.0 %")


def test_the_readout_sentence_gives_peak_and_marker_of_each_layer():
    rows = torch.tensor([[[0.1, 0.2, 0.7], [0.3, 0.2, 0.5]]])  # (1 layer, 2 heads, 3)
    said = story.readout_sentence(rows, TrainConfig(seq_len=2), position=0)
    assert "layer 1: peak at position 2 with 60.0 %, marker 20.0 %" in said


def test_moving_the_marker_tests_the_model_at_that_place():
    trainer = Trainer(TrainConfig(seq_len=7, test_samples=50))
    moved = story.move_marker(trainer, 3)
    assert moved.accuracy == trainer.evaluate(position=3)
    expected = trainer.snapshot(position=3).readout_rows
    torch.testing.assert_close(moved.snapshot.readout_rows, expected)


@pytest.mark.parametrize(
    ("accuracy", "fate"), [(1.0, 0), (0.9, 0), (0.5, 1), (0.11, 1), (0.05, 2)]
)
def test_the_fate_of_the_accuracy_follows_the_number(accuracy, fate):
    assert story.fate_of_accuracy(story.MovedMarker(3, accuracy, None)) == fate


def test_a_run_has_learned_from_95_percent_on():
    assert story.has_learned([record(1, 0.1, 0.95)])
    assert not story.has_learned([record(1, 0.1, 0.949)])
    assert not story.has_learned([])


def test_the_shipped_sentence_names_the_first_good_step_and_the_command():
    made = {"command": "make", "seed": "3", "versions": "torch 1"}
    run = ShippedRun(made, [record(21, 0.6, 0.5), record(42, 0.1, 0.97)])
    said = story.shipped_sentence(run)
    assert "from step 42" in said
    assert "(make, seed 3, torch 1)" in said
