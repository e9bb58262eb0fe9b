"""Attention: by hand, against PyTorch, its invariants and its errors."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from core.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from core.masks import causal_mask

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 11
D_MODEL = HEADS * WIDTH
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def normal(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def random_mask(*shape, seed=5):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(*shape, generator=generator) < 0.6
    mask[..., 0] = True  # every query keeps a key
    return mask


def gradients(output, inputs):
    weights = normal(*output.shape, seed=9)
    return torch.autograd.grad((output * weights).sum(), inputs)


def double_layer(**settings):
    generator = torch.Generator().manual_seed(3)
    layer = MultiHeadAttention(D_MODEL, HEADS, generator=generator, **settings)
    return layer.double()


def torch_layer(**settings):
    with torch.random.fork_rng():
        torch.manual_seed(4)
        mha = nn.MultiheadAttention(
            D_MODEL, HEADS, batch_first=True, dtype=torch.float64, **settings
        )
        for parameter in mha.parameters():  # the biases too
            nn.init.uniform_(parameter, -0.5, 0.5)
    return mha


# The function, by hand


def test_a_query_reads_the_weighted_mean_worked_out_by_hand():
    query = torch.tensor([[math.log(3.0), 0.0]])
    key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    value = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 0.0]])
    result = scaled_dot_product_attention(query, key, value, scale=1.0)
    assert_close(result.scores, torch.tensor([[math.log(3.0), 0.0]]))
    assert_close(result.attn_weights, torch.tensor([[0.75, 0.25]]))
    assert_close(result.output, torch.tensor([[3.0, 1.0, 6.0]]))


def test_one_query_over_two_keys_gives_one_row_of_two_weights():
    context = normal(1, 2, 3, seed=1)
    result = scaled_dot_product_attention(normal(1, 1, 3), context, context)
    assert result.attn_weights.shape == (1, 1, 2)
    assert_close(result.attn_weights.sum(-1), torch.ones(1, 1, dtype=torch.float64))


def test_scores_are_divided_by_the_root_of_the_width_of_a_query():
    query, key = normal(QUERIES, 16), normal(KEYS, 16, seed=1)
    result = scaled_dot_product_attention(query, key, normal(KEYS, 2))
    assert_close(result.scores, query @ key.T / 4, **EXACT)


def test_rows_sum_to_one_and_columns_need_not():
    query, key = normal(QUERIES, WIDTH), normal(KEYS, WIDTH, seed=1)
    weights = scaled_dot_product_attention(query, key, key).attn_weights
    assert_close(weights.sum(dim=1), torch.ones(QUERIES, dtype=torch.float64), **EXACT)
    assert not torch.allclose(weights.sum(dim=0), torch.ones(KEYS).double(), atol=0.01)


def test_the_mask_leaves_the_scores_as_they_are_and_finite():
    q, k, v = normal(QUERIES, WIDTH), normal(KEYS, WIDTH, seed=1), normal(KEYS, 2)
    mask = random_mask(QUERIES, KEYS)
    masked = scaled_dot_product_attention(q, k, v, mask=mask)
    assert_close(masked.scores, scaled_dot_product_attention(q, k, v).scores, **EXACT)
    assert (masked.attn_weights[~mask] == 0).all()
    assert (masked.attn_weights[mask] > 0).all()
    rows = masked.attn_weights.sum(-1)
    assert_close(rows, torch.ones(QUERIES, dtype=torch.float64), **EXACT)


# The function, against PyTorch


@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (0, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (7, 5), (1, 1), (1, 7), (5, 1)])
@pytest.mark.parametrize("masked", [False, True])
def test_output_and_gradients_equal_those_of_pytorch(leading, queries, keys, masked):
    shapes = ((queries, WIDTH), (keys, WIDTH), (keys, 13))
    inputs = [
        normal(*leading, *shape, seed=seed).requires_grad_()
        for seed, shape in enumerate(shapes)
    ]
    mask = random_mask(*leading, queries, keys) if masked else None
    ours = scaled_dot_product_attention(*inputs, mask=mask).output
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    assert_close(ours, theirs, **EXACT)
    assert_close(gradients(ours, inputs), gradients(theirs, inputs), **EXACT)


def test_another_scale_equals_that_of_pytorch():
    q, k, v = normal(1, QUERIES, WIDTH), normal(1, KEYS, WIDTH), normal(1, KEYS, 2)
    ours = scaled_dot_product_attention(q, k, v, scale=0.7).output
    assert_close(ours, F.scaled_dot_product_attention(q, k, v, scale=0.7), **EXACT)


def test_one_mask_for_all_sequences_broadcasts():
    q, k = normal(BATCH, HEADS, QUERIES, WIDTH), normal(BATCH, HEADS, KEYS, WIDTH)
    mask = random_mask(QUERIES, KEYS)
    spread = mask.expand(BATCH, HEADS, QUERIES, KEYS)
    once = scaled_dot_product_attention(q, k, k, mask=mask)
    assert_close(once, scaled_dot_product_attention(q, k, k, mask=spread))


# Queries with nothing to attend to


def masks_without_keys():
    some = random_mask(BATCH, 1, QUERIES, QUERIES)
    some[1, :, 2] = False
    whole = torch.ones(BATCH, 1, 1, QUERIES, dtype=torch.bool)
    whole[1] = False
    return {"one query": some, "whole sequence": whole}


@pytest.mark.parametrize("case", ["one query", "whole sequence"])
def test_a_query_without_keys_gets_zeros_and_finite_gradients(case):
    mask = masks_without_keys()[case]
    inputs = [
        normal(BATCH, HEADS, QUERIES, WIDTH, seed=seed).requires_grad_()
        for seed in range(3)
    ]
    result = scaled_dot_product_attention(*inputs, mask=mask)
    blocked = ~mask.any(-1).expand(BATCH, HEADS, QUERIES)
    assert (result.attn_weights[blocked] == 0).all()
    assert (result.output[blocked] == 0).all()
    with torch.autograd.set_detect_anomaly(True):  # no nan on the way back either
        found = gradients(result.output, inputs)
    assert all(gradient.isfinite().all() for gradient in found)
    assert (found[0][blocked] == 0).all()
    free = scaled_dot_product_attention(*inputs, mask=mask | ~mask.any(-1, True))
    assert_close(result.output[~blocked], free.output[~blocked], **EXACT)


@pytest.mark.parametrize("case", ["one query", "whole sequence"])
@pytest.mark.parametrize("path", ["forward", "attend"])
def test_both_paths_of_the_layer_give_such_a_query_the_bias_alone(case, path):
    layer, mask = double_layer(), masks_without_keys()[case]
    with torch.no_grad():
        layer.out_proj.bias.uniform_(generator=torch.Generator().manual_seed(0))
    x = normal(BATCH, QUERIES, D_MODEL).requires_grad_()
    result = getattr(layer, path)(x, x, x, mask=mask)
    output = result if path == "forward" else result.output
    assert (output[1, 2] == layer.out_proj.bias).all()
    wanted = [x, *layer.parameters()]
    assert all(grad.isfinite().all() for grad in gradients(output, wanted))


def test_a_sequence_that_is_all_padding_leaves_the_others_unchanged():
    layer, x = double_layer(), normal(BATCH, QUERIES, D_MODEL)
    mask = masks_without_keys()["whole sequence"]
    assert_close(layer(x, x, x, mask=mask)[0], layer(x, x, x)[0], **EXACT)


@pytest.mark.parametrize("num_keys", [11, 4])
def test_a_padded_source_longer_or_shorter_than_the_target_is_never_read(num_keys):
    layer, target = double_layer(), normal(1, QUERIES, D_MODEL)
    source = normal(1, num_keys, D_MODEL)
    real = num_keys - 3
    mask = torch.arange(num_keys) < real
    seen = layer.attend(target, source, source, mask=mask)
    assert seen.attn_weights.shape[-2:] == (QUERIES, num_keys)
    assert (seen.attn_weights[..., real:] == 0).all()
    short = source[:, :real]
    assert_close(seen.output, layer(target, short, short), **EXACT)


def test_without_any_key_the_output_is_zero():
    empty = torch.zeros(2, 0, 3)
    result = scaled_dot_product_attention(torch.ones(2, 5, 3), empty, empty)
    assert result.attn_weights.shape == (2, 5, 0)
    assert_close(result.output, torch.zeros(2, 5, 3))


# Number formats


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_hides_what_the_mask_forbids(dtype):
    x = normal(BATCH, QUERIES, 8, dtype=dtype)
    mask = causal_mask(QUERIES)
    mask[2] = False
    result = scaled_dot_product_attention(x, x, x, mask=mask)
    assert result.output.dtype == dtype
    assert (result.attn_weights[:, ~mask] == 0).all()
    layer = MultiHeadAttention(8, 2).to(dtype)
    fast, full = layer(x, x, x, mask=mask), layer.attend(x, x, x, mask=mask)
    assert fast.dtype == dtype
    assert_close(fast, full.output, rtol=0.02, atol=0.02)


# Errors


def test_a_float_mask_is_refused_with_its_meaning():
    x = torch.zeros(2, 3)
    rule = r"mask must be boolean, True = may attend, got dtype torch\.float32"
    with pytest.raises(ValueError, match=rule):
        scaled_dot_product_attention(x, x, x, mask=torch.ones(2, 2))
    y = torch.zeros(1, 2, 4)
    for path in (MultiHeadAttention(4, 2), MultiHeadAttention(4, 2).attend):
        with pytest.raises(ValueError, match=rule):
            path(y, y, y, mask=torch.ones(2, 2))


@pytest.mark.parametrize(
    ("shapes", "rule"),
    [
        (((5, 3), (7, 2), (7, 3)), r"one width d_k >= 1: query \(5, 3\), key \(7, 2\)"),
        (((5, 0), (7, 0), (7, 3)), r"one width d_k >= 1"),
        (((5, 3), (7, 3), (6, 3)), r"one length S: .* key \(7, 3\), value \(6, 3\)"),
        (((2, 5, 3), (3, 7, 3), (3, 7, 3)), r"share their leading sizes: query \(2, 5"),
        (((3,), (7, 3), (7, 3)), r"need a length and a width: query \(3,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, rule):
    with pytest.raises(ValueError, match=rule):
        scaled_dot_product_attention(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.parametrize("shape", [(5, 6), (7, 5), (2, 5, 7), (1, 2, 5, 7)])
def test_a_mask_that_does_not_fit_is_refused(shape):
    query, key = torch.zeros(3, 5, 2), torch.zeros(3, 7, 2)
    mask = torch.ones(shape, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"mask \(.*\) must broadcast to the scores"):
        scaled_dot_product_attention(query, key, key, mask=mask)


def test_heads_that_do_not_divide_the_width_are_refused():
    rule = r"d_model \(10\) must be divisible by num_heads \(3\)"
    with pytest.raises(ValueError, match=rule):
        MultiHeadAttention(10, 3)
    with pytest.raises(ValueError, match=rule):
        split_heads(torch.zeros(1, 2, 10), 3)


def test_tokens_of_another_width_are_refused():
    x, wide = torch.zeros(2, 3, 4), torch.zeros(2, 3, 5)
    layer = MultiHeadAttention(4, 2)
    with pytest.raises(ValueError, match=r"key \(2, 3, 5\) .* d_model = 4"):
        layer(x, wide, x)
    with pytest.raises(ValueError, match=r"query \(3, 4\) must have shape"):
        layer.attend(x[0], x, x)


# Heads


def test_a_head_takes_neighbouring_dimensions():
    x = torch.arange(12.0).reshape(1, 2, 6)
    first, second = split_heads(x, 2)[0]
    assert_close(first, torch.tensor([[0.0, 1, 2], [6, 7, 8]]))
    assert_close(second, torch.tensor([[3.0, 4, 5], [9, 10, 11]]))


@pytest.mark.parametrize("batch", [0, 2])
def test_split_then_merge_is_the_identity(batch):
    x = normal(batch, QUERIES, D_MODEL)
    assert split_heads(x, HEADS).shape == (batch, HEADS, QUERIES, WIDTH)
    assert_close(merge_heads(split_heads(x, HEADS)), x)


def test_every_head_divides_by_the_root_of_its_own_width():
    layer = MultiHeadAttention(64, 8)
    x = normal(1, 5, 64, dtype=torch.float32)
    q, k, _ = layer.in_proj(x).chunk(3, dim=-1)
    by_hand = q[0, :, 8:16] @ k[0, :, 8:16].T / math.sqrt(8)
    assert_close(layer.attend(x, x, x).scores[0, 1], by_hand)


# The layer, against PyTorch


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (7, 5), (1, 1), (5, None)])
@pytest.mark.parametrize("masked", [False, True])
def test_layer_equals_nn_multihead_attention(bias, batch, queries, keys, masked):
    mha = torch_layer(bias=bias)
    ours = MultiHeadAttention.from_torch(mha)
    query = normal(batch, queries, D_MODEL).requires_grad_()
    key = query if keys is None else normal(batch, keys, D_MODEL, seed=1)
    value = query if keys is None else normal(batch, keys, D_MODEL, seed=2)
    mask = random_mask(queries, key.shape[1]) if masked else None
    theirs, weights = mha(
        query,
        key,
        value,
        attn_mask=None if mask is None else ~mask,
        average_attn_weights=False,
    )
    explained = ours.attend(query, key, value, mask=mask)
    fast = ours(query, key, value, mask=mask)
    assert_close(explained.attn_weights, weights, **EXACT)
    expected = gradients(theirs, [query, *mha.parameters()])
    for output in (explained.output, fast):
        assert_close(output, theirs, **EXACT)
        found = gradients(output, [query, *parameters_in_order(ours, mha)])
        assert_close(found, expected, **EXACT)


def parameters_in_order(ours, mha):
    """Return our parameters in the order of PyTorch's."""
    found = dict(ours.named_parameters())
    names = [name.replace("in_proj_", "in_proj.") for name, _ in mha.named_parameters()]
    assert set(names) == set(found)
    return [found[name] for name in names]


