"""A number at each position of a sequence, and the marker that decides its class."""

from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_number

_BELOW = 0.15  # of the limit, below the lowest value
_NAME_AT = 0.55  # where the name of the marker stands, as a share of the room above
_WORDS = "datum.series + ', position ' + datum.position + ': ' + format(datum.value, "


def sequence(
    frame: pd.DataFrame,
    *,
    num_positions: int,
    marker: int = 0,
    limit: float = 1.0,
    signed: bool = True,
    room: float = 0.9,
    y_title: str = "value",
    title: str = "One test sequence",
    height: int = 140,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the values of a sequence over its positions, the marker in a colour.

    Args:
        frame: From ``tidy.curves_frame``, with one curve.
        num_positions: Length of the sequence.
        marker: Position of the marker.
        limit: Largest value to be drawn.
        signed: Whether the axis starts at ``-limit`` and not at 0.
        room: Height above the limit for the marker's name, as a share of the limit.
        y_title: Axis title with its unit.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``limit`` is not above 0.
    """
    require_number("limit", limit, 1e-12)
    lowest = -limit if signed else 0.0
    ends = lowest - _BELOW * limit * signed, (1 + room) * limit
    shown = palette(dark)
    across = alt.X(
        "position:Q",
        scale=alt.Scale(nice=False, padding=10, domain=[0, num_positions - 1]),
        axis=marks.axis("position", format="d", tickMinStep=1, grid=False),
    )
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(ends),
        axis=marks.axis(y_title, values=sorted({lowest, 0.0, limit}), format="~r"),
    )
    is_marker = f"datum.position === {marker}"
    looks = ((f"!({is_marker})", shown.kept, 1.5, 25), (is_marker, shown.key, 4, 110))
    number = "'+.3~g'" if signed else "'.3~g'"
    says: Any = {"expr": f"{_WORDS}{number})"}
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
        name.encode(x=across, y=alt.YDatum((1 + _NAME_AT * room) * limit)),
        title=title,
        height=height,
        dark=dark,
    )
