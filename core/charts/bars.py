"""Bars and points: one row of weights, what moved, a few numbers side by side."""

from typing import NamedTuple

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.lines import divisor_colours
from core.charts.palette import palette
from core.checks import require_choice, require_number


class BarKind(NamedTuple):
    """What the bars of one query are."""

    title: str  # of the y axis
    digits: int
    signed: bool  # whether the axis runs from -limit


BAR_KINDS = {
    "weight": BarKind("weight", 2, False),
    "gradient": BarKind("∂ largest weight / ∂ score", 3, True),
}
# Numbers are left out where a bar is narrower than they are.
_ROOM_FOR_NUMBER = "bandwidth('xOffset') > 25"


def bars(
    frame: pd.DataFrame,
    *,
    kind: str = "weight",
    series: tuple[str, ...] = ("raw", "÷ √d_k"),
    limit: float = 1.0,
    x_title: str = "key (is read)",
    title: str = "One row of weights",
    height: int = 280,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the weights of one query, or their gradient, the series side by side.

    Args:
        frame: From ``tidy.bars_frame`` with the column that ``kind`` names.
        kind: "weight" or "gradient".
        series: Names of divisors in their order within a key; each has its colour.
        limit: End of the y axis; it starts at 0, for a gradient at ``-limit``.
        x_title: Axis title.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` is unknown or ``limit`` is not above 0.
    """
    require_choice("kind", kind, BAR_KINDS)
    require_number("limit", limit, 1e-12)
    what = BAR_KINDS[kind]
    across = alt.X("key:N", sort=None, axis=marks.axis(x_title, ticks=False))
    beside = alt.XOffset("series:N", sort=None, scale=alt.Scale(domain=list(series)))
    up = alt.Y(
        f"{kind}:Q",
        scale=marks.number_scale((-limit if what.signed else 0.0, limit)),
        axis=marks.axis(what.title),
    )
    colours = divisor_colours(series, dark=dark)
    colour = marks.named_colours("series", series, colours=colours, symbol="square")
    words = "datum.series + ', key ' + datum.key + ': ' + "
    words += marks.number_text(f"datum.{kind}", 4)
    bar = alt.Chart().mark_bar(clip=True, tooltip={"expr": words})
    number = marks.number_text(f"datum.{kind}", what.digits)
    number = f"{_ROOM_FOR_NUMBER} ? {number} : ''"
    text = _numbers(number, field=kind, dark=dark)
    return marks.layered(
        frame,
        bar.encode(x=across, xOffset=beside, y=up, color=colour),
        text.encode(x=across, xOffset=beside, y=up),
        title=title,
        height=height,
        dark=dark,
    )


def movement(
    frame: pd.DataFrame,
    *,
    limit: float = 1.0,
    x_title: str = "position",
    title: str = "How far each output moved",
    height: int = 260,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw how far the output at each position moved.

    Exactly 0 reads "0"; a number that is not 0 and below 0.0005 reads "<.001".

    Args:
        frame: From ``tidy.movement_frame``.
        limit: End of the y axis; it starts at 0.
        x_title: What the bars stand for.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``limit`` is not above 0.
    """
    require_number("limit", limit, 1e-12)
    shown = palette(dark)
    across = alt.X("position:N", sort=None, axis=marks.axis(x_title, ticks=False))
    up = alt.Y(
        "moved:Q",
        scale=marks.number_scale((0.0, limit)),
        axis=marks.axis("distance the output moved"),
    )
    words = (
        "datum.moved === 0 ? 'the output at ' + datum.position + ' did not move'"
        " : 'the output at ' + datum.position + ' moved by '"
        " + (datum.moved < 1 && datum.moved >= 0.9995 ? 'over 0.999'"
        " : format(datum.moved, '.3~g'))"
    )
    number = (
        "datum.moved < 1 && datum.moved >= 0.995 ? '>.99'"
        " : datum.moved === 0 ? '0' : datum.moved < 0.0005 ? '<.001'"
        " : format(datum.moved, '.2~g')"
    )
    bar = alt.Chart().mark_bar(clip=True, color=shown.right, tooltip={"expr": words})
    text = _numbers(number, field="moved", dark=dark)
    layers = [layer.encode(x=across, y=up) for layer in (bar, text)]
    return marks.layered(frame, *layers, title=title, height=height, dark=dark)


def comparison(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...],
    domain: tuple[float, float],
    log: bool = False,
    zero: bool = True,
    digits: str = ".3~g",
    x_title: str = "value",
    title: str = "Comparison",
    height: int = 220,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw a few numbers as points on one scale, one line a label.

    Args:
        frame: From ``tidy.comparison_frame``.
        series: Names in the order of their colours and point shapes.
        domain: Ends of the axis; a number outside is drawn at the end, and its text
            tells its size.
        log: Whether the axis is logarithmic; both ends must then be above 0.
        zero: Whether the first end of a logarithmic axis is the place of 0, two powers
            of ten before the others.
        digits: Format of the numbers, as d3 writes it.
        x_title: Axis title with its unit.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If the axis is logarithmic and starts at 0 or below.
    """
    if log:
        require_number("domain", domain[0], 1e-300)
    shown = palette(dark)
    across = alt.X(
        "value:Q", scale=marks.number_scale(domain, log=log, clamp=True),
        axis=marks.number_axis(x_title, domain, log=log, zero=zero),
    )  # fmt: skip
    up = alt.Y("label:N", sort=None, axis=marks.axis("", ticks=False, labelLimit=220))
    beside = alt.YOffset("series:N", sort=None, scale=alt.Scale(domain=list(series)))
    colour = marks.named_colours("series", series, colours=shown.series)
    words = (
        f"datum.label + ', ' + datum.series + ': ' + format(datum.value, '{digits}')"
    )
    dot = alt.Chart().mark_point(
        filled=True, opacity=1, size=110, tooltip={"expr": words}
    )
    text = alt.Chart().mark_text(
        text={"expr": f"format(datum.value, '{digits}')"}, align="left", dx=10,
        fontSize=12, color=shown.text,
    )  # fmt: skip
    shape = marks.named_shapes("series", series)
    return marks.layered(
        frame,
        dot.encode(x=across, y=up, yOffset=beside, color=colour, shape=shape),
        text.encode(x=across, y=up, yOffset=beside),
        title=title,
        height=height,
        dark=dark,
    )


def _numbers(text: str, *, field: str, dark: bool) -> alt.Chart:
    """Return the numbers beyond the ends of their bars."""
    below = f"datum.{field} < 0"
    return alt.Chart().mark_text(
        text={"expr": text},
        baseline={"expr": f"{below} ? 'top' : 'bottom'"},
        dy={"expr": f"{below} ? 3 : -3"},
        fontSize=11,
        color=palette(dark).text,
    )
