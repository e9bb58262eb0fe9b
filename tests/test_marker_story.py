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


def test_a_hundred_losses_within_a_tenth_of_ln_2_are_said_to_be_those_of_p_1_2():
    flat = [record(step, math.log(2) + 0.09) for step in range(1, 101)]
    assert story.is_stuck(flat)
    said = story.progress_sentence(flat, 100)
    assert said.endswith(
        "The last 100 losses all lie within 0.1 of ln 2 = 0.693, "
        "the loss of always answering p = 1/2."
    )
    assert not story.is_stuck(flat[:99])
    assert not story.is_stuck([record(step, 0.5) for step in range(1, 101)])


def test_losses_that_swing_about_ln_2_are_no_coin_flip():
    swing = [math.log(2) + 0.5 * (-1) ** step for step in range(100)]
    assert not story.is_stuck([record(step, loss) for step, loss in enumerate(swing)])


def test_progress_names_the_last_loss_and_the_last_measured_accuracy():
    records = [record(1, 0.7), record(2, 0.4, 0.875), record(3, 0.25)]
    said = story.progress_sentence(records, 1000)
    assert said == (
        "Step 3: loss 0.250, test accuracy 87.5 % at step 2, on 1,000 sequences."
    )


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_named(loss):
    said = story.progress_sentence([record(1, 0.7, 0.5), record(2, loss)], 9)
    assert said.startswith(
        "Step 2: loss or gradient is no longer finite; last finite loss 0.7 at step 1; "
        "test accuracy 50.0 %"
    )
    assert "nan" not in said
    assert story.failing_step([record(1, 0.7), record(2, loss)]) == 2
    assert story.failing_step([record(1, 0.7)]) is None


@pytest.mark.parametrize(
    ("readout", "peaks"), [("cls", ["position 1", "CLS"]), ("mean", ["position 2"] * 2)]
)
def test_the_readout_sentence_counts_positions_of_the_sequence(readout, peaks):
    # (2 layers, 2 heads, 3 columns); in the second layer the first column is largest
    rows = torch.tensor(
        [
            [[0.1, 0.2, 0.7], [0.3, 0.2, 0.5]],
            [[0.6, 0.3, 0.1], [0.4, 0.3, 0.3]],
        ]
    )
    if readout == "mean":
        rows[1] = rows[1].flip(-1)
    config = TrainConfig(seq_len=2 if readout == "cls" else 3, readout=readout)
    said = story.readout_sentence(rows, config, step=21)
    assert "after step 21" in said
    assert f"layer 1: peak at {peaks[0]} with 60.0 %, marker 20.0 %" in said
    assert f"layer 2: peak at {peaks[1]} with 50.0 %" in said


def test_moving_the_marker_tests_the_model_at_that_place():
    trainer = Trainer(TrainConfig(seq_len=7, test_samples=50))
    moved = story.move_marker(trainer, 3)
    assert moved.accuracy == trainer.evaluate(position=3)
    expected = trainer.snapshot(position=3).readout_rows
    torch.testing.assert_close(moved.snapshot.readout_rows, expected)


def moved_to(accuracy, unmoved=1.0):
    return story.MovedMarker(3, accuracy, unmoved, None)


def test_one_model_is_compared_with_itself():
    trainer = Trainer(TrainConfig(seq_len=7, test_samples=50))
    trainer.step()  # no record carries an accuracy yet
    moved = story.move_marker(trainer, 3)
    assert moved.unmoved == trainer.evaluate()
    said = story.moved_sentence(moved_to(0.5, 0.875))
    assert said == (
        "Test accuracy 50.0 % with the marker at position 3; at position 0, where "
        "training had it: 87.5 %."
    )


