"""Training: the recipe, reproducible runs, and how a run ends."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from core.models import TransformerClassifier
from core.stepping import flatten_parameters
from core.tasks import marker_task
from core.train_config import MAX_LEARNING_RATE, MAX_SECONDS, MAX_STEPS
from core.training import TrainConfig, Trainer, train

SMALL = TrainConfig(
    seq_len=7,
    d_model=6,
    num_heads=3,
    d_ff=11,
    batch_size=13,
    train_samples=61,
    test_samples=17,
    max_steps=20,
    eval_every=4,
    learning_rate=0.01,
)


class Recorder(nn.Module):
    """A model of one weight that keeps what it is trained on."""

    def __init__(self, weight=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))
        self.batches = []

    def forward(self, x):
        if self.training:
            self.batches.append(x.clone())
        return x[:, 0] * self.weight


def curve(config):
    return [record.loss for record in train(config)]


# The recipe


def test_the_defaults_are_the_recipe_of_the_lab():
    config = TrainConfig()
    assert config.steps_per_epoch == 63
    assert config.max_steps == 12 * 63
    assert config.model.num_parameters == 25_601
    assert (config.learning_rate, config.batch_size, config.clip_norm) == (
        1e-3,
        64,
        1.0,
    )


def test_a_run_equals_the_same_recipe_written_out():
    config = replace(SMALL, dropout=0.0, batch_size=61, clip_norm=0.3)  # one batch
    trainer = Trainer(config)
    model = TransformerClassifier(config.model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs, targets = marker_task(61, 7, seed=0)
    for _ in range(5):
        loss = F.binary_cross_entropy_with_logits(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        optimizer.step()
        record = trainer.step()
        assert record.loss == pytest.approx(loss.item(), rel=1e-4)
        assert record.gradient_norm == pytest.approx(norm.item(), rel=1e-3)
    assert norm > 0.3  # it was clipped
    trained, written_out = trainer.model.eval()(inputs), model.eval()(inputs)
    assert_close(trained, written_out, rtol=1e-3, atol=1e-3)
    assert not torch.allclose(trained, TransformerClassifier(config.model)(inputs))


def test_an_epoch_shows_every_sequence_once_and_keeps_the_last_small_batch():
    model = Recorder()
    trainer = Trainer(SMALL, model=model)
    epochs = [trainer.step().epoch for _ in range(10)]
    assert epochs == [1] * 5 + [2] * 5
    assert [len(batch) for batch in model.batches] == [13, 13, 13, 13, 9] * 2
    everything = marker_task(61, 7, seed=0)[0].flatten(1)
    first, second = (
        torch.cat(batches).flatten(1)
        for batches in (model.batches[:5], model.batches[5:])
    )
    assert not torch.equal(first, second)  # another order
    for seen in (first, second):
        assert not torch.equal(seen, everything)
        assert sorted(seen.tolist()) == sorted(everything.tolist())


def test_training_data_and_test_data_are_those_of_the_lab():
    config = replace(SMALL, seq_len=60, batch_size=61, test_samples=1000)
    trainer = Trainer(config, model=Recorder())
    trainer.step()
    assert trainer.model.batches[0].shape == (61, 60, 1)
    starts = trainer.model.batches[0][:, 1:4, 0]
    expected = torch.tensor([0.536444, -0.823045, -0.735939])
    assert (starts - expected).abs().amax(dim=1).min() < 1e-5


def test_all_parameters_lie_in_one_and_stay_there():
    model = TransformerClassifier(SMALL.model)
    before = [parameter.clone() for parameter in model.parameters()]
    flat = flatten_parameters(model)
    assert_close([p.detach() for p in model.parameters()], before, rtol=0, atol=0)
    assert flat.numel() == SMALL.model.num_parameters
    model(torch.ones(2, 7, 1)).sum().backward()
    gradients = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert_close(flat.grad, gradients, rtol=0, atol=0)
    assert flat.grad.abs().sum() > 0
    with torch.no_grad():
        flat.zero_()
    assert all((parameter == 0).all() for parameter in model.parameters())


# Reproducible runs


def test_the_same_seed_gives_the_same_curve_to_the_last_bit():
    assert curve(SMALL) == curve(SMALL)
    assert curve(SMALL) != curve(replace(SMALL, seed=1))


def test_runs_that_take_turns_train_as_if_alone():
    configs = [SMALL, replace(SMALL, seed=1), SMALL]
    trainers = [Trainer(config) for config in configs]
    for _ in range(SMALL.max_steps):
        for trainer in trainers:
            trainer.step()
    for trainer, config in zip(trainers, configs, strict=True):
        assert [record.loss for record in trainer.records] == curve(config)


def test_looking_at_a_run_changes_nothing():
    trainer = Trainer(SMALL)
    while not trainer.finished:
        trainer.step()
        trainer.evaluate(position=3)
        trainer.snapshot()
    assert [record.loss for record in trainer.records] == curve(SMALL)


def test_a_run_leaves_the_global_generator_alone():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        before = torch.get_rng_state()
        first = curve(SMALL)
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(2)
        assert curve(SMALL) == first


def test_the_seed_decides_the_weights_the_order_and_the_dropout_each():
    one, other = (Trainer(replace(SMALL, seed=seed)) for seed in (0, 1))
    assert not torch.equal(one.model.embed.weight, other.model.embed.weight)
    orders = []
    for seed in (0, 1):
        trainer = Trainer(replace(SMALL, seed=seed), model=Recorder())
        trainer.step()
        orders.append(trainer.model.batches[0])
    assert not torch.equal(*orders)


def test_dropout_starts_anew_whatever_the_model_did_before():
    used = TransformerClassifier(SMALL.model).train()
    used(torch.ones(3, 7, 1))  # moves the generator the model was made with
    trainer = Trainer(SMALL, model=used)
    assert [trainer.step().loss for _ in range(9)] == curve(SMALL)[:9]


# Records, evaluation, snapshot


def test_records_count_steps_and_epochs_and_carry_accuracy_where_due():
    records = list(train(replace(SMALL, max_steps=10)))
    assert [record.step for record in records] == list(range(1, 11))
    measured = [record.step for record in records if record.accuracy is not None]
    assert measured == [4, 8, 10]  # every fourth, and the last
    assert all(0 <= records[step - 1].accuracy <= 1 for step in measured)


def test_accuracy_is_the_share_of_right_answers():
    right, wrong = (Trainer(SMALL, model=Recorder(weight)) for weight in (1.0, -1.0))
    assert (right.evaluate(), wrong.evaluate()) == (1.0, 0.0)
    inputs, targets = marker_task(17, 7, seed=1, position=3)
    share = ((inputs[:, 0] > 0) == (targets > 0)).double().mean().item()
    assert 0 < share < 1
    assert right.evaluate(position=3) == pytest.approx(share)


def test_evaluation_is_without_dropout_and_repeats():
    trainer = Trainer(replace(SMALL, dropout=0.5, test_samples=500))
    trainer.step()
    assert trainer.evaluate() == trainer.evaluate()
    first, second = (trainer.snapshot().readout_rows for _ in range(2))
    assert_close(first, second, rtol=0, atol=0)


def test_evaluation_in_chunks_equals_one_over_all():
    trainer = Trainer(replace(SMALL, test_samples=150, dropout=0.0))
    for _ in range(15):
        trainer.step()
    inputs, targets = marker_task(150, 7, seed=1)
    with torch.no_grad():
        right = (trainer.model(inputs) > 0) == (targets > 0)
    assert trainer.evaluate() == pytest.approx(right.double().mean().item())


def test_longer_sequences_can_be_tested_unless_positions_are_learned():
    assert 0 <= Trainer(SMALL).evaluate(seq_len=14) <= 1
    trainer = Trainer(replace(SMALL, positional="learned"))
    with pytest.raises(
        ValueError, match=r"seq_len \(15\) must be at most max_len \(8\)"
    ):
        trainer.evaluate(seq_len=14)


def test_a_marker_outside_the_sequence_is_refused():
    with pytest.raises(ValueError, match=r"position \(7\) must be between 0 and 6"):
        Trainer(SMALL).evaluate(position=7)


@pytest.mark.parametrize("position", [0, 3])
def test_a_snapshot_shows_the_first_test_sequence_with_its_marker(position):
    trainer = Trainer(SMALL)
    for _ in range(5):
        trainer.step()
    rows = trainer.snapshot(position=position).readout_rows
    assert rows.shape == (2, 3, 8)
    assert_close(rows.sum(-1), torch.ones(2, 3))
    inputs, _ = marker_task(17, 7, seed=1, position=position)
    with torch.no_grad():
        expected = trainer.model.eval().readout_rows(inputs[:1])[0]
    assert_close(rows, expected)
    other = trainer.snapshot(position=5).readout_rows
    assert not torch.allclose(rows, other)


def test_a_model_without_attention_has_no_rows():
    assert Trainer(SMALL, model=Recorder()).snapshot().readout_rows is None


# The end of a run


def test_a_run_ends_at_its_cap_and_says_so():
    trainer = Trainer(replace(SMALL, max_steps=3))
    for _ in range(3):
        assert not trainer.finished
        trainer.step()
    assert trainer.finished
    sentence = "Training stopped at step 3: the cap of 3 steps is reached."
    assert trainer.stop_reason == sentence
    with pytest.raises(
        RuntimeError, match=r"the run is over. Training stopped at step 3"
    ):
        trainer.step()


class Scripted(Recorder):
    """A model that answers right in the evaluations whose number is listed."""

    def __init__(self, *right):
        super().__init__()
        self.right, self.evaluations = right, 0

    def forward(self, x):
        if self.training:
            return x[:, 0] * self.weight
        self.evaluations += 1
        return x[:, 0] * (1 if self.evaluations in self.right else -1)


def test_a_run_ends_when_the_target_is_held_in_evaluations_running():
    config = replace(SMALL, target_accuracy=0.999, target_hold=2, max_steps=40)
    trainer = Trainer(config, model=Scripted(1, 3, 4, 5))
    while not trainer.finished:
        trainer.step()
    assert trainer.records[-1].step == 16  # the fourth evaluation
    assert trainer.stop_reason == (
        "Training stopped at step 16: the test accuracy is at least 99.9% in 2 "
        "evaluations running."
    )


def test_without_a_target_a_perfect_run_goes_on():
    trainer = Trainer(SMALL, model=Scripted(1, 2, 3, 4, 5))
    while not trainer.finished:
        trainer.step()
    assert trainer.records[-1].step == SMALL.max_steps


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_largest_learning_rate_ends_the_run_and_keeps_the_curve(norm_first):
    config = replace(SMALL, learning_rate=MAX_LEARNING_RATE, norm_first=norm_first)
    trainer = Trainer(config)
    while not trainer.finished:
        before = [parameter.clone() for parameter in trainer.model.parameters()]
        record = trainer.step()
    assert record.step < config.max_steps
    assert trainer.records[-1] is record
    assert not (math.isfinite(record.loss) and math.isfinite(record.gradient_norm))
    assert all(math.isfinite(earlier.loss) for earlier in trainer.records[:-1])
    assert record.accuracy is None
    assert_close(
        [p.detach() for p in trainer.model.parameters()], before, rtol=0, atol=0
    )
    assert f"Training stopped at step {record.step}: the " in trainer.stop_reason
    assert "learning rate (1e+06) is likely too large" in trainer.stop_reason


class Overflowing(Recorder):
    """A model whose loss is infinite and whose gradient is finite."""

    def forward(self, x):
        return x[:, 0] * self.weight + 3e38


def test_an_infinite_loss_changes_no_parameter():
    trainer = Trainer(SMALL, model=Overflowing(2.0))
    record = trainer.step()
    assert (record.loss, math.isnan(record.gradient_norm)) == (math.inf, True)
    said = "step 1: the loss is no finite number; learning rate (0.01)"
    assert said in trainer.stop_reason
    assert trainer.model.weight == 2.0


class Poisoned(Recorder):
    """A model whose loss is finite and whose gradient is not."""

    def forward(self, x):
        return x[:, 0] + (self.weight * 0).sqrt()


def test_a_gradient_that_is_not_finite_changes_no_parameter():
    trainer = Trainer(SMALL, model=Poisoned(2.0))
    record = trainer.step()
    assert math.isfinite(record.loss)
    assert "step 1: the gradient is no finite number" in trainer.stop_reason
    assert trainer.model.weight == 2.0


# Refusals


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"d_model": 10}, r"d_model \(10\) must be divisible by num_heads \(3\)"),
        ({"learning_rate": -1.0}, r"learning_rate \(-1\) must be between 0 and"),
        ({"learning_rate": float("inf")}, r"learning_rate must be finite"),
        ({"batch_size": 0}, r"batch_size \(0\) must be between 1 and 1024"),
        ({"train_samples": 0}, r"train_samples \(0\) must be between 1 and 20000"),
        ({"test_samples": 0}, r"test_samples \(0\) must be between 1 and 20000"),
        (
            {"max_steps": MAX_STEPS + 1},
            r"max_steps \(20001\) must be between 1 and 20000",
        ),
        ({"eval_every": 0}, r"eval_every \(0\) must be between"),
        ({"target_accuracy": 1.5}, r"target_accuracy \(1\.5\) must be between 0 and 1"),
        ({"target_hold": 0}, r"target_hold \(0\) must be between"),
        ({"clip_norm": -1.0}, r"clip_norm \(-1\) must be at least 0"),
        ({"seed": 2**31}, r"seed \(2147483648\) must be between 0 and 2147483647"),
        ({"device": "tpu"}, r"device must be one of 'cuda', 'mps', 'cpu', got 'tpu'"),
        (
            {"seq_len": 1024, "train_samples": 20_000},
            r"train_samples \(20000\) and test_samples \(17\) .* 20,497,408 numbers",
        ),
        (
            {"seq_len": 1024},
            r"batch_size \(13\) with seq_len \(1024\), d_model \(6\), num_heads \(3\) "
            r"and num_layers \(2\) would take about 0\.\d+ s",
        ),
    ],
)
def test_a_run_that_cannot_be_afforded_is_refused(changes, rule):
    with pytest.raises(ValueError, match=rule):
        replace(SMALL, **changes)


def test_every_test_sequence_is_used_at_the_sizes_of_the_lab():
    assert TrainConfig().num_tested == 1000
    assert TrainConfig().num_tested_at(120) == 1000


def test_long_sequences_are_tested_on_the_first_few():
    config = TrainConfig(seq_len=300, batch_size=32)
    count = config.num_tested
    assert 100 < count < 1000
    assert count * config.model.test_seconds <= MAX_SECONDS
    trainer = Trainer(config, model=Recorder(1.0))
    inputs, targets = marker_task(1000, 300, seed=1, position=7)
    right = (inputs[:count, 0] > 0) == (targets[:count] > 0)
    assert trainer.evaluate(position=7) == right.sum().item() / count
    assert trainer.evaluate() == 1.0


def test_a_test_length_out_of_range_is_refused():
    with pytest.raises(
        ValueError, match=r"seq_len \(1025\) must be between 1 and 1024"
    ):
        Trainer(SMALL).evaluate(seq_len=1025)


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
def test_the_first_and_the_last_seed_train(seed):
    trainer = Trainer(replace(SMALL, seed=seed))
    assert math.isfinite(trainer.step().loss)


# What the recipe achieves


def test_the_lab_reaches_999_in_1000_within_three_epochs_on_nine_of_ten_seeds():
    def reached(seed):
        config = TrainConfig(
            seed=seed, max_steps=3 * 63, eval_every=63, target_accuracy=0.999
        )
        return any((record.accuracy or 0) >= 0.999 for record in train(config))

    assert sum(reached(seed) for seed in range(10)) >= 9


def accuracy_without_positions(readout, *, causal):
    """Train 100 steps of one layer that gets no positions; return the accuracy."""
    config = TrainConfig(
        num_layers=1,
        learning_rate=3e-3,
        dropout=0.0,
        positional="none",
        causal=causal,
        readout=readout,
        max_steps=100,
        eval_every=100,
    )
    return list(train(config))[-1].accuracy


def test_without_positions_a_readout_at_position_0_hides_what_is_missing():
    assert accuracy_without_positions("first", causal=False) > 0.99


def test_without_positions_a_causal_mask_leaks_order_to_the_mean():
    plain = accuracy_without_positions("mean", causal=False)
    assert accuracy_without_positions("mean", causal=True) > max(0.9, plain + 0.1)


# Warm-up


def test_the_learning_rate_grows_in_a_straight_line_and_then_stands():
    config = replace(SMALL, learning_rate=0.5, warmup_steps=4)
    rates = [config.rate_at(step) for step in range(1, 7)]
    assert rates == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
    assert replace(config, warmup_steps=0).rate_at(1) == 0.5


def test_the_first_steps_of_a_warm_up_move_the_weights_by_their_share():
    def moved(warmup_steps: int) -> Tensor:
        trainer = Trainer(replace(SMALL, warmup_steps=warmup_steps))
        before = trainer.model.head.weight.detach().clone()
        trainer.step()
        return trainer.model.head.weight.detach() - before

    assert_close(moved(8), moved(0) / 8, rtol=1e-4, atol=1e-7)


def test_a_warm_up_of_one_step_or_none_keeps_the_curve_to_the_last_bit():
    curves = [
        [record.loss for record in train(replace(SMALL, warmup_steps=steps))]
        for steps in (0, 1, 5)
    ]
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]


def test_a_warm_up_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"warmup_steps \(-1\) must be between 0"):
        replace(SMALL, warmup_steps=-1)
