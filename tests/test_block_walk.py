"""The walk through a block: its end is the block's output, its points are its parts."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from core.block_walk import (
    change_when_idle,
    size,
    walk_block,
    walk_decoder_block,
    walk_stack,
)
from core.blocks import DecoderBlock, EncoderBlock
from core.masks import causal_mask

SHAPES = {"d_model": 6, "num_heads": 3}
EXACT = {"rtol": 1e-10, "atol": 1e-10}
each_order = pytest.mark.parametrize("norm_first", [True, False])
with_and_without = pytest.mark.parametrize("residual", [True, False])


def normal(*shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def block(**settings):
    return EncoderBlock(6, 3, d_ff=11, **settings).double().eval()


@each_order
@with_and_without
@pytest.mark.parametrize("tokens", [5, 1])
def test_the_last_point_equals_the_output_of_the_block(norm_first, residual, tokens):
    layer = block(norm_first=norm_first, residual=residual)
    x = normal(tokens, 6)
    points = walk_block(layer, x)
    assert torch.equal(points[0].value, x)
    assert_close(points[-1].value, layer(x[None])[0].detach(), **EXACT)


def test_the_points_stand_in_the_order_of_the_papers():
    pre = ["x", "attention_norm", "attention", "attention_sum", "feed_forward_norm"]
    pre += ["expand", "contract", "feed_forward_sum"]
    post = ["x", "attention", "attention_sum", "attention_norm", "expand", "contract"]
    post += ["feed_forward_sum", "feed_forward_norm"]
    x = normal(5, 6)
    for norm_first, order in ((True, pre), (False, post)):
        names = [point.name for point in walk_block(block(norm_first=norm_first), x)]
        assert names == order
        bare = block(norm_first=norm_first, residual=False)
        names = [point.name for point in walk_block(bare, x)]
        assert names == [name for name in order if not name.endswith("sum")]


@each_order
@with_and_without
def test_every_part_gives_at_its_point_what_it_gives_in_the_block(norm_first, residual):
    layer, x = block(norm_first=norm_first, residual=residual), normal(5, 6)
    with torch.no_grad():
        for norm in (layer.attention_norm, layer.feed_forward_norm):
            norm.weight.uniform_(0.5, 2, generator=torch.Generator().manual_seed(1))
    given = {}
    parts = {
        "attention_norm": layer.attention_norm,
        "attention": layer.attention,
        "feed_forward_norm": layer.feed_forward_norm,
        "expand": layer.feed_forward.expand,
        "contract": layer.feed_forward.contract,
    }
    for name, part in parts.items():
        part.register_forward_hook(
            lambda module, _, output, name=name: given.update({name: output[0]})
        )
    with torch.no_grad():
        layer(x[None])
    wanted = dict(given) | {"expand": F.gelu(given["expand"])}
    points = {point.name: point.value for point in walk_block(layer, x)}
    for name, value in wanted.items():
        assert_close(points[name], value, **EXACT)


def test_the_last_norm_reads_what_leaves_the_block():
    walk = walk_stack(
        **SHAPES, seq_len=5, number=2, norm_first=True, residual=True, seed=0
    )
    *_, out, last = walk.points
    assert_close(last.value, F.layer_norm(out.value, (6,)))


@each_order
def test_a_sum_is_its_shortcut_plus_its_part(norm_first):
    layer = block(norm_first=norm_first)
    points = {point.name: point.value for point in walk_block(layer, normal(5, 6))}
    assert_close(points["attention_sum"], points["x"] + points["attention"], **EXACT)
    stream = points["attention_sum" if norm_first else "attention_norm"]
    assert_close(points["feed_forward_sum"], stream + points["contract"], **EXACT)
    assert points["expand"].shape == (5, 11)


@each_order
@with_and_without
def test_block_k_reads_what_the_blocks_before_it_give(norm_first, residual):
    settings = {**SHAPES, "seq_len": 5, "norm_first": norm_first, "seed": 3}
    first, second = (
        walk_stack(**settings, number=number, residual=residual) for number in (1, 2)
    )
    name = "feed_forward_norm" if not norm_first else "contract"
    name = "feed_forward_sum" if norm_first and residual else name
    out = next(point.value for point in first.points if point.name == name)
    assert torch.equal(out, second.points[0].value)


def test_only_pre_norm_ends_with_a_last_norm_of_size_one():
    ends = {}
    for norm_first in (True, False):
        walk = walk_stack(
            d_model=32, num_heads=4, seq_len=7, number=24, norm_first=norm_first,
            residual=True, seed=0,
        )  # fmt: skip
        ends[norm_first] = walk.points
    assert ends[True][-1].name == "last_norm"
    assert ends[True][-2].rms > 1.5  # grown on its way
    assert ends[True][-1].rms == pytest.approx(1, abs=1e-3)
    assert ends[False][-1].name == "feed_forward_norm"
    assert ends[False][-1].rms == pytest.approx(1, abs=1e-3)


def test_the_size_of_a_point_is_its_root_mean_square():
    points = walk_block(block(), torch.tensor([[3.0, -4.0, 0, 0, 0, 0]]).double())
    assert points[0].rms == pytest.approx((25 / 6) ** 0.5)
    assert [size(value) for value in (1.456, 0.004, 0.0)] == ["1.46", "4e-03", "0.00"]


def test_an_idle_block_passes_tokens_on_only_under_pre_norm_with_shortcuts():
    moved = {
        (norm_first, residual): change_when_idle(
            norm_first=norm_first, residual=residual
        )
        for norm_first in (True, False)
        for residual in (True, False)
    }
    assert moved.pop((True, True)) == 0
    assert min(moved.values()) > 0.5


def test_no_walk_moves_the_global_generator():
    before = torch.get_rng_state()
    walk_stack(**SHAPES, seq_len=2, number=2, norm_first=True, residual=True, seed=1)
    change_when_idle(norm_first=True, residual=True)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"d_model": 10}, r"d_model \(10\) must be divisible by num_heads \(3\)"),
        ({"seq_len": 0}, r"seq_len \(0\) must be between 1 and 64"),
        ({"number": 25}, r"number \(25\) must be between 1 and 24"),
        ({"d_model": 0}, r"d_model \(0\) must be between 1 and 512"),
    ],
)
def test_what_cannot_be_walked_is_refused(changes, rule):
    settings = {**SHAPES, "seq_len": 2, "number": 1, "seed": 0} | changes
    with pytest.raises(ValueError, match=rule):
        walk_stack(**settings, norm_first=True, residual=True)


@each_order
@pytest.mark.parametrize(("targets", "sources"), [(5, 7), (1, 1)])
def test_a_walk_through_a_decoder_block_ends_in_its_output(
    norm_first, targets, sources
):
    layer = DecoderBlock(6, 3, d_ff=11, norm_first=norm_first).double().eval()
    x, memory = normal(targets, 6), 2 * normal(sources, 6)
    points = walk_decoder_block(layer, x, memory)
    given = layer(x[None], memory[None], mask=causal_mask(targets))[0]
    assert torch.equal(points[0].value, x)
    assert_close(points[-1].value, given.detach(), **EXACT)


def test_the_points_of_a_decoder_block_stand_in_the_order_of_the_papers():
    parts = ("self_attention", "cross_attention", "feed_forward")
    for norm_first in (True, False):
        layer = DecoderBlock(6, 3, norm_first=norm_first).double().eval()
        points = dict(walk_decoder_block(layer, normal(5, 6), normal(7, 6)))
        names = ["x"]
        for part in parts:
            norm, added = f"{part}_norm", f"{part}_sum"
            names += [norm, part, added] if norm_first else [part, added, norm]
        assert list(points) == names
        before = points["self_attention_sum" if norm_first else "self_attention_norm"]
        assert_close(
            points["cross_attention_sum"], before + points["cross_attention"], **EXACT
        )
