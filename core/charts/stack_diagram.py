"""The encoder-decoder stack as a diagram: two columns, and the memory between them."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor

from core.charts.diagram import Edge, Node
from core.checks import require_choice, require_int
from core.encoder_decoder import Explained

X_DOMAIN, Y_DOMAIN = (0.0, 104.0), (-13.3, 1.3)
MOST_LAYERS = 12
PARTS = {  # what can be marked: its kind and the words in it
    "source": ("tokens", "source tokens"),
    "source_embedded": ("tokens", "embedding + positions"),
    "encoder_attention": ("attention", "self-attention"),
    "encoder_feed_forward": ("feed_forward", "feed-forward"),
    "memory": ("memory", "memory"),
    "target": ("tokens", "target, shifted right"),
    "target_embedded": ("tokens", "embedding + positions"),
    "decoder_attention": ("attention", "masked self-attention"),
    "cross_attention": ("attention", "cross-attention"),
    "decoder_feed_forward": ("feed_forward", "feed-forward"),
    "linear": ("output", "linear"),
    "softmax": ("output", "softmax"),
}
_SUBLAYERS = {
    "encoder": ("encoder_attention", "encoder_feed_forward"),
    "decoder": ("decoder_attention", "cross_attention", "decoder_feed_forward"),
}
_STARTS = {
    "encoder": ("source", "source_embedded"),
    "decoder": ("target", "target_embedded"),
}
_ENDS = {"encoder": ("memory",), "decoder": ("linear", "softmax")}
_OPENS = {"encoder_last_norm": "memory"}  # a box that has no tensor of its own
_MIDDLES = {"encoder": 15.5, "decoder": 66.5}
_SHORTCUTS_AT = {"encoder": -13.2, "decoder": 13.2}  # from the middle
_FRAMES = {"encoder": (0.6, 49.0), "decoder": (53.2, 103.6)}
_MEMORY_AT = 51.0  # where the memory's arrow passes between the columns
_WIDTH, _HEIGHT = 22.0, 0.66  # of a box
_DETAIL_GAP = {"encoder": 0.3, "decoder": 2.2}  # the decoder's stand past a shortcut
_SUM_WIDTH = 2.6  # of the room that the circle of a sum takes
_SUM_MARK = (4.6, 0.86)  # width and height of the line round a marked sum
_ROOMS = {"sum": 0.72, "norm": 0.88}  # height a part takes in its column; others 1
_FRAME_ROOM, _FRAME_END = 0.62, 0.12  # above a frame for its label, and below it
_NOTE_GAP, _NOTE_ROOM = 1.1, 0.72  # under the memory, and from line to line
Shape = tuple[int, ...]


class _Place(NamedTuple):
    """One part of a column, and how high it stands."""

    name: str
    kind: str
    label: str
    y: float
    top: float  # where its room begins


def stack_diagram(
    shapes: Mapping[str, Shape],
    *,
    num_layers: int,
    norm_first: bool,
    marked: str | None = None,
    clickable: Collection[str] = (),
    words: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> tuple[list[Node], list[Edge]]:
    """Return the nodes and edges of an encoder-decoder Transformer.

    Args:
        shapes: Name in ``PARTS`` to the shape that leaves the part, without the batch;
            under "encoder_map", "decoder_map" and "cross_map" the shapes of the maps.
            A part without one shows none.
        num_layers: How many layers encoder and decoder have, each.
        norm_first: Whether a LayerNorm stands before each sublayer (pre-norm) or after
            its sum (post-norm).
        marked: Name in ``places`` of the part with a bold line round it.
        clickable: Names in ``places`` of the parts that a click names.
        words: Words instead of a part's own, by its name in ``PARTS``; "encoder" and
            "decoder" name the headings of the two columns.
        notes: At most four lines in the free corner under the memory.

    Raises:
        ValueError: If there is no such part, or too many layers.
    """
    require_int("num_layers", num_layers, 1, MOST_LAYERS)
    if marked is not None:
        require_choice("marked", marked, places(norm_first))
    said = {name: label for name, (_, label) in PARTS.items()} | dict(words or {})
    nodes: list[Node] = []
    edges: list[Edge] = []
    columns = {side: _places(side, said, norm_first) for side in _SUBLAYERS}
    for side, column in columns.items():
        nodes += _frame_of(side, column, said, num_layers)
        nodes += _nodes_of(side, column, shapes, marked, clickable)
        edges += _edges_of(side, column)
    nodes += _notes_under(columns["encoder"][-1], notes)
    return nodes, [*edges, _memory_edge(columns)]


def places(norm_first: bool) -> list[str]:
    """Return the names of all boxes and sums, in the order of the computation.

    Beside ``PARTS`` there are "norm of" and "sum of" a sublayer; "encoder_after" and
    "decoder_after", what leaves a layer: its last sum under pre-norm, its last norm
    under post-norm; and under pre-norm "decoder_last_norm". The encoder's last norm
    gives the memory and has no name of its own.
    """
    both = (_kinds(side, norm_first) for side in _SUBLAYERS)
    return [name for kinds in both for name in kinds if name not in _OPENS]


def shapes_of(source: Tensor, target_in: Tensor, seen: Explained) -> dict[str, Shape]:
    """Return the shape that leaves each part of a model, for ``stack_diagram``.

    Args:
        source: Token numbers, (B, S).
        target_in: Token numbers, (B, T).
        seen: What the explained path found for them.

    Returns:
        The names of ``PARTS`` and of the three maps; the batch is left out.
    """
    encoded, decoded = seen.encoder_states[0], seen.decoder_states[0]
    found = {
        "source": source,
        "source_embedded": seen.source_embedded,
        "encoder_attention": encoded,
        "encoder_feed_forward": encoded,
        "memory": seen.memory.states,
        "target": target_in,
        "target_embedded": seen.target_embedded,
        "decoder_attention": decoded,
        "cross_attention": decoded,
        "decoder_feed_forward": decoded,
        "linear": seen.logits,
        "softmax": seen.logits,
        "encoder_map": seen.encoder_maps[0],
        "decoder_map": seen.self_maps[0],
        "cross_map": seen.cross_maps[0],
    }
    return {name: tuple(value.shape[1:]) for name, value in found.items()}


def _kinds(side: str, norm_first: bool) -> dict[str, str]:
    """Return the names of the parts of a column from the top, and their kinds."""
    kinds = {name: PARTS[name][0] for name in _STARTS[side]}
    for part in _SUBLAYERS[side]:
        own, added = (part, PARTS[part][0]), (f"sum of {part}", "sum")
        norm = (f"norm of {part}", "norm")
        kinds |= [norm, own, added] if norm_first else [own, added, norm]
    kinds[f"{side}_after"] = kinds.popitem()[1]
    if norm_first:
        kinds[f"{side}_last_norm"] = "norm"
    return kinds | {name: PARTS[name][0] for name in _ENDS[side]}


def _places(side: str, said: Mapping[str, str], norm_first: bool) -> list[_Place]:
    """Return the parts of a column from the top."""
    kinds = _kinds(side, norm_first)
    names = list(kinds)
    first = names[2]
    after = names[2 + 3 * len(_SUBLAYERS[side])]
    found, top = [], 0.5
    for name, kind in kinds.items():
        top -= _FRAME_ROOM if name == first else _FRAME_END if name == after else 0
        room = _ROOMS.get(kind, 1.0)
        label = _label(name, kind, said)
        found.append(_Place(name, kind, label, top - room / 2, top))
        top -= room
    return found


def _label(name: str, kind: str, said: Mapping[str, str]) -> str:
    if name in PARTS:
        return said[name]
    if kind == "sum":
        return "+"
    return "last LayerNorm" if name.endswith("_last_norm") else "LayerNorm"


def _frame_of(
    side: str, column: list[_Place], said: Mapping[str, str], num_layers: int
) -> list[Node]:
    """Return the heading of a column and the frame round one of its layers."""
    left, right = _FRAMES[side]
    inside = column[2 : 2 + 3 * len(_SUBLAYERS[side])]
    after = column[2 + len(inside)]
    high, low = inside[0].top + 0.12, after.top + _FRAME_END
    times = "" if num_layers == 1 else f", × {num_layers}"
    middle, width = (left + right) / 2, right - left
    heading = said.get(side, side.capitalize())
    return [
        Node("heading", middle, 0.95, heading, width=width),
        Node(
            "frame", middle, (high + low) / 2, f"{side} layer{times}",
            width=width, height=high - low,
        ),
    ]  # fmt: skip


def _nodes_of(
    side: str,
    column: list[_Place],
    shapes: Mapping[str, Shape],
    marked: str | None,
    clickable: Collection[str],
) -> list[Node]:
    middle = _MIDDLES[side]
    nodes = []
    for place in column:
        width = _SUM_WIDTH if place.kind == "sum" else _WIDTH
        detail, words = _shape_text(place, shapes)
        label = place.label
        if place.name == "memory" and detail:  # its arrow leaves where a detail stands
            label, detail = f"{label} {detail}", ""
        opens = _OPENS.get(place.name, place.name)
        name = opens if opens in clickable else ""
        box = Node(place.kind, middle, place.y, label, "", words, width, _HEIGHT, name)
        nodes.append(box)
        if place.name == marked:
            mark = box._replace(kind="mark", label="", words="", name="")
            if place.kind == "sum":  # a line as wide as its room would cross the circle
                mark = mark._replace(width=_SUM_MARK[0], height=_SUM_MARK[1])
            nodes.append(mark)
        if detail:
            aside = middle + _WIDTH / 2 + _DETAIL_GAP[side]
            nodes.append(Node("heading", aside, place.y, "", detail, width=0.0))
    return nodes


def _notes_under(memory: _Place, notes: Sequence[str]) -> list[Node]:
    lines = [memory.y - _NOTE_GAP - row * _NOTE_ROOM for row in range(len(notes))]
    left = _FRAMES["encoder"][0]
    return [
        Node("heading", left, y, "", note, width=0.0)
        for y, note in zip(lines, notes, strict=True)
    ]


def _shape_text(place: _Place, shapes: Mapping[str, Shape]) -> tuple[str, str]:
    """Return the words beside a part and the sentence it says."""
    shape = shapes.get(place.name)
    if shape is None:
        return "", place.label if place.kind != "sum" else "the shortcut is added"
    detail = _written(shape)
    words = f"{place.label}: {detail} leaves it"
    weights = shapes.get(place.name.removesuffix("_attention") + "_map")
    if place.kind == "attention" and weights is not None:
        detail += f" · map {_written(weights)}"
        words += f"; its map of weights is {_written(weights)}: heads, queries, keys"
    return detail, words


def _written(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"


def _edges_of(side: str, column: list[_Place]) -> list[Edge]:
    """Return the arrows down a column and its shortcuts."""
    middle, aside = _MIDDLES[side], _MIDDLES[side] + _SHORTCUTS_AT[side]
    half = _HEIGHT / 2
    edges = [
        Edge(((middle, above.y - half), (middle, below.y + half)))
        for above, below in pairwise(column)
    ]
    touch = middle + (_SUM_WIDTH / 2 if aside > middle else -_SUM_WIDTH / 2)
    for before, place in pairwise(column):
        if place.kind != "sum":
            continue
        part = before.name
        leaves = max(p.top for p in column if p.name in (part, f"norm of {part}"))
        corners = ((middle, leaves), (aside, leaves), (aside, place.y))
        edges.append(Edge((*corners, (touch, place.y))))
    return edges


def _memory_edge(columns: Mapping[str, list[_Place]]) -> Edge:
    """Return the arrow from the memory to the keys and values of cross-attention."""
    heights = {p.name: p.y for column in columns.values() for p in column}
    start, end = heights["memory"], heights["cross_attention"]
    half = _WIDTH / 2
    return Edge(
        (
            (_MIDDLES["encoder"] + half, start),
            (_MEMORY_AT, start),
            (_MEMORY_AT, end),
            (_MIDDLES["decoder"] - half, end),
        )
    )
