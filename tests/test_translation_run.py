"""What a training run from text to text says of itself."""

import math
from dataclasses import replace

import pytest

from core import marker_story, shipped_seq2seq, translation_run
from core.run import RunState, RunStatus
from core.seq2seq_training import (
    SCHEDULES,
    Sample,
    Seq2SeqConfig,
    Seq2SeqRecord,
    Seq2SeqTrainer,
    preset,
)
from core.text_tasks import letter_task

TASK = letter_task("reverse", max_length=6)
SMALL = {"d_model": 16, "num_layers": 1, "batch_size": 16, "test_pairs": 8}


def status_at(state: RunState, *, steps: int = 0, let_go: bool = False) -> RunStatus:
    return RunStatus(state, "own words", 1, 0, steps, 100, 0.0, 0.0, None, 0, let_go)


def test_a_run_tells_loss_exact_match_and_tokens():
    config = Seq2SeqConfig()
    records = [
        Seq2SeqRecord(1, 1, 3.2, 1e-5, 1.0, 0.5, 0.25),
        Seq2SeqRecord(2, 1, 3.1, 2e-5, 1.0, None, None),
    ]
    said = translation_run.progress_sentence(records, config, TASK)
    assert "Step 2: loss 3.100" in said
    assert "at step 1, 25.0\u00a0% of 256" in said
    assert translation_run.token_points(records) == [(1, 50.0)]
    broken = [*records, Seq2SeqRecord(3, 1, math.nan, 2e-5, 1.0, None, None)]
    assert marker_story.failing_step(broken) == 3


def test_a_run_is_named_by_what_differs_from_its_preset():
    config = preset("numbers", norm_first=False, seed=4)
    assert translation_run.run_label(config) == "numbers, post-norm, seed 4"
    other = replace(config, max_steps=100)
    steps = f"steps {config.max_steps} here, 100 there"
    assert translation_run.differences(config, other) == steps


def test_settings_are_told_in_the_words_of_the_page():
    own = preset("numbers", norm_first=False, learning_rate=1e-5)
    other = preset("numbers", target_exact=0.9)
    assert translation_run.differences(own, other) == (
        "norms post-norm here, pre-norm there; rate 0.00001 here, 0.003 there; "
        "stop at an exact match of off here, 90\u00a0% there"
    )
    label = translation_run.run_label(replace(own, target_exact=0.9))
    assert label == (
        "numbers, post-norm, rate 0.00001, stop at an exact match of 90\u00a0%, seed 0"
    )


def test_beside_a_run_of_its_task_a_kept_run_is_named_without_it():
    label = translation_run.run_label(preset("numbers", batch_size=32))
    short = translation_run.short_name(label, preset("numbers"))
    assert short == "batch 32, seed 0"
    assert translation_run.short_name(label, preset("dates")) == label


def test_a_run_of_one_step_is_told_in_the_singular():
    trainer = Seq2SeqTrainer(
        preset("numbers", d_model=8, num_heads=1, num_layers=1, batch_size=2)
    )
    trainer.step()
    kept = shipped_seq2seq.copied_from(trainer)
    assert kept.origin.endswith("after 1 step.")
    assert "Your run · 1 training step ·" in translation_run.run_words(kept, own=True)


def test_the_schedules_are_those_the_trainer_takes():
    config = Seq2SeqConfig(warmup_steps=10, max_steps=40)
    curves = translation_run.schedules(config)
    for name, points in curves.items():
        taken = replace(config, schedule=name)
        assert all(rate == taken.rate_at(step) for step, rate in points)
        assert max(rate for _, rate in points) == config.learning_rate
        assert points[-1][0] == 40


def test_samples_without_an_end_are_marked_and_counted():
    samples = [
        Sample(("a", "b"), ("b", "a"), right=True, ended=True),
        Sample(("a", "b"), ("b", "b"), right=False, ended=False),
    ]
    rows = translation_run.sample_rows(samples, TASK)
    assert rows == [("ab", "ba", "right"), ("ab", "bb …", "wrong")]
    assert "1 of 2" in translation_run.samples_sentence(samples, 7)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (3e-3, "0.003"),
        (1e-2, "0.01"),
        (1e-4, "0.0001"),
        (2.967e-5, "0.0000297"),
        (9.999e-4, "0.001"),
        (1.0, "1"),
        (0.3, "0.3"),
        (99.99, "100"),
        (1e6, "1000000"),
        (0.0, "0"),
    ],
)
def test_a_rate_is_written_without_an_exponent(rate, words):
    assert translation_run.rate_text(rate) == words


