"""Lines over something that grows: a sweep, positions, the weights of a readout."""

import json
from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_choice, require_int

BAND_OPACITY = 0.15


def sweep(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...] = ("raw", "÷ √d_k"),
    references: tuple[str, ...] = (),
    x: str = "d_k",
    x_title: str = "d_k: width of a query and a key (log scale)",
    x_domain: tuple[float, float] | None = None,
    y_title: str = "value",
    y_domain: tuple[float, float] | None = None,
    log_y: bool = False,
    chosen_label: str = "chosen",
    title: str = "Sweep over d_k",
    height: int = 300,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the median of many trials with its 10–90 % band against a swept size.

    Args:
        frame: From ``tidy.sweep_frame``.
        series: Names in the order of their colours: the first is drawn as raw, the
            second as scaled, more take further colours.
        references: Names of the dashed grey lines, such as "√d_k".
        x: Column of the swept values.
        x_title: Axis title; the axis is logarithmic to base 2.
        x_domain: Ends of the x axis; None lets them follow the rows.
        y_title: Axis title with its unit.
        y_domain: Ends of the y axis; pass them, so that nothing jumps.
        log_y: Whether the y axis is logarithmic.
        chosen_label: Words on the rule at the row whose role is "chosen".
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    shown = palette(dark)
    colour = marks.named_colours(
        "series",
        series,
        colours=(shown.wrong, shown.right, *shown.series[2:]),
        references=references,
        dark=dark,
    )
    across = alt.X(
        f"{x}:Q",
        scale=alt.Scale(type="log", base=2, nice=False, padding=8, **_ends(x_domain)),
        axis=marks.axis(x_title, format="d", grid=False),
    )
    scale = marks.number_scale(y_domain, log=log_y, padding=3)
    ticks = marks.number_axis(y_title, y_domain, log=log_y)
    up = alt.Y("median:Q", scale=scale, axis=ticks)
    edge = alt.Y("low:Q", scale=scale, axis=ticks)
    dash = marks.named_dashes("series", series, references)
    shape = marks.named_shapes("series", series, references)
    one = marks.rows_where("role", "series")
    band = one.mark_area(opacity=BAND_OPACITY, clip=True)
    lines = alt.Chart().transform_filter("datum.role !== 'chosen'")
    points = one.mark_point(**_dots(_sweep_words(x)))
    return marks.layered(
        frame,
        band.encode(x=across, y=edge, y2=alt.Y2("high:Q"), color=colour),
        lines.mark_line(strokeWidth=2.5, clip=True).encode(
            x=across, y=up, color=colour, strokeDash=dash
        ),
        points.encode(x=across, y=up, color=colour, shape=shape),
        *marks.chosen(x, chosen_label, dark=dark),
        title=title,
        height=height,
        dark=dark,
    )


