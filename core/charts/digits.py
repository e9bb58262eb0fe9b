"""The binary counter that sinusoids are a smooth relative of."""

import altair as alt
import pandas as pd

from core.charts import marks
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
        frame: From ``tidy.digits_frame``.
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
        title=title,
        height=height,
        dark=dark,
    )
