"""One quantity of a lookup against the temperature of its softmax."""

from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette

_TEMPERATURE = "temperature (log scale)"


def temperature_curve(
    frame: pd.DataFrame,
    *,
    x_domain: tuple[float, float] = (0.01, 100.0),
    y_title: str = "largest weight",
    y_domain: tuple[float, float] = (0.0, 1.0),
    chosen_label: str = "chosen",
    title: str = "Largest weight",
    height: int = 240,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw a quantity against the temperature, with a rule at the chosen one.

    Args:
        frame: From ``tidy.temperature_frame``.
        x_domain: Ends of the axis of temperatures, which is logarithmic.
        y_title: Axis title with its unit.
        y_domain: Ends of the y axis.
        chosen_label: Words on the rule at the row whose role is "chosen".
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    across = alt.X(
        "temperature:Q",
        scale=marks.number_scale(x_domain, log=True, padding=8),
        axis=marks.number_axis(_TEMPERATURE, x_domain, log=True, grid=False),
    )
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(y_domain, padding=3),
        axis=marks.axis(y_title),
    )
    words = "'temperature ' + datum.temperature + ': ' + format(datum.value, '.3~g')"
    look: dict[str, Any] = {"color": palette(dark).right, "clip": True}
    swept = marks.rows_where("role", "sweep")
    layers = [
        swept.mark_line(strokeWidth=3, **look),
        swept.mark_point(
            filled=True, opacity=1, size=55, tooltip={"expr": words}, **look
        ),
    ]
    return marks.layered(
        frame,
        *(layer.encode(x=across, y=up) for layer in layers),
        *marks.chosen("temperature", chosen_label, dark=dark),
        title=title,
        height=height,
        dark=dark,
    )
