"""A small grid of results: settings down, readouts across, one cell an accuracy."""

from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import DARK_INK, LIGHT_INK, VIRIDIS_INK_CHANGE, palette

_ENDS = (0.5, 1.0)  # a coin flip, and every answer right
_APART = 0.05  # seeds further apart than this show their range in the cell
_RANGE = (
    "format(100 * datum.low, '.1f') + ' to ' + format(100 * datum.high, '.1f') + ' %'"
)
_ROOM_FOR_RANGE = "bandwidth('x') > 84"
_WORDS = (
    "datum.setting + ', readout ' + datum.readout + ': '"
    " + format(100 * datum.mean, '.1f') + ' % on average over ' + datum.seeds"
    f" + ' seeds, from ' + {_RANGE}"
)


def grid(
    frame: pd.DataFrame,
    *,
    title: str = "Test accuracy: mean; range if seeds differ by over 5 points",
    height: int = 340,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw accuracies as cells with their percent, on viridis from 0.5 to 1.

    A cell whose seeds lie more than 5 points apart carries their range as well.

    Args:
        frame: From ``records.grid_frame``.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    down = alt.Y(
        "setting:N", sort=None,
        axis=marks.axis("what may carry the order", ticks=False, domain=False,
                        labelLimit=220),
    )  # fmt: skip
    across = alt.X(
        "readout:N",
        sort=None,
        axis=marks.axis("readout", ticks=False, domain=False),
    )
    colour = alt.Color(
        "mean:Q",
        scale=alt.Scale(scheme="viridis", domain=list(_ENDS), clamp=True),
        legend=None,  # every cell carries its number
    )
    says: Any = {"expr": _WORDS}
    cells = alt.Chart().mark_rect(
        stroke=palette(dark).background, strokeWidth=2, tooltip=says
    )
    layers = [cells.encode(color=colour), *_texts(says)]
    return marks.layered(
        frame,
        *(layer.encode(x=across, y=down) for layer in layers),
        title=title,
        height=height,
        dark=dark,
    )


def _texts(says: Any) -> list[alt.Chart]:
    """Return the numbers of the cells, and below them the range of the seeds."""
    apart = f"datum.high - datum.low > {_APART:g}"
    low, high = _ENDS
    change = low + VIRIDIS_INK_CHANGE * (high - low)
    ink: Any = {"expr": f"datum.mean < {change:g} ? '{LIGHT_INK}' : '{DARK_INK}'"}
    mean = alt.Chart().mark_text(
        text={"expr": "format(100 * datum.mean, '.1f') + ' %'"},
        dy={"expr": f"{apart} && {_ROOM_FOR_RANGE} ? -7 : 0"},
        fontSize=15,
        color=ink,
        tooltip=says,
    )
    spread = alt.Chart().mark_text(
        text={"expr": f"{apart} && {_ROOM_FOR_RANGE} ? {_RANGE} : ''"},
        dy=11,
        fontSize=12,
        color=ink,
        tooltip=says,
    )
    return [mean, spread]
