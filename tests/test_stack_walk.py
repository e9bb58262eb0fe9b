"""What stands at each part of the stack: its own tensor, its labels, its words."""

import math

import pytest
import torch
from torch.testing import assert_close

from core import stack_walk
from core.charts.stack_diagram import PARTS, places
from core.decoding_walk import walk_decoding
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
from core.positional import sinusoidal_encoding
from core.text_tasks import letter_task

TASK = letter_task("reverse", max_length=6)
SOURCE, ANSWER = TASK.source.encode("abca"), TASK.target.encode("acba")
MAPS = ("encoder_attention", "decoder_attention", "cross_attention")
each_order = pytest.mark.parametrize("norm_first", [True, False])


def walk(norm_first=True, source=SOURCE, answer=ANSWER):
    size = len(TASK.source)
    config = EncoderDecoderConfig(
        size, size, d_model=12, num_heads=3, seed=2, norm_first=norm_first
    )
    model = EncoderDecoderTransformer(config).eval().requires_grad_(False)
    return model, walk_decoding(model, source, answer, forced=True, max_len=7)


def seen_in_the_model(norm_first):
    """What the model's own parts give in one pass, by the names of the diagram."""
    model, seen = walk(norm_first)
    given = {}

    def keep(name):
        def hook(_module, _inputs, output):
            given.setdefault(name, output[0])

        return hook

    for side, part in (("encoder", "attention"), ("decoder", "self_attention")):
        block = getattr(model, side)[1]
        named = f"{side}_attention"
        last = f"{side}_feed_forward"
        getattr(block, f"{part}_norm").register_forward_hook(keep(f"norm of {named}"))
        block.feed_forward.register_forward_hook(keep(last))
        if norm_first:
            block.feed_forward_norm.register_forward_hook(keep(f"norm of {last}"))
        block.register_forward_hook(keep(f"{side}_after"))
    cross = model.decoder[1].cross_attention_norm
    cross.register_forward_hook(keep("norm of cross_attention"))
    model.source_embedding.register_forward_hook(keep("source"))
    model.target_embedding.register_forward_hook(keep("target"))
    model.encoder_norm.register_forward_hook(keep("memory"))
    if norm_first:
        model.decoder_norm.register_forward_hook(keep("decoder_last_norm"))
    model(torch.tensor([seen.source]), torch.tensor([seen.target_in]))
    return model, seen, given


@each_order
def test_a_part_shows_what_the_model_itself_computes_there(norm_first):
    model, seen, given = seen_in_the_model(norm_first)
    assert set(given) <= set(places(norm_first))
    assert len(given) == (13 if norm_first else 10)
    for part, value in given.items():
        panel = stack_walk.panel_of(model, seen, TASK, part, 2, 0)
        assert_close(panel.matrix, value, rtol=1e-5, atol=1e-5)


@each_order
def test_every_part_can_be_opened_in_every_layer_with_labels_of_its_size(norm_first):
    model, seen = walk(norm_first)
    tensors = {}
    for part in places(norm_first):
        for layer in (1, 2):
            panel = stack_walk.panel_of(model, seen, TASK, part, layer, 0)
            assert len(panel.rows) == len(panel.matrix)
            assert len(set(panel.rows)) == len(panel.rows)
            if panel.columns is not None:
                assert len(panel.columns) == panel.matrix.shape[1]
            tensors[part, layer] = panel.matrix
    fed, after = (tensors[f"encoder_{n}", 1] for n in ("feed_forward", "after"))
    assert float((fed - after).abs().max()) > 0.1  # not the sum beside the shortcut
    if norm_first:
        between = tensors["sum of encoder_attention", 1]
        assert_close(between + fed, after, rtol=1e-5, atol=1e-5)


def test_source_and_target_tokens_open_their_rows_of_the_table():
    model, seen = walk()
    panel = stack_walk.panel_of(model, seen, TASK, "source", 1, 0)
    assert torch.equal(panel.matrix[0], panel.matrix[3])  # both are the letter a
    entered = math.sqrt(12) * panel.matrix + sinusoidal_encoding(4, 12)
    assert_close(entered, seen.explained.source_embedded[0])
    assert "multiplied by √12 = 3.46" in " ".join(panel.sentences)


