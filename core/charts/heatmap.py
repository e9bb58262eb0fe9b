"""Heat maps: queries down, keys across, one cell a number."""

from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import (
    DARK_INK,
    DIVERGING_INK_CHANGES,
    LIGHT_INK,
    VIRIDIS_INK_CHANGE,
    palette,
)
from core.checks import require_choice, require_number


class MatrixKind(NamedTuple):
    """What the cells of a matrix are, and the words for them."""

    row: str  # column of the frame that runs down
    column: str  # column of the frame that runs across
    value: str  # column of the frame with the numbers
    row_title: str
    column_title: str
    value_title: str
    scheme: str  # "viridis" from 0, "purpleorange" about 0, or "allowed"
    words: str  # Vega expression: the tooltip of an ordinary cell


_PAIR = "query '\" + datum.query + \"', key '\" + datum.key + \"'"
_QUERY = ("query", "key")
_QUERY_TITLES = ("query (reads)", "key (is read)")

MATRIX_KINDS = {
    "weight": MatrixKind(
        *_QUERY, "weight", *_QUERY_TITLES, "weight", "viridis",
        "\"query '\" + datum.query + \"' gives \" + "
        + marks.number_text("(100 * datum.weight)", 1, whole=100)
        + " + \" % to key '\" + datum.key + \"'\"",
    ),
    "score": MatrixKind(
        *_QUERY, "score", *_QUERY_TITLES, "score", "purpleorange",
        f'"{_PAIR}: score " + format(datum.score, ".3f")',
    ),
    "allowed": MatrixKind(
        *_QUERY, "allowed", *_QUERY_TITLES, "may attend", "allowed",
        "\"query '\" + datum.query + \"' may read key '\" + datum.key + \"'\"",
    ),
    "similarity": MatrixKind(
        "position", "other", "similarity", "position", "position", "similarity",
        "purpleorange",
        '"positions " + datum.position + " and " + datum.other + ": similarity "'
        ' + format(datum.similarity, ".3f")',
    ),
    "encoding": MatrixKind(
        "position", "dimension", "value", "position", "dimension", "value",
        "purpleorange",
        '"position " + datum.position + ", dimension " + datum.dimension + ": "'
        ' + format(datum.value, ".4f")',
    ),
    "map": MatrixKind(
        "to", "source", "factor", "dimension after", "dimension before", "factor",
        "purpleorange",
        '"dimension " + datum.to + " takes " + format(datum.factor, "+.3f")'
        ' + " of dimension " + datum.source',
    ),
}  # fmt: skip

# Signs and numbers are left out where a cell is smaller than they are.
_SIZE = "min(bandwidth('x'), bandwidth('y'))"
_ROOM_FOR_NUMBER = "bandwidth('x') > 27 && bandwidth('y') > 13"
# A gap between cells of a few pixels would wash out their colours.
_GAP = "bandwidth('x') > 6 && bandwidth('y') > 6 ? 0.5 : 0"


