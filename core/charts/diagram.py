"""Diagrams: boxes and arrows, with what is known at each point beside the box.

A diagram is a list of nodes and edges on a plane of its own units. Its chart knows
nothing of what they stand for, so any model that is made of parts can be drawn with it.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from core.charts import marks
from core.charts.palette import Palette, palette
from core.checks import RefusedError

NODE_KINDS = (
    "tokens", "memory", "norm", "attention", "feed_forward", "output",
    "sum", "frame", "heading", "mark",
)  # fmt: skip
_TEXTS = ("role", "kind", "label", "detail", "words", "path", "name")
_NUMBERS = ("x", "y", "left", "right", "low", "high", "order", "angle")
_SIZE_OF_SUM, _SIZE_OF_HEAD = 520, 320  # square pixels
_ARROW = "M0,-0.1L0.45,0.9L-0.45,0.9Z"  # its tip at the end of the line
_IS_FRAME, _IS_SUM = "datum.kind === 'frame'", "datum.kind === 'sum'"
_IS_BOX = "indexof(['frame', 'heading', 'sum', 'mark'], datum.kind) < 0"
_SAYS: Any = {"expr": "datum.words"}
CLICKED = "clicked"  # the selection that holds the names of clicked nodes


class Node(NamedTuple):
    """One part of a diagram.

    Attributes:
        kind: A name in ``NODE_KINDS``. A "sum" is a circle; a "frame" stands round
            other nodes, its label above its left end; a "heading" is words alone; a
            "mark" is a bold line round another node.
        x: Its middle, in units of the x domain.
        y: Its middle, in units of the y domain; upwards.
        label: Words in it.
        detail: Words on its right, such as a shape.
        words: The sentence it says when it is pointed at.
        width: Its width in units of the x domain.
        height: Its height in units of the y domain.
        name: What a click on it says; one without a name cannot be clicked.
    """

    kind: str
    x: float
    y: float
    label: str
    detail: str = ""
    words: str = ""
    width: float = 1.0
    height: float = 1.0
    name: str = ""


class Edge(NamedTuple):
    """A line through points, with an arrow head at its last one if wanted."""

    points: tuple[tuple[float, float], ...]
    arrow: bool = True


def diagram_frame(nodes: Sequence[Node], edges: Sequence[Edge]) -> pd.DataFrame:
    """Return one row a node, a point of an edge and an arrow head, for ``diagram``.

    Args:
        nodes: The parts.
        edges: The lines between them.

    Returns:
        A frame with the columns ``role, kind, label, detail, words, path, x, y, left,
        right, low, high, order, angle``, and ``name`` where a node has one; ``role``
        is "node", "line" or "head".

    Raises:
        ValueError: If an edge has fewer than two points.
    """
    rows = [_row_of(node) for node in nodes]
    for path, edge in enumerate(edges):
        if len(edge.points) < 2:
            raise RefusedError(f"edges[{path}] needs 2 points, got {len(edge.points)}")
        rows += [
            {"role": "line", "x": x, "y": y, "path": str(path), "order": order}
            for order, (x, y) in enumerate(edge.points)
        ]
        if edge.arrow:
            rows.append({"role": "head", **_head(*edge.points[-2:])})
    texts = {name: [row.get(name, "") for row in rows] for name in _TEXTS}
    if not any(texts["name"]):
        del texts["name"]
    numbers = {
        name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64)
        for name in _NUMBERS
    }
    # Series of objects: finding out that all are texts takes longer than the rest.
    columns = {name: pd.Series(found, dtype=object) for name, found in texts.items()}
    return pd.DataFrame({**columns, **numbers})


def diagram(
    frame: pd.DataFrame,
    *,
    x_domain: tuple[float, float],
    y_domain: tuple[float, float],
    title: str = "Diagram",
    height: int = 480,
    clickable: bool = False,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw boxes, arrows and the words at them; it has no axes.

    Args:
        frame: From ``diagram_frame``.
        x_domain: Ends of the plane from left to right.
        y_domain: Ends of the plane from bottom to top.
        title: Title of the picture.
        height: Height in pixels, title counted in.
        clickable: Whether a click on a node with a name puts it into the selection
            ``CLICKED``, or takes it out where it is in.
        dark: Whether the theme is dark.
    """
    shown, plane = palette(dark), _Plane(x_domain, y_domain)
    dashed: dict[str, Any] = {"strokeDash": marks.DASHES, "fillOpacity": 0}
    return marks.layered(
        frame,
        _boxes(_IS_FRAME, shown, plane, strokeWidth=1.2, **dashed),
        _lines(shown, plane),
        _heads(shown, plane),
        # What lies below a box would shine through it.
        _boxes(_IS_BOX, shown, plane, fill=shown.background),
        _boxes(_IS_BOX, shown, plane, fillOpacity=0.2, strokeWidth=1.8, tooltip=_SAYS),
        *_sums(shown, plane),
        _boxes("datum.kind === 'mark'", shown, plane, strokeWidth=3.5, fillOpacity=0),
        *_texts(shown, plane),
        *([_clickable(plane)] if clickable else []),
        title=title,
        height=height,
        dark=dark,
    )


