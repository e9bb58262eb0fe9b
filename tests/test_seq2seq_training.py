"""Training from text to text: its loss, its schedules, its steps and its ends."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from core.attempt import RunState
from core.checks import RefusedError
from core.scheduler import Scheduler
from core.seq2seq import make_model
from core.seq2seq_training import (
    CONSTANT,
    MODELS,
    PAPER,
    PRESETS,
    STRAIGHT_DOWN,
    Score,
    Seq2SeqConfig,
    Seq2SeqTrainer,
    held_out_pairs,
    preset,
    score_pairs,
    target_loss,
    training_data,
    translate,
)
from core.text_tasks import TASKS, Pair, letter_task
from core.vocabulary import PAD
from tests.fake_trainers import wait_until

TINY = Seq2SeqConfig(
    task="copy", max_length=3, d_model=8, num_heads=2, num_layers=1, hidden_size=8,
    batch_size=16, train_pairs=70, test_pairs=20, max_steps=9, eval_every=4,
    dropout=0.1,
)  # fmt: skip


def curve(config):
    trainer = Seq2SeqTrainer(config)
    while not trainer.finished:
        trainer.step()
    return trainer


# The loss


def test_the_loss_is_the_mean_over_real_tokens_as_worked_by_hand():
    logits = torch.tensor([[[0.0, 0.0, 0.0, math.log(2.0)], [9.0, 0.0, 0.0, 0.0]]])
    loss = target_loss(logits, torch.tensor([[3, PAD]]))
    assert_close(loss.item(), math.log(5 / 2))


def test_more_padding_changes_neither_loss_nor_gradient():
    trainer = Seq2SeqTrainer(replace(TINY, dropout=0.0))
    model = trainer.model.double()
    batch = training_data(TINY).rows(torch.arange(7))
    padded = [F.pad(table, (0, 5), value=PAD) for table in batch]
    found = []
    for source, target_in, target_out in (batch, padded):
        loss = target_loss(model(source, target_in), target_out, label_smoothing=0.1)
        gradient = torch.autograd.grad(loss, list(model.parameters()))
        found.append((loss, gradient))
    assert_close(*found)


def test_label_smoothing_is_that_of_pytorch_on_the_real_tokens():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 5, generator=generator, dtype=torch.float64)
    target = torch.tensor([[3, 4, PAD], [2, PAD, PAD]])
    real = target != PAD
    expected = F.cross_entropy(logits[real], target[real], label_smoothing=0.3)
    assert_close(target_loss(logits, target, label_smoothing=0.3), expected)
    log_p = logits[real].log_softmax(-1)
    mean = -(0.7 * log_p.gather(1, target[real][:, None]).mean() + 0.3 * log_p.mean())
    assert_close(target_loss(logits, target, label_smoothing=0.3), mean)


# The schedules


def test_the_schedules_are_those_worked_by_hand():
    config = replace(TINY, learning_rate=8.0, warmup_steps=4, max_steps=11)
    rates = {
        schedule: [
            replace(config, schedule=schedule).rate_at(step) for step in (1, 4, 8, 11)
        ]
        for schedule in (CONSTANT, STRAIGHT_DOWN, PAPER)
    }
    assert rates[CONSTANT] == [2, 8, 8, 8]
    assert rates[STRAIGHT_DOWN] == [2, 8, 4, 1]  # and 0 at step 12
    by_hand = [2, 8, 8 / math.sqrt(2), 8 * math.sqrt(4 / 11)]
    assert rates[PAPER] == pytest.approx(by_hand)


def test_the_papers_formula_is_the_schedule_at_its_own_highest_rate():
    config = replace(TINY, d_model=64, schedule=PAPER, warmup_steps=30, max_steps=90)
    config = replace(config, learning_rate=config.paper_rate)
    for step in (1, 29, 30, 31, 90):
        formula = 64**-0.5 * min(step**-0.5, step * 30**-1.5)
        assert config.rate_at(step) == pytest.approx(formula)


@pytest.mark.parametrize("schedule", [CONSTANT, STRAIGHT_DOWN, PAPER])
def test_a_schedule_without_warm_up_or_with_nothing_else_stays_in_range(schedule):
    for warmup in (0, 9, 20):
        config = replace(TINY, schedule=schedule, warmup_steps=warmup)
        rates = [config.rate_at(step) for step in range(1, 10)]
        assert all(0 < rate <= config.learning_rate for rate in rates)
        assert config.rate_at(1) == config.learning_rate / max(warmup, 1)


def test_a_step_takes_the_rate_of_its_schedule():
    config = replace(TINY, learning_rate=0.01, warmup_steps=5, dropout=0.0)
    trainer = Seq2SeqTrainer(config)
    before = [parameter.clone() for parameter in trainer.model.parameters()]
    record = trainer.step()
    assert record.rate == config.rate_at(1) == 0.002
    moved = max(
        (new - old).abs().max().item()
        for new, old in zip(trainer.model.parameters(), before, strict=True)
    )
    assert moved == pytest.approx(0.002, rel=1e-3)  # what Adam's first step moves


# The steps


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_curve_to_the_last_bit_beside_another(model):
    before = torch.get_rng_state()
    config = replace(TINY, model=model)
    alone = curve(config).records
    first, other = Seq2SeqTrainer(config), Seq2SeqTrainer(replace(config, seed=1))
    while not first.finished:
        first.step()
        other.step()
        first.snapshot()
    assert first.records == alone
    assert other.records != alone
    assert torch.equal(torch.get_rng_state(), before)
    assert [r.step for r in alone if r.exact is not None] == [4, 8, 9]
    assert [r.epoch for r in alone] == [1] * 5 + [2] * 4  # 70 pairs by 16: 5 steps
    assert all(r.accuracy == r.exact for r in alone)


def test_the_steps_are_those_of_a_plain_loop():
    config = replace(
        TINY, dropout=0.0, label_smoothing=0.3, clip_norm=0.2, learning_rate=0.02,
        warmup_steps=3,
    )  # fmt: skip
    trainer, batches = Seq2SeqTrainer(config), Seq2SeqTrainer(config)._batches
    model, data = make_model(config.model_config), training_data(config)
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for number in range(1, 9):
        source, target_in, target_out = data.rows(next(batches))
        logits, real = model(source, target_in), target_out != PAD
        loss = F.cross_entropy(logits[real], target_out[real], label_smoothing=0.3)
        adam.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        assert norm > 0.2  # there is something to clip
        adam.param_groups[0]["lr"] = config.rate_at(number)
        adam.step()
        record = trainer.step()
        assert record.loss == pytest.approx(loss.item(), rel=1e-4)
        assert record.gradient_norm == pytest.approx(norm.item(), rel=1e-3)


def test_an_epoch_shows_every_pair_once():
    trainer = Seq2SeqTrainer(TINY)
    rows = torch.cat([next(trainer._batches) for _ in range(TINY.steps_per_epoch)])
    assert rows.sort().values.tolist() == list(range(70))


def test_a_transformer_learns_to_copy_and_says_so_in_its_samples():
    config = replace(
        TINY, d_model=32, num_heads=4, dropout=0.0, train_pairs=8000, test_pairs=64,
        batch_size=64, max_steps=400, eval_every=50, warmup_steps=20,
        learning_rate=0.005, target_exact=0.95,
    )  # fmt: skip
    trainer = curve(config)
    last = trainer.records[-1]
    assert last.exact >= 0.95
    assert last.token_accuracy >= 0.95
    assert "of the held-out answers are right in full" in trainer.stop_reason
    assert trainer.records[0].loss > 2.5
    samples, mapped, maps = trainer.snapshot()
    assert sum(sample.right for sample in samples) >= 6
    assert all(s.answer == s.source for s in samples if s.right)
    assert maps[0].shape[1] == len(samples[mapped].answer) + 1  # the last gives END
    reverse = letter_task("reverse", max_length=3)
    (copied,) = translate(trainer.model, reverse, [("a", "b", "c")]).samples
    assert copied.ended
    assert not copied.right


@pytest.mark.parametrize("model", MODELS)
def test_a_snapshot_shows_samples_and_the_map_of_the_longest(model):
    snapshot = Seq2SeqTrainer(replace(TINY, model=model)).snapshot()
    pairs = held_out_pairs(TINY)
    assert [s.source for s in snapshot.samples] == [p.source for p in pairs[:8]]
    mapped = snapshot.samples[snapshot.mapped]
    assert len(mapped.source) == max(len(s.source) for s in snapshot.samples)
    layers = 0 if model == "none" else 1
    heads = 2 if model == "transformer" else 1
    assert len(snapshot.cross_maps) == layers
    for weights in snapshot.cross_maps:
        rows = min(len(mapped.answer) + 1, 4)  # one for END, within the limit
        assert weights.shape == (heads, rows, len(mapped.source))
        assert_close(weights.sum(-1), torch.ones(heads, rows))


def test_the_score_counts_answers_in_full_and_tokens_apart():
    class Parrot(torch.nn.Module):  # says every source back, as copy wants
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, source, target_in):
            return F.one_hot(F.pad(target_in[:, 1:], (0, 1), value=2), 29).double()

        def encode(self, source):
            return F.pad(source, (0, 2), value=PAD).masked_fill(
                F.pad(source, (0, 2)) == PAD, 2
            )

        def begin(self, memory):
            return memory

        def advance(self, tokens, state):
            return F.one_hot(state[:, 0], 29).double(), state[:, 1:]

    pairs = [Pair(("a", "b"), ("a", "b")), Pair(("c",), ("c",))]
    right = score_pairs(Parrot(), TASKS["copy"], pairs)
    assert right.exact == 1
    assert right.token_accuracy == 4 / 5  # not c's END: 5 tokens, the padding is none
    backwards = score_pairs(
        Parrot(), TASKS["reverse"], [Pair(("a", "b"), ("b", "a")), pairs[1]]
    )
    assert backwards.exact == 0.5
    assert isinstance(right, Score)
    with pytest.raises(RefusedError, match=r"number of pairs \(0\)"):
        score_pairs(Parrot(), TASKS["copy"], [])


def test_data_of_a_run_do_not_depend_on_its_seed_and_are_held_apart():
    other = replace(TINY, seed=5)
    assert held_out_pairs(TINY) == held_out_pairs(other)
    assert all(map(torch.equal, training_data(TINY), training_data(other)))
    task = TINY.text_task
    shown = {tuple(row[row != PAD].tolist()) for row in training_data(TINY).source}
    tested = {tuple(task.source.encode(p.source)) for p in held_out_pairs(TINY)}
    assert not shown & tested
    longer = replace(TINY, min_length=2)
    assert {len(pair.source) for pair in held_out_pairs(longer)} == {2, 3}
    assert int((training_data(longer).source != PAD).sum(dim=1).min()) == 2


def test_translate_answers_typed_sources():
    trainer = Seq2SeqTrainer(TINY)
    found = translate(trainer.model, trainer.task, [("a", "b", "a"), ("c",)])
    assert [s.source for s in found.samples] == [("a", "b", "a"), ("c",)]
    assert all(len(s.answer) <= 4 for s in found.samples)
    assert found.mapped == 0


# The ends


def test_a_loss_that_blows_up_ends_the_run_and_keeps_the_curve():
    config = replace(TINY, learning_rate=1e6, warmup_steps=0, max_steps=300)
    trainer = Seq2SeqTrainer(config)
    trainer.step()
    with torch.no_grad():
        trainer.model.output.weight.fill_(torch.inf)
    before = [p.clone() for p in trainer.model.parameters()]
    record = trainer.step()
    assert not math.isfinite(record.loss)
    assert trainer.finished
    assert "learning rate (1e+06) is likely too large" in trainer.stop_reason
    assert len(trainer.records) == 2
    assert all(map(torch.equal, before, trainer.model.parameters()))
    with pytest.raises(RuntimeError, match="the run is over"):
        trainer.step()


def test_the_cap_on_steps_ends_the_run():
    trainer = curve(TINY)
    assert trainer.stop_reason == (
        "Training stopped at step 9: the cap of 9 steps is reached."
    )


def test_the_scheduler_runs_it_as_it_runs_alone():
    scheduler = Scheduler()
    try:
        run = scheduler.submit(
            lambda: Seq2SeqTrainer(TINY), max_steps=TINY.max_steps, snapshot_every=4
        )
        run.start()
        wait_until(lambda: run.state == RunState.FINISHED, seconds=60)
        assert run.records == curve(TINY).records
        assert [snapshot.step for snapshot in run.snapshots] == [0, 4, 8, 9]
    finally:
        scheduler.stop()


# What is refused beforehand


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"task": "poems"}, "task must be one of 'reverse', 'copy', 'sort'"),
        ({"model": "mlp"}, "model must be one of 'transformer', 'none'"),
        ({"schedule": "cosine"}, "schedule must be one of"),
        ({"d_model": 10, "num_heads": 3}, r"d_model \(10\) must be divisible by num_h"),
        ({"min_length": 4}, r"min_length \(4\) must be between 1 and 3"),
        ({"max_length": 41}, r"max_length \(41\) must be between 2 and 40"),
        ({"task": "dates"}, r"max_length \(3\) cannot be chosen for dates"),
        ({"label_smoothing": 1.0}, r"label_smoothing \(1\) must be between 0 and 0.9"),
        ({"train_pairs": 10**6}, r"train_pairs \(1000000\)"),
        ({"max_steps": 0}, r"max_steps \(0\)"),
        ({"learning_rate": math.nan}, "learning_rate must be finite"),
        ({"target_exact": 1.5}, r"target_exact \(1.5\)"),
        (
            {"batch_size": 1024, "d_model": 256, "num_layers": 3, "num_heads": 8},
            r"batch_size \(1024\) with sources of up to 3 tokens, d_model \(256\) and "
            r"num_layers \(3\) would take about [0-9.]+ s a step on two CPU cores; it "
            r"must be at most 0.3 s",
        ),
        (
            {"model": "additive", "max_length": 40, "hidden_size": 256,
             "batch_size": 256},
            r"hidden_size \(256\) would take about [0-9.]+ s a step",
        ),
        ({"model": "dot", "context_size": 4}, r"context_size \(4\) below hidden_size"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_in_one_sentence(changes, sentence):
    with pytest.raises(RefusedError, match=sentence):
        replace(TINY, **changes)


def test_a_step_that_takes_longer_is_estimated_to_take_longer():
    for bigger in (
        {"batch_size": 64}, {"max_length": 9}, {"d_model": 32}, {"num_layers": 2},
    ):  # fmt: skip
        config = replace(TINY, **bigger)
        assert config.step_seconds > TINY.step_seconds
        assert config.step_megabytes > TINY.step_megabytes


def test_there_is_a_preset_for_every_task():
    assert {"reverse", "dates", "numbers"} <= set(PRESETS)
    for name in TASKS:
        assert preset(name).task == name
        assert preset(name).step_seconds < 0.15
    assert preset("dates", seed=3, max_steps=7).max_steps == 7
