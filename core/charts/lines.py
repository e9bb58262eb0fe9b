"""Lines over something that grows: a sweep, positions, the weights of a readout."""

from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_choice, require_int

CENTRES = ("median", "mean")  # of the trials of a sweep
BAND_OPACITY = 0.15
_DOTS = [2, 3]  # of a line to compare with; the rule at the chosen width has dashes
_BESIDE = 0.2  # between the bars of two layers, in positions
_MARKER_EVERY = 8  # a line over positions carries its point shape at every such one
_MOST_TICKS = 8
_WIDTHS = "d_k: width of a query and a key (log scale)"


def sweep(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...] = ("raw", "÷ √d_k"),
    references: tuple[str, ...] = (),
    centre: str = "median",
    x_domain: tuple[float, float],
    y_title: str = "value",
    y_domain: tuple[float, float],
    log_y: bool = False,
    chosen_label: str = "chosen",
    title: str = "Sweep over d_k",
    height: int = 300,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the middle of many trials with its 10–90 % band against a swept size.

    Args:
        frame: From ``tidy.sweep_frame``.
        series: Names of the solid lines; the name of a divisor has its colour for good.
        references: Names of the thin dotted lines, grey where they name no divisor.
        centre: "median" or "mean" of the trials, as the frame was made with.
        x_domain: Ends of the axis of d_k, which is logarithmic to base 2.
        y_title: Axis title with its unit.
        y_domain: Ends of the y axis.
        log_y: Whether the y axis is logarithmic.
        chosen_label: Words on the rule at the row whose role is "chosen".
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``centre`` is unknown.
    """
    require_choice("centre", centre, CENTRES)
    names = (*series, *references)
    colours = divisor_colours(names, dark=dark)
    colour = marks.named_colours("series", names, colours=colours)
    across = alt.X(
        "d_k:Q",
        scale=marks.number_scale(x_domain, log=True, base=2, padding=8),
        axis=marks.axis(_WIDTHS, format="d", grid=False),
    )
    scale = marks.number_scale(y_domain, log=log_y, padding=3)
    ticks = marks.number_axis(y_title, y_domain, log=log_y)
    up = alt.Y(f"{centre}:Q", scale=scale, axis=ticks)
    edge = alt.Y("low:Q", scale=scale, axis=ticks)
    dashes = [marks.SOLID] * len(series) + [_DOTS] * len(references)
    dash = alt.StrokeDash(
        "series:N",
        scale=alt.Scale(domain=list(names), range=dashes),
        legend=marks.legend(),
    )
    width = alt.when("datum.role === 'reference'").then(alt.value(1.5))
    shape = marks.named_shapes("series", series, references)
    one = marks.rows_where("role", "series")
    band = one.mark_area(opacity=BAND_OPACITY, clip=True)
    lines = alt.Chart().transform_filter("datum.role !== 'chosen'")
    points = one.mark_point(**_dots(_sweep_words(centre)))
    return marks.layered(
        frame,
        band.encode(x=across, y=edge, y2=alt.Y2("high:Q"), color=colour),
        lines.mark_line(clip=True).encode(
            x=across,
            y=up,
            color=colour,
            strokeDash=dash,
            strokeWidth=width.otherwise(alt.value(3)),
        ),
        points.encode(x=across, y=up, color=colour, shape=shape),
        *marks.chosen("d_k", chosen_label, dark=dark),
        title=title,
        height=height,
        dark=dark,
    )


def _sweep_words(centre: str) -> str:
    return (
        f"datum.series + ' at d_k = ' + datum.d_k + ': {centre} '"
        f" + format(datum.{centre}, '.3~g') + ', 10–90 % of trials '"
        " + format(datum.low, '.3~g') + ' to ' + format(datum.high, '.3~g')"
    )


def divisor_colours(names: tuple[str, ...], *, dark: bool) -> tuple[str, ...]:
    """Return the colour of each divisor of the scores by name; others are grey."""
    shown = palette(dark)
    own = {"raw": shown.wrong, "÷ √d_k": shown.right, "÷ d_k": shown.series[2]}
    return tuple(own.get(name, shown.reference) for name in names)


def curves(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...],
    x_domain: tuple[float, float],
    y_title: str = "value",
    y_domain: tuple[float, float] = (-1.0, 1.0),
    title: str = "Curves",
    height: int = 280,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw several named curves over whole-numbered positions.

    Args:
        frame: From ``tidy.curves_frame``.
        series: Names in the order of their colours and point shapes.
        x_domain: Ends of the axis of positions.
        y_title: Axis title with its unit.
        y_domain: Ends of the y axis.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    colour = marks.named_colours("series", series, colours=palette(dark).series)
    across = _positions("position", x_domain)
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(y_domain, padding=3),
        axis=marks.axis(y_title),
    )
    some = alt.Chart().transform_filter(f"datum.position % {_MARKER_EVERY} === 0")
    words = (
        "datum.series + ', position ' + datum.position"
        " + ': ' + format(datum.value, '.3~f')"
    )
    layers = [
        alt.Chart().mark_line(strokeWidth=2, clip=True),
        some.mark_point(**_dots(words)).encode(
            shape=marks.named_shapes("series", series)
        ),
    ]
    return marks.layered(
        frame,
        *(layer.encode(x=across, y=up, color=colour) for layer in layers),
        title=title,
        height=height,
        dark=dark,
    )


def readout_rows(
    frame: pd.DataFrame,
    *,
    num_layers: int = 2,
    x_domain: tuple[float, float] | None = None,
    marker: int | None = 1,
    readout: str = "cls",
    title: str = "What the readout reads",
    height: int = 300,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the weight the readout gives to each position: heads and their mean.

    A position is a place of its own, so nothing joins two of them: the mean over the
    heads is a bar with a point at its end, each head a dash. Layers stand side by side.
    Positions count from 0 along the sequence, as in every sentence; a CLS token stands
    before it and is called so, on the axis and in the words at a point.

    Args:
        frame: From ``tidy.readout_frame``.
        num_layers: How many layers the model has; each has a colour and a point shape.
        x_domain: First and last column of the map; None lets them follow the rows.
        marker: Column of the marker, drawn as a labelled rule; None draws none.
        readout: Which position reads; with "cls" column 0 of the map is the CLS token
            and position 0 is column 1.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``num_layers`` is below 1.
    """
    require_int("num_layers", num_layers, 1)
    layers = tuple(f"layer {number}" for number in range(1, num_layers + 1))
    before = int(readout == "cls")  # columns before position 0
    across = _key_positions(x_domain, before)
    up = alt.Y(
        "weight:Q",
        scale=marks.number_scale((0.0, 1.0), padding=3),
        axis=marks.axis("weight"),
    )
    colour = marks.named_colours("layer", layers, colours=palette(dark).series)
    counted = f"datum.position - {before}" if before else "datum.position"
    side = f"indexof({list(layers)}, datum.layer) - {(num_layers - 1) / 2}"
    beside = f"{counted} + {_BESIDE} * ({side})"
    rows = alt.Chart().transform_calculate(place=beside)
    heads = rows.transform_filter("datum.head !== 'mean'")
    mean = rows.transform_filter("datum.head === 'mean'")
    place = f"' to position ' + ({counted})"
    if before:
        place = f"({counted} < 0 ? ' to CLS' : {place})"
    number = marks.number_text("datum.weight", 3)
    words = f"datum.layer + ', mean of heads: ' + {number} + {place}"
    drawn = [
        mean.mark_rule(strokeWidth=2.5, clip=True).encode(
            x=across, y=up, y2=alt.Y2Datum(0), color=colour
        ),
        heads.mark_point(shape="stroke", size=60, opacity=0.6, clip=True).encode(
            x=across, y=up, color=colour
        ),
        mean.mark_point(**_dots(words, size=30)).encode(
            x=across, y=up, color=colour, shape=marks.named_shapes("layer", layers)
        ),
    ]
    if marker is not None:
        drawn += marks.post(marker - before, "marker", dark=dark)
    return marks.layered(frame, *drawn, title=title, height=height, dark=dark)


