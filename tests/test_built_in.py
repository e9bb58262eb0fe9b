"""The same stack as nn.TransformerEncoder: outputs, gradients, counts, hooks, time."""

from dataclasses import replace
from itertools import islice

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.testing import assert_close

from core import built_in
from core.blocks import EncoderBlock
from core.built_in import (
    BuiltInClassifier,
    TimedTurn,
    compare_stacks,
    count_parameters,
    encoder_parity,
    random_tokens,
    run_blocks,
    shortcut_code,
    time_stacks,
    timed_config,
    timings,
    to_torch_encoder,
    weights_handed_over,
    weights_seen_by_hooks,
)
from core.models import ClassifierConfig, TransformerClassifier
from core.train_config import TrainConfig
from core.training import Trainer

LAB = ClassifierConfig()
SMALL = ClassifierConfig(
    input_size=2, seq_len=7, d_model=6, num_heads=3, num_layers=3, d_ff=11, dropout=0.0
)
QUICK = TrainConfig(
    seq_len=5, d_model=4, num_heads=2, num_layers=1, train_samples=9, batch_size=4,
    test_samples=3,
)  # fmt: skip
EXACT = {"rtol": 1e-10, "atol": 1e-10}
each_order = pytest.mark.parametrize("norm_first", [True, False])


@each_order
def test_at_rest_the_stacks_agree_to_1e_5_and_to_1e_12_in_float64(norm_first):
    config = replace(LAB, norm_first=norm_first)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        parity = encoder_parity(config, dtype=dtype)
        assert parity.agrees
        assert parity.tolerance == tolerance


@each_order
@pytest.mark.parametrize("batch", [0, 2])
def test_outputs_and_gradients_agree_layer_by_layer(norm_first, batch):
    model = TransformerClassifier(replace(SMALL, norm_first=norm_first)).double()
    encoder = to_torch_encoder(list(model.blocks))
    x = random_tokens(SMALL, torch.float64, batch=batch).requires_grad_()
    ours, theirs = run_blocks(model.blocks, x), encoder(x)
    assert_close(ours, theirs, **EXACT)
    found, wanted = (
        torch.autograd.grad(out.square().sum(), x) for out in (ours, theirs)
    )
    assert_close(found, wanted, **EXACT)


def test_the_other_order_of_the_norms_is_another_stack():
    model = TransformerClassifier(SMALL).double()
    encoder = to_torch_encoder(list(model.blocks))
    for layer in encoder.layers:
        layer.norm_first = False
    x = random_tokens(SMALL, torch.float64)
    assert not torch.allclose(run_blocks(model.blocks, x), encoder(x))


def test_the_copies_are_copies():
    model = TransformerClassifier(SMALL)
    encoder = to_torch_encoder(list(model.blocks))
    with torch.no_grad():
        next(encoder.parameters()).zero_()
    assert all(p.abs().sum() > 0 for p in model.blocks[0].attention.in_proj.weight)


def test_at_the_size_of_the_lab_both_have_25408_parameters():
    found = compare_stacks(LAB)
    assert (found.ours, found.built_in) == (25_408, 25_408)
    assert found.parity.agrees


def test_a_hook_on_the_built_in_attention_is_called_without_weights():
    assert weights_seen_by_hooks(LAB) == (2, 0)
    assert weights_seen_by_hooks(replace(LAB, num_layers=5)) == (5, 0)


def test_the_same_hooks_find_weights_where_a_layer_asks_for_them():
    encoder = to_torch_encoder(list(TransformerClassifier(LAB).blocks)).eval()
    x = random_tokens(LAB, batch=1)
    assert weights_handed_over(encoder, x) == (2, 0)
    attention = encoder.layers[0].self_attn
    attend = attention.forward
    attention.forward = lambda *tokens, **options: attend(
        *tokens, **options | {"need_weights": True}
    )
    assert weights_handed_over(encoder, x) == (2, 1)
    assert not attention._forward_hooks


@pytest.mark.parametrize(
    "changes",
    [{"norm_first": False}, {"causal": True, "readout": "mean"}, {"readout": "last"}],
)
def test_the_classifier_with_the_built_in_stack_answers_as_ours(changes):
    config = replace(SMALL, **changes)
    ours, theirs = (
        make(config).double().eval()
        for make in (TransformerClassifier, BuiltInClassifier)
    )
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 7, 2, generator=generator, dtype=torch.float64)
    assert_close(ours(x), theirs(x), **EXACT)
    assert count_parameters(ours) == count_parameters(theirs) == config.num_parameters


