"""One sequence of numbers, and the marker in it that decides its class."""

from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette

_ENDS = (-1.15, 1.9)  # values lie in [-1, 1]; the name of the marker stands above
_NAME_AT = 1.5
_WORDS = (
    "datum.series + ', position ' + datum.position + ': ' + format(datum.value, '+.3f')"
)


def sequence(
    frame: pd.DataFrame,
    *,
    num_positions: int,
    marker: int = 0,
    title: str = "One test sequence",
    height: int = 140,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the values of a sequence over its positions, the marker in a colour.

    Args:
        frame: From ``tidy.curves_frame``, with one curve.
        num_positions: Length of the sequence.
        marker: Position of the marker.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    shown = palette(dark)
    across = alt.X(
        "position:Q",
        scale=alt.Scale(nice=False, padding=10, domain=[0, num_positions - 1]),
        axis=marks.axis("position", format="d", tickMinStep=1, grid=False),
    )
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(_ENDS),
        axis=marks.axis("value", values=[-1, 0, 1], format="d"),
    )
    is_marker = f"datum.position === {marker}"
    looks = ((f"!({is_marker})", shown.kept, 1.5, 25), (is_marker, shown.key, 4, 110))
    says: Any = {"expr": _WORDS}
    layers = []
    for rows, colour, width, size in looks:
        one = alt.Chart().transform_filter(rows)
        layers.append(
            one.mark_rule(strokeWidth=width, color=colour).encode(
                x=across, y=up, y2=alt.Y2Datum(0)
            )
        )
        layers.append(
            one.mark_point(
                filled=True, opacity=1, size=size, color=colour, tooltip=says
            ).encode(x=across, y=up)
        )
    name = alt.Chart().transform_filter(is_marker).mark_text(
        text="marker", color=shown.key, align="left", dx=-6, fontSize=13,
        fontWeight="bold",
    )  # fmt: skip
    return marks.layered(
        frame,
        *layers,
        name.encode(x=across, y=alt.YDatum(_NAME_AT)),
        title=title,
        height=height,
        dark=dark,
    )