def _ends(domain: tuple[float, float] | None) -> dict[str, Any]:
    return {} if domain is None else {"domain": list(domain)}


def _positions(
    title: str,
    domain: tuple[float, float] | None,
    *,
    field: str = "position",
    **options: Any,
) -> alt.X:
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(nice=False, zero=False, padding=8, **_ends(domain)),
        axis=marks.axis(title, format="d", tickMinStep=1, grid=False, **options),
    )


def _key_positions(columns: tuple[float, float] | None, before: int) -> alt.X:
    """Return the axis of the keys of a map, with CLS before position 0 if need be."""
    options: dict[str, Any] = {}
    if before:
        options["labelExpr"] = "datum.value < 0 ? 'CLS' : datum.label"
        options["labelAlign"] = (
            alt.when("datum.value < 0")
            .then(alt.value("right"))
            .otherwise(alt.value("center"))
        )
        options["labelOverlap"] = False
    if columns is None:
        return _positions("key position", None, field="place", **options)
    ends = columns[0] - before, columns[1] - before
    options["values"] = [-1] * before + round_ticks(int(ends[1]))
    return _positions("key position", ends, field="place", **options)


def round_ticks(last: int) -> list[int]:
    """Return whole numbers from 0 to ``last`` in the smallest steps of 1, 2, 5."""
    sizes = (step * 10**power for power in range(9) for step in (1, 2, 5))
    return list(range(0, last + 1, next(s for s in sizes if last <= s * _MOST_TICKS)))


def _dots(words: str, *, size: int = 55) -> dict[str, Any]:
    """Return the looks of points that say ``words`` when pointed at."""
    look = {"filled": True, "opacity": 1, "size": size, "clip": True}
    return look | {"tooltip": {"expr": words}}
