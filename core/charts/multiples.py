"""Small multiples: many matrices in one picture, on one colour scale."""

from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.heatmap import MATRIX_KINDS, MatrixKind, cell_colour
from core.charts.palette import palette
from core.checks import require_choice, require_int, require_number

# A gap between cells of a few pixels would wash out their colours.
_GAP = "bandwidth('x') > 6 && bandwidth('y') > 6 ? 0.5 : 0"

_LABEL_WIDTH = 80  # pixels


def multiples(
    frame: pd.DataFrame,
    *,
    kind: str = "weight",
    across: int,
    down: int,
    title: str = "Attention weights of every head",
    limit: float = 1.0,
    legend: bool = True,
    row_labels: bool = False,
    height: int = 430,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw several matrices as tiles, rows queries and columns keys in each.

    Every tile has its name above it, the chosen one an arrow before its name. One
    colour scale serves all of them, so that equal colours are equal numbers.

    Args:
        frame: From ``tiles.multiples_frame`` with the same ``kind``.
        kind: What the cells are, as for ``heatmap``, but no mask.
        across: Places for cells from left to right, gaps counted in.
        down: Places for cells from top to bottom, names counted in.
        title: Title of the picture.
        limit: End of the colour scale.
        legend: Whether to draw the colour scale.
        row_labels: Whether the rows of the first tile on each line have their labels.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` is unknown, a number of places is below 1 or ``limit``
            is not above 0.
    """
    require_choice("kind", kind, [k for k in MATRIX_KINDS if k != "allowed"])
    require_number("limit", limit, 1e-12)
    what = MATRIX_KINDS[kind]
    where = ", in each map" if what.row == "query" else ""
    x = alt.X("across:N", **_places("across", across, what.column_title + where))
    padding = {"titlePadding": _LABEL_WIDTH} if row_labels else {}
    y = alt.Y("down:N", **_places("down", down, what.row_title + where, **padding))
    layers = [
        _cells(what, limit=limit, legend=legend, dark=dark),
        _crosses(what, dark=dark),
        _names(dark=dark),
    ]
    if row_labels:
        layers.append(_row_labels(what, dark=dark))
    return marks.layered(
        frame,
        *(layer.encode(x=x, y=y) for layer in layers),
        title=title,
        height=height,
        dark=dark,
    )


def _places(name: str, count: int, title: str, **options: Any) -> dict[str, Any]:
    """Return a band for each place, under one title: places have no labels."""
    places = list(range(require_int(name, count, 1)))
    bare: dict[str, Any] = {"labels": False, "ticks": False, "domain": False}
    return {
        "scale": alt.Scale(domain=places, padding=0),
        "axis": marks.axis(title, **bare, **options),
    }


def _cells(what: MatrixKind, *, limit: float, legend: bool, dark: bool) -> alt.Chart:
    shown = palette(dark)
    return (
        alt.Chart()
        .mark_rect(
            stroke=shown.background,
            strokeWidth={"expr": _GAP},
            invalid=None,
            tooltip={"expr": _tooltip(what)},
        )
        .encode(
            color=alt.when("datum.status !== 'allowed'")
            .then(alt.value(shown.masked))
            .otherwise(cell_colour(what, limit=limit, legend=legend, dark=dark))
        )
    )


def _crosses(what: MatrixKind, *, dark: bool) -> alt.Chart:
    size = "min(bandwidth('x'), bandwidth('y'))"
    look: dict[str, Any] = {
        "text": {"expr": f"{size} > 4 ? '×' : ''"},
        "fontSize": {"expr": f"clamp({size}, 4, 12)"},
        "tooltip": {"expr": _tooltip(what)},
    }
    hidden = alt.Chart().transform_filter("datum.status !== 'allowed'")
    return hidden.mark_text(color=palette(dark).masked_mark, **look)


def _names(*, dark: bool) -> alt.Chart:
    first = alt.Chart().transform_filter("datum.first")
    return first.mark_text(
        text={"expr": "datum.chosen ? '▸ ' + datum.tile : datum.tile"},
        fontWeight={"expr": "datum.chosen ? 'bold' : 'normal'"},
        align="left",
        baseline="bottom",
        dx={"expr": "-bandwidth('x') / 2"},
        dy={"expr": "-bandwidth('y') / 2 - 3"},
        fontSize=13,
        color=palette(dark).text,
    )


def _row_labels(what: MatrixKind, *, dark: bool) -> alt.Chart:
    """Return the labels of the rows, left of the first column of cells."""
    first = alt.Chart().transform_filter("datum.across === 0")
    return first.mark_text(
        text={"expr": f"datum.{what.row}"},
        align="right",
        dx={"expr": "-bandwidth('x') / 2 - 6"},
        limit=_LABEL_WIDTH - 6,
        fontSize={"expr": "clamp(bandwidth('y'), 6, 13)"},
        color=palette(dark).text,
    )


def _tooltip(what: MatrixKind) -> str:
    pair = f"datum.{what.row} + ' and ' + datum.{what.column}"
    other = f"datum.status + ': ' + {pair}"
    return f"datum.tile + ': ' + (datum.status === 'allowed' ? {what.words} : {other})"