@pytest.mark.parametrize("shape", [(5, 7), (2, 5, 7), (2, 3, 5, 7), (2, 1, 1, 7)])
def test_the_fast_path_equals_the_explained_one(shape):
    layer, mask = double_layer(), random_mask(*shape)
    mask[..., -1, :] = False
    inputs = [
        normal(BATCH, QUERIES, D_MODEL).requires_grad_(),
        normal(BATCH, KEYS, D_MODEL, seed=1).requires_grad_(),
        normal(BATCH, KEYS, D_MODEL, seed=2).requires_grad_(),
    ]
    fast = layer(*inputs, mask=mask)
    full = layer.attend(*inputs, mask=mask).output
    assert_close(fast, full, **EXACT)
    wanted = [*inputs, *layer.parameters()]
    assert_close(gradients(fast, wanted), gradients(full, wanted), **EXACT)


def test_a_mask_of_three_dimensions_is_one_a_sequence_not_one_a_head():
    layer = MultiHeadAttention(6, 2).double()
    x = normal(2, 3, 6)  # as many sequences as heads
    mask = torch.stack([causal_mask(3), torch.ones(3, 3, dtype=torch.bool)])
    both = layer(x, x, x, mask=mask)
    assert_close(both[:1], layer(x[:1], x[:1], x[:1], mask=causal_mask(3)), **EXACT)
    assert_close(both[1:], layer(x[1:], x[1:], x[1:]), **EXACT)


