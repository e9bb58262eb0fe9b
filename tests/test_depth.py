"""Deep stacks: sizes layer by layer, short runs, and the table that ships."""

from dataclasses import replace
from itertools import islice, product

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from core import depth
from core.depth import (
    DEPTHS,
    MOMENTS,
    RATES,
    RECIPE,
    SEEDS,
    VARIANTS,
    DepthRun,
    LayerNorms,
    Variant,
    norms_at_start,
    norms_by_layer,
    read_depth,
    watch_depth,
    write_depth,
)
from core.models import TransformerClassifier
from core.tasks import marker_task
from core.training import TRAIN_SEED, Trainer

PRE, POST = Variant(True, True), Variant(False, True)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_sizes_are_those_of_an_ordinary_backward_pass(variant):
    config = depth.depth_config(variant, 3, seed=1)
    model = TransformerClassifier(config.model).double()
    inputs, targets = (x.double() for x in marker_task(5, 20, seed=0))
    found = norms_by_layer(model, inputs, targets)
    assert all(parameter.grad is None for parameter in model.parameters())
    F.binary_cross_entropy_with_logits(model(inputs), targets).backward()
    squares = [
        sum(parameter.grad.square().sum() for parameter in block.parameters())
        for block in model.blocks
    ]
    assert_close(found.gradients, torch.stack(squares).sqrt(), rtol=1e-9, atol=1e-12)
    tokens = model.tokens_of(inputs)
    assert_close(found.activations[0], tokens.pow(2).mean().sqrt().detach())
    for number, block in enumerate(model.blocks, start=1):
        tokens = block(tokens)
        size = tokens.pow(2).mean().sqrt().detach()
        assert_close(found.activations[number], size)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_the_configuration_of_a_run_is_that_of_its_variant(variant):
    config = depth.depth_config(variant, 24, 5, 0.25)
    model = config.model
    assert (model.norm_first, model.residual) == variant
    assert (model.num_layers, config.seed, config.learning_rate) == (24, 5, 0.25)
    assert replace(config, num_layers=2, seed=0, learning_rate=3e-3) == replace(
        RECIPE, **variant._asdict()
    )


def test_at_the_start_pre_norm_grows_and_post_norm_stays_at_one():
    pre, post = (norms_at_start(variant, 24, 0).activations for variant in (PRE, POST))
    assert pre[-1] > 2 > pre[1]
    assert_close(post[1:], torch.ones(24), rtol=0, atol=1e-3)
    assert len(norms_at_start(PRE, 1, 0).gradients) == 1


def test_measuring_leaves_the_mode_and_the_global_generator_alone():
    before = torch.get_rng_state()
    model = TransformerClassifier(RECIPE.model).train()
    norms_by_layer(model, *marker_task(2, 20, seed=0))
    assert model.training
    assert torch.equal(torch.get_rng_state(), before)


def test_runs_that_are_watched_take_turns_and_train_as_if_alone(monkeypatch):
    monkeypatch.setattr(depth, "RECIPE", replace(RECIPE, max_steps=2, eval_every=2))
    steps = list(watch_depth(2, residual=True))
    assert len(steps) == depth.num_watched() == 8
    assert [step.step for step in steps] == [1] * 4 + [2] * 4
    assert {(step.variant, step.seed) for step in steps} == set(
        product((PRE, POST), (0, 1))
    )
    alone = depth.run_depth(POST, 2, seed=1)
    (last,) = (s for s in steps[4:] if (s.variant, s.seed) == (POST, 1))
    assert last.accuracy == alone.accuracy
    own = [s.loss for s in steps if (s.variant, s.seed) == (POST, 1)]
    assert sum(own) / 2 == alone.loss


@pytest.mark.parametrize("residual", [True, False])
def test_both_orders_are_watched_with_or_without_shortcuts(monkeypatch, residual):
    monkeypatch.setattr(depth, "RECIPE", replace(RECIPE, max_steps=1, eval_every=1))
    seen = {step.variant for step in watch_depth(2, residual=residual)}
    assert seen == {Variant(True, residual), Variant(False, residual)}


