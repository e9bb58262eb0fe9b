"""Amounts of several parts as bars, the largest scale shared by all of them."""

import math
from collections.abc import Mapping

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_number

_ROOM = 1.25
_GROUPS = ("attention", "feed-forward", "norms", "ends")


def amounts_frame(amounts: Mapping[str, tuple[str, int]]) -> pd.DataFrame:
    """Return one row a part, for ``amounts``.

    Args:
        amounts: Part to its group ("attention", "feed-forward", "norms" or "ends") and
            its amount.

    Returns:
        A frame with the columns ``part, group, amount, share``; shares sum to 1.
    """
    total = sum(amount for _, amount in amounts.values())
    rows = [
        (part, group, amount, amount / total)
        for part, (group, amount) in amounts.items()
    ]
    return pd.DataFrame(rows, columns=["part", "group", "amount", "share"])


def amounts_limit(amounts: Mapping[str, tuple[str, int]]) -> float:
    """Return where the axis of ``amounts`` ends, with room for the longest bar's words.

    It is rounded up to two digits.
    """
    end = _ROOM * max(amount for _, amount in amounts.values())
    step = 10.0 ** (math.floor(math.log10(end)) - 1)
    return math.ceil(end / step - 1e-9) * step


def amounts(
    frame: pd.DataFrame,
    *,
    limit: float,
    x_title: str = "parameters",
    title: str = "Where the parameters sit",
    height: int = 380,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw one bar a part, with its amount and its share of all at the end.

    Args:
        frame: From ``amounts_frame``.
        limit: End of the axis, above 0; leave room for the words at the longest bar.
        x_title: Axis title with its unit.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``limit`` is not above 0.
    """
    require_number("limit", limit, 1e-12)
    shown = palette(dark)
    down = alt.Y(
        "part:N",
        sort=None,
        axis=marks.axis("part", ticks=False, labelLimit=220, labelOverlap=False),
    )
    across = alt.X(
        "amount:Q",
        scale=marks.number_scale((0.0, limit)),
        axis=marks.axis(x_title, format=",d", tickCount=6),
    )
    colours = (shown.series[0], shown.series[2], shown.series[4], shown.reference)
    share = marks.number_text("(100 * datum.share)", 1, whole=100)
    number = f"format(datum.amount, ',d') + ' · ' + {share} + ' %'"
    bar = alt.Chart().mark_bar(tooltip={"expr": f"datum.part + ': ' + {number}"})
    text = alt.Chart().mark_text(
        text={"expr": number}, align="left", dx=6, fontSize=13, color=shown.text
    )
    return marks.layered(
        frame,
        bar.encode(
            x=across,
            y=down,
            color=marks.named_colours(
                "group", _GROUPS, colours=colours, symbol="square"
            ),
        ),
        text.encode(x=across, y=down),
        title=title,
        height=height,
        dark=dark,
    )
