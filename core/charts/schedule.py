"""The learning rate over the steps of a run, beside the other schedules."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette

_DASHES = {"dotted": [2, 2], "dashed": [8, 3], "dash-dotted": [8, 3, 2, 3]}


def other_lines(series: Sequence[str], chosen: str) -> str:
    """Return which grey line of the picture is which schedule, as a sentence.

    Args:
        series: Names of all schedules, at most 3.
        chosen: Name of the one the run follows.
    """
    others = [
        f"{dash}, {name}"
        for dash, name in zip(_DASHES, series, strict=False)
        if name != chosen
    ]
    return f"Grey: {'; '.join(others)}."


def schedule_frame(
    rates: Mapping[str, Sequence[tuple[int, float]]],
    chosen: str,
    *,
    step: int | None = None,
) -> pd.DataFrame:
    """Return one row a step of each schedule, for ``schedule``.

    Args:
        rates: Name of a schedule -> (step, learning rate) pairs.
        chosen: Name of the one the run follows.
        step: The step looked at; None where there is none.

    Returns:
        A frame with the columns ``schedule, role, step, rate``; ``role`` is "current",
        "other" or "chosen", the last for the step looked at.
    """
    rows = [
        (name, "current" if name == chosen else "other", at, rate)
        for name, points in rates.items()
        for at, rate in points
    ]
    if step is not None:
        rows.append((chosen, "chosen", step, float("nan")))
    frame = pd.DataFrame(rows, columns=["schedule", "role", "step", "rate"])
    return frame.astype({"step": "int64", "rate": "float64"})


def schedule(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...],
    max_steps: int = 1000,
    most: float = 1.0,
    title: str = "Learning rate",
    height: int = 240,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the learning rate against steps; the schedule of the run is solid.

    The others are grey; ``other_lines`` tells which is which.

    Args:
        frame: From ``schedule_frame``.
        series: Names of all schedules, at most 3; each has its dash while it is
            not the run's.
        max_steps: End of the step axis.
        most: End of the axis of the rate.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    shown = palette(dark)
    across = alt.X(
        "step:Q",
        scale=alt.Scale(domain=[0, max_steps], nice=False),
        axis=marks.axis("step", format="d", tickMinStep=1, tickCount=5, grid=False),
    )
    up = alt.Y(
        "rate:Q",
        scale=marks.number_scale((0.0, most)),
        axis=marks.axis("learning rate", format="~g", tickCount=5),
    )
    words = (
        "datum.schedule + ', step ' + datum.step + ': rate '"
        " + format(datum.rate, '.3~g')"
    )
    dashes = alt.Scale(domain=list(series), range=[*_DASHES.values()][: len(series)])
    dash = alt.StrokeDash("schedule:N", scale=dashes, legend=None)
    names = {"current": "used", "other": "others"}
    colour = alt.Color(
        "role:N",
        scale=alt.Scale(domain=[*names], range=[shown.right, shown.kept]),
        legend=marks.role_names(names),
    )
    other = marks.rows_where("role", "other").mark_line(strokeWidth=1.5, clip=True)
    own = marks.rows_where("role", "current").mark_line(strokeWidth=2.5, clip=True)
    points = alt.Chart().transform_filter("datum.role !== 'chosen'")
    pointed = points.mark_point(
        opacity=0, size=60, filled=True, clip=True, tooltip={"expr": words}
    )
    return marks.layered(
        frame,
        other.encode(x=across, y=up, color=colour, strokeDash=dash),
        own.encode(x=across, y=up, color=colour, detail="schedule:N"),
        pointed.encode(x=across, y=up),
        *marks.chosen("step", "", dark=dark),
        title=title,
        height=height,
        dark=dark,
    )
