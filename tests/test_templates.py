"""Templates: their texts, their runs through a model, their sentences."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from core import template_story as story
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
from core.initial import generator_from, linear
from core.positional import sinusoidal_encoding
from core.template_run import embed_patches, patches_of, run_template
from core.templates import CHANNELS, IMAGE_SIDE, PATCH_SIDES, TEMPLATES

NAMES = list(TEMPLATES)


def run(name="Translation", source_len=5, target_len=3, **sizes):
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 1} | sizes
    return run_template(name, source_len=source_len, target_len=target_len, **sizes)


def seen_by(mask):
    """All pairs that a mask of the whole stack lets attend, one by one."""
    return sum(bool(allowed) for row in mask for allowed in row)


def test_patches_are_those_of_pytorch_row_by_row():
    image = torch.arange(2 * 6 * 9, dtype=torch.float64).view(2, 6, 9)
    expected = F.unfold(image[None], 3, stride=3)[0].T
    torch.testing.assert_close(patches_of(image, 3), expected, rtol=0, atol=0)


def test_the_first_patch_is_the_upper_left_square_of_every_channel():
    image = torch.tensor(
        [[[1, 2, 3, 4], [5, 6, 7, 8]], [[10, 20, 30, 40], [50, 60, 70, 80]]]
    )
    assert patches_of(image, 2).tolist() == [
        [1, 2, 5, 6, 10, 20, 50, 60],
        [3, 4, 7, 8, 30, 40, 70, 80],
    ]


def test_a_side_that_leaves_a_strip_over_is_refused():
    with pytest.raises(ValueError, match=r"side \(4\) must divide 6 and 8"):
        patches_of(torch.zeros(3, 6, 8), 4)


def test_a_patch_enters_the_encoder_as_its_product_with_one_matrix():
    model = EncoderDecoderTransformer(
        EncoderDecoderConfig(7, 5, d_model=4, num_heads=1)
    )
    patches = torch.rand(3, 11, generator=torch.Generator().manual_seed(1))
    ids = embed_patches(model, patches)
    assert ids.tolist() == [4, 5, 6]
    entered = model.explain(ids[None], torch.tensor([[1]])).source_embedded[0]
    with torch.no_grad():
        matrix = linear(11, 4, generator=generator_from(0))
        expected = patches @ matrix.weight.T + matrix.bias + sinusoidal_encoding(3, 4)
        torch.testing.assert_close(entered, expected)


@pytest.mark.parametrize("name", NAMES)
def test_every_shape_of_a_run_follows_from_its_lengths(name):
    shapes = run(name, patch_side=56).shapes
    source, target = 5 + 16 * TEMPLATES[name].has_image, 3 + 1
    assert shapes["memory"] == (source, 8)
    assert shapes["encoder_map"] == (2, source, source)
    assert shapes["decoder_map"] == (2, target, target)
    assert shapes["cross_map"] == (2, target, source)
    assert shapes["target"] == (target,)
    words = {*TEMPLATES[name].source_tokens, *TEMPLATES[name].target_tokens}
    assert shapes["linear"] == (target, 3 + len(words))


@pytest.mark.parametrize("name", NAMES)
def test_the_vocabulary_stays_at_every_length_and_is_no_other_number_shown(name):
    template = TEMPLATES[name]
    lengths = len(template.source_tokens), len(template.target_tokens)
    sizes = {"d_model": 64, "num_heads": 4}
    whole, least = run(name, *lengths, **sizes), run(name, 1, 1, **sizes)
    size = whole.shapes["linear"][-1]
    assert least.shapes["linear"] == (2, size)
    ends = ("linear", "softmax")
    others = {n for at, s in whole.shapes.items() if at not in ends for n in s}
    assert size not in others
    told = " ".join(story.vocabulary_lines(whole))
    assert told.startswith(f"V = {size} tokens of the vocabulary: all words of source")
    assert told.endswith("<pad>, <s>, </s>.")
    nodes, _ = story.template_diagram(whole, num_layers=1, norm_first=True)
    assert set(story.vocabulary_lines(whole)) < {node.detail for node in nodes}


@pytest.mark.parametrize("side", PATCH_SIDES)
def test_patches_of_every_offered_side_fill_the_image(side):
    found = run("Image and question", patch_side=side)
    assert found.patches * side**2 == IMAGE_SIDE**2
    across = IMAGE_SIDE // side
    told = story.patch_sentence(found)
    assert f"{across} × {across} = {across**2} of" in told
    assert f"{side * side * CHANNELS:,} numbers each" in told
    assert f"{across**2 + 5} tokens" in told


def test_a_shorter_source_keeps_its_question_where_that_comes_last():
    assert run("Facts and question").words == ("Where", "is", "the", "milk", "?")
    assert run("Translation", 3).words == ("Der", "alte", "Hund")


def test_a_run_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    run("Image and question", patch_side=56)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_does_not_fit_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="name must be one of 'Translation'"):
        run("poetry")
    with pytest.raises(ValueError, match=r"source_len \(14\) must be between 1 and 13"):
        run(source_len=14)
    with pytest.raises(ValueError, match=r"target_len \(0\) must be between 1 and 10"):
        run(target_len=0)
    with pytest.raises(ValueError, match=r"patch_side \(15\) must be one of 16, 28"):
        run("Image and question", patch_side=15)
    with pytest.raises(ValueError, match=r"must be divisible by num_heads \(3\)"):
        run(num_heads=3)


def test_the_example_is_shown_as_it_was_kept():
    told = story.example_sentence(run("Translation", 3, 2))
    assert told == "Example: “Der alte Hund” → “The old”"
    told = story.example_sentence(run("Image and question", 2, 1, patch_side=56))
    assert told == "Example: 16 patches, then “how many” → “two”"


def test_the_flow_is_told_with_the_sizes_of_the_tensors():
    told = story.flow_sentence(run())
    assert "5 tokens, becomes a memory of 5 × 8 = 40 numbers" in told
    assert "reads 4 tokens, <s> first" in told
    assert "4 × 5 = 20 weights, 2 × 20 = 40 a layer" in told
    assert story.patch_sentence(run()) == ""


@pytest.mark.parametrize(
    ("source_len", "ending"),
    [
        (5, "the 10 fewer are source tokens that read later source tokens."),
        (2, "the one fewer is a source token that reads a later one."),
        (1, "the same, as a source of one token has none after it."),
    ],
)
def test_what_one_causal_sequence_loses_is_what_the_encoder_sees_ahead(
    source_len, ending
):
    target = 4
    told = story.one_sequence_sentence(run(source_len=source_len))
    both = range(source_len + target)
    causal = seen_by([[key <= query for key in both] for query in both])
    drawn = seen_by(
        [[key <= max(query, source_len - 1) for key in both] for query in both]
    )
    assert f"in {drawn} pairs" in told
    assert f"decoder-only, it is {causal}; {ending}" in told


@pytest.mark.parametrize("source_len", [1, 4])  # 4: as long as the target
def test_a_longer_source_moves_two_maps_and_not_the_decoders_own(source_len):
    right, told = story.longer_source_answer(
        run(source_len=source_len), run(source_len=source_len, more=1)
    )
    assert right == 2
    assert "masked self-attention's stays (2, 4, 4)" in told
    assert f"to (2, 4, {source_len + 1})" in told


@pytest.mark.parametrize("name", NAMES)
def test_the_diagram_carries_the_words_of_the_template(name):
    nodes, _ = story.template_diagram(
        run(name, patch_side=56), num_layers=1, norm_first=True
    )
    labels = {node.label for node in nodes}
    details = {node.detail for node in nodes}
    template = TEMPLATES[name]
    assert f"Encoder reads the source: {template.source}" in labels
    assert f"Decoder writes the target: {template.target}" in labels
    assert f"Memory: {template.memory}." in details
    assert any(label.startswith("<s> ") for label in labels)
    (mark,) = (node for node in nodes if node.kind == "mark")
    assert mark.y == next(n.y for n in nodes if n.label.startswith("memory"))
    boxes = [n for n in nodes if n.kind not in ("heading", "frame")]
    assert max(len(node.label) for node in boxes) <= 26


def test_templates_are_listed_without_torch():
    code = "import sys, core.templates; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