class _Plane(NamedTuple):
    """The scales of the plane, in which every layer places its marks."""

    x_domain: tuple[float, float]
    y_domain: tuple[float, float]

    def x(self, field: str = "x") -> alt.X:
        scale = marks.number_scale(self.x_domain)
        return alt.X(f"{field}:Q", scale=scale, axis=None)

    def y(self, field: str = "y") -> alt.Y:
        scale = marks.number_scale(self.y_domain)
        return alt.Y(f"{field}:Q", scale=scale, axis=None)


def _row_of(node: Node) -> dict[str, Any]:
    half_width, half_height = node.width / 2, node.height / 2
    return node._asdict() | {
        "role": "node",
        "left": node.x - half_width,
        "right": node.x + half_width,
        "low": node.y - half_height,
        "high": node.y + half_height,
    }


def _head(before: tuple[float, float], tip: tuple[float, float]) -> dict[str, float]:
    """Return place and angle of an arrow head; 0 points up, 90 to the right."""
    turn = math.degrees(math.atan2(tip[0] - before[0], tip[1] - before[1]))
    return {"x": tip[0], "y": tip[1], "angle": turn % 360}


def _colours(shown: Palette) -> alt.Scale:
    named = {
        "tokens": shown.reference,
        "memory": shown.key,
        "norm": shown.series[4],
        "attention": shown.series[0],
        "feed_forward": shown.series[2],
        "output": shown.series[5],
        "sum": shown.text,
        "frame": shown.reference,
        "heading": shown.text,
        "mark": shown.text,
    }
    return alt.Scale(domain=list(named), range=list(named.values()))


def _nodes(which: str) -> alt.Chart:
    return alt.Chart().transform_filter(f"datum.role === 'node' && {which}")


def _boxes(which: str, shown: Palette, plane: _Plane, **look: Any) -> alt.Chart:
    box = _nodes(which).mark_rect(cornerRadius=5, **look)
    ends = {
        "x": plane.x("left"),
        "x2": alt.X2("right:Q"),
        "y": plane.y("low"),
        "y2": alt.Y2("high:Q"),
    }
    if "fill" in look:
        return box.encode(**ends)
    colours = _colours(shown)
    return box.encode(
        fill=alt.Fill("kind:N", scale=colours, legend=None),
        stroke=alt.Stroke("kind:N", scale=colours, legend=None),
        **ends,
    )


def _clickable(plane: _Plane) -> alt.Chart:
    """Return a layer over all others that only takes the clicks."""
    look: dict[str, Any] = {"fill": "transparent", "fillOpacity": 0, "tooltip": _SAYS}
    nodes = alt.Chart(name="nodes").transform_filter("datum.name !== ''")
    boxes = nodes.mark_rect(cursor="pointer", **look).encode(
        x=plane.x("left"),
        x2=alt.X2("right:Q"),
        y=plane.y("low"),
        y2=alt.Y2("high:Q"),
    )
    # The second click of a double click would undo the first.
    once: Any = "click[event.detail < 2]"
    return boxes.add_params(
        alt.selection_point(
            name=CLICKED, fields=["name"], on=once, toggle="true", clear=False
        )
    )


def _lines(shown: Palette, plane: _Plane) -> alt.Chart:
    lines = marks.rows_where("role", "line").mark_line(
        strokeWidth=2, color=shown.reference, strokeJoin="round"
    )
    return lines.encode(
        x=plane.x(), y=plane.y(), detail="path:N", order=alt.Order("order:Q")
    )


def _heads(shown: Palette, plane: _Plane) -> alt.Chart:
    heads = marks.rows_where("role", "head").mark_point(
        shape=_ARROW, size=_SIZE_OF_HEAD, filled=True, opacity=1, color=shown.reference
    )
    return heads.encode(
        x=plane.x(), y=plane.y(), angle=alt.Angle("angle:Q", scale=None)
    )


def _sums(shown: Palette, plane: _Plane) -> list[alt.Chart]:
    sums = _nodes(_IS_SUM)
    circle = sums.mark_point(
        shape="circle", size=_SIZE_OF_SUM, filled=True, opacity=1, tooltip=_SAYS,
        fill=shown.background, stroke=shown.text, strokeWidth=1.8,
    )  # fmt: skip
    return [circle.encode(x=plane.x(), y=plane.y())]


def _texts(shown: Palette, plane: _Plane) -> list[alt.Chart]:
    words: dict[str, Any] = {"text": {"expr": "datum.label"}, "color": shown.text}
    in_the_middle, at_the_top = _nodes(f"({_IS_BOX} || {_IS_SUM})"), _nodes(_IS_FRAME)
    details = _nodes("datum.detail !== ''")
    return [
        in_the_middle.mark_text(fontSize=14, tooltip=_SAYS, **words).encode(
            x=plane.x(), y=plane.y()
        ),
        _nodes("datum.kind === 'heading'")
        .mark_text(fontSize=15, fontWeight="bold", align="left", **words)
        .encode(x=plane.x("left"), y=plane.y()),
        at_the_top.mark_text(
            fontSize=13, align="left", baseline="bottom", dx=2, dy=-4, **words
        ).encode(x=plane.x("left"), y=plane.y("high")),
        details.mark_text(
            text={"expr": "datum.detail"}, fontSize=13, align="left", dx=10,
            color=shown.text,
        ).encode(x=plane.x("right"), y=plane.y()),
    ]  # fmt: skip
