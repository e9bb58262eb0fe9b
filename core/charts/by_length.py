"""Share of right answers against length: a thin line a seed, a thick one the median."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from core.charts import marks
from core.charts.palette import palette

HERE = "run here"  # the name of the curve of a run made here
_COLUMNS = ("length", "series", "seed", "role", "share")
_WORDS = (
    "datum.series + (datum.role === 'median' ? ', median of the seeds' : '')"
    " + ', length ' + datum.length + ': '"
)

Points = Sequence[tuple[int, float]]


def by_length_frame(
    seeds: Mapping[tuple[str, int], Points],
    medians: Mapping[str, Points],
    *,
    here: Points | None = None,
) -> pd.DataFrame:
    """Return the points of all curves, for ``by_length``.

    Args:
        seeds: Series and seed -> points (length, share in [0, 1]).
        medians: Series -> points.
        here: Points of a run made here; None for none.

    Returns:
        A frame with the columns ``length, series, seed, role, share``; ``role`` is
        "seed", "median" or "here".
    """
    rows = [
        (float(length), name, f"seed {seed}", "seed", share)
        for (name, seed), points in seeds.items()
        for length, share in points
    ]
    for role, curves in (("median", medians), ("here", {HERE: here or ()})):
        rows += [
            (float(length), name, role, role, share)
            for name, points in curves.items()
            for length, share in points
        ]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.astype({"length": np.float64, "share": np.float64})


def by_length(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...],
    x_domain: tuple[float, float],
    y_title: str = "strings right",
    with_here: bool = True,
    title: str = "Right answers by length",
    height: int = 380,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw shares of right answers against the length of the source.

    Args:
        frame: From ``by_length_frame``.
        series: Names of the curves in the order of their colours and point shapes.
        x_domain: Shortest and longest length.
        y_title: What is counted; the axis is a share from 0 to 100 %.
        with_here: Whether the legend names a run made here.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    shown = palette(dark)
    names, colours = series, shown.series[: len(series)]
    if with_here:
        names, colours = (*names, HERE), (*colours, shown.text)
    step = 2.0
    across = alt.X(
        "length:Q",
        scale=marks.number_scale(x_domain, padding=14),
        axis=marks.axis(
            "length of the source (letters)",
            values=[*np.arange(x_domain[0], x_domain[1] + 1, step).tolist()],
            format="d",
            grid=False,
        ),
    )
    up = alt.Y(
        "share:Q",
        scale=marks.number_scale((0.0, 1.0), padding=8),
        axis=marks.axis(y_title, format="%", tickCount=5),
    )
    place: dict[str, Any] = {
        "x": across,
        "y": up,
        "color": marks.named_colours("series", names, colours=colours),
    }
    share = marks.number_text("(100 * datum.share)", 1, whole=100)
    points: dict[str, Any] = {"filled": True, "opacity": 1, "size": 70}
    points["tooltip"] = {"expr": f"{_WORDS} + {share} + ' %'"}
    seed = marks.rows_where("role", "seed").mark_line(strokeWidth=1, opacity=0.45)
    median, here = (marks.rows_where("role", role) for role in ("median", "here"))
    drawn = alt.Chart().transform_filter("datum.role !== 'seed'")
    return marks.layered(
        frame,
        seed.encode(**place, detail="seed:N"),
        median.mark_line(strokeWidth=3).encode(**place),
        here.mark_line(strokeWidth=2.5, strokeDash=marks.DASHES).encode(**place),
        drawn.mark_point(**points).encode(
            **place, shape=marks.named_shapes("series", names)
        ),
        title=title,
        height=height,
        dark=dark,
    )