def test_from_torch_keeps_type_mode_and_dropout_and_copies():
    mha = nn.MultiheadAttention(6, 2, dropout=0.3, dtype=torch.float64).eval()
    layer = MultiHeadAttention.from_torch(mha)
    assert layer.in_proj.weight.dtype == torch.float64
    assert layer.dropout.p == 0.3
    assert not layer.training
    with torch.no_grad():
        mha.in_proj_weight.zero_()
    assert layer.in_proj.weight.abs().min() > 0


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"kdim": 5}, r"kdim \(5\) and vdim \(6\) must equal embed_dim \(6\)"),
        ({"vdim": 7}, r"kdim \(6\) and vdim \(7\) must equal embed_dim \(6\)"),
        ({"add_bias_kv": True}, "add_bias_kv or add_zero_attn"),
        ({"add_zero_attn": True}, "add_bias_kv or add_zero_attn"),
    ],
)
def test_from_torch_refuses_what_it_cannot_hold(settings, rule):
    with pytest.raises(ValueError, match=rule):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(6, 2, **settings))


# Properties


def test_permuting_the_tokens_permutes_the_outputs():
    layer, x = double_layer(), normal(BATCH, QUERIES, D_MODEL)
    order = torch.tensor([0, 3, 2, 1, 4])
    moved = x[:, order]
    assert_close(layer(moved, moved, moved), layer(x, x, x)[:, order], **EXACT)
    assert not torch.allclose(layer(moved, moved, moved), layer(x, x, x))