def curves(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...],
    mark: str = "line",
    x_title: str = "position",
    x_domain: tuple[float, float] | None = None,
    y_title: str = "value",
    y_domain: tuple[float, float] | None = (-1.0, 1.0),
    levels: tuple[tuple[float, str], ...] = (),
    posts: tuple[tuple[float, str], ...] = (),
    marker_every: int = 8,
    title: str = "Curves",
    height: int = 280,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw several named curves over whole-numbered positions.

    Args:
        frame: From ``tidy.curves_frame``.
        series: Names in the order of their colours and point shapes.
        mark: "line", "point", or "bar" for one curve.
        x_title: Axis title.
        x_domain: Ends of the x axis; None lets them follow the rows.
        y_title: Axis title with its unit.
        y_domain: Ends of the y axis; None lets them follow the rows.
        levels: (y, words) of dashed lines across.
        posts: (x, words) of dashed lines up.
        marker_every: A line carries its point shape at every such position.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``mark`` is unknown or ``marker_every`` is below 1.
    """
    require_choice("mark", mark, ("line", "point", "bar"))
    require_int("marker_every", marker_every, 1)
    across = _positions(x_title, x_domain)
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(y_domain, padding=0 if mark == "bar" else 3),
        axis=marks.axis(y_title),
    )
    symbol = "square" if mark == "bar" else None
    colour = marks.named_colours(
        "series", series, colours=palette(dark).series, symbol=symbol
    )
    layers = [
        layer.encode(x=across, y=up, color=colour)
        for layer in _curve_layers(mark, series, marker_every, x_title)
    ]
    for value, text in levels:
        layers += marks.level(value, text, dark=dark)
    for value, text in posts:
        layers += marks.post(value, text, dark=dark)
    return marks.layered(frame, *layers, title=title, height=height, dark=dark)


def readout_rows(
    frame: pd.DataFrame,
    *,
    num_layers: int = 2,
    limit: float = 1.0,
    x_domain: tuple[float, float] | None = None,
    marker: int | None = 1,
    readout: str = "CLS",
    marker_every: int = 8,
    title: str = "What the readout reads",
    height: int = 300,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the weight the readout gives to each position: heads thin, their mean bold.

    Args:
        frame: From ``tidy.readout_frame``.
        num_layers: How many layers the model has; each has a colour and a point shape.
        limit: End of the weight axis.
        x_domain: Ends of the axis of positions; None lets them follow the rows.
        marker: Position of the marker, drawn as a labelled rule; None draws none.
        readout: What position 0 is called.
        marker_every: The bold lines carry a point shape at every such position.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``num_layers`` or ``marker_every`` is below 1.
    """
    require_int("num_layers", num_layers, 1)
    require_int("marker_every", marker_every, 1)
    layers = tuple(f"layer {number}" for number in range(1, num_layers + 1))
    across = _positions(f"key position (0 = {readout})", x_domain)
    up = alt.Y(
        "weight:Q",
        scale=marks.number_scale((0.0, limit), padding=3),
        axis=marks.axis("weight"),
    )
    colour = marks.named_colours("layer", layers, colours=palette(dark).series)
    heads = alt.Chart().transform_filter("datum.head !== 'mean'")
    mean = marks.rows_where("head", "mean")
    points = mean.transform_filter(f"datum.position % {marker_every} === 0")
    words = (
        "datum.layer + ', mean of heads: ' + format(datum.weight, '.3f')"
        " + ' to position ' + datum.position"
    )
    drawn = [
        heads.mark_line(strokeWidth=1, opacity=0.45, clip=True).encode(
            x=across, y=up, color=colour, detail="head:N"
        ),
        mean.mark_line(strokeWidth=3, clip=True).encode(x=across, y=up, color=colour),
        points.mark_point(**_dots(words)).encode(
            x=across, y=up, color=colour, shape=marks.named_shapes("layer", layers)
        ),
    ]
    if marker is not None:
        drawn += marks.post(marker, "marker", dark=dark)
    return marks.layered(frame, *drawn, title=title, height=height, dark=dark)


def _ends(domain: tuple[float, float] | None) -> dict[str, Any]:
    return {} if domain is None else {"domain": list(domain)}


def _positions(title: str, domain: tuple[float, float] | None) -> alt.X:
    return alt.X(
        "position:Q",
        scale=alt.Scale(nice=False, zero=False, padding=8, **_ends(domain)),
        axis=marks.axis(title, format="d", tickMinStep=1, grid=False),
    )


def _dots(words: str) -> dict[str, Any]:
    """Return the looks of points that say ``words`` when pointed at."""
    look = {"filled": True, "opacity": 1, "size": 55, "clip": True}
    return look | {"tooltip": {"expr": words}}


def _sweep_words(x: str) -> str:
    return (
        f"datum.series + ' at {x} = ' + datum['{x}'] + ': median '"
        " + format(datum.median, '.3~g') + ', 10–90 % of trials '"
        " + format(datum.low, '.3~g') + ' to ' + format(datum.high, '.3~g')"
    )


def _curve_layers(
    mark: str, series: tuple[str, ...], marker_every: int, x_title: str
) -> list[alt.Chart]:
    words = (
        f"datum.series + ', ' + {json.dumps(x_title)} + ' ' + datum.position"
        " + ': ' + format(datum.value, '.3~f')"
    )
    if mark == "bar":
        bar = alt.Chart().mark_bar(clip=True, width=8, tooltip={"expr": words})
        return [bar]
    shape = marks.named_shapes("series", series)
    if mark == "point":
        return [alt.Chart().mark_point(**_dots(words)).encode(shape=shape)]
    some = alt.Chart().transform_filter(f"datum.position % {marker_every} === 0")
    line = alt.Chart().mark_line(strokeWidth=2, clip=True)
    return [line, some.mark_point(**_dots(words)).encode(shape=shape)]
