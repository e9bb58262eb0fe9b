"""The encoder block: against PyTorch, its parts and its shortcuts."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from core.attention import MultiHeadAttention
from core.blocks import EncoderBlock, FeedForward
from core.dropout import Dropout
from core.masks import causal_mask

D_MODEL, HEADS, D_FF, TOKENS = 6, 3, 11, 5
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def block(seed=0, **settings):
    generator = torch.Generator().manual_seed(seed)
    settings = {"d_ff": D_FF, **settings}
    return EncoderBlock(D_MODEL, HEADS, generator=generator, **settings).double()


def gradients(output, inputs):
    return torch.autograd.grad((output * normal(*output.shape, seed=9)).sum(), inputs)


# Against PyTorch

SUBMODULES = {  # ours to PyTorch's
    "attention": "self_attn",
    "feed_forward.expand": "linear1",
    "feed_forward.contract": "linear2",
    "attention_norm": "norm1",
    "feed_forward_norm": "norm2",
}


def torch_block(norm_first, bias_scale=0.5):
    with torch.random.fork_rng():
        torch.manual_seed(4)
        layer = nn.TransformerEncoderLayer(
            D_MODEL,
            HEADS,
            D_FF,
            activation="gelu",
            batch_first=True,
            norm_first=norm_first,
            dtype=torch.float64,
        ).eval()
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -bias_scale, bias_scale)
    return layer


def copied_from(layer, norm_first):
    ours = block(norm_first=norm_first).eval()
    ours.attention = MultiHeadAttention.from_torch(layer.self_attn)
    for name, theirs in list(SUBMODULES.items())[1:]:
        state = layer.get_submodule(theirs).state_dict()
        ours.get_submodule(name).load_state_dict(state)
    return ours


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(("batch", "tokens"), [(2, 5), (1, 1), (0, 5)])
@pytest.mark.parametrize("causal", [False, True])
def test_block_equals_the_encoder_layer_of_pytorch(norm_first, batch, tokens, causal):
    theirs = torch_block(norm_first)
    ours = copied_from(theirs, norm_first)
    x = normal(batch, tokens, D_MODEL).requires_grad_()
    mask = causal_mask(tokens) if causal else None
    expected = theirs(x, src_mask=None if mask is None else ~mask)
    assert_close(ours(x, mask=mask), expected, **EXACT)
    assert_close(ours.attend(x, mask=mask).output, expected, **EXACT)
    found = gradients(ours(x, mask=mask), [x, *weights_of(ours, SUBMODULES)])
    wanted = gradients(expected, [x, *weights_of(theirs, SUBMODULES.values())])
    assert_close(found, wanted, **EXACT)


def weights_of(module, names):
    return [
        weight for name in names for weight in module.get_submodule(name).parameters()
    ]


def test_feed_forward_is_a_gelu_between_two_linear_layers():
    layer = FeedForward(D_MODEL, D_FF).double()
    x = normal(2, 3, D_MODEL)
    hidden = x @ layer.expand.weight.T + layer.expand.bias
    hidden = hidden * (1 + torch.erf(hidden / 2**0.5)) / 2  # x · Φ(x)
    by_hand = hidden @ layer.contract.weight.T + layer.contract.bias
    assert_close(layer(x), by_hand, **EXACT)


# Some positions only


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "positions",
    [slice(0, 1), slice(-1, None), slice(1, 4), slice(None, None, 2)],
    ids=str,
)
def test_chosen_positions_equal_those_of_the_whole_output(
    norm_first, residual, causal, positions
):
    layer = block(norm_first=norm_first, residual=residual)
    x = normal(2, TOKENS, D_MODEL).requires_grad_()
    mask = causal_mask(TOKENS) if causal else None
    part = layer(x, mask=mask, positions=positions)
    whole = layer(x, mask=mask)[:, positions]
    assert_close(part, whole, **EXACT)
    wanted = [x, *layer.parameters()]
    assert_close(gradients(part, wanted), gradients(whole, wanted), **EXACT)


@pytest.mark.parametrize("positions", [slice(0, 1), slice(1, 4)], ids=str)
def test_a_padding_mask_serves_chosen_positions_too(positions):
    layer, x = block(), normal(2, TOKENS, D_MODEL)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()[:, None, None]
    part = layer(x, mask=mask, positions=positions)
    assert_close(part, layer(x, mask=mask)[:, positions], **EXACT)
    assert not torch.allclose(part[0], layer(x, positions=positions)[0])


# The explained path


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("residual", [True, False])
def test_the_explained_path_returns_every_map_and_the_same_output(norm_first, residual):
    layer = block(norm_first=norm_first, residual=residual)
    x = normal(2, TOKENS, D_MODEL)
    attended = layer.attend(x, mask=causal_mask(TOKENS))
    assert attended.attn_weights.shape == (2, HEADS, TOKENS, TOKENS)
    assert attended.scores.shape == (2, HEADS, TOKENS, TOKENS)
    assert (attended.attn_weights[:, :, ~causal_mask(TOKENS)] == 0).all()
    assert_close(attended.output, layer(x, mask=causal_mask(TOKENS)), **EXACT)


def test_both_paths_draw_the_same_dropout_from_one_seed():
    layer, x = block(dropout=0.3), normal(2, TOKENS, D_MODEL)
    layer.dropout.generator.manual_seed(8)
    fast = layer(x)
    layer.dropout.generator.manual_seed(8)
    assert_close(fast, layer.attend(x).output, **EXACT)
    assert not torch.allclose(fast, layer(x))


# Without shortcuts


def test_without_shortcuts_each_part_stands_alone():
    x = normal(2, TOKENS, D_MODEL)
    pre, post = (block(norm_first=order, residual=False) for order in (True, False))
    normed = pre.attention_norm(x)
    attended = pre.attention(normed, normed, normed)
    by_hand = pre.feed_forward(pre.feed_forward_norm(attended))
    assert_close(pre(x), by_hand, **EXACT)
    attended = post.attention_norm(post.attention(x, x, x))
    by_hand = post.feed_forward_norm(post.feed_forward(attended))
    assert_close(post(x), by_hand, **EXACT)


def test_without_shortcuts_dropout_still_acts_on_what_leaves_the_block():
    layer, x = block(residual=False, dropout=0.5), normal(2, TOKENS, D_MODEL)
    dropped = layer(x) == 0
    assert 0.2 < dropped.double().mean() < 0.8
    assert not (layer.eval()(x) == 0).any()


@pytest.mark.parametrize("norm_first", [True, False])
def test_shortcuts_change_no_weight(norm_first):
    layers = [block(norm_first=norm_first, residual=r) for r in (True, False)]
    for one, other in zip(*(layer.parameters() for layer in layers), strict=True):
        assert torch.equal(one, other)


# Properties


def test_pre_norm_leaves_a_straight_path_and_post_norm_does_not():
    x = normal(2, TOKENS, D_MODEL)
    for norm_first in (True, False):
        layer = block(norm_first=norm_first)
        for part in (layer.attention.out_proj, layer.feed_forward.contract):
            nn.init.zeros_(part.weight)
            nn.init.zeros_(part.bias)
        unchanged = torch.allclose(layer(x), x)
        normed = torch.allclose(layer(x), F.layer_norm(x, (D_MODEL,)), atol=1e-4)
        assert (unchanged, normed) == (norm_first, not norm_first)


@pytest.mark.parametrize("norm_first", [True, False])
def test_permuting_the_tokens_permutes_the_outputs(norm_first):
    layer, x = block(norm_first=norm_first), normal(2, TOKENS, D_MODEL)
    order = torch.tensor([4, 1, 2, 3, 0])
    assert_close(layer(x[:, order]), layer(x)[:, order], **EXACT)
    assert not torch.allclose(layer(x[:, order]), layer(x))


def test_the_block_of_the_lab_has_12704_parameters_and_keeps_the_shape():
    layer = EncoderBlock(32, 4)
    assert sum(parameter.numel() for parameter in layer.parameters()) == 12_704
    assert layer(torch.zeros(2, 10, 32)).shape == (2, 10, 32)
    assert layer.feed_forward.expand.out_features == 128


def test_dropout_acts_at_all_four_places(monkeypatch):
    seen = []

    def record(self, x):
        seen.append(tuple(x.shape))
        return x

    monkeypatch.setattr(Dropout, "forward", record)
    block(dropout=0.1)(normal(2, TOKENS, D_MODEL))
    tokens = (2, TOKENS, D_MODEL)
    weights, hidden = (2, HEADS, TOKENS, TOKENS), (2, TOKENS, D_FF)
    assert seen == [weights, tokens, hidden, tokens]


def test_in_training_without_dropout_nothing_is_random():
    layer, x = block(), normal(2, TOKENS, D_MODEL)
    assert_close(layer(x), layer(x), rtol=0, atol=0)


def test_one_seed_gives_one_block_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    x = normal(1, TOKENS, D_MODEL)
    assert_close(block(1)(x), block(1)(x), rtol=0, atol=0)
    assert not torch.allclose(block(1)(x), block(2)(x))
    block(dropout=0.5)(x)
    assert torch.equal(torch.get_rng_state(), before)


# Errors


def test_sizes_that_do_not_fit_are_refused():
    rule = r"d_model \(10\) must be divisible by num_heads \(3\)"
    with pytest.raises(ValueError, match=rule):
        EncoderBlock(10, 3)
    with pytest.raises(ValueError, match=r"d_ff \(0\) must be at least 1"):
        EncoderBlock(10, 2, d_ff=0)
    with pytest.raises(
        ValueError, match=r"p of Dropout \(1\.5\) must be between 0 and 0\.99"
    ):
        FeedForward(3, 5, dropout=1.5)
    with pytest.raises(ValueError, match="mask must be boolean, True = may attend"):
        block()(normal(1, 2, D_MODEL), mask=torch.ones(2, 2))
