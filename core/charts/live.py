"""Curves of a run that is still going on."""

import math
from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_choice, require_int, require_number


def live_curves(
    frame: pd.DataFrame,
    *,
    kind: str = "loss",
    max_steps: int = 1000,
    runs: tuple[str, ...] = (),
    loss_limit: float = 1.0,
    accuracy_low: float = 40.0,
    title: str | None = None,
    height: int = 240,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw loss or accuracy against steps on axes that never move.

    The current run is solid, runs kept for comparison are thin and grey, and a dashed
    line marks a coin flip: ``ln 2 = 0.693`` for the loss, 50 % for the accuracy.

    Args:
        frame: From ``records.live_frame``; accuracy in percent.
        kind: "loss" or "accuracy".
        max_steps: End of the step axis.
        runs: Names of several current runs, each with a colour; none for a single run.
        loss_limit: End of the loss axis; a curve above it leaves the picture.
        accuracy_low: Start of the accuracy axis, in percent.
        title: Title of the picture in place of the usual one.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` is unknown or an end of an axis is out of range.
    """
    require_choice("kind", kind, ("loss", "accuracy"))
    require_int("max_steps", max_steps, 1)
    require_number("loss_limit", loss_limit, 0.7)
    require_number("accuracy_low", accuracy_low, 0.0, 50.0)
    if kind == "loss":
        ends, unit, coin = (0.0, loss_limit), "loss (nats)", math.log(2)
        words, usual = "coin flip: ln 2 = 0.693", "Training loss"
    else:
        ends, unit, coin = (accuracy_low, 100.0), "test accuracy (%)", 50.0
        words, usual = "coin flip: 50 %", "Test accuracy"
    across = alt.X(
        "step:Q", scale=alt.Scale(domain=[0, max_steps], nice=False),
        axis=marks.axis("step", format="d", tickMinStep=1, tickCount=8, grid=False),
    )  # fmt: skip
    up = alt.Y(
        "value:Q", scale=marks.number_scale(ends, padding=3), axis=marks.axis(unit)
    )
    layers = [
        *_lines(runs, dark=dark),
        _points(kind),
        *(_markers(runs, max_steps, dark=dark) if runs else ()),
    ]
    return marks.layered(
        frame,
        *(layer.encode(x=across, y=up) for layer in layers),
        *marks.level(coin, words, dark=dark),
        *marks.chosen("step", "", dark=dark),
        title=title or usual,
        height=height,
        dark=dark,
    )


def _lines(runs: tuple[str, ...], *, dark: bool) -> list[alt.Chart]:
    shown = palette(dark)
    kept = marks.rows_where("role", "kept").mark_line(
        strokeWidth=1, color=shown.kept, clip=True
    )
    current = marks.rows_where("role", "current").mark_line(strokeWidth=2, clip=True)
    return [
        kept.encode(detail="run:N"),
        current.encode(detail="run:N", color=_colour(runs, dark=dark)),
    ]


def _colour(runs: tuple[str, ...], *, dark: bool) -> Any:
    shown = palette(dark)
    if not runs:
        return alt.value(shown.right)
    return marks.named_colours("run", runs, colours=shown.series)


def _points(kind: str) -> alt.Chart:
    """Return points that cannot be seen and tell their number when pointed at."""
    unit = "" if kind == "loss" else " + ' %'"
    words = (
        f"datum.run + ', step ' + datum.step + ': {kind} '"
        f" + format(datum.value, '.3f'){unit}"
    )
    return marks.rows_where("role", "current").mark_point(
        opacity=0,
        size=80,
        filled=True,
        clip=True,
        aria=False,
        tooltip={"expr": words},
    )


def _markers(
    runs: tuple[str, ...], max_steps: int, *, dark: bool
) -> tuple[alt.Chart, ...]:
    """Return a point shape on each run in every tenth of the steps."""
    first_of_tenth = (
        marks.rows_where("role", "current")
        .transform_calculate(tenth=f"floor(10 * datum.step / {max_steps})")
        .transform_window(place="row_number()", groupby=["run", "tenth"])
        .transform_filter("datum.place === 1")
    )
    points = first_of_tenth.mark_point(filled=True, opacity=1, size=55, clip=True)
    shape = marks.named_shapes("run", runs)
    return (points.encode(color=_colour(runs, dark=dark), shape=shape),)