def heatmap(
    frame: pd.DataFrame,
    *,
    kind: str = "weight",
    title: str = "Attention weights",
    limit: float = 1.0,
    show_values: bool = False,
    legend: bool = True,
    height: int = 380,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw a matrix: rows are queries, columns are keys, as in the tensor.

    Weights lie on viridis from 0 to ``limit``; what has a sign lies on a diverging
    scale from ``-limit`` to ``limit``. A masked cell is grey with a cross, a query
    without any key it may read is grey and says so, a cell that is not a number is
    grey and says NaN.

    Args:
        frame: From ``tidy.matrix_frame`` with the same ``kind``.
        kind: "weight", "score", "allowed", "similarity", "encoding" or "map".
        title: Title of the picture.
        limit: End of the colour scale.
        show_values: Whether each cell carries its number, where there is room for it.
        legend: Whether to draw the colour scale.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` is unknown or ``limit`` is not above 0.
    """
    require_choice("kind", kind, MATRIX_KINDS)
    require_number("limit", limit, 1e-12)
    what = MATRIX_KINDS[kind]
    x, y = cell_axes(what)
    drawn = [_cells(what, limit=limit, legend=legend, dark=dark).encode(x=x, y=y)]
    maskable = what.row == "query"
    if maskable or show_values:  # thousands of empty texts would slow a dense matrix
        signs = _signs(what, limit=limit, show_values=show_values, dark=dark)
        drawn.append(signs.encode(x=x, y=y))
    if maskable:
        drawn.append(_empty_rows(what, dark=dark).encode(y=y))
    return marks.layered(frame, *drawn, title=title, height=height, dark=dark)


def cell_axes(what: MatrixKind) -> tuple[alt.X, alt.Y]:
    """Return the axes of a matrix: a band for each column and for each row."""
    plain: dict[str, Any] = {"ticks": False, "domain": False}
    x, y = marks.axis(what.column_title, **plain), marks.axis(what.row_title, **plain)
    return (
        alt.X(f"{what.column}:N", sort=None, axis=x),
        alt.Y(f"{what.row}:N", sort=None, axis=y),
    )


def _cells(what: MatrixKind, *, limit: float, legend: bool, dark: bool) -> alt.Chart:
    colours = palette(dark)
    return (
        alt.Chart()
        .mark_rect(
            stroke=colours.background,
            strokeWidth={"expr": _GAP},
            invalid=None,
            tooltip={"expr": _tooltip(what)},
        )
        .encode(
            color=alt.when("datum.status !== 'allowed'")
            .then(alt.value(colours.masked))
            .otherwise(cell_colour(what, limit=limit, legend=legend, dark=dark))
        )
    )


def cell_colour(
    what: MatrixKind, *, limit: float, legend: bool = True, dark: bool
) -> Any:
    """Return the colour of a cell by its number, with the scale that explains it."""
    if what.scheme == "allowed":
        return alt.value(palette(dark).right)
    low = 0.0 if what.scheme == "viridis" else -limit
    scheme: Any = what.scheme
    return alt.Color(
        f"{what.value}:Q",
        scale=alt.Scale(scheme=scheme, domain=[low, limit], clamp=True),
        legend=alt.Legend(title=what.value_title, format=".3~g") if legend else None,
    )


def _tooltip(what: MatrixKind) -> str:
    row, column = f"datum.{what.row}", f"datum.{what.column}"
    masked = f'"masked: query \'" + {row} + "\' may not read key \'" + {column} + "\'"'
    nothing = f'"query \'" + {row} + "\' has nothing to attend to"'
    return (
        f"datum.status === 'allowed' ? {what.words}"
        f" : datum.status === 'masked' ? {masked}"
        f" : datum.status === 'nothing' ? {nothing} : 'NaN: not a number'"
    )


def _signs(
    what: MatrixKind, *, limit: float, show_values: bool, dark: bool
) -> alt.Chart:
    """Return the crosses of masked cells, and with them the numbers of the others."""
    masked, missing = "datum.status === 'masked'", "datum.status === 'missing'"
    sign = f"{_SIZE} <= 4 ? '' : {masked} ? '×' : 'NaN'"
    look: dict[str, Any] = {
        "tooltip": {"expr": _tooltip(what)},
        "fontSize": {"expr": f"clamp({missing} ? {_SIZE} / 2 : {_SIZE}, 4, 12)"},
    }
    mark = palette(dark).masked_mark
    if not show_values:
        crosses = alt.Chart().transform_filter(f"{masked} || {missing}")
        return crosses.mark_text(text={"expr": sign}, color=mark, **look)
    number = f"{_ROOM_FOR_NUMBER} ? {_number(what)} : ''"
    text = f"datum.status === 'allowed' ? {number} : {sign}"
    ink = (
        f"datum.status === 'allowed' ? {_ink(what, limit=limit, dark=dark)} : '{mark}'"
    )
    numbered = alt.Chart().transform_filter("datum.status !== 'nothing'")
    return numbered.mark_text(text={"expr": text}, color={"expr": ink}, **look)


def _number(what: MatrixKind) -> str:
    """Return the expression of the number on a cell; a share never rounds to 0 or 1."""
    if what.value == "weight":
        return marks.number_text("datum.weight", 2)
    digits = 0 if what.scheme == "allowed" else 2
    return f"format(datum.{what.value}, '.{digits}f')"


def _ink(what: MatrixKind, *, limit: float, dark: bool) -> str:
    """Return the expression that picks the ink that can be read on a cell."""
    value = f"datum.{what.value}"
    if what.scheme == "allowed":
        return f"'{DARK_INK if dark else LIGHT_INK}'"
    if what.scheme == "viridis":
        on_dark = f"{value} < {VIRIDIS_INK_CHANGE * limit:g}"
    else:
        low, high = (change * limit for change in DIVERGING_INK_CHANGES)
        on_dark = f"{value} < {low:g} || {value} > {high:g}"
    return f"({on_dark}) ? '{LIGHT_INK}' : '{DARK_INK}'"


def _empty_rows(what: MatrixKind, *, dark: bool) -> alt.Chart:
    return (
        alt.Chart()
        .transform_filter("datum.status === 'nothing'")
        .transform_aggregate(cells="count()", groupby=[what.row])
        .mark_text(
            text="nothing to attend to",
            fontStyle="italic",
            fontSize=12,
            color=palette(dark).text,
        )
        .encode(x=alt.value({"expr": "width / 2"}))
    )
