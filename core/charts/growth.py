"""What grows or fades with length: norms over distance, time and memory over length."""

import math
from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette

_BAND_OPACITY = 0.15
_DOTS = [2, 3]
_LINE = 17  # pixels from one line of words to the next
_ROOM = 160  # pixels that the words at a rule take
_AT = "scale('x', datum.length)"
_POINT_EVERY = 10  # a line over distances carries its point shape at every such one
_UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "bytes": ((1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB")),
}
_OWN = {"attention": 0, "RNN": 1, "LSTM": 2, "GRU": 3}  # colours that models keep


def reach(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...] = ("RNN", "GRU", "LSTM", "attention"),
    references: tuple[str, ...] = (),
    x_domain: tuple[float, float],
    y_domain: tuple[float, float] = (1e-20, 10.0),
    title: str = "Influence of token 0 on output t: median, 10–90 % of draws",
    height: int = 400,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw norms of Jacobians over the distance from token 0, on a logarithmic axis.

    Args:
        frame: From ``growth_frames.reach_frame``.
        series: Names of the solid lines with their bands.
        references: Names of the thin dotted lines.
        x_domain: First and last distance.
        y_domain: Ends of the logarithmic axis; what lies below has no number.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    names = (*series, *references)
    colour = _colours(names, dark=dark)
    across = alt.X(
        "distance:Q",
        scale=marks.number_scale(x_domain, padding=8),
        axis=marks.axis(
            "distance t from token 0 (steps)", format="d", tickMinStep=1, grid=False
        ),
    )
    scale = marks.number_scale(y_domain, log=True, padding=3)
    ticks = marks.number_axis("‖∂hₜ/∂x₀‖ / √d (log scale)", y_domain, log=True)
    up = alt.Y("median:Q", scale=scale, axis=ticks)
    edge = alt.Y("low:Q", scale=scale, axis=ticks)
    own = marks.rows_where("role", "series")
    width = alt.when("datum.role === 'reference'").then(alt.value(1.5))
    some = own.transform_filter(f"datum.distance % {_POINT_EVERY} === 0")
    words = (
        "datum.series + ' at distance ' + datum.distance + ': median '"
        " + format(datum.median, '.2~g') + ', 10–90 % of draws '"
        " + format(datum.low, '.2~g') + ' to ' + format(datum.high, '.2~g')"
    )
    return marks.layered(
        frame,
        own.mark_area(opacity=_BAND_OPACITY, clip=True).encode(
            x=across, y=edge, y2=alt.Y2("high:Q"), color=colour
        ),
        alt.Chart().mark_line(clip=True).encode(
            x=across,
            y=up,
            color=colour,
            strokeDash=_dashes(series, references),
            strokeWidth=width.otherwise(alt.value(3)),
        ),
        some.mark_point(**_points(words)).encode(
            x=across,
            y=up,
            color=colour,
            shape=marks.named_shapes("series", series, references),
        ),
        title=title,
        height=height,
        dark=dark,
    )  # fmt: skip


def growth(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...] = ("RNN", "LSTM", "attention"),
    x_domain: tuple[float, float],
    y_domain: tuple[float, float],
    y_title: str,
    unit: str,
    title: str = "Growth with length",
    height: int = 400,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw what was measured against length on two logarithmic axes.

    A power of the length is a straight line there. Measured curves are solid with
    points, earlier ones thin, fitted powers dashed and carried on past their range, so
    that one sees where they do not hold.

    Args:
        frame: From ``growth_frames.growth_frame``.
        series: Names of the curves.
        x_domain: Ends of the axis of lengths, to base 2.
        y_domain: Ends of the other axis.
        y_title: Its title with its unit.
        unit: "s", or "bytes", which are told in powers of 1,024.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    colour = _colours(series, dark=dark)
    across = alt.X(
        "length:Q",
        scale=marks.number_scale(x_domain, log=True, base=2, padding=8),
        axis=marks.axis("length n (tokens, log scale)", format="d", grid=False),
    )
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(y_domain, log=True, padding=3),
        axis=marks.axis(
            f"{y_title} (log scale)",
            values=_ticks(y_domain, unit),
            labelExpr=_amount("datum.value", unit),
        ),
    )
    place = {"x": across, "y": up, "color": colour}
    words = (
        "datum.series + ' at n = ' + format(datum.length, ',d') + ': '"
        f" + {_amount('datum.value', unit)}"
    )
    measured = marks.rows_where("role", "measured")
    return marks.layered(
        frame,
        marks.rows_where("role", "fit")
        .mark_line(strokeWidth=1.5, strokeDash=marks.DASHES, clip=True)
        .encode(**place),
        marks.rows_where("role", "earlier")
        .mark_line(strokeWidth=1.5, strokeDash=_DOTS, clip=True)
        .encode(**place),
        measured.mark_line(strokeWidth=3, clip=True).encode(**place),
        measured.mark_point(**_points(words)).encode(
            **place, shape=marks.named_shapes("series", series)
        ),
        *marks.chosen("length", "", dark=dark),
        *_names_of_rules(dark=dark),
        title=title,
        height=height,
        dark=dark,
    )