def test_under_a_causal_mask_a_later_token_changes_nothing_earlier():
    layer, x = double_layer(), normal(BATCH, QUERIES, D_MODEL)
    changed = x.clone()
    changed[:, 3] += 1
    before = layer(x, x, x, mask=causal_mask(QUERIES))
    after = layer(changed, changed, changed, mask=causal_mask(QUERIES))
    assert_close(before[:, :3], after[:, :3], **EXACT)
    assert ((before - after)[:, 3:].abs().amax(dim=-1) > 1e-3).all()


# Initial weights and dropout


def test_initial_weights_follow_the_packed_layer_of_pytorch():
    layer = MultiHeadAttention(64, 8)
    assert layer.in_proj.weight.shape == (192, 64)
    packed_bound = math.sqrt(6 / (64 + 192))
    assert layer.in_proj.weight.std().item() == pytest.approx(0.0886, abs=0.001)
    assert 0.99 * packed_bound < layer.in_proj.weight.abs().max() <= packed_bound
    assert 0.99 / 8 < layer.out_proj.weight.abs().max() <= 1 / 8
    assert (layer.in_proj.bias == 0).all()
    assert (layer.out_proj.bias == 0).all()


def test_one_seed_gives_one_layer_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    first, same, other = (
        MultiHeadAttention(8, 2, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    x = normal(1, 3, 8, dtype=torch.float32)
    assert_close(first(x, x, x), same(x, x, x), rtol=0, atol=0)
    assert not torch.allclose(first(x, x, x), other(x, x, x))
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_acts_on_the_weights_in_training_alone():
    layer, x = double_layer(dropout=0.5), normal(BATCH, QUERIES, D_MODEL)
    assert not torch.allclose(layer(x, x, x), layer(x, x, x))
    weights = layer.attend(x, x, x).attn_weights  # before dropout
    assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, QUERIES).double(), **EXACT)
    layer.eval()
    assert_close(layer(x, x, x), layer.attend(x, x, x).output, **EXACT)


