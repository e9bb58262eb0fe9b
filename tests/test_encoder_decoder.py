"""The encoder-decoder Transformer: against PyTorch, its masks, and token by token."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
from core.positional import sinusoidal_encoding
from core.seq2seq import make_model
from core.torch_transformer import from_torch
from core.vocabulary import PAD, START

D_MODEL, HEADS, D_FF, LAYERS = 6, 3, 11, 2
SOURCE_VOCAB, TARGET_VOCAB = 13, 17
EXACT = {"rtol": 1e-10, "atol": 1e-10}
SOURCE = torch.tensor([[3, 4, 5, 4, 9, 12, 3], [6, 3, 8, 0, 0, 0, 0]])
TARGET = torch.tensor([[START, 5, 16, 5, 7], [START, 4, 9, 0, 0]])
REAL = TARGET != PAD
SHORT_SOURCE = torch.tensor([[3, 4, 5], [6, 3, 0]])


def config(**settings):
    sizes = {"d_model": D_MODEL, "num_heads": HEADS, "d_ff": D_FF, "max_len": 19}
    return EncoderDecoderConfig(SOURCE_VOCAB, TARGET_VOCAB, **(sizes | settings))


def model(**settings):
    return EncoderDecoderTransformer(config(**settings)).double().eval()


# Against PyTorch


def torch_parts(shared=False, **settings):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        transformer = nn.Transformer(
            D_MODEL,
            HEADS,
            LAYERS,
            **{"num_decoder_layers": LAYERS, "activation": "gelu"} | settings,
            dim_feedforward=D_FF,
            batch_first=True,
        )
        source = nn.Embedding(SOURCE_VOCAB, D_MODEL)
        target = source if shared else nn.Embedding(TARGET_VOCAB, D_MODEL)
        parts = {
            "transformer": transformer,
            "source_embedding": source,
            "target_embedding": target,
            "output": nn.Linear(D_MODEL, target.num_embeddings),
        }
        for part in parts.values():
            part.double().eval()
            for parameter in part.parameters():
                nn.init.uniform_(parameter, -0.7, 0.7)
    return parts


def logits_of(parts, source, target):
    tokens = [
        table(ids) * math.sqrt(D_MODEL)
        + sinusoidal_encoding(ids.shape[1], D_MODEL).double()
        for table, ids in (
            (parts["source_embedding"], source),
            (parts["target_embedding"], target),
        )
    ]
    later = torch.ones(target.shape[1], target.shape[1]).triu(1).bool()
    read = parts["transformer"](
        *tokens,
        tgt_mask=later,
        src_key_padding_mask=source == PAD,
        tgt_key_padding_mask=target == PAD,
        memory_key_padding_mask=source == PAD,
    )
    return parts["output"](read)


# The built-in encoder offers a nested tensor that its pre-norm layers cannot use.
@pytest.mark.filterwarnings("ignore:.*nested:UserWarning")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("source", [SOURCE, SHORT_SOURCE, SOURCE[:, :1]])
def test_the_model_equals_the_transformer_of_pytorch(norm_first, source):
    parts = torch_parts(norm_first=norm_first)
    ours = from_torch(**parts)
    expected = logits_of(parts, source, TARGET)
    assert_close(ours(source, TARGET), expected, **EXACT)
    assert_close(ours.explain(source, TARGET).logits, expected, **EXACT)
    assert ours.config.norm_first is norm_first


@pytest.mark.filterwarnings("ignore:.*nested:UserWarning")
def test_without_last_norms_and_with_one_table_it_equals_pytorch_too():
    parts = torch_parts(shared=True, norm_first=False)
    parts["transformer"].encoder.norm = parts["transformer"].decoder.norm = None
    ours = from_torch(**parts)
    target = TARGET.clamp(max=SOURCE_VOCAB - 1)
    expected = logits_of(parts, SOURCE, target)
    assert_close(ours(SOURCE, target), expected, **EXACT)
    assert ours.config.ends_in_norm is False
    assert ours.source_embedding is ours.target_embedding


@pytest.mark.filterwarnings("ignore:.*nested:UserWarning")
def test_the_weights_are_copies_and_the_mode_is_kept():
    parts = torch_parts()
    ours = from_torch(**parts)
    before = ours(SOURCE, TARGET).detach()
    for part in parts.values():
        for parameter in part.parameters():
            nn.init.zeros_(parameter)
    assert_close(ours(SOURCE, TARGET), before, rtol=0, atol=0)
    parts["transformer"].train()
    assert from_torch(**parts).training
    assert not ours.training


@pytest.mark.filterwarnings("ignore:.*nested:UserWarning")
@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"activation": "relu"}, "transformer must have activation 'gelu'"),
        ({"bias": False}, "transformer must have bias True"),
        ({"layer_norm_eps": 1e-3}, "transformer must have layer_norm_eps 1e-05"),
        ({"num_decoder_layers": 1}, "as many encoder layers as decoder layers"),
    ],
)
def test_a_transformer_of_another_kind_is_refused(settings, rule):
    with pytest.raises(ValueError, match=rule):
        from_torch(**torch_parts(**settings))


# Worked by hand


def test_embeddings_are_scaled_by_the_root_of_d_model_before_positions_are_added():
    ours = model(d_model=4, num_heads=1)
    seen = ours.explain(SOURCE, TARGET)
    row = ours.target_embedding.weight[5]  # token 5 stands at positions 1 and 3
    assert_close(seen.target_embedded[0, 3] - 2 * row, sinusoids(4, 3), **EXACT)
    row = ours.source_embedding.weight[8]
    assert_close(seen.source_embedded[1, 2] - 2 * row, sinusoids(4, 2), **EXACT)


def sinusoids(d_model, place):
    return sinusoidal_encoding(place + 1, d_model)[place].double()


def test_embeddings_enter_the_sum_with_a_spread_of_1():
    config = EncoderDecoderConfig(1000, 1000, d_model=64)
    for table in ("source_embedding", "target_embedding"):
        weight = getattr(EncoderDecoderTransformer(config), table).weight * 8
        assert_close(weight.std(), torch.tensor(1.0), rtol=0.02, atol=0)


# The masks


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_target_token_changes_no_logit_before_it(norm_first):
    ours = model(norm_first=norm_first)
    before = ours(SOURCE, TARGET)
    for place in range(1, TARGET.shape[1]):
        target = TARGET.clone()
        target[0, place] = 11
        moved = (ours(SOURCE, target) - before)[0].abs().amax(dim=-1)
        assert (moved[:place] == 0).all()
        assert (moved[place:] > 1e-6).all()


@pytest.mark.parametrize("norm_first", [True, False])
def test_more_padding_on_either_side_changes_nothing(norm_first):
    ours = model(norm_first=norm_first)
    source, target = (nn.functional.pad(ids, (0, 3)) for ids in (SOURCE, TARGET))
    found = ours(source, target)[:, : TARGET.shape[1]]
    assert_close(found[REAL], ours(SOURCE, TARGET)[REAL], **EXACT)


@pytest.mark.parametrize("source", [SOURCE, SHORT_SOURCE])
def test_padding_is_never_attended_to_and_every_map_has_its_shape(source):
    length, targets = source.shape[1], TARGET.shape[1]
    seen = model().explain(source, TARGET)
    shapes = {
        "encoder_maps": (2, HEADS, length, length),
        "self_maps": (2, HEADS, targets, targets),
        "cross_maps": (2, HEADS, targets, length),
    }
    for name, shape in shapes.items():
        maps = getattr(seen, name)
        assert [tuple(weights.shape) for weights in maps] == [shape] * LAYERS
        hidden = TARGET == PAD if name == "self_maps" else source == PAD
        for weights in maps:
            assert (weights.movedim(-1, 1)[hidden] == 0).all()
            assert (weights.movedim(-1, 1)[~hidden] >= 0).all()
            assert_close(weights.sum(-1), torch.ones(shape[:-1]).double())


def test_causal_and_padding_masks_hide_key_columns_alone():
    target = torch.tensor([[START, 4, 9, PAD, PAD]])
    for weights in model().explain(SOURCE[:1], target).self_maps:
        rows = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], *[[1, 1, 1, 0, 0]] * 3]
        assert ((weights[0] > 0) == torch.tensor(rows).bool()).all()


def test_a_source_of_padding_alone_gives_weights_of_0_and_leaves_the_others_alone():
    ours = model()
    source = SOURCE.clone()
    source[1] = PAD
    seen = ours.explain(source, TARGET)
    for weights in (*seen.encoder_maps, *seen.cross_maps):
        assert (weights[1] == 0).all()
    assert_close(seen.logits[0], ours(SOURCE, TARGET)[0], **EXACT)
    logits = ours(source, TARGET)
    assert_close(logits, seen.logits, **EXACT)
    logits.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in ours.parameters())


# The memory and the explained path


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_explained_path_holds_every_stage_and_the_same_logits(norm_first):
    ours = model(norm_first=norm_first)
    seen = ours.explain(SOURCE, TARGET)
    assert_close(seen.logits, ours(SOURCE, TARGET), **EXACT)
    assert_close(seen.memory.states, ours.encode(SOURCE).states, **EXACT)
    assert torch.equal(seen.memory.mask, SOURCE != PAD)
    assert seen.memory.final is None
    assert_close(ours.encoder_norm(seen.encoder_states[-1]), seen.memory.states)
    assert_close(ours.output(ours.decoder_norm(seen.decoder_states[-1])), seen.logits)
    first = ours.encoder[0](seen.source_embedded, mask=seen.memory.mask[:, None])
    assert_close(first, seen.encoder_states[0], **EXACT)
    assert len(seen.encoder_states) == len(seen.decoder_states) == LAYERS
    has_norm = isinstance(ours.encoder_norm, nn.LayerNorm)
    assert has_norm is isinstance(ours.decoder_norm, nn.LayerNorm) is norm_first


def test_a_changed_state_of_the_memory_moves_the_logits_of_its_sequence_alone():
    ours = model()
    memory = ours.encode(SOURCE)
    assert_close(ours.decode(memory, TARGET), ours(SOURCE, TARGET), **EXACT)
    states = memory.states.clone()
    states[0, 2] += 1
    changed = memory._replace(states=states)
    moved = (ours.decode(changed, TARGET) - ours(SOURCE, TARGET)).abs().amax(dim=-1)
    assert (moved[0] > 1e-6).all()
    assert (moved[1] == 0).all()


# Token by token


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("max_len", [3, 19])
def test_one_token_after_the_other_equals_the_whole_target(norm_first, max_len):
    ours = model(norm_first=norm_first, max_len=max_len)
    target = TARGET.clone()
    target[0, 2] = PAD  # an untrained model may well say so
    whole = ours(SOURCE, target)
    state = ours.begin(ours.encode(SOURCE))
    for place in range(target.shape[1]):
        logits, state = ours.advance(target[:, place], state)
        assert_close(logits, whole[:, place], **EXACT)
    assert torch.equal(state.target_mask, target != PAD)


def test_chosen_sequences_of_a_state_go_on_as_their_own():
    ours = model()
    _, state = ours.advance(TARGET[:, 0], ours.begin(ours.encode(SOURCE)))
    picked = torch.tensor([1, 1, 0])
    logits, later = ours.advance(TARGET[picked, 1], state.select(picked))
    assert_close(logits, ours(SOURCE, TARGET)[picked, 1], **EXACT)
    assert torch.equal(later.memory_mask, (SOURCE != PAD)[picked])


def test_an_empty_batch_goes_through():
    ours = model()
    assert ours(SOURCE[:0], TARGET[:0]).shape == (0, 5, TARGET_VOCAB)
    assert ours.explain(SOURCE[:0], TARGET[:0]).cross_maps[0].shape == (0, 3, 5, 7)


# Sizes, chance and errors


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm_first": False, "num_layers": 3, "d_ff": None},
        {"norm_first": False, "last_norm": True},
        {"shared_embeddings": True, "target_vocab": SOURCE_VOCAB},
    ],
)
def test_parameters_are_counted_without_building_the_model(settings):
    sizes = {"source_vocab": SOURCE_VOCAB, "target_vocab": TARGET_VOCAB}
    built = EncoderDecoderConfig(**(sizes | {"d_model": 6, "num_heads": 2} | settings))
    model = make_model(built)
    assert isinstance(model, EncoderDecoderTransformer)
    assert sum(p.numel() for p in model.parameters()) == built.num_parameters


def test_one_seed_gives_one_model_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    first, again, other = (model(seed=s)(SOURCE, TARGET) for s in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)
    EncoderDecoderTransformer(config(dropout=0.5))(SOURCE, TARGET)
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_reaches_the_embeddings():
    training = EncoderDecoderTransformer(config(dropout=0.5))
    embedded = training.explain(SOURCE, TARGET).source_embedded
    assert 0.2 < (embedded == 0).double().mean() < 0.8


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"d_model": 10}, r"d_model \(10\) must be divisible by num_heads \(3\)"),
        ({"num_layers": 0}, r"num_layers \(0\) must be between 1 and 24"),
        ({"dropout": 1.0}, r"dropout \(1\) must be between 0 and 0\.99"),
        ({"seed": -1}, r"seed \(-1\) must be between 0 and"),
        (
            {"shared_embeddings": True},
            r"source_vocab \(13\) must equal target_vocab \(17\)",
        ),
        (
            {"d_model": 510, "d_ff": 2048, "num_layers": 24},
            r"num_layers \(24\), d_model \(510\) .* parameters; at most 10,000,000",
        ),
    ],
)
def test_a_model_that_cannot_be_built_is_refused(settings, rule):
    with pytest.raises(ValueError, match=rule):
        config(**settings)


def test_a_vocabulary_without_the_special_tokens_is_refused():
    with pytest.raises(ValueError, match=r"target_vocab \(2\) must be between 3 and"):
        EncoderDecoderConfig(5, 2)


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        (SOURCE[:, :0], TARGET, r"source must hold .* length >= 1, got shape \(2, 0\)"),
        (SOURCE[0], TARGET, r"source must hold int64 .* got shape \(7,\)"),
        (SOURCE.double(), TARGET, r"source must hold int64 .* of torch\.float64"),
        (
            SOURCE + 9,
            TARGET,
            r"highest token of source \(21\) must be between 0 and 12",
        ),
        (SOURCE, TARGET - 1, r"lowest token of target_in \(-1\) must be at least 0"),
    ],
)
def test_tokens_that_do_not_fit_are_refused(source, target, rule):
    with pytest.raises(ValueError, match=rule):
        model()(source, target)
