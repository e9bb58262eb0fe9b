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
_CHANGE = (
    "(datum.change === 0 ? 'does not change at all'"
    " : 'changes by ' + format(datum.change, '+.3~g'))"
)

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
    "vector": MatrixKind(
        "token", "dimension", "value", "token", "dimension", "value", "purpleorange",
        "\"'\" + datum.token + \"', dimension \" + datum.dimension + ': '"
        " + format(datum.value, '.4~f')",
    ),
    "projection": MatrixKind(
        "source", "to", "factor", "dimension of x", "dimension", "factor",
        "purpleorange",
        '"dimension " + datum.source + " of x counts " + format(datum.factor, "+.1f")'
        ' + " times in dimension " + datum.to',
    ),
    "change": MatrixKind(
        *_QUERY, "change", *_QUERY_TITLES, "change", "purpleorange",
        f'"{_PAIR}: the weight " + {_CHANGE}',
    ),
    "influence": MatrixKind(
        *_QUERY, "distance", "query (reads)", "key (hidden)", "distance",
        "purpleorange",
        "\"without key '\" + datum.key + \"' the output of query '\" + datum.query"
        " + \"' moves by \" + format(datum.distance, '.3f')",
    ),
    "output change": MatrixKind(
        "query", "dimension", "change", "query (reads)", "dimension", "change",
        "purpleorange",
        "\"output of '\" + datum.query + \"', dimension \" + datum.dimension + ' '"
        f" + {_CHANGE}",
    ),
    "probability": MatrixKind(
        "fed", "token", "probability", "token fed", "next token", "probability",
        "viridis",
        "\"after '\" + datum.fed + \"': \" + "
        + marks.number_text("(100 * datum.probability)", 1, whole=100)
        + " + \" % on '\" + datum.token + \"'\"",
    ),
    "logit": MatrixKind(
        "fed", "token", "logit", "token fed", "next token", "logit", "purpleorange",
        "\"after '\" + datum.fed + \"': logit of '\" + datum.token + \"' is \""
        " + format(datum.logit, '+.3f')",
    ),
    "lookup": MatrixKind(
        "lookup", "key", "weight", "lookup", "key (is read)", "weight", "viridis",
        "datum.lookup + \" lookup gives \" + "
        + marks.number_text("(100 * datum.weight)", 1, whole=100)
        + " + \" % to key '\" + datum.key + \"'\"",
    ),
}  # fmt: skip

# Signs and numbers are left out where a cell is smaller than they are.
_SIZE = "min(bandwidth('x'), bandwidth('y'))"
_ROOM_FOR_NUMBER = "bandwidth('x') > 27 && bandwidth('y') > 13"
# A gap between cells of a few pixels would wash out their colours.
_GAP = "bandwidth('x') > 6 && bandwidth('y') > 6 ? 0.5 : 0"
_COLUMN = "max(bandwidth('x') - 3, 8)"  # room of a column's label
_SIZES = {  # of labels: "<pad>" must fit over a narrow column
    "condition": {"test": "datum.label.length > 2", "value": 8.5},
    "value": 12,
}
ROLES = ("", "query", "key", "value")  # whose colour a title can have


