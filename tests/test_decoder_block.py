"""The decoder block: against PyTorch, its two attentions, and token by token."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from core.attention import MultiHeadAttention
from core.blocks import DecoderBlock
from core.dropout import Dropout
from core.masks import causal_mask, padding_mask

D_MODEL, HEADS, D_FF = 6, 3, 11
TARGETS, SOURCES = 5, 7
EXACT = {"rtol": 1e-10, "atol": 1e-10}
SUBMODULES = {  # ours to PyTorch's
    "self_attention": "self_attn",
    "cross_attention": "multihead_attn",
    "feed_forward.expand": "linear1",
    "feed_forward.contract": "linear2",
    "self_attention_norm": "norm1",
    "cross_attention_norm": "norm2",
    "feed_forward_norm": "norm3",
}


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def block(seed=0, **settings):
    generator = torch.Generator().manual_seed(seed)
    settings = {"d_ff": D_FF, **settings}
    return DecoderBlock(D_MODEL, HEADS, generator=generator, **settings).double()


def target_and_memory(batch=2, targets=TARGETS, sources=SOURCES):
    return (
        normal(batch, targets, D_MODEL, seed=1),
        normal(batch, sources, D_MODEL, seed=2),
    )


MEMORY_MASK = padding_mask([4, SOURCES], SOURCES)
MASKS = {"mask": causal_mask(TARGETS), "memory_mask": MEMORY_MASK}


def torch_block(norm_first):
    with torch.random.fork_rng():
        torch.manual_seed(4)
        layer = nn.TransformerDecoderLayer(
            D_MODEL,
            HEADS,
            D_FF,
            activation="gelu",
            batch_first=True,
            norm_first=norm_first,
            dtype=torch.float64,
        ).eval()
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -0.5, 0.5)
    return layer


def copied_from(layer, norm_first):
    ours = block(norm_first=norm_first).eval()
    for name, theirs in SUBMODULES.items():
        part = layer.get_submodule(theirs)
        if isinstance(part, nn.MultiheadAttention):
            part = MultiHeadAttention.from_torch(part)
        ours.get_submodule(name).load_state_dict(part.state_dict())
    return ours


def weights_of(module, names):
    return [
        weight for name in names for weight in module.get_submodule(name).parameters()
    ]


def gradients(output, inputs):
    return torch.autograd.grad((output * normal(*output.shape, seed=9)).sum(), inputs)


# Against PyTorch


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(
    ("batch", "targets", "sources"), [(2, 5, 7), (2, 5, 3), (1, 1, 1), (0, 5, 7)]
)
def test_block_equals_the_decoder_layer_of_pytorch(norm_first, batch, targets, sources):
    theirs = torch_block(norm_first)
    ours = copied_from(theirs, norm_first)
    x, memory = (t.requires_grad_() for t in target_and_memory(batch, targets, sources))
    lengths = [sources - number for number in range(batch)]
    read = padding_mask(lengths, sources)
    expected = theirs(
        x,
        memory,
        tgt_mask=~causal_mask(targets),
        memory_key_padding_mask=~read[:, 0] if batch else None,  # it takes no empty one
    )
    masks = {"mask": causal_mask(targets), "memory_mask": read}
    assert_close(ours(x, memory, **masks), expected, **EXACT)
    assert_close(ours.attend(x, memory, **masks).output, expected, **EXACT)
    found = gradients(
        ours(x, memory, **masks), [x, memory, *weights_of(ours, SUBMODULES)]
    )
    wanted = gradients(expected, [x, memory, *weights_of(theirs, SUBMODULES.values())])
    assert_close(found, wanted, **EXACT)


def test_keys_and_values_worked_out_before_are_read_like_the_tokens_themselves():
    query, tokens = target_and_memory()
    for bias in (True, False):
        layer = MultiHeadAttention(D_MODEL, HEADS, bias=bias).double()
        read = layer.keys_values(tokens)
        expected = layer(query, tokens, tokens, mask=MEMORY_MASK)
        assert_close(layer.read(query, read, mask=MEMORY_MASK), expected, **EXACT)
        assert not torch.allclose(layer.read(query, read), expected)


# The explained path


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("sources", [3, SOURCES])
def test_the_explained_path_returns_both_maps_and_the_same_output(norm_first, sources):
    layer = block(norm_first=norm_first)
    x, memory = target_and_memory(sources=sources)
    read = padding_mask([2, sources], sources)
    masks = {"mask": causal_mask(TARGETS), "memory_mask": read}
    attended = layer.attend(x, memory, **masks)
    assert_close(attended.output, layer(x, memory, **masks), **EXACT)
    own, cross = attended.self_attention, attended.cross_attention
    assert own.attn_weights.shape == own.scores.shape == (2, HEADS, TARGETS, TARGETS)
    assert cross.attn_weights.shape == (2, HEADS, TARGETS, sources)
    assert (own.attn_weights[:, :, ~causal_mask(TARGETS)] == 0).all()
    assert (cross.attn_weights[0, :, :, 2:] == 0).all()
    for weights in (own.attn_weights, cross.attn_weights):
        assert_close(weights.sum(-1), torch.ones(2, HEADS, TARGETS).double())


def test_the_scores_of_cross_attention_follow_the_memory_token_they_belong_to():
    x, memory = target_and_memory()
    before = block().attend(x, memory, **MASKS).cross_attention.scores
    memory[0, 3] = normal(D_MODEL, seed=5)
    moved = (block().attend(x, memory, **MASKS).cross_attention.scores - before).abs()
    assert (moved[0, :, :, 3] > 1e-6).all()
    moved[0, :, :, 3] = 0
    assert (moved == 0).all()


def test_a_target_without_a_memory_to_read_still_goes_through():
    x, memory = (tokens.requires_grad_() for tokens in target_and_memory())
    nothing = padding_mask([0, SOURCES], SOURCES)
    attended = block().attend(x, memory, memory_mask=nothing)
    assert (attended.cross_attention.attn_weights[0] == 0).all()
    output = block()(x, memory, memory_mask=nothing)
    assert_close(output, attended.output, **EXACT)
    of_x, of_memory = gradients(output, [x, memory])
    assert of_x.isfinite().all()
    assert (of_memory[0] == 0).all()
    assert (of_memory[1] != 0).any()


def test_both_paths_draw_the_same_dropout_from_one_seed():
    layer, (x, memory) = block(dropout=0.3), target_and_memory()
    layer.dropout.generator.manual_seed(8)
    fast = layer(x, memory)
    layer.dropout.generator.manual_seed(8)
    assert_close(fast, layer.attend(x, memory).output, **EXACT)
    assert not torch.allclose(fast, layer(x, memory))


def test_dropout_acts_at_all_six_places(monkeypatch):
    seen = []

    def record(self, x):
        seen.append(tuple(x.shape))
        return x

    monkeypatch.setattr(Dropout, "forward", record)
    block(dropout=0.1)(*target_and_memory())
    tokens, hidden = (2, TARGETS, D_MODEL), (2, TARGETS, D_FF)
    own, cross = (2, HEADS, TARGETS, TARGETS), (2, HEADS, TARGETS, SOURCES)
    assert seen == [own, tokens, cross, tokens, hidden, tokens]


# Token by token


@pytest.mark.parametrize("norm_first", [True, False])
def test_one_token_after_the_other_equals_the_whole_target(norm_first):
    layer = block(norm_first=norm_first)
    x, memory = target_and_memory()
    whole = layer(x, memory, **MASKS)
    cache = layer.begin(memory)
    once = cache.memory
    for place in range(TARGETS):
        token, past = x[:, place : place + 1], cache.past
        output, cache = layer.advance(token, cache, memory_mask=MEMORY_MASK)
        assert_close(output, whole[:, place : place + 1], **EXACT)
        assert cache.past.keys.shape == (2, HEADS, place + 1, D_MODEL // HEADS)
        assert torch.equal(cache.past.keys[:, :, :-1], past.keys)
        assert torch.equal(cache.past.values[:, :, :-1], past.values)
        assert cache.memory is once


def test_chosen_sequences_of_a_cache_go_on_as_their_own():
    layer, (x, memory) = block(), target_and_memory()
    _, cache = layer.advance(x[:, :1], layer.begin(memory))
    picked = torch.tensor([1, 1, 0])
    output, _ = layer.advance(x[picked, 1:2], cache.select(picked))
    both, _ = layer.advance(x[:, 1:2], cache)
    assert_close(output, both[picked], **EXACT)
    assert not torch.allclose(both[0], both[1])


# Chance and errors


def test_one_seed_gives_one_block_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    tokens = target_and_memory()
    assert_close(block(1)(*tokens), block(1)(*tokens), rtol=0, atol=0)
    assert not torch.allclose(block(1)(*tokens), block(2)(*tokens))
    block(dropout=0.5)(*tokens)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_does_not_fit_is_refused():
    x, memory = target_and_memory()
    rule = r"d_model \(10\) must be divisible by num_heads \(3\)"
    with pytest.raises(ValueError, match=rule):
        DecoderBlock(10, 3)
    with pytest.raises(ValueError, match=r"with d_model = 6"):
        block()(x, memory[..., :5])
    with pytest.raises(ValueError, match=r"mask \(2, 1, 1, 4\) must broadcast"):
        block()(x, memory, memory_mask=MEMORY_MASK[..., :4])
    with pytest.raises(ValueError, match="mask must be boolean, True = may attend"):
        block().advance(x[:, :1], block().begin(memory), mask=torch.ones(2, 1, 1))