def test_without_dropout_both_stacks_train_alike():
    config = replace(QUICK, dropout=0.0, max_steps=3)
    ours = Trainer(config)
    theirs = Trainer(config, model=BuiltInClassifier(config.model))
    for _ in range(3):
        assert ours.step().loss == pytest.approx(theirs.step().loss, abs=1e-5)


def test_the_code_shown_builds_the_stack_that_is_compared():
    config = replace(LAB, norm_first=False, dropout=0.3)
    made = {"nn": nn}
    with torch.random.fork_rng():
        exec(shortcut_code(config), made)
    encoder = to_torch_encoder(list(TransformerClassifier(config).blocks))
    assert str(made["encoder"].layers) == str(encoder.layers)
    assert not made["layer"].norm_first
    assert made["layer"].self_attn.num_heads == 4


def test_turns_alternate_and_time_both_stacks():
    turns = list(time_stacks(QUICK, 2))
    assert [turn.kind for turn in turns] == ["forward", "train step"] * 2
    assert all(turn.ours > 0 and turn.built_in > 0 for turn in turns)


def test_every_second_turn_goes_the_other_way_and_times_keep_their_names(monkeypatch):
    called = []

    def lasting(seconds):
        return lambda: called.append(seconds) or seconds

    monkeypatch.setattr(built_in, "_forwards", lambda _: (lasting(1), lasting(2)))
    monkeypatch.setattr(built_in, "_steps", lambda _: (lasting(3), lasting(4)))
    monkeypatch.setattr(built_in, "_seconds_of", lambda run: run())
    turns = list(time_stacks(QUICK, 3))
    assert called[:4] == [1, 2, 3, 4]  # to warm up
    assert called[4:] == [1, 2, 3, 4, 2, 1, 4, 3, 1, 2, 3, 4]
    assert turns == [("forward", 1, 2), ("train step", 3, 4)] * 3


def test_what_is_timed_is_ours_and_then_the_built_in():
    steps = [step.__self__.model for step in built_in._steps(QUICK)]
    assert [type(model) for model in steps] == [
        TransformerClassifier,
        BuiltInClassifier,
    ]
    for run, kind, other in zip(
        built_in._forwards(QUICK),
        (EncoderBlock, nn.TransformerEncoder),
        (nn.TransformerEncoder, EncoderBlock),
        strict=True,
    ):
        seen = []
        with register_module_forward_hook(lambda part, *_, to=seen: to.append(part)):
            run()
        assert any(isinstance(part, kind) for part in seen)
        assert not any(isinstance(part, other) for part in seen)


def test_parity_runs_each_stack_once(monkeypatch):
    called = []
    run = built_in.run_blocks
    monkeypatch.setattr(
        built_in, "run_blocks", lambda *args: called.append(args) or run(*args)
    )
    built_in.encoder_parity(SMALL, dtype=torch.float64)
    assert len(called) == 1
    monkeypatch.setattr(built_in, "run_blocks", lambda blocks, tokens: tokens)
    assert not built_in.encoder_parity(SMALL, dtype=torch.float64).agrees


@pytest.mark.parametrize(
    ("sizes", "batch"), [({}, 64), ({"d_model": 128, "num_layers": 12}, 16)]
)
def test_what_is_timed_has_the_largest_batch_that_fits(sizes, batch):
    model = replace(LAB, **sizes, norm_first=False)
    config = timed_config(model)
    assert config.model == model
    assert config.batch_size == batch
    if batch < 64:
        with pytest.raises(ValueError, match="must be at most"):
            replace(config, batch_size=2 * batch)


def test_medians_and_ratio_are_those_within_a_turn():
    turns = [TimedTurn("forward", *pair) for pair in ((1, 2), (9, 3), (4, 4))]
    (found,) = timings(turns)
    assert (found.turns, found.ours, found.built_in) == (3, 4, 3)
    assert found.ratio == 1  # of 0.5, 3 and 1
    assert timings([]) == []


def test_nothing_here_moves_the_global_generator():
    before = torch.get_rng_state()
    compare_stacks(LAB)
    list(islice(time_stacks(QUICK, 1), 2))
    assert torch.equal(torch.get_rng_state(), before)


def test_what_the_built_in_stack_cannot_be_is_refused():
    bare = TransformerClassifier(replace(SMALL, residual=False))
    with pytest.raises(ValueError, match=r"residual \(False\) must be True"):
        to_torch_encoder(list(bare.blocks))
    with pytest.raises(ValueError, match="blocks must hold at least one"):
        to_torch_encoder([])
    with pytest.raises(ValueError, match=r"turns \(0\) must be between 1 and 100"):
        next(time_stacks(QUICK, 0))
