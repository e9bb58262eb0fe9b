"""Recurrent encoder-decoders: their attentions, their bottleneck and their padding."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.testing import assert_close

from core.attention import scaled_dot_product_attention
from core.recurrent import CellWeights, step
from core.recurrent_seq2seq import (
    RecurrentConfig,
    RecurrentEncoderDecoder,
    additive_attention,
)
from core.seq2seq import make_model
from core.vocabulary import PAD, START

HIDDEN, SOURCE_VOCAB, TARGET_VOCAB = 5, 13, 17
EXACT = {"rtol": 1e-10, "atol": 1e-10}
SOURCE = torch.tensor([[3, 4, 5, 4, 9, 12, 3], [6, 3, 8, 0, 0, 0, 0]])
TARGET = torch.tensor([[START, 5, 16, 7], [START, 4, 9, 0]])
REAL = TARGET != PAD
KINDS = ("none", "additive", "dot")


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def config(attention, **settings):
    settings = {"hidden_size": HIDDEN, **settings}
    return RecurrentConfig(SOURCE_VOCAB, TARGET_VOCAB, attention=attention, **settings)


def model(attention, **settings):
    return RecurrentEncoderDecoder(config(attention, **settings)).double()


# Both attentions, worked by hand


def test_additive_attention_worked_by_hand():
    # tanh(ln 3 / 2) = 1/2 and tanh(ln 3) = 4/5, so with v = 2 ln 3 the first query
    # scores the keys 0 and ln 3, the second ln 3 and 1.6 ln 3.
    ln3 = math.log(3)
    query = torch.tensor([[0.0], [ln3]], dtype=torch.float64)
    key = torch.tensor([[0.0], [ln3 / 4]], dtype=torch.float64)
    attended = additive_attention(
        query,
        key,
        torch.tensor([[4.0], [8.0]], dtype=torch.float64),
        w_query=torch.tensor([[0.5]], dtype=torch.float64),
        w_key=torch.tensor([[2.0]], dtype=torch.float64),
        v=torch.tensor([2 * ln3], dtype=torch.float64),
    )
    scores = torch.tensor([[0, ln3], [ln3, 1.6 * ln3]], dtype=torch.float64)
    assert_close(attended.scores, scores, **EXACT)
    assert_close(attended.attn_weights[0], torch.tensor([0.25, 0.75]).double(), **EXACT)
    assert_close(attended.output[0], torch.tensor([7.0]).double(), **EXACT)
    first = 3 / (3 + 3**1.6)
    assert_close(attended.output[1].item(), 4 * first + 8 * (1 - first), **EXACT)


def test_additive_attention_equals_its_formula_pair_by_pair():
    query, key, value = normal(2, 3, 5), normal(2, 7, 11, seed=1), normal(2, 7, 13)
    w_query, w_key, v = normal(17, 5, seed=2), normal(17, 11, seed=3), normal(17)
    mask = torch.tensor([[True] * 4 + [False] * 3, [False] * 7])[:, None]
    attended = additive_attention(
        query, key, value, w_query=w_query, w_key=w_key, v=v, mask=mask
    )
    for b in range(2):
        for t in range(3):
            for s in range(7):
                hidden = torch.tanh(w_query @ query[b, t] + w_key @ key[b, s])
                assert_close(attended.scores[b, t, s], v @ hidden, **EXACT)
    open_ = attended.scores[0, :, :4].softmax(dim=-1)
    assert_close(attended.attn_weights[0, :, :4], open_, **EXACT)
    assert (attended.attn_weights[0, :, 4:] == 0).all()
    assert_close(attended.output[0], open_ @ value[0, :4], **EXACT)
    assert (attended.output[1] == 0).all()  # nothing to attend to


def test_dot_attention_worked_by_hand_is_not_scaled():
    # Scores 0 and ln 3, and not ln 3 / √4: weights 1/4 and 3/4.
    query = torch.tensor([[1.0, 0, 0, 2]], dtype=torch.float64)
    key = torch.tensor([[0, 1.0, 1, 0], [0, 5, 0, math.log(3) / 2]]).double()
    value = torch.tensor([[4.0], [8.0]], dtype=torch.float64)
    attended = scaled_dot_product_attention(query, key, value, scale=1.0)
    assert_close(attended.output.item(), 7.0, rtol=1e-7, atol=0)


@pytest.mark.parametrize("kind", ["additive", "dot"])
def test_changing_an_encoder_state_changes_its_score_and_no_other(kind):
    states = normal(2, 7, HIDDEN)
    changed = states.clone()
    changed[0, 3] = normal(HIDDEN, seed=7)
    before, after = (scores_of(kind, values) for values in (states, changed))
    moved = (after - before).abs()
    assert (moved[0, :, 3] > 1e-6).all()
    moved[0, :, 3] = 0
    assert (moved == 0).all()


def scores_of(kind, states):
    query = normal(2, 3, HIDDEN, seed=4)
    if kind == "dot":
        return scaled_dot_product_attention(query, states, states, scale=1.0).scores
    w_query, w_key = normal(3, HIDDEN, seed=5), normal(3, HIDDEN, seed=6)
    return additive_attention(
        query, states, states, w_query=w_query, w_key=w_key, v=normal(3, seed=8)
    ).scores


# The whole models, against single steps of the cell


def cell_weights(layer):
    return CellWeights(*layer.parameters())


def by_hand(ours, source, target):
    """Return logits and weights of one unpadded sequence, step by step."""
    cell, kind = ours.config.cell, ours.config.attention
    hidden, states = torch.zeros(HIDDEN).double(), []
    for token in source:
        x = ours.source_embedding.weight[token]
        hidden = step(cell, x, hidden, cell_weights(ours.encoder))
        states.append(hidden)
    states, logits, rows = torch.stack(states), [], []
    for token in target:
        x, read = ours.target_embedding.weight[token], hidden[:0]
        if kind == "additive":
            sums = ours.w_query.weight @ hidden + states @ ours.w_key.weight.T
            weights = (torch.tanh(sums) @ ours.v).softmax(dim=0)
            read = weights @ states
            x = torch.cat([x, read])
        hidden = step(cell, x, hidden, cell_weights(ours.decoder))
        if kind == "dot":
            weights = (states @ hidden).softmax(dim=0)
            read = weights @ states
        if kind != "none":
            rows.append(weights)
        combined = torch.tanh(ours.combine(torch.cat([hidden, read])))
        logits.append(ours.output(combined))
    return torch.stack(logits), rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", ["gru", "rnn"])
@pytest.mark.parametrize("length", [1, 7])
def test_the_model_equals_single_steps_of_its_cell(kind, cell, length):
    ours = model(kind, cell=cell)
    source = SOURCE[:1, :length]
    logits, rows = by_hand(ours, source[0], TARGET[0])
    assert_close(ours(source, TARGET[:1])[0], logits, **EXACT)
    seen = ours.explain(source, TARGET[:1])
    assert_close(seen.logits[0], logits, **EXACT)
    assert len(seen.cross_maps) == (kind != "none")
    if rows:
        assert_close(seen.cross_maps[0][0, 0], torch.stack(rows), **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_one_token_after_the_other_equals_the_whole_target(kind):
    ours = model(kind)
    whole = ours(SOURCE, TARGET)
    state = ours.begin(ours.encode(SOURCE))
    for place in range(TARGET.shape[1]):
        logits, state = ours.advance(TARGET[:, place], state)
        assert_close(logits, whole[:, place], **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_sequences_of_a_state_go_on_as_their_own(kind):
    ours = model(kind)
    _, state = ours.advance(TARGET[:, 0], ours.begin(ours.encode(SOURCE)))
    picked = torch.tensor([1, 1, 0])
    logits, _ = ours.advance(TARGET[picked, 1], state.select(picked))
    assert_close(logits, ours(SOURCE, TARGET)[picked, 1], **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_token_changes_no_logit_before_it(kind):
    ours = model(kind)
    for place in range(1, TARGET.shape[1]):
        target = TARGET.clone()
        target[0, place] = 11
        moved = (ours(SOURCE, target) - ours(SOURCE, TARGET))[0].abs().amax(dim=-1)
        assert (moved[:place] == 0).all()
        assert (moved[place:] > 1e-6).all()


# Padding


@pytest.mark.parametrize("cell", [nn.GRU, nn.RNN])
def test_the_encoder_equals_packed_sequences(cell):
    ours = model("dot", cell=cell.__name__.lower())
    embedded = ours.source_embedding(SOURCE)
    packed = pack_padded_sequence(embedded, torch.tensor([7, 3]), batch_first=True)
    with torch.random.fork_rng():
        layer = cell(HIDDEN, HIDDEN, batch_first=True).double()
    layer.load_state_dict(ours.encoder.state_dict())
    assert_close(ours.encode(SOURCE).final, layer(packed)[1][0], **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_more_padding_on_either_side_changes_nothing(kind):
    ours = model(kind)
    source, target = (nn.functional.pad(ids, (0, 3)) for ids in (SOURCE, TARGET))
    found = ours(source, target)[:, : TARGET.shape[1]]
    assert_close(found[REAL], ours(SOURCE, TARGET)[REAL], **EXACT)
    memory = ours.encode(source)
    assert_close(memory.final, ours.encode(SOURCE).final, **EXACT)
    assert (memory.states[source == PAD] == 0).all()


@pytest.mark.parametrize("kind", ["additive", "dot"])
@pytest.mark.parametrize("length", [3, 7])
def test_padding_is_never_attended_to_and_the_map_is_of_targets_by_sources(
    kind, length
):
    source = SOURCE[:, :length].clone()
    source[1, 2:] = PAD
    (weights,) = model(kind).explain(source, TARGET).cross_maps
    assert weights.shape == (2, 1, TARGET.shape[1], length)
    assert (weights[1, ..., 2:] == 0).all()
    assert (weights[1, ..., :2] > 0).all()
    assert_close(weights.sum(-1), torch.ones(2, 1, TARGET.shape[1]).double())


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_of_padding_alone_starts_the_decoder_from_zeros(kind):
    ours, source = model(kind), SOURCE.clone()
    source[1] = PAD
    seen = ours.explain(source, TARGET)
    assert (seen.memory.final[1] == 0).all()
    assert all((weights[1] == 0).all() for weights in seen.cross_maps)
    assert_close(seen.logits[0], ours(SOURCE, TARGET)[0], **EXACT)
    seen.logits.sum().backward()
    assert all(p.grad.isfinite().all() for p in ours.parameters())


def test_an_empty_batch_goes_through():
    for kind in KINDS:
        assert model(kind)(SOURCE[:0], TARGET[:0]).shape == (0, 4, TARGET_VOCAB)


# The bottleneck


@pytest.mark.parametrize("kind", KINDS)
def test_without_attention_only_the_context_vector_reaches_the_decoder(kind):
    ours = model(kind)
    memory = ours.encode(SOURCE)
    shifted = memory._replace(states=memory.states + 1)
    moved = (ours.decode(shifted, TARGET) - ours.decode(memory, TARGET)).abs()
    assert (moved.amax(dim=-1) > 1e-6).all() if kind != "none" else (moved == 0).all()
    shifted = memory._replace(final=memory.final + 1)
    moved = (ours.decode(shifted, TARGET) - ours.decode(memory, TARGET)).abs()
    assert (moved.amax(dim=-1) > 1e-6).all()


def test_a_smaller_context_vector_lets_no_more_than_its_numbers_through():
    ours = model("none", context_size=2)
    sources = torch.randint(3, 13, (11, 7), generator=torch.Generator().manual_seed(0))
    memory = ours.encode(sources)
    assert memory.final.shape == (11, 2)
    starts = ours.begin(memory).hidden  # (11, HIDDEN)
    assert torch.linalg.matrix_rank(starts - starts.mean(dim=0)) == 2
    wide = model("none").begin(model("none").encode(sources)).hidden
    assert torch.linalg.matrix_rank(wide - wide.mean(dim=0)) == HIDDEN


def test_a_context_vector_of_the_hidden_size_is_no_bottleneck():
    same = model("none", context_size=HIDDEN)(SOURCE, TARGET)
    assert_close(same, model("none")(SOURCE, TARGET), rtol=0, atol=0)


# Sizes, chance and errors


@pytest.mark.parametrize("cell", ["gru", "rnn"])
@pytest.mark.parametrize(
    ("kind", "context_size"), [*((kind, None) for kind in KINDS), ("none", 2)]
)
def test_parameters_are_counted_without_building_the_model(kind, context_size, cell):
    sizes = config(kind, context_size=context_size, cell=cell)
    built = make_model(sizes)
    assert isinstance(built, RecurrentEncoderDecoder)
    assert sum(p.numel() for p in built.parameters()) == sizes.num_parameters


def test_one_seed_gives_one_model_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    for kind in KINDS:
        first, again, other = (model(kind, seed=s)(SOURCE, TARGET) for s in (5, 5, 6))
        assert torch.equal(first, again)
        assert not torch.allclose(first, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("kind", "settings", "rule"),
    [
        ("general", {}, "attention must be one of 'none', 'additive', 'dot'"),
        ("none", {"context_size": 6}, r"context_size \(6\) must be between 1 and 5"),
        (
            "dot",
            {"context_size": 2},
            r"context_size \(2\) below hidden_size \(5\) needs attention 'none'",
        ),
        ("none", {"cell": "lstm"}, "cell must be one of 'gru', 'rnn', got 'lstm'"),
        ("none", {"hidden_size": 0}, r"hidden_size \(0\) must be between 1 and"),
    ],
)
def test_a_model_that_cannot_be_built_is_refused(kind, settings, rule):
    with pytest.raises(ValueError, match=rule):
        config(kind, **settings)


def test_tokens_and_memories_that_do_not_fit_are_refused():
    ours = model("dot")
    with pytest.raises(ValueError, match="padding of source must follow its tokens"):
        ours(SOURCE.flip(1), TARGET)
    with pytest.raises(ValueError, match=r"highest token of target_in \(25\)"):
        ours(SOURCE, TARGET + 9)
    with pytest.raises(ValueError, match=r"memory\.final must be a context vector"):
        ours.begin(ours.encode(SOURCE)._replace(final=None))
