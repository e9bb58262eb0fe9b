"""An encoder block as a diagram: its parts, its shortcuts, what passes where."""

from collections.abc import Mapping
from itertools import pairwise

from core.block_walk import Walk, size
from core.charts.diagram import Edge, Node

X_DOMAIN, Y_DOMAIN = (0.0, 104.0), (-8.5, 1.45)
_ORDERS = {  # where each part stands, from the top
    True: (
        "x", "attention_norm", "attention", "attention_sum", "feed_forward_norm",
        "expand", "contract", "feed_forward_sum", "last_norm",
    ),
    False: (
        "x", "attention", "attention_sum", "attention_norm", "expand", "contract",
        "feed_forward_sum", "feed_forward_norm",
    ),
}  # fmt: skip
_PARTS = {  # kind of the node and words in it
    "x": ("tokens", "tokens x"),
    "attention_norm": ("norm", "LayerNorm"),
    "attention": ("attention", "multi-head attention"),
    "attention_sum": ("sum", "+"),
    "feed_forward_norm": ("norm", "LayerNorm"),
    "expand": ("feed_forward", "feed-forward W₁, GELU"),
    "contract": ("feed_forward", "feed-forward W₂"),
    "feed_forward_sum": ("sum", "+"),
    "last_norm": ("norm", "last LayerNorm"),
}
_SHORTCUTS = {  # norm_first: (where a shortcut leaves, where it is added)
    True: (("x", "attention_sum"), ("attention_sum", "feed_forward_sum")),
    False: (("x", "attention_sum"), ("attention_norm", "feed_forward_sum")),
}
_HEADINGS = {
    True: "Pre-norm (GPT-2; Xiong et al., 2020)",
    False: "Post-norm (Vaswani et al., 2017)",
}
_HEADINGS_WHEN_CUT = {
    True: "Pre-norm order, shortcuts cut",
    False: "Post-norm order, shortcuts cut",
}
_MIDDLES = {False: 21.0, True: 73.0}
_WIDTH, _HEIGHT = 24.0, 0.62  # of a box
_SUM_WIDTH = 2.6  # of the room that the circle of a sum takes
_SHORTCUT_AT = 15.5  # left of the middle
_FRAME = (-18.5, 30.0)  # ends of the frame, from the middle
_FRAME_TOP = 0.4  # below the tokens, above the wire where the first shortcut leaves


def block_diagram(
    walks: Mapping[bool, Walk], number: int
) -> tuple[list[Node], list[Edge]]:
    """Return the nodes and edges of a block in both orders of the norms.

    Args:
        walks: ``norm_first`` to the walk through the block.
        number: Which block of its stack it is, from 1.
    """
    nodes: list[Node] = []
    edges: list[Edge] = []
    for norm_first, walk in walks.items():
        nodes += _nodes(walk, norm_first, number)
        edges += _edges(walk, norm_first)
    return nodes, edges


def _nodes(walk: Walk, norm_first: bool, number: int) -> list[Node]:
    middle, order = _MIDDLES[norm_first], _ORDERS[norm_first]
    left, right = (middle + end for end in _FRAME)
    named = _HEADINGS if walk.block.residual else _HEADINGS_WHEN_CUT
    heading = Node("heading", middle, 1.05, named[norm_first], width=_WIDTH)
    rows = order.index("feed_forward_sum" if norm_first else "feed_forward_norm")
    frame = Node(
        "frame",
        x=(left + right) / 2,
        y=-(rows + 0.5 + _FRAME_TOP) / 2,
        label=f"block {number}",
        width=right - left,
        height=rows + 0.5 - _FRAME_TOP,
    )
    nodes = [heading, frame]
    for point in walk.points:
        kind, label = _PARTS[point.name]
        length, width = point.value.shape
        said = "tokens" if length > 1 else "token"
        nodes.append(
            Node(
                kind,
                x=middle,
                y=-order.index(point.name),
                label=label,
                detail=f"({length}, {width}) · RMS {size(point.rms)}",
                words=f"{label}: {length} {said} of {width} numbers, root mean "
                f"square {size(point.rms)}",
                width=_SUM_WIDTH if kind == "sum" else _WIDTH,
                height=_HEIGHT,
            )
        )
    return nodes


def _edges(walk: Walk, norm_first: bool) -> list[Edge]:
    middle, order = _MIDDLES[norm_first], _ORDERS[norm_first]
    rows = [-float(order.index(point.name)) for point in walk.points]
    half = _HEIGHT / 2
    edges = [
        Edge(((middle, above - half), (middle, below + half)))
        for above, below in pairwise(rows)
    ]
    if not walk.block.residual:
        return edges
    for leaves, added in _SHORTCUTS[norm_first]:
        start, end = -order.index(leaves) - 0.5, -float(order.index(added))
        aside = middle - _SHORTCUT_AT
        corners = ((middle, start), (aside, start), (aside, end))
        edges.append(Edge((*corners, (middle - _SUM_WIDTH / 2, end))))
    return edges
