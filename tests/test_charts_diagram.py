"""Diagrams: their rows, and the block that is drawn with them."""

import pytest

from core.block_walk import walk_stack
from core.charts.block_diagram import X_DOMAIN, Y_DOMAIN, block_diagram
from core.charts.diagram import CLICKED, NODE_KINDS, Edge, Node, diagram, diagram_frame

SETTINGS = {"d_model": 8, "num_heads": 2, "seq_len": 3, "number": 2, "seed": 0}


def drawn(residual):
    walks = {
        norm_first: walk_stack(**SETTINGS, norm_first=norm_first, residual=residual)
        for norm_first in (False, True)
    }
    return walks, *block_diagram(walks, 2)


def boxes(nodes, *, right_half):
    parts = [n for n in nodes if n.kind not in ("frame", "heading")]
    return [n for n in parts if (n.x > 50) == right_half]


@pytest.mark.parametrize(
    ("end", "angle"), [((3, 9), 0), ((9, 5), 90), ((3, 1), 180), ((0, 5), 270)]
)
def test_an_arrow_head_points_along_the_last_stretch(end, angle):
    frame = diagram_frame([], [Edge(((0, 0), (3, 5), end))])
    head = frame[frame["role"] == "head"].iloc[0]
    assert (head["x"], head["y"]) == end
    assert head["angle"] == pytest.approx(angle)
    assert not (diagram_frame([], [Edge(((0, 0), end), False)])["role"] == "head").any()


def test_a_frame_holds_the_sides_of_nodes_and_the_points_of_edges():
    node = Node("norm", 3, 5, "LayerNorm", width=4, height=2)
    edges = [Edge(((0, 0), (1, 0), (1, 1))), Edge(((5, 5), (6, 6)))]
    frame = diagram_frame([node], edges)
    first = frame.iloc[0]
    assert [first[s] for s in ("left", "right", "low", "high")] == [1, 5, 4, 6]
    lines = frame[frame["role"] == "line"]
    assert lines["path"].tolist() == ["0"] * 3 + ["1"] * 2
    assert lines["order"].tolist() == [0, 1, 2, 0, 1]
    assert not frame[["role", "kind", "label", "detail", "words"]].isna().any().any()


def test_only_a_clickable_diagram_has_a_selection_and_only_of_named_nodes():
    frame = diagram_frame(
        [Node("norm", 1, 1, "a", name="n"), Node("sum", 1, 1, "")], []
    )
    assert frame["name"].tolist() == ["n", ""]
    plain, clickable = (
        diagram(frame, x_domain=(0, 2), y_domain=(0, 2), clickable=on).to_dict()
        for on in (False, True)
    )
    assert "params" not in plain
    (selection,) = clickable["params"]
    assert (selection["name"], selection["select"]["fields"]) == (CLICKED, ["name"])
    assert clickable["layer"][:-1] == plain["layer"]
    assert "datum.name" in clickable["layer"][-1]["transform"][0]["filter"]


def test_an_edge_of_one_point_is_refused():
    with pytest.raises(ValueError, match=r"edges\[0\] needs 2 points, got 1"):
        diagram_frame([], [Edge(((0, 0),))])


def test_every_kind_of_node_has_a_colour():
    frame = diagram_frame([Node(kind, 1, 1, kind) for kind in NODE_KINDS], [])
    spec = diagram(frame, x_domain=(0, 2), y_domain=(0, 2)).to_dict()
    fills = [layer["encoding"].get("fill") for layer in spec["layer"]]
    for fill in filter(None, fills):
        assert fill["scale"]["domain"] == list(NODE_KINDS)
        assert len(fill["scale"]["range"]) == len(NODE_KINDS)


def test_both_orders_are_named_and_only_pre_norm_has_a_last_norm():
    _, nodes, _ = drawn(True)
    headings = [node.label for node in nodes if node.kind == "heading"]
    assert headings == [
        "Post-norm (Vaswani et al., 2017)",
        "Pre-norm (GPT-2; Xiong et al., 2020)",
    ]
    for right_half in (False, True):
        labels = [node.label for node in boxes(nodes, right_half=right_half)]
        assert ("last LayerNorm" in labels) == right_half
    post = [node.label for node in boxes(nodes, right_half=False)]
    assert post.index("multi-head attention") < post.index("LayerNorm")
    pre = [node.label for node in boxes(nodes, right_half=True)]
    assert pre.index("LayerNorm") < pre.index("multi-head attention")


@pytest.mark.parametrize("residual", [True, False])
def test_each_point_of_the_walk_is_a_node_with_its_shape_and_size(residual):
    walks, nodes, _ = drawn(residual)
    for norm_first, walk in walks.items():
        own = boxes(nodes, right_half=norm_first)
        assert len(own) == len(walk.points)
        for node, point in zip(own, walk.points, strict=True):
            length, width = point.value.shape
            assert node.detail == f"({length}, {width}) · RMS {point.rms:.2f}"
        assert [node.y for node in own] == sorted((n.y for n in own), reverse=True)


def test_without_shortcuts_there_are_neither_sums_nor_lines_around():
    _, nodes, edges = drawn(True)
    _, bare_nodes, bare_edges = drawn(False)
    assert [node.kind for node in nodes].count("sum") == 4
    assert [len(edge.points) for edge in edges].count(4) == 4
    assert "sum" not in [node.kind for node in bare_nodes]
    assert {len(edge.points) for edge in bare_edges} == {2}


def test_a_shortcut_ends_at_a_sum_and_passes_its_parts_on_the_left():
    _, nodes, edges = drawn(True)
    sums = [node for node in nodes if node.kind == "sum"]
    around = [edge for edge in edges if len(edge.points) == 4]
    for node, edge in zip(sums, around, strict=True):
        assert edge.points[-1] == (node.x - node.width / 2, node.y)
        assert edge.points[1][0] < node.x - 12  # clear of the boxes
        assert edge.points[0][1] > node.y


def test_everything_lies_on_the_plane():
    _, nodes, edges = drawn(True)
    frame = diagram_frame(nodes, edges)
    x = frame[["x", "left", "right"]].stack()
    y = frame[["y", "low", "high"]].stack()
    assert X_DOMAIN[0] < x.min() < x.max() < X_DOMAIN[1]
    assert Y_DOMAIN[0] < y.min() < y.max() < Y_DOMAIN[1] + 0.2
