"""Results of a grid over the levels of one factor, coloured by those of another."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_choice

_COLUMNS = ("x", "place", "low", "mean", "high", "words")
_COIN_WORDS = "a coin flip"
_ROW = 60  # characters of names that fit in one row of the legend
ENDS = (0.0, 1.0)  # of every measure; a larger loss stands at the upper end
_COIN = {"accuracy": 0.5, "moved": 0.5, "loss": 0.6931471805599453}


def experiments_frame(
    cells: Sequence[tuple[str, str, Sequence[float], str]],
) -> pd.DataFrame:
    """Return one row a cell, for ``experiments``.

    Args:
        cells: Level on the x axis, words on all its other levels, one value a seed,
            the whole cell in words.

    Returns:
        A frame with the columns ``x, place, low, mean, high, words``.
    """
    rows = [
        (x, place, min(v), sum(v) / len(v), max(v), words)
        for x, place, v, words in cells
    ]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def experiments(
    frame: pd.DataFrame,
    *,
    measure: str = "accuracy",
    x_title: str = "level",
    y_title: str = "test accuracy",
    series: tuple[str, ...],
    places: tuple[str, ...],
    title: str = "Mean of the seeds, and their range",
    height: int = 340,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the mean of each cell as a point on the range of its seeds.

    Args:
        frame: From ``experiments_frame``.
        measure: "accuracy", "moved" or "loss"; decides the unit of the axis.
        x_title: The factor on the x axis.
        y_title: What is measured.
        series: The name of the colour of each place, aligned with ``places``.
        places: Words on the cells of one level, in their order from left to right;
            each has a point shape of its own, so that none rests on its order alone.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``measure`` is unknown.
    """
    require_choice("measure", measure, _COIN)
    share = measure != "loss"
    across = alt.X(
        "x:N", sort=None, axis=marks.axis(x_title, grid=True, tickBand="extent")
    )
    beside = alt.XOffset("place:N", scale=alt.Scale(domain=list(places)))
    labels: dict[str, Any] = {"format": "%"} if share else {}
    scale = marks.number_scale(ENDS, padding=8, clamp=True)
    axis = marks.axis(y_title if share else f"{y_title} (nats)", **labels)
    mean, low = (alt.Y(f"{end}:Q", scale=scale, axis=axis) for end in ("mean", "low"))
    form = ".1%" if share else ".3f"
    says: Any = {
        "expr": f"datum.words + ': ' + format(datum.mean, '{form}') + ' on average, '"
        f" + format(datum.low, '{form}') + ' to ' + format(datum.high, '{form}')"
    }
    columns = _columns_of_legend(places)
    own = _colours(series, palette(dark).series)
    colour = marks.named_colours("place", places, colours=own, columns=columns)
    shape = marks.named_shapes("place", places, columns=columns)
    point = alt.Chart().mark_point(filled=True, size=110, opacity=1, tooltip=says)
    spread = alt.Chart().mark_rule(strokeWidth=3, opacity=0.6, tooltip=says)
    placed = {"x": across, "xOffset": beside, "color": colour}
    return marks.layered(
        frame,
        *marks.level(_COIN[measure], _COIN_WORDS, dark=dark),
        spread.encode(**placed, y=low, y2="high:Q"),
        point.encode(**placed, y=mean, shape=shape),
        title=title,
        height=height,
        dark=dark,
    )


def _colours(series: Sequence[str], colours: Sequence[str]) -> tuple[str, ...]:
    """Return the colour of each place: one a name, in the order of the names."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(series))}
    return tuple(colours[numbers[name] % len(colours)] for name in series)


def _columns_of_legend(places: Sequence[str]) -> int | None:
    """Return in how many columns long names stand; short ones stand in one row."""
    if len("".join(places)) <= _ROW:
        return None
    return 2 if len(places) <= 4 else 3
