"""Rows of positions with one marked: a binary counter, and heat maps beside it."""

from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.heatmap import heatmap
from core.charts.palette import palette


def digits(
    frame: pd.DataFrame,
    *,
    title: str = "Counting in binary",
    height: int = 320,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the binary digits of each position: the first flips fastest.

    Args:
        frame: From ``tidy.digits_frame``, with the column ``marked``: whether the
            position is framed.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    shown = palette(dark)
    across = alt.X("bit:N", sort=None, axis=marks.axis("bit (0 flips fastest)"))
    up = alt.Y("position:N", sort=None, axis=marks.axis("position"))
    words = "'position ' + datum.position + ', bit ' + datum.bit + ': ' + datum.digit"
    cell = alt.Chart().mark_rect(
        stroke=shown.background, strokeWidth=1, tooltip={"expr": words}
    )
    colour = alt.Color(
        "digit:N",
        scale=alt.Scale(domain=[0, 1], range=[shown.masked, shown.right]),
        legend=None,
    )
    ink = f"datum.digit === 1 ? '{shown.background}' : '{shown.text}'"
    number = (
        alt.Chart().mark_text(fontSize=12, color={"expr": ink}).encode(text="digit:N")
    )
    return marks.layered(
        frame,
        cell.encode(x=across, y=up, color=colour),
        number.encode(x=across, y=up),
        frame_of_row("position", dark=dark).encode(y=up),
        title=title,
        height=height,
        dark=dark,
    )


def marked_heatmap(
    frame: pd.DataFrame, *, dark: bool = False, **options: Any
) -> alt.LayerChart:
    """Draw a heat map of positions with a frame round each marked row.

    Args:
        frame: As for ``heatmap``, of the kind "similarity" or "encoding", with the
            column ``marked``: whether the position is framed.
        dark: Whether the theme is dark.
        **options: Options of ``heatmap``.
    """
    chart = heatmap(frame, dark=dark, **options)
    up = alt.Y("position:N", sort=None)
    chart.layer.append(frame_of_row("position", dark=dark).encode(y=up))
    return chart


def frame_of_row(field: str, *, dark: bool) -> alt.Chart:
    """Return a frame round each row of ``field`` that is marked."""
    return (
        alt.Chart()
        .transform_filter("datum.marked")
        .transform_aggregate(cells="count()", groupby=[field])
        .mark_rect(filled=False, stroke=palette(dark).text, strokeWidth=2)
        .encode(x=alt.value(0), x2=alt.value("width"))
    )