@pytest.mark.parametrize("part", ["cross_attention", "decoder_attention"])
def test_a_map_of_a_head_stands_beside_its_labels(part):
    model, seen = walk()
    panel = stack_walk.panel_of(model, seen, TASK, part, 2, 3)
    maps = {"cross_attention": "cross_maps", "decoder_attention": "self_maps"}
    wanted = getattr(seen.explained, maps[part])[1][0, 2]
    assert torch.equal(panel.matrix, wanted)
    assert len(set(panel.rows)) == len(panel.rows) == panel.matrix.shape[0]
    assert len(set(panel.columns)) == len(panel.columns) == panel.matrix.shape[1]
    assert panel.title.startswith("Layer 2, head 3")
    named = {
        "cross_attention": "Cross-attention, layer 2, head 3",
        "decoder_attention": "Masked self-attention, layer 2, head 3",
    }
    assert panel.sentences[0].startswith(named[part])


@pytest.mark.parametrize("part", ["memory", "linear", "softmax", "target_embedded"])
def test_a_part_that_is_no_map_shows_its_own_tensor(part):
    model, seen = walk()
    panel = stack_walk.panel_of(model, seen, TASK, part, 1, 0)
    tensors = {
        "memory": seen.explained.memory.states[0],
        "linear": seen.explained.logits[0],
        "softmax": seen.explained.logits[0].softmax(-1),
        "target_embedded": seen.explained.target_embedded[0],
    }
    assert_close(panel.matrix, tensors[part])


def test_the_shapes_of_the_stack_are_those_of_the_tensors():
    _, seen = walk()
    shapes = stack_walk.shapes_of(seen)
    assert shapes["memory"] == (4, 12)
    assert shapes["cross_map"] == (3, 5, 4)
    assert shapes["encoder_map"] == (3, 4, 4)
    assert shapes["encoder_feed_forward"] == (4, 12)
    assert shapes["softmax"] == (5, len(TASK.target))
    assert set(PARTS) == set(shapes) - {"encoder_map", "decoder_map", "cross_map"}


def test_sentences_name_what_is_shown_and_count_it():
    model, seen = walk()
    said = {
        part: stack_walk.panel_of(model, seen, TASK, part, 2, 0).sentences[0]
        for part in places(True)
    }
    size = float(seen.explained.memory.states.square().mean().sqrt())
    largest = float(seen.explained.memory.states.abs().max())
    assert said["memory"] == (
        f"The memory: 4 source tokens of 12 numbers, root mean square {size:.2f}, "
        f"largest magnitude {largest:.2f}."
    )
    assert said["decoder_after"].startswith("After decoder layer 2: 5 target tokens of")
    assert said["sum of cross_attention"].startswith(
        "Cross-attention + shortcut, decoder layer 2: 5 target tokens of 12 numbers,"
    )
    assert said["norm of encoder_feed_forward"].startswith(
        "LayerNorm of feed-forward, encoder layer 2: 4 source tokens of"
    )
    least = float(seen.explained.logits.min())
    assert f"logits, from −{-least:.2f} to" in said["linear"]  # no hyphen
    assert said["softmax"].startswith("Softmax: 5 distributions over 29 tokens,")


def test_one_token_is_told_in_the_singular():
    model, seen = walk(source=SOURCE[:1], answer=())
    said = {
        part: stack_walk.panel_of(model, seen, TASK, part, 1, 0).sentences[0]
        for part in ("memory", "linear", "softmax", "decoder_last_norm")
    }
    assert "1 source token of" in said["memory"]
    assert "1 target token of" in said["decoder_last_norm"]
    assert said["linear"].startswith("Linear: 1 row of 29 logits")
    assert said["softmax"].startswith("Softmax: 1 distribution over")