def heatmap(
    frame: pd.DataFrame,
    *,
    kind: str = "weight",
    title: str = "Attention weights",
    limit: float = 1.0,
    show_values: bool = False,
    digits: int = 2,
    legend: bool = True,
    role: str = "",
    row_title: str | None = None,
    framed: bool = False,
    narrow: bool = False,
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
        kind: What the cells are, a name in ``MATRIX_KINDS``.
        title: Title of the picture.
        limit: End of the colour scale.
        show_values: Whether each cell carries its number, where there is room for it.
        digits: Decimals of the numbers on the cells.
        legend: Whether to draw the colour scale.
        role: "query", "key" or "value" gives the title the colour of that role.
        row_title: Title of the rows, where it is not that of the kind.
        framed: Whether the frame has the column ``marked``; such cells get a frame.
        narrow: Whether columns are many and few labels are longer than two letters;
            the long ones are written small, so that all have room.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` or ``role`` is unknown or ``limit`` is not above 0.
    """
    require_choice("kind", kind, MATRIX_KINDS)
    require_choice("role", role, ROLES)
    require_number("limit", limit, 1e-12)
    what = MATRIX_KINDS[kind]
    what = what._replace(row_title=row_title or what.row_title)
    x, y = cell_axes(what, every_label=show_values, narrow=narrow)
    drawn = [_cells(what, limit=limit, legend=legend, dark=dark).encode(x=x, y=y)]
    maskable = what.row == "query"
    if maskable or show_values:  # thousands of empty texts would slow a dense matrix
        number = _number(what, digits) if show_values else ""
        signs = _signs(what, number, limit=limit, dark=dark)
        drawn.append(signs.encode(x=x, y=y))
    if maskable:
        drawn.append(_empty_rows(what, dark=dark).encode(y=y))
    if framed:
        drawn += [layer.encode(x=x, y=y) for layer in _frames(dark=dark)]
    chart = marks.layered(frame, *drawn, title=title, height=height, dark=dark)
    if role:
        chart.title.color = getattr(palette(dark), role)
    return chart


def cell_axes(
    what: MatrixKind, *, every_label: bool = False, narrow: bool = False
) -> tuple[alt.X, alt.Y]:
    """Return the axes of a matrix: a band for each column and for each row.

    With ``every_label`` a column's label is cut where it is wider than the column; else
    every other label is left out where they would overlap. With ``narrow`` long labels
    are written small.
    """
    plain: dict[str, Any] = {"ticks": False, "domain": False}
    fitted: dict[str, Any] = {"labelOverlap": False, "labelLimit": {"expr": _COLUMN}}
    options = fitted if every_label else {}
    if narrow:
        options = {**options, "labelFontSize": _SIZES}
    x = marks.axis(what.column_title, **plain, **options)
    y = marks.axis(what.row_title, **plain)
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


def _signs(what: MatrixKind, number: str, *, limit: float, dark: bool) -> alt.Chart:
    """Return the crosses of masked cells, and the numbers of the others if any."""
    masked, missing = "datum.status === 'masked'", "datum.status === 'missing'"
    sign = f"{_SIZE} <= 4 ? '' : {masked} ? '×' : 'NaN'"
    room = f"min({_SIZE}, bandwidth('x') / 3)" if number else _SIZE
    look: dict[str, Any] = {
        "tooltip": {"expr": _tooltip(what)},
        "fontSize": {"expr": f"clamp({missing} ? {_SIZE} / 2 : {room}, 4, 12)"},
    }
    mark = palette(dark).masked_mark
    if not number:
        crosses = alt.Chart().transform_filter(f"{masked} || {missing}")
        return crosses.mark_text(text={"expr": sign}, color=mark, **look)
    shown = f"{_ROOM_FOR_NUMBER} ? {number} : ''"
    text = f"datum.status === 'allowed' ? {shown} : {sign}"
    ink = (
        f"datum.status === 'allowed' ? {_ink(what, limit=limit, dark=dark)} : '{mark}'"
    )
    numbered = alt.Chart().transform_filter("datum.status !== 'nothing'")
    return numbered.mark_text(text={"expr": text}, color={"expr": ink}, **look)


def _frames(*, dark: bool) -> list[alt.Chart]:
    """Return frames round the marked cells, legible on any colour."""
    shown = palette(dark)
    marked = alt.Chart().transform_filter("datum.marked")
    strokes = ((shown.background, 4), (shown.text, 2))
    return [
        marked.mark_rect(filled=False, stroke=colour, strokeWidth=width)
        for colour, width in strokes
    ]


def _number(what: MatrixKind, digits: int) -> str:
    """Return the expression of the number on a cell; a share never rounds to 0 or 1.

    A change of exactly 0 is "0"; one that would round to it is "<.01" or ">−.01".
    """
    if what.value == "weight":
        return marks.number_text("datum.weight", digits)
    if what.value == "change":
        step = f"{10.0**-digits:.{digits}f}".removeprefix("0")
        tiny = f"abs(datum.change) < {10.0**-digits / 2:g}"
        return (
            f"datum.change === 0 ? '0' : {tiny}"
            f" ? (datum.change > 0 ? '<{step}' : '>−{step}')"
            f" : format(datum.change, '+.{digits}f')"
        )
    digits = 0 if what.scheme == "allowed" else digits
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
