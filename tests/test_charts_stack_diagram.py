"""The diagram of the encoder-decoder stack: its order, its arrows, its shapes."""

from itertools import pairwise

import pytest
import torch

from core.charts.diagram import NODE_KINDS, diagram_frame
from core.charts.stack_diagram import (
    MOST_LAYERS,
    PARTS,
    X_DOMAIN,
    Y_DOMAIN,
    places,
    shapes_of,
    stack_diagram,
)
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer

S, T, D, H, V = 7, 5, 6, 3, 11


def shapes():
    config = EncoderDecoderConfig(13, V, d_model=D, num_heads=H)
    source, target = torch.full((2, S), 3), torch.full((2, T), 3)
    seen = EncoderDecoderTransformer(config).explain(source, target)
    return shapes_of(source, target, seen)


def drawn(norm_first=True, **options):
    options = {"num_layers": 2} | options
    return stack_diagram(shapes(), norm_first=norm_first, **options)


def column(nodes, *, right):
    shown = [n for n in nodes if n.kind not in ("frame", "heading", "mark")]
    return [n for n in shown if (n.x > 50) == right]


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_parts_stand_in_the_order_of_the_computation(norm_first):
    nodes, _ = drawn(norm_first)
    named = [label for _, label in PARTS.values()]
    shown = [
        n.label.split(" (")[0]
        for right in (False, True)
        for n in column(nodes, right=right)
        if n.kind not in ("norm", "sum")
    ]
    assert shown == named
    for right in (False, True):
        heights = [node.y for node in column(nodes, right=right)]
        assert heights == sorted(heights, reverse=True)


def test_the_norm_stands_before_each_sublayer_or_after_its_sum():
    pre, post = (column(drawn(first)[0], right=True) for first in (True, False))
    assert [n.kind for n in pre[2:5]] == ["norm", "attention", "sum"]
    assert [n.kind for n in post[2:5]] == ["attention", "sum", "norm"]
    assert [n.label for n in pre].count("last LayerNorm") == 1
    assert "last LayerNorm" not in [n.label for n in post]


def test_each_part_says_the_shape_that_leaves_it():
    nodes, _ = drawn()
    details = [n.detail for n in nodes if n.detail]
    assert details == [
        f"({S})", f"({S}, {D})", f"({S}, {D}) · map ({H}, {S}, {S})", f"({S}, {D})",
        f"({T})", f"({T}, {D})", f"({T}, {D}) · map ({H}, {T}, {T})",
        f"({T}, {D}) · map ({H}, {T}, {S})", f"({T}, {D})", f"({T}, {V})",
        f"({T}, {V})",
    ]  # fmt: skip
    assert f"memory ({S}, {D})" in [n.label for n in nodes]


def test_a_part_without_a_known_shape_shows_none():
    nodes, _ = stack_diagram({}, num_layers=1, norm_first=True)
    assert not [n for n in nodes if n.detail]
    assert "memory" in [n.label for n in nodes]


def test_the_memory_reaches_cross_attention_and_nothing_else():
    nodes, edges = drawn()
    at = {n.label: n for n in column(nodes, right=True)}
    memory = column(nodes, right=False)[-1]
    (across,) = (e for e in edges if e.points[0][0] < 50 < e.points[-1][0])
    assert across.points[0] == (memory.x + memory.width / 2, memory.y)
    cross = at["cross-attention"]
    assert across.points[-1] == (cross.x - cross.width / 2, cross.y)


@pytest.mark.parametrize("norm_first", [True, False])
def test_every_shortcut_starts_above_its_sublayer_and_ends_at_its_sum(norm_first):
    nodes, edges = drawn(norm_first)
    around = [
        edge
        for edge in edges
        if len(edge.points) == 4 and abs(edge.points[0][0] - edge.points[3][0]) < 2
    ]
    for right in (False, True):
        parts = column(nodes, right=right)
        own = [e for e in around if (e.points[0][0] > 50) == right]
        sums = [n for n in parts if n.kind == "sum"]
        assert [e.points[-1][1] for e in own] == [n.y for n in sums]
        for edge, added in zip(own, sums, strict=True):
            passed = [n.kind for n in parts if edge.points[0][1] > n.y > added.y]
            sublayer = passed.pop()
            assert sublayer in ("attention", "feed_forward")
            assert passed == (["norm"] if norm_first else [])


