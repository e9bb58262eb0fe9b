"""Marks, axes and legends that several charts share.

Every mark of a chart reads the one frame the chart is given. A reference line carries
its number in the spec and folds the frame to a single row first, so that it is drawn
once however many rows there are, and also when there are none yet.
"""

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from core.charts.palette import palette

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = [6, 4]
_MARGIN = 8  # round a saved picture, in pixels
SOLID = [1, 0]


def layered(
    frame: pd.DataFrame, *layers: alt.Chart, title: str, height: int, dark: bool
) -> alt.LayerChart:
    """Return one chart of layers that all read ``frame``, as wide as its column.

    The height counts title, axes and legend in, so a place of that size can be kept
    free for the picture before it is drawn.
    """
    chart: alt.LayerChart = alt.LayerChart(data=frame, layer=list(layers))
    return chart.properties(
        title=alt.Title(title, anchor="start", fontSize=15, offset=12),
        width="container",
        height=height,
        padding=dict.fromkeys(("left", "top", "right", "bottom"), _MARGIN),
        autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        config=_config(dark),
    )


def rows_where(field: str, value: str) -> alt.Chart:
    """Return a layer of the rows whose ``field`` is ``value``."""
    return alt.Chart().transform_filter(f"datum.{field} === '{value}'")


def axis(title: str, **options: Any) -> alt.Axis:
    """Return an axis with a title and horizontal labels that never overlap."""
    settings: dict[str, Any] = {
        "labelAngle": 0,
        "labelOverlap": "parity",
        "labelLimit": 120,
    }
    return alt.Axis(title=title, **(settings | options))


def number_axis(
    title: str,
    ends: tuple[float, float],
    *,
    log: bool = False,
    zero: bool = False,
    **options: Any,
) -> alt.Axis:
    """Return an axis of numbers; a logarithmic one has a tick a power of ten.

    With ``zero`` the first end of a logarithmic axis stands for 0, which has no power,
    and the powers begin two above it.
    """
    if not log:
        return axis(title, **options)
    low, high = (math.log10(end) for end in ends)
    first = math.ceil(low - 1e-9) + (2 if zero else 0)
    ticks = [10.0**power for power in range(first, math.floor(high + 1e-9) + 1)]
    short = "datum.value < 0.001 || datum.value >= 100000"
    words = f"{short} ? format(datum.value, '.0e') : format(datum.value, '~r')"
    if zero:
        ticks.insert(0, ends[0])
        words = f"datum.value < {ends[0] * 10:g} ? '0' : {words}"
    return axis(title, values=ticks, labelExpr=words, **options)


def number_text(value: str, digits: int, *, whole: float = 1) -> str:
    """Return the expression of a number that never rounds to 0 or to the whole.

    Of a share with two decimals .003 reads "<.01", .998 reads ">.99" and -.003 reads
    ">−.01"; only 0 is "0.00" and only 1 is "1.00".

    Args:
        value: Vega expression of the number.
        digits: Decimals.
        whole: What all of it is: 1 of a share, 100 of a percentage.
    """
    step = 10.0**-digits
    least, most = (
        f"{end:.{digits}f}".removeprefix("0" if whole == 1 else "")
        for end in (step, whole - step)
    )
    rounds_to_0 = f"{value} !== 0 && abs({value}) < {step / 2:g}"
    rounds_to_all = f"{value} < {whole:g} && {value} >= {whole - step / 2:.15g}"
    return (
        f"({rounds_to_0} ? ({value} > 0 ? '<{least}' : '>−{least}')"
        f" : {rounds_to_all} ? '>{most}' : format({value}, '.{digits}f'))"
    )


def number_scale(
    ends: tuple[float, float], *, log: bool = False, **options: Any
) -> alt.Scale:
    """Return a linear or logarithmic scale from the first to the second end."""
    kind: Any = "log" if log else "linear"
    return alt.Scale(type=kind, nice=False, domain=list(ends), **options)


def legend(symbol: str | None = None, columns: int | None = None) -> alt.Legend:
    """Return a legend above the picture; lines where no symbol is named.

    It is one row, or as many as so many columns need.
    """
    options: dict[str, Any] = {} if symbol is None else {"symbolType": symbol}
    options |= {} if columns is None else {"columns": columns}
    return alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        symbolOpacity=1,
        symbolStrokeWidth=2,
        labelLimit=240,
        offset=6,
        **options,
    )


def role_names(words: Mapping[str, str]) -> alt.Legend:
    """Return a row above the picture that names roles of the frame, whatever it holds.

    Args:
        words: Role -> its words.
    """
    pairs = ", ".join(f"'{role}': '{said}'" for role, said in words.items())
    return alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        offset=4,
        padding=0,
        columnPadding=8,
        symbolSize=250,
        symbolStrokeWidth=2,
        labelExpr=f"({{{pairs}}})[datum.value]",
    )