@pytest.mark.parametrize(
    ("accuracy", "fate"),
    [
        (1.0, story.Fate.STAYS),
        (0.96, story.Fate.STAYS),
        (0.94, story.Fate.BETWEEN),
        (0.61, story.Fate.BETWEEN),
        (0.6, story.Fate.HALF),
        (0.4, story.Fate.HALF),
        (0.39, story.Fate.BETWEEN),
        (0.11, story.Fate.BETWEEN),
        (0.1, story.Fate.NEAR_ZERO),
        (0.0, story.Fate.NEAR_ZERO),
    ],
)
def test_the_fate_of_the_accuracy_follows_the_number(accuracy, fate):
    assert story.fate_of_accuracy(moved_to(accuracy)) is fate


def test_a_model_of_90_percent_stays_where_it_is_from_85_percent_on():
    assert story.fate_of_accuracy(moved_to(0.86, 0.9)) is story.Fate.STAYS
    assert story.fate_of_accuracy(moved_to(0.84, 0.9)) is story.Fate.BETWEEN


def test_a_run_has_learned_from_75_percent_on():
    assert story.has_learned(moved_to(0.1, 0.75))
    assert not story.has_learned(moved_to(0.1, 0.749))


def test_a_model_without_numbers_is_not_tested_elsewhere():
    trainer = Trainer(TrainConfig(seq_len=7, test_samples=50))
    for parameter in trainer.model.parameters():
        parameter.data.fill_(math.nan)
    assert not story.is_sound(trainer.snapshot())
    with pytest.raises(ValueError, match="no longer made of numbers"):
        story.move_marker(trainer, 3)


def test_the_sequence_shown_is_the_first_that_the_trainer_tests():
    config = TrainConfig(seq_len=7, test_samples=50)
    values, target = story.first_test(config)
    inputs, targets = Trainer(config)._test_data
    torch.testing.assert_close(values, inputs[0, :, 0])
    assert target == targets[0]
    assert values[0] == (1 if target else -1)
    assert f"y = {target}" in story.task_sentence(target)


def test_settings_that_differ_are_named_with_both_values():
    own, other = TrainConfig(), TrainConfig(learning_rate=1e6, max_steps=63)
    assert story.differences(own, other) == (
        "rate 0.001 here, 1e+06 there; max steps 756 here, 63 there"
    )
    assert story.differences(own, own) == ""


def test_the_estimate_grows_with_the_steps_and_is_told_in_minutes():
    short, long = TrainConfig(max_steps=63), TrainConfig(max_steps=10_000)
    assert " s at this size" in story.estimate_sentence(short)
    assert " min at this size" in story.estimate_sentence(long)


def test_the_shipped_sentence_names_the_first_good_step():
    run = ShippedRun({}, [record(21, 0.6, 0.5), record(42, 0.1, 0.97), record(63, 0.1)])
    said = story.shipped_sentence(run)
    assert said.endswith("preset, first at 95 % or more at step 42.")


def test_a_shipped_run_that_never_learned_says_so():
    run = ShippedRun({}, [record(21, 0.6, 0.5), record(42, 0.6)])
    assert story.shipped_sentence(run).endswith("never at 95 % or more.")


def test_another_length_is_tested_with_the_same_model():
    trainer = Trainer(TrainConfig(seq_len=7, test_samples=50))
    found = story.test_at_length(trainer, 13)
    assert found.accuracy == trainer.evaluate(seq_len=13)
    assert found.own_accuracy == trainer.evaluate()
    assert (found.own_len, found.seq_len, found.num_tested) == (7, 13, 50)


def test_a_length_past_learned_positions_is_refused():
    trainer = Trainer(TrainConfig(seq_len=7, test_samples=50, positional="learned"))
    with pytest.raises(ValueError, match="max_len"):
        story.test_at_length(trainer, 13)


def test_the_length_sentence_gives_both_accuracies_and_claims_no_more():
    found = story.OtherLength(120, 900, 0.713, 60, 1.0)
    assert story.length_sentence(found) == (
        "Trained at length 60: test accuracy 100.0 % there, 71.3 % at length 120, "
        "on 900 sequences."
    )
