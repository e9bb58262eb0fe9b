"""Curves of a run that is still going on."""

import math
from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_choice, require_int

_LOSS_END = 1.0  # a curve above it leaves the picture
_ACCURACY_START = 40.0
_KEPT_DASHES = ([1, 0], [2, 2], [8, 3], [8, 3, 2, 3], [4, 2], [12, 4])


def live_curves(
    frame: pd.DataFrame,
    *,
    kind: str = "loss",
    max_steps: int = 1000,
    ends: tuple[float, float] | None = None,
    level: tuple[float, str] | None = None,
    title: str | None = None,
    height: int = 240,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw loss or accuracy against steps on axes that never move.

    The current run is solid, runs kept for comparison are thin and grey, each with a
    dash of its own and its name in the picture. Of a task of two classes a dashed line
    marks the loss of always answering ``p = 1/2``, ``ln 2 = 0.693``, and an accuracy of
    50 %. A cross stands at a step that could not be taken.

    Args:
        frame: From ``records.live_frame``; accuracy in percent.
        kind: "loss" or "accuracy".
        max_steps: End of the step axis.
        ends: Ends of the y axis of another task, which has its own ``level``.
        level: A value of that task to compare with, and its words; None draws none.
        title: Title of the picture in place of the usual one.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` is unknown or ``max_steps`` is below 1.
    """
    require_choice("kind", kind, ("loss", "accuracy"))
    require_int("max_steps", max_steps, 1)
    if kind == "loss":
        usual_ends, unit, usual = (0.0, _LOSS_END), "loss (nats)", "Training loss"
        coin = math.log(2), "always p = 1/2: ln 2 = 0.693"
    else:
        usual_ends, unit = (_ACCURACY_START, 100.0), "test accuracy (%)"
        coin, usual = (50.0, "coin flip: 50 %"), "Test accuracy"
    compared = coin if ends is None else level
    across = alt.X(
        "step:Q", scale=alt.Scale(domain=[0, max_steps], nice=False),
        axis=marks.axis("step", format="d", tickMinStep=1, tickCount=8, grid=False),
    )  # fmt: skip
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(ends or usual_ends, padding=3),
        axis=marks.axis(unit),
    )
    names_at = "top-left" if kind == "accuracy" else "bottom-left"
    if ends is not None:  # where the curve of such a task does not go
        names_at = "bottom-right" if kind == "accuracy" else "top-right"
    below = 26 if names_at == "top-right" else 4  # the words of a level
    layers = [*_lines(names_at, below, dark=dark), _points(kind)]
    return marks.layered(
        frame,
        *(layer.encode(x=across, y=up) for layer in layers),
        *(marks.level(*compared, dark=dark) if compared else ()),
        *marks.chosen("step", "", dark=dark),
        _cross(dark=dark).encode(x=across, y=alt.value("height")),
        title=title or usual,
        height=height,
        dark=dark,
    )


def _lines(names_at: Any, offset: int, *, dark: bool) -> list[alt.Chart]:
    shown = palette(dark)
    kept = marks.rows_where("role", "kept").mark_line(
        strokeWidth=1.5, color=shown.kept, clip=True
    )
    current = marks.rows_where("role", "current").mark_line(
        strokeWidth=2, color=shown.right, clip=True
    )
    names = alt.Legend(  # inside, so that no axis moves when a curve is kept
        title=None,
        orient=names_at,
        offset=offset,
        rowPadding=0,
        labelLimit=260,
        symbolStrokeColor=shown.kept,
    )
    dash = alt.StrokeDash("run:N", scale=alt.Scale(range=_KEPT_DASHES), legend=names)
    return [kept.encode(strokeDash=dash), current.encode(detail="run:N")]


def _cross(*, dark: bool) -> alt.Chart:
    """Return a cross at the foot of the step that could not be taken."""
    return marks.rows_where("role", "failed").mark_text(
        text="✕", fontSize=16, color=palette(dark).wrong, baseline="bottom"
    )


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
