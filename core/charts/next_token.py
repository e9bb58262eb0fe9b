"""What a decoder gives to each token that could come next."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import RefusedError

ROLES = ("chosen, right", "chosen, wrong", "right, not chosen", "other")
_TENTHS = [tenth / 10 for tenth in range(11)]


def next_token_frame(
    tokens: Sequence[str], probabilities: Sequence[float], roles: Sequence[str]
) -> pd.DataFrame:
    """Return one row a token, in the order given, for ``next_token``.

    Args:
        tokens: Labels, all different.
        probabilities: One in [0, 1] a token.
        roles: One of ``ROLES`` a token.

    Returns:
        A frame with the columns ``token, probability, role``.

    Raises:
        ValueError: If the three have different lengths.
    """
    sizes = len(tokens), len(probabilities), len(roles)
    if len(set(sizes)) > 1:
        raise RefusedError(
            "tokens, probabilities and roles must be of one length, got {}, {}, "
            "{}".format(*sizes)
        )
    columns = {"token": tokens, "probability": probabilities, "role": roles}
    return pd.DataFrame(columns).astype({"probability": "float64"})


def next_token(
    frame: pd.DataFrame,
    *,
    title: str = "The next token",
    height: int = 300,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the probability of tokens as bars that lie, the largest on top.

    Args:
        frame: From ``next_token_frame``.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    shown = palette(dark)
    # Not in the order of the rows: a view that gets new rows keeps its old order.
    largest_first = alt.EncodingSortField("probability", "max", "descending")
    labels = marks.axis("token", ticks=False, labelOverlap=False)
    down = alt.Y("token:N", sort=largest_first, axis=labels)
    across = alt.X(
        "probability:Q",
        scale=marks.number_scale((0.0, 1.0)),
        axis=marks.axis("probability", values=_TENTHS, format=".1~f"),
    )
    colour = marks.named_colours(
        "role",
        ROLES,
        colours=(shown.right, shown.wrong, shown.value, shown.reference),
        symbol="square",
        columns=2,
    )
    number = marks.number_text("(100 * datum.probability)", 1, whole=100) + " + ' %'"
    words = f"datum.token + ' (' + datum.role + '): ' + {number}"
    bar = alt.Chart().mark_bar(tooltip={"expr": words})
    inside = "datum.probability > 0.8"  # no room is left beside a long bar
    text = alt.Chart().mark_text(
        text={"expr": number},
        align={"expr": f"{inside} ? 'right' : 'left'"},
        dx={"expr": f"{inside} ? -6 : 6"},
        fontSize=13,
        color={"expr": f"{inside} ? '{shown.background}' : '{shown.text}'"},
    )
    return marks.layered(
        frame,
        bar.encode(x=across, y=down, color=colour),
        text.encode(x=across, y=down),
        title=title,
        height=height,
        dark=dark,
    )
