"""The classifier: its size, its two paths, its readouts and its refusals."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from core.models import (
    MAX_PARAMETERS,
    POSITIONAL,
    READOUTS,
    ClassifierConfig,
    TransformerClassifier,
)

SMALL = ClassifierConfig(
    input_size=2, seq_len=7, d_model=6, num_heads=3, num_layers=2, d_ff=11, dropout=0.0
)
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def classifier(**changes):
    return TransformerClassifier(replace(SMALL, **changes)).double().eval()


# Size and start


def test_the_classifier_of_the_lab_has_25601_parameters():
    model = TransformerClassifier(ClassifierConfig())
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_601
    assert model(torch.zeros(2, 60, 1)).shape == (2, 1)


@pytest.mark.parametrize("positional", POSITIONAL)
@pytest.mark.parametrize("readout", READOUTS)
def test_parameters_are_counted_right_without_building(positional, readout):
    model = classifier(positional=positional, readout=readout)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert model.config.num_parameters == counted


def test_the_parts_that_are_counted_are_those_of_the_model():
    model = classifier(positional="learned")
    parts = model.config.parameters_by_part
    names = {
        "attention: W_Q, W_K, W_V": "attention.in_proj",
        "attention: W_O": "attention.out_proj",
        "feed-forward: W_1": "feed_forward.expand",
        "feed-forward: W_2": "feed_forward.contract",
        "norms of the blocks": "_norm.",
        "embedding": "embed.",
        "head": "head.",
        "positions": "positions.",
        "CLS token": "cls",
    }
    for part, name in names.items():
        own = [p.numel() for n, p in model.named_parameters() if name in n]
        assert parts[part] == sum(own) > 0
    assert parts["last norm"] == sum(p.numel() for p in model.norm.parameters())


@pytest.mark.parametrize("norm_first", [True, False])
def test_shortcuts_change_the_answers_and_not_the_weights(norm_first):
    with_them, without = (
        classifier(norm_first=norm_first, residual=residual)
        for residual in (True, False)
    )
    for one, other in zip(with_them.parameters(), without.parameters(), strict=True):
        assert torch.equal(one, other)
    x = normal(3, 7, 2)
    assert not torch.allclose(with_them(x), without(x))


def test_the_deepest_stack_is_built_and_more_parameters_are_still_refused():
    assert len(classifier(num_layers=24).blocks) == 24
    with pytest.raises(ValueError, match=r"num_layers \(24\), d_model \(480\) .* make"):
        ClassifierConfig(num_layers=24, d_model=480)


def test_the_cls_token_starts_small():
    config = ClassifierConfig(d_model=512, num_heads=1, num_layers=1)
    start = TransformerClassifier(config).cls
    assert start.std().item() == pytest.approx(0.02, rel=0.1)
    assert TransformerClassifier(replace(config, readout="mean")).cls is None


def test_one_seed_gives_one_model_and_leaves_the_global_generator_alone():
    before, x = torch.get_rng_state(), normal(2, 7, 2)
    assert_close(classifier(seed=5)(x), classifier(seed=5)(x), rtol=0, atol=0)
    assert not torch.allclose(classifier(seed=5)(x), classifier(seed=6)(x))
    assert torch.equal(torch.get_rng_state(), before)


def test_no_two_layers_start_alike():
    first, second = classifier().blocks
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        constant = one.std() == 0  # norms and zero biases
        assert constant or not torch.equal(one, other)


# The two paths


def logits_by_the_explained_path(model, x):
    tokens = model.embed(x)
    if model.cls is not None:
        tokens = torch.cat([model.cls.expand(len(x), -1, -1), tokens], dim=1)
    tokens = model.positions(tokens)
    length = tokens.shape[1]
    mask = torch.ones(length, length).tril().bool() if model.config.causal else None
    for block in model.blocks:
        tokens = block.attend(tokens, mask=mask).output
    rows = {"cls": [0], "first": [0], "last": [-1], "mean": range(length)}
    return model.head(model.norm(tokens)[:, list(rows[model.config.readout])].mean(1))


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("batch", [0, 3])
def test_the_fast_path_equals_the_explained_one(
    norm_first, residual, causal, readout, batch
):
    order = {"norm_first": norm_first, "residual": residual}
    model = classifier(**order, causal=causal, readout=readout)
    x = normal(batch, 7, 2).requires_grad_()
    fast, full = model(x), logits_by_the_explained_path(model, x)
    assert_close(fast, full, **EXACT)
    wanted = [x, *model.parameters()]
    found, expected = (
        torch.autograd.grad(logits.square().sum(), wanted) for logits in (fast, full)
    )
    assert_close(found, expected, **EXACT)


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("causal", [False, True])
def test_there_is_one_map_a_layer_and_its_rows_sum_to_one(readout, causal):
    model = classifier(readout=readout, causal=causal)
    maps = model.attention_maps(normal(5, 7, 2))
    length = 8 if readout == "cls" else 7
    assert [tuple(weights.shape) for weights in maps] == [(5, 3, length, length)] * 2
    for weights in maps:
        assert_close(weights.sum(-1), torch.ones(5, 3, length).double(), **EXACT)
        later = torch.ones(length, length).triu(1).bool()
        assert (weights[:, :, later] == 0).all() == causal


@pytest.mark.parametrize(
    ("readout", "row"), [("cls", 0), ("first", 0), ("last", -1), ("mean", None)]
)
def test_readout_rows_are_those_of_the_maps(readout, row):
    model, x = classifier(readout=readout), normal(5, 7, 2)
    rows = model.readout_rows(x)
    for layer, weights in enumerate(model.attention_maps(x)):
        wanted = weights.mean(2) if row is None else weights[:, :, row]
        assert_close(rows[:, layer], wanted, **EXACT)


# What a readout can know


def test_cls_under_a_causal_mask_answers_every_sequence_alike():
    model = classifier(causal=True)
    assert_close(model(normal(1, 7, 2)), model(normal(1, 7, 2, seed=1)), **EXACT)
    assert_close(
        model.readout_rows(normal(1, 7, 2))[..., 0], torch.ones(1, 2, 3).double()
    )
    open_model = classifier()
    one, other = open_model(normal(1, 7, 2)), open_model(normal(1, 7, 2, seed=1))
    assert not torch.allclose(one, other)


@pytest.mark.parametrize("readout", ["cls", "mean"])
def test_without_positions_a_pooled_answer_ignores_the_order(readout):
    x, order = normal(3, 7, 2), torch.tensor([0, 3, 2, 1, 6, 5, 4])
    model = classifier(positional="none", readout=readout)
    assert_close(model(x[:, order]), model(x), **EXACT)
    for changes in ({"positional": "sinusoidal"}, {"causal": True, "readout": "mean"}):
        knows = classifier(**{"positional": "none", "readout": readout, **changes})
        assert not torch.allclose(knows(x[:, order]), knows(x))


@pytest.mark.parametrize("positional", ["sinusoidal", "none"])
def test_longer_sequences_go_on(positional):
    model = classifier(positional=positional)
    assert model(normal(2, 13, 2)).shape == (2, 1)
    assert model.attention_maps(normal(2, 13, 2))[0].shape == (2, 3, 14, 14)


def test_learned_positions_end_where_they_were_learned():
    model = classifier(positional="learned", readout="mean")
    assert model(normal(2, 7, 2)).shape == (2, 1)
    assert model(normal(2, 1, 2)).shape == (2, 1)
    with pytest.raises(
        ValueError, match=r"seq_len \(8\) must be at most max_len \(7\)"
    ):
        model(normal(2, 8, 2))


# Refusals


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"d_model": 10}, r"d_model \(10\) must be divisible by num_heads \(3\)"),
        ({"seq_len": 0}, r"seq_len \(0\) must be between 1 and 1024"),
        ({"d_model": 1_000_000}, r"d_model \(1000000\) must be between 1 and 512"),
        ({"num_layers": 0}, r"num_layers \(0\) must be between 1 and 24"),
        ({"num_heads": 0}, r"num_heads \(0\) must be between"),
        ({"d_ff": 0}, r"d_ff \(0\) must be between 1 and 2048"),
        ({"input_size": 1.0}, r"input_size must be a whole number, got 1\.0"),
        ({"dropout": 1.0}, r"dropout \(1\) must be between 0 and 0\.99"),
        ({"dropout": float("nan")}, r"dropout must be finite"),
        ({"positional": "rotary"}, r"positional must be one of 'sinusoidal', "),
        ({"readout": "max"}, r"readout must be one of 'cls', .* got 'max'"),
        ({"seed": -1}, r"seed \(-1\) must be between 0 and 2147483647"),
        ({"seed": 2**31}, r"seed \(2147483648\) must be between"),
        (
            {"d_model": 510, "d_ff": 2048, "num_layers": 12},
            rf"num_layers \(12\), d_model \(510\) .*; at most {MAX_PARAMETERS:,} are",
        ),
    ],
)
def test_a_model_that_cannot_be_built_is_refused(changes, rule):
    with pytest.raises(ValueError, match=rule):
        replace(SMALL, **changes)


@pytest.mark.parametrize("shape", [(2, 7), (2, 7, 3), (2, 0, 2)])
def test_sequences_of_another_shape_are_refused(shape):
    with pytest.raises(
        ValueError, match=r"x \(2, .* must have shape .* input_size = 2"
    ):
        classifier()(torch.zeros(shape).double())