def named_colours(
    field: str,
    series: tuple[str, ...],
    *,
    colours: tuple[str, ...],
    references: tuple[str, ...] = (),
    symbol: str | None = None,
    columns: int | None = None,
    dark: bool = False,
) -> alt.Color:
    """Return the colour of each named series; references are grey."""
    repeats = -(-len(series) // len(colours))
    own = (colours * max(1, repeats))[: len(series)]
    grey = (palette(dark).reference,) * len(references)
    scale = alt.Scale(domain=[*series, *references], range=[*own, *grey])
    return alt.Color(f"{field}:N", scale=scale, legend=legend(symbol, columns))


def named_shapes(
    field: str,
    series: tuple[str, ...],
    references: tuple[str, ...] = (),
    *,
    columns: int | None = None,
) -> alt.Shape:
    """Return a point shape for each series, so that none rests on colour alone."""
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(series))]
    shapes += ["stroke"] * len(references)
    scale = alt.Scale(domain=[*series, *references], range=shapes)
    return alt.Shape(f"{field}:N", scale=scale, legend=legend(columns=columns))


def level(
    value: float, label: str, *, below: bool = False, dark: bool
) -> list[alt.Chart]:
    """Return a dashed grey line across the chart at ``y = value``, and its label.

    The label stands above the line, or below it where curves lie upon it.
    """
    y = alt.YDatum(value)
    line = _rule(_one_row(), dark=dark).encode(y=y)
    place: dict[str, Any] = {"align": "right", "dx": -2}
    place |= {"baseline": "top", "dy": 7} if below else {"baseline": "bottom", "dy": -3}
    texts = _label(_one_row(), label, place, dark=dark)
    return [line, *(text.encode(y=y, x=alt.value("width")) for text in texts)]


def post(value: float, label: str, *, dark: bool) -> list[alt.Chart]:
    """Return a dashed grey line up the chart at ``x = value``, and its label."""
    return _post(_one_row(), alt.XDatum(value), f"{value}", label, dark=dark)


def chosen(field: str, label: str, *, dark: bool) -> list[alt.Chart]:
    """Return a post that stands at the row of the frame whose role is "chosen"."""
    rows = rows_where("role", "chosen")
    return _post(rows, alt.X(f"{field}:Q"), f"datum['{field}']", label, dark=dark)


def _config(dark: bool) -> alt.Config:
    """Return what a page's theme is overruled in; all else is left to it.

    Words at the axes are as dark as the text of the page and large enough for a
    projector, labels stand in the middle of their cell, and only marks that have a
    sentence to say answer to the pointer.
    """
    words: dict[str, Any] = dict.fromkeys(
        ("labelColor", "titleColor"), palette(dark).text
    )
    words |= {"labelFontSize": 13, "titleFontSize": 14}
    return alt.Config(
        axis=alt.AxisConfig(labelPadding=6, titlePadding=8, **words),
        axisBand=alt.AxisConfig(labelFlush=False),
        legend=alt.LegendConfig(labelPadding=6, **words),
        mark=alt.MarkConfig(tooltip=None),
    )


def _one_row() -> alt.Chart:
    """Return an empty layer that folds the frame to one row."""
    return alt.Chart().transform_aggregate(rows="count()")


def _post(
    rows: alt.Chart, x: alt.X | alt.XDatum, number: str, label: str, *, dark: bool
) -> list[alt.Chart]:
    line = _rule(rows, dark=dark).encode(x=x)
    if not label:
        return [line]
    late = f"scale('x', {number}) > width / 2"  # then the words stand on the left
    place: dict[str, Any] = {
        "align": {"expr": f"{late} ? 'right' : 'left'"},
        "dx": {"expr": f"{late} ? -5 : 5"},
        "baseline": "top",
        "dy": 2,
    }
    texts = _label(rows, label, place, dark=dark)
    return [line, *(text.encode(x=x, y=alt.value(0)) for text in texts)]


def _rule(rows: alt.Chart, *, dark: bool) -> alt.Chart:
    return rows.mark_rule(
        strokeDash=DASHES, strokeWidth=1.5, color=palette(dark).reference
    )


def _label(
    rows: alt.Chart, label: str, place: dict[str, Any], *, dark: bool
) -> list[alt.Chart]:
    """Return the words with a rim of background, legible across curves."""
    colours = palette(dark)
    rim: dict[str, Any] = {"stroke": colours.background, "strokeWidth": 4}
    shared: dict[str, Any] = {"text": label, "fontSize": 13, **place}
    return [
        rows.mark_text(color=colours.background, **rim, **shared),
        rows.mark_text(color=colours.reference, **shared),
    ]