@pytest.mark.parametrize("part", PARTS)
def test_a_marked_part_has_a_line_round_its_own_box(part):
    nodes, _ = drawn(marked=part)
    (mark,) = (n for n in nodes if n.kind == "mark")
    (box,) = (n for n in nodes if (n.x, n.y) == (mark.x, mark.y) and n is not mark)
    assert box.kind == PARTS[part][0]
    assert (mark.width, mark.height) == (box.width, box.height)
    assert NODE_KINDS[-1] == "mark"


@pytest.mark.parametrize("norm_first", [True, False])
def test_every_box_and_every_sum_can_be_opened_and_opens_one_tensor(norm_first):
    names = places(norm_first)
    nodes, _ = drawn(norm_first, clickable=names)
    boxes = [n for right in (False, True) for n in column(nodes, right=right)]
    assert len({n.name for n in boxes}) == len(names) == len(set(names))
    named = [n.name for n in boxes]
    if norm_first:  # the encoder's last norm gives the memory
        assert boxes[named.index("memory")].label == "last LayerNorm"
        del named[named.index("memory")]
    assert named == names


@pytest.mark.parametrize(("norm_first", "kind"), [(True, "sum"), (False, "norm")])
def test_what_leaves_a_layer_is_its_last_sum_or_its_last_norm(norm_first, kind):
    nodes, _ = drawn(norm_first, clickable=places(norm_first))
    for side in ("encoder", "decoder"):
        (after,) = (n for n in nodes if n.name == f"{side}_after")
        fed = next(n for n in nodes if n.name == f"{side}_feed_forward")
        assert after.kind == kind
        assert after.y < fed.y


@pytest.mark.parametrize("norm_first", [True, False])
def test_every_place_can_be_marked(norm_first):
    for name in places(norm_first):
        nodes, _ = drawn(norm_first, marked=name, clickable=[name])
        (mark,) = (n for n in nodes if n.kind == "mark")
        assert name in [n.name for n in nodes if (n.x, n.y) == (mark.x, mark.y)]


def test_only_the_box_of_a_clickable_part_has_its_name():
    nodes, _ = drawn(marked="linear", clickable=("linear", "softmax"))
    assert [n.name for n in nodes if n.name] == ["linear", "softmax"]
    assert "mark" not in [n.kind for n in nodes if n.name]


def test_frames_say_how_many_layers_there_are():
    for layers, words in ((1, "encoder layer"), (3, "encoder layer, × 3")):
        nodes, _ = drawn(num_layers=layers)
        assert words in [n.label for n in nodes if n.kind == "frame"]


def test_other_words_and_notes_stand_where_they_belong():
    nodes, _ = drawn(words={"source": "two words", "encoder": "Left"}, notes=["a", "b"])
    labels = [n.label for n in nodes]
    assert "two words" in labels
    assert "source tokens" not in labels
    assert "Encoder" not in labels
    assert "Left" in labels
    low = column(nodes, right=False)[-1].y
    notes = [n for n in nodes if n.detail in ("a", "b")]
    assert [n.detail for n in notes] == ["a", "b"]
    assert low > notes[0].y > notes[1].y > Y_DOMAIN[0]


@pytest.mark.parametrize("norm_first", [True, False])
def test_everything_lies_on_the_plane_and_columns_stay_apart(norm_first):
    nodes, edges = drawn(norm_first, marked="softmax", notes=["a"] * 4)
    frame = diagram_frame(nodes, edges)
    x = frame[["x", "left", "right"]].stack()
    y = frame[["y", "low", "high"]].stack()
    assert X_DOMAIN[0] < x.min() < x.max() < X_DOMAIN[1]
    assert Y_DOMAIN[0] < y.min()
    assert y.max() < Y_DOMAIN[1] + 0.2
    left, right = (n for n in nodes if n.kind == "frame")
    assert left.x + left.width / 2 < right.x - right.width / 2
    for side in (False, True):
        boxes = [n for n in column(nodes, right=side) if n.kind != "sum"]
        for above, below in pairwise(boxes):
            assert above.y - above.height / 2 > below.y + below.height / 2


def test_a_part_or_a_number_of_layers_that_is_none_is_refused():
    with pytest.raises(ValueError, match="marked must be one of 'source'"):
        drawn(marked="norm")
    with pytest.raises(ValueError, match=r"num_layers \(0\) must be between 1 and"):
        drawn(num_layers=0)
    with pytest.raises(ValueError, match=rf"\({MOST_LAYERS + 1}\) must be between"):
        drawn(num_layers=MOST_LAYERS + 1)
