"""The row of one query in every layer and head: small curves, panel by panel."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from core.charts import marks
from core.charts.palette import nice_limit, palette
from core.checks import RefusedError, require_int

_PER_LINE = 9  # panels; more would have keys of less than a pixel
_ROOMY = 5  # panels in a line that have room for their whole names
_GAP = 0.12  # between two panels, as a share of a panel
_RISE = 1.45  # from one line of panels to the next; a panel is 1 high
_TOP = "datum.floor + datum.weight / datum.limit"  # where a weight is drawn
_MARGIN = 0.08  # left of the panels, for the ends of their scales, as a share


class Panels(NamedTuple):
    """Rows laid out as panels, and the room that they take.

    Attributes:
        frame: One row a key, for ``row_panels``.
        across: Width of all panels, in keys.
        down: Lines of panels.
    """

    frame: pd.DataFrame
    across: float
    down: int


def panels_frame(
    panels: Sequence[Sequence[tuple[str, np.ndarray]]],
    keys: Sequence[str],
    *,
    marker: int,
    chosen: str = "",
) -> Panels:
    """Return one row a panel and key, for ``row_panels``.

    Args:
        panels: A list a layer: names of its panels, and their weights, (S,).
        keys: S names of the keys, as in a sentence.
        marker: Which of the keys is the marker.
        chosen: Name of the panel with an arrow; "" for none.

    Returns:
        A frame with the columns ``panel, caption, key, weight, limit, left, floor,
        role, first, chosen``; a layer of many panels takes several lines. ``caption``
        is the name as there is room for it, ``limit`` the end of the layer's own scale,
        a round number.

    Raises:
        ValueError: If a row has more or fewer weights than there are keys.
    """
    size = len(keys)
    pitch = size + max(2.0, _GAP * size)
    places, rows, line = [], [], 0
    for layer in panels:
        limit = nice_limit(max(float(weights.max()) for _, weights in layer))
        for number, (name, weights) in enumerate(layer):
            _require_fit(name, weights, size)
            floor = -_RISE * (line + number // _PER_LINE)
            caption = name if len(layer) <= _ROOMY else _short(name)
            left = pitch * (number % _PER_LINE)
            places.append((name, caption, limit, floor, left))
            rows.append(weights)
        line += -(-len(layer) // _PER_LINE)
    widest = max(min(len(layer), _PER_LINE) for layer in panels)
    frame = _frame(places, np.concatenate(rows), keys, marker=marker, chosen=chosen)
    return Panels(frame, pitch * widest, line)


def row_panels(
    frame: pd.DataFrame,
    *,
    across: float,
    down: int,
    num_keys: int,
    title: str = "What the readout reads, in every layer and head",
    height: int = 380,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw one panel a head: a curve over the keys, the marker in its colour.

    The panels of a layer share one scale, whose end stands beside the first; the dashed
    line in each is the same weight for every key, 1 / S.

    Args:
        frame: From ``panels_frame``.
        across: Width of all panels, as found there.
        down: Lines of panels, as found there.
        num_keys: S, the points of a curve.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If a number of places is below 1.
    """
    lowest = _RISE * (require_int("down", down, 1) - 1)
    keys = require_int("num_keys", num_keys, 1)
    x = _bare(
        "left", (-_MARGIN * across, across), f"key (is read), {keys} in each panel"
    )
    ends = (-lowest - 0.05, _RISE)
    floor, even, name, top = (
        _bare(field, ends, "weight, each layer on its own scale")
        for field in ("floor", "even", "name_at", "ceiling")
    )
    first = alt.Chart().transform_filter("datum.first")
    layers = [
        _curve(dark=dark).encode(x=x, y=floor),
        _stems(dark=dark).encode(x=x, y=floor),
        _line(first, keys, [1, 0], dark=dark).encode(x=x, y=floor),
        _line(
            first.transform_calculate(even=f"datum.floor + {1 / keys:g} / datum.limit"),
            keys,
            [3, 3],
            dark=dark,
        ).encode(x=x, y=even),
        _names(first, dark=dark).encode(x=x, y=name),
        _ends(first, "'0'", dark=dark).encode(x=x, y=floor),
        _ends(first, "format(datum.limit, '~g')", dark=dark).encode(x=x, y=top),
    ]
    return marks.layered(frame, *layers, title=title, height=height, dark=dark)