def _ticks(ends: tuple[float, float], unit: str) -> list[float]:
    """Return a tick a power of ten, or of bytes one every five powers of two."""
    base = 2.0**5 if unit == "bytes" else 10.0
    low, high = (math.log(end, base) for end in ends)
    powers = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
    return [base**power for power in powers]


def _amount(value: str, unit: str) -> str:
    """Return the expression of an amount, such as 1.5 ms or 64 MiB."""
    (least, name), *larger = _UNITS[unit]
    words = _scaled(value, least, name)
    for size, name in larger:
        words = f"{value} >= {size:.15g} ? {_scaled(value, size, name)} : ({words})"
    return f"({words})"


def _scaled(value: str, size: float, name: str) -> str:
    return f"format({value} / {size:.15g}, '.3~g') + ' {name}'"


def _colours(names: tuple[str, ...], *, dark: bool) -> alt.Color:
    """Return the colour of each series: a model has its own for good."""
    shown = palette(dark).series
    free = iter(shown)
    own = tuple(
        shown[_OWN[name.partition(",")[0]]]
        if name.partition(",")[0] in _OWN
        else next(free)
        for name in names
    )
    return marks.named_colours("series", names, colours=own)


def _names_of_rules(*, dark: bool) -> list[alt.Chart]:
    """Return the words at the rules, each in a line of its own, with a rim.

    Of several rules the first has its words on its left, so that no other crosses them.
    """
    shown = palette(dark)
    first = f"datum.rules > 1 && datum.length === datum.least && {_AT} > {_ROOM}"
    late = f"({first} || {_AT} > width - {_ROOM})"  # then they stand on the left
    place: dict[str, Any] = {
        "text": {"expr": "datum.series"},
        "align": {"expr": f"{late} ? 'right' : 'left'"},
        "dx": {"expr": f"{late} ? -5 : 5"},
        "dy": {"expr": f"2 + {_LINE} * datum.value"},
        "baseline": "top",
        "fontSize": 13,
    }
    rows = marks.rows_where("role", "chosen").transform_joinaggregate(
        rules="count()", least="min(length)"
    )
    rim: dict[str, Any] = {"stroke": shown.background, "strokeWidth": 4}
    return [
        text.encode(x=alt.X("length:Q"), y=alt.value(0))
        for text in (
            rows.mark_text(color=shown.background, **rim, **place),
            rows.mark_text(color=shown.reference, **place),
        )
    ]


def _dashes(series: tuple[str, ...], references: tuple[str, ...]) -> alt.StrokeDash:
    dashes = [marks.SOLID] * len(series) + [_DOTS] * len(references)
    scale = alt.Scale(domain=[*series, *references], range=dashes)
    return alt.StrokeDash("series:N", scale=scale, legend=marks.legend())


def _points(words: str) -> dict[str, Any]:
    """Return the looks of points that say ``words`` when pointed at."""
    look = {"filled": True, "opacity": 1, "size": 60, "clip": True}
    return look | {"tooltip": {"expr": words}}