def test_the_rate_has_one_look_in_all_sentences():
    config = Seq2SeqConfig(learning_rate=1e-2, warmup_steps=100)
    said = translation_run.schedule_sentence(config, 1)
    assert said.endswith("grows to 0.01 over 100 steps; at step 1 it is 0.0001.")
    records = [Seq2SeqRecord(1, 1, 3.2, 1e-4, 1.0, None, None)]
    assert "learning rate 0.0001;" in translation_run.progress_sentence(
        records, config, TASK
    )


@pytest.mark.parametrize("warmup", [50, 800])
def test_a_warm_up_as_long_as_the_run_only_rises_and_says_so(warmup):
    config = Seq2SeqConfig(warmup_steps=warmup, max_steps=50)
    said = translation_run.schedule_sentence(config, 10)
    assert translation_run.only_rises(config)
    assert "by every schedule the rate only rises" in said
    points = translation_run.schedules(config)[config.schedule]
    rates = [rate for _, rate in points]
    assert rates == sorted(rates)
    assert f"to {translation_run.rate_text(rates[-1])} at step 50" in said
    for schedule in SCHEDULES:
        assert translation_run.schedules(config)[schedule] == points


def test_a_rate_that_falls_again_is_not_said_to_only_rise():
    config = Seq2SeqConfig(warmup_steps=49, max_steps=50)
    assert not translation_run.only_rises(config)
    assert "only rises" not in translation_run.schedule_sentence(config, 10)
    none = translation_run.schedule_sentence(replace(config, warmup_steps=0), 1)
    assert "Without warm-up the rate starts at 0.003; at step 1 it is 0.003." in none


@pytest.mark.parametrize("steps", [10, 5000])
def test_the_estimate_promises_nothing_on_a_busy_machine(steps):
    said = translation_run.estimate_sentence(Seq2SeqConfig(max_steps=steps))
    assert "at most" not in said
    assert said.endswith(" on two idle CPU cores, longer beside other runs.")


def test_before_its_first_step_a_run_says_that_it_starts():
    running = status_at(RunState.RUNNING)
    assert translation_run.status_words(running).startswith("Starting:")
    paused = status_at(RunState.PAUSED)
    assert translation_run.status_words(paused) == "Paused before the first step."


@pytest.mark.parametrize("state", list(RunState))
def test_all_else_is_left_to_the_words_of_the_scheduler(state):
    done = status_at(state, steps=1)
    assert translation_run.status_words(done) == "own words"
    gone = status_at(state, let_go=True)
    assert translation_run.status_words(gone) == "own words"
    if state not in (RunState.RUNNING, RunState.PAUSED):
        assert translation_run.status_words(status_at(state)) == "own words"


def test_a_run_that_blows_up_says_so_and_nothing_of_its_numbers():
    config = preset(
        "numbers", learning_rate=1e6, warmup_steps=0, norm_first=False, **SMALL
    )
    trainer = Seq2SeqTrainer(config)
    while not trainer.finished and len(trainer.records) < 20:
        trainer.step()
    failed = marker_story.failing_step(trainer.records)
    assert failed is not None
    said = translation_run.progress_sentence(trainer.records, config, config.text_task)
    assert said == f"Step {failed}: loss or gradient is no longer a finite number."
    before = trainer.records[: failed - 1]
    said = translation_run.progress_sentence(before, config, config.text_task)
    assert f"Step {failed - 1}: loss" in said


def test_a_run_that_does_not_learn_tells_the_numbers_it_has():
    config = preset(
        "numbers", learning_rate=1e-2, warmup_steps=0, norm_first=False, eval_every=3,
        **SMALL,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(config)
    for _ in range(4):
        trainer.step()
    last, tested = trainer.records[-1], trainer.records[-2]
    said = translation_run.progress_sentence(trainer.records, config, config.text_task)
    rate = translation_run.rate_text(config.rate_at(4))
    assert said.startswith(f"Step 4: loss {last.loss:.3f}, learning rate {rate}; ")
    assert "at step 3, " in said
    assert f"{100 * tested.exact:.1f}" in said or tested.exact in (0, 1)