def _bare(field: str, ends: tuple[float, float], title: str) -> Any:
    """Return places along one axis that has a title and nothing else."""
    channel = alt.X if field == "left" else alt.Y
    return channel(
        f"{field}:Q",
        scale=marks.number_scale(ends),
        axis=marks.axis(title, labels=False, ticks=False, domain=False, grid=False),
    )


def _frame(
    places: list[tuple[str, str, float, float, float]],
    weights: np.ndarray,
    keys: Sequence[str],
    *,
    marker: int,
    chosen: str,
) -> pd.DataFrame:
    names, captions, limits, floors, lefts = map(np.array, zip(*places, strict=True))
    counted = np.tile(np.arange(len(keys)), len(places))
    roles = np.where(counted == marker, "marker", "key")
    return pd.DataFrame(
        {
            "panel": np.repeat(names.astype(object), len(keys)),
            "caption": np.repeat(captions.astype(object), len(keys)),
            "key": np.tile(np.array(list(keys), dtype=object), len(places)),
            "weight": weights.astype(np.float64),
            "limit": np.repeat(limits, len(keys)),
            "left": np.repeat(lefts, len(keys)) + counted,
            "floor": np.repeat(floors, len(keys)),
            "role": roles.astype(object),
            "first": counted == 0,
            "chosen": np.repeat(names == chosen, len(keys)),
        }
    )


def _short(name: str) -> str:
    """Return "L1, head 2" for "Layer 1, head 2", and "L1, mean" for a mean of heads."""
    return name.replace("Layer ", "L").partition(" of ")[0]


def _require_fit(name: str, weights: np.ndarray, size: int) -> None:
    if weights.shape != (size,):
        raise RefusedError(
            f"{name} {weights.shape} must be one weight for each of {size} keys"
        )


def _stems(*, dark: bool) -> alt.Chart:
    """Return a stem a key, to be pointed at; only that of the marker is seen."""
    shown = palette(dark)
    number = marks.number_text("(100 * datum.weight)", 1, whole=100)
    words = f"datum.panel + ' gives ' + {number} + ' % to ' + datum.key"
    words += " + (datum.role === 'marker' ? ', the marker' : '')"
    rows = alt.Chart().transform_calculate(right="datum.left + 0.85", top=_TOP)
    colour = marks.named_colours(
        "role",
        ("key", "marker"),
        colours=(shown.query, shown.key),
        symbol="square",
        dark=dark,
    )
    seen = {"expr": "datum.role === 'marker' ? 1 : 0"}
    return rows.mark_rect(tooltip={"expr": words}, opacity=seen).encode(
        x2=alt.X2("right:Q"), y2=alt.Y2("top:Q"), color=colour
    )


def _curve(*, dark: bool) -> alt.Chart:
    """Return the weights of a panel as a line through the middles of its keys."""
    rows = alt.Chart().transform_calculate(floor=_TOP, left="datum.left + 0.425")
    line = rows.mark_line(color=palette(dark).query, strokeWidth=1.5)
    return line.encode(detail="panel:N")


def _line(rows: alt.Chart, keys: int, dash: list[int], *, dark: bool) -> alt.Chart:
    """Return a line as wide as a panel."""
    rows = rows.transform_calculate(right=f"datum.left + {keys}")
    colour = palette(dark).reference
    return rows.mark_rule(color=colour, strokeWidth=1.5, strokeDash=dash).encode(
        x2=alt.X2("right:Q")
    )


def _ends(rows: alt.Chart, words: str, *, dark: bool) -> alt.Chart:
    """Return one end of the scale, beside the first panel of each line."""
    rows = rows.transform_filter("datum.left === 0")
    return rows.transform_calculate(ceiling="datum.floor + 1").mark_text(
        text={"expr": words},
        align="right",
        baseline="middle",
        dx=-6,
        fontSize=12,
        color=palette(dark).text,
    )


def _names(rows: alt.Chart, *, dark: bool) -> alt.Chart:
    return rows.transform_calculate(name_at="datum.floor + 1.06").mark_text(
        text={"expr": "datum.chosen ? '▸ ' + datum.caption : datum.caption"},
        fontWeight={"expr": "datum.chosen ? 'bold' : 'normal'"},
        align="left",
        baseline="bottom",
        fontSize=13,
        color=palette(dark).text,
    )