def test_runs_keep_to_their_learning_rate(monkeypatch):
    monkeypatch.setattr(depth, "RECIPE", replace(RECIPE, max_steps=2, eval_every=2))
    trainer = Trainer(depth.depth_config(PRE, 2, 0, 0.01))
    wanted = [trainer.step().loss for _ in range(2)]
    watched = list(watch_depth(2, residual=True, rate=0.01))
    own = [step.loss for step in watched if (step.variant, step.seed) == (PRE, 0)]
    assert own == wanted
    runs = [depth.run_depth(PRE, 2, 0, rate) for rate in (0.01, 1e-3)]
    assert runs[0].loss == sum(wanted) / 2
    assert runs[1].loss != runs[0].loss
    assert [run.rate for run in runs] == [0.01, 1e-3]


def test_a_run_is_measured_before_and_after_and_its_loss_is_that_of_its_end(
    monkeypatch,
):
    monkeypatch.setattr(depth, "RECIPE", replace(RECIPE, max_steps=12, eval_every=12))
    run, twin = (
        depth.run_depth(PRE, 2, seed=0),
        Trainer(depth.depth_config(PRE, 2, 0)),
    )
    losses = [twin.step().loss for _ in range(12)]
    assert run.loss == pytest.approx(sum(losses[2:]) / 10, abs=1e-12)
    assert run.steps == 12
    batch = marker_task(32, 20, seed=TRAIN_SEED)
    ends = norms_at_start(PRE, 2, 0), norms_by_layer(twin.model, *batch)
    for moment, norms in zip(MOMENTS, ends, strict=True):
        assert torch.equal(run.norms[moment].activations, norms.activations)
        assert torch.equal(run.norms[moment].gradients, norms.gradients)
    assert not torch.allclose(ends[0].activations, ends[1].activations)


def test_a_written_table_reads_back_the_same(tmp_path):
    norms = LayerNorms(torch.tensor([0.5, 1.0, 2.0]), torch.tensor([0.25, 4e-9]))
    run = DepthRun(
        Variant(False, False), 2, 7, 1e-3, 5, 0.5, 0.75, dict.fromkeys(MOMENTS, norms)
    )
    write_depth(tmp_path / "depth.csv", [run, run._replace(seed=8)])
    read = read_depth(tmp_path / "depth.csv")
    assert read.origin.startswith("Made by python -m core.depth, seed 0 to 2, torch ")
    assert [one.seed for one in read.runs] == [7, 8]
    first = read.runs[0]
    assert first._replace(norms={}) == run._replace(norms={})
    for moment in MOMENTS:
        assert_close(first.norms[moment].activations, norms.activations)
        assert_close(first.norms[moment].gradients, norms.gradients)


def test_the_shipped_table_holds_every_variant_depth_and_seed():
    runs = read_depth().runs
    wanted = {
        (rate, variant, layers, seed)
        for rate, variant, layers, seed in product(RATES, VARIANTS, DEPTHS, SEEDS)
        if variant.residual or rate == RATES[0]
    }
    found = [(run.rate, run.variant, run.depth, run.seed) for run in runs]
    assert set(found) == wanted
    assert len(found) == len(wanted)
    assert {run.steps for run in runs} == {RECIPE.max_steps}


def test_the_shipped_sizes_at_the_start_come_out_again():
    for run in read_depth().runs:
        if (run.depth, run.seed, run.rate) == (6, 0, RATES[0]):
            fresh, shipped = norms_at_start(run.variant, 6, 0), run.norms[MOMENTS[0]]
            assert_close(shipped.activations, fresh.activations, rtol=1e-3, atol=1e-4)
            assert_close(shipped.gradients, fresh.gradients, rtol=1e-2, atol=1e-4)


def test_the_shipped_runs_learn_with_two_layers_in_either_order():
    runs = [r for r in read_depth().runs if r.depth == 2 and r.variant.residual]
    assert min(run.accuracy for run in runs) > 0.95


@pytest.mark.parametrize("layers", [0, 25])
def test_a_depth_out_of_range_is_refused(layers):
    with pytest.raises(
        ValueError, match=rf"depth \({layers}\) must be between 1 and 24"
    ):
        norms_at_start(PRE, layers, 0)
    with pytest.raises(ValueError, match="must be between 1 and 24"):
        list(islice(watch_depth(layers, residual=True), 1))