def test_both_paths_draw_the_same_dropout_from_one_seed():
    layer, x = double_layer(dropout=0.5), normal(BATCH, QUERIES, D_MODEL)
    before = torch.get_rng_state()
    layer.dropout.generator.manual_seed(8)
    fast = layer(x, x, x)
    layer.dropout.generator.manual_seed(8)
    assert_close(fast, layer.attend(x, x, x).output, **EXACT)
    assert torch.equal(torch.get_rng_state(), before)


def test_fast_and_explained_path_broadcast_batch_and_mask_alike():
    layer = MultiHeadAttention(8, 2).eval()
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(3))
    mask = torch.ones(2, 5, 5, dtype=torch.bool).tril()
    fast = layer(x[:1], x, x, mask=mask)
    assert_close(fast, layer.attend(x[:1], x, x, mask=mask).output)
    assert fast.shape == (2, 5, 8)


@pytest.mark.parametrize("mask", [False, True, [True, True, False, False, True]])
def test_a_mask_of_keys_alone_means_the_same_on_both_paths(mask):
    layer = MultiHeadAttention(8, 2).eval()
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(3))
    mask = torch.tensor(mask)
    assert_close(layer(x, x, x, mask=mask), layer.attend(x, x, x, mask=mask).output)


def test_what_is_no_tensor_is_refused_as_a_mask():
    x = torch.zeros(1, 2, 4)
    with pytest.raises(ValueError, match="mask must be a boolean tensor, got list"):
        scaled_dot_product_attention(x, x, x, mask=[[True]])


def test_scores_that_overflow_leave_a_blocked_row_zero_with_finite_gradients():
    x = (torch.ones(1, 1, 2, 64) * 300).half().requires_grad_()
    mask = torch.zeros(2, 2, dtype=torch.bool)
    found = scaled_dot_product_attention(x, x, x, mask=mask)
    found.output.sum().backward()
    assert found.output.eq(0).all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
