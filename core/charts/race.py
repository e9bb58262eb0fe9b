"""A race of models: thin lines for the seeds, a thick one for their median."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_choice

_ENDS = {"accuracy": (0.0, 100.0), "loss": (0.0, 1.2)}
_TITLES = {"accuracy": "test accuracy (%)", "loss": "training loss (nats)"}
_COINS = {"accuracy": (50.0, "coin flip: 50 %"), "loss": (0.6931472, "ln 2 = 0.693")}
_AGAINST = {"steps": "steps of training", "seconds": "seconds of training"}
_SHAPE_EVERY = 4  # a median carries its point shape at every such point
_SHAPES_ALONG = 6  # a ruler carries about so many

Points = Sequence[tuple[int, float, float]]


def race_frame(
    seeds: Mapping[tuple[str, int], Points],
    medians: Mapping[str, Points],
    *,
    against: str = "steps",
) -> pd.DataFrame:
    """Return the points of all curves, for ``race``.

    Args:
        seeds: Contender and seed -> points (steps, seconds, value).
        medians: Contender -> points.
        against: "steps" or "seconds": which of both lies across.

    Returns:
        A frame with the columns ``series, seed, role, x, value, shaped``; ``role`` is
        "seed" or "median". It has at least one row, if without a value.
    """
    require_choice("against", against, _AGAINST)
    across = 0 if against == "steps" else 1
    rows = [
        (name, f"seed {seed}", "seed", float(point[across]), point[2], False)
        for (name, seed), points in seeds.items()
        for point in points
    ]
    rows += [
        (name, "median", "median", float(p[across]), p[2], i % _SHAPE_EVERY == 0)
        for name, points in medians.items()
        for i, p in enumerate(points)
    ]
    names = ["series", "seed", "role", "x", "value", "shaped"]
    return pd.DataFrame(
        rows or [("", "", "median", np.nan, np.nan, False)], columns=names
    )


def race(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...],
    kind: str = "accuracy",
    against: str = "steps",
    x_end: float = 300.0,
    dashed: bool = False,
    title: str = "Race",
    height: int = 340,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the curves of a race on axes that do not move with its rows.

    Args:
        frame: From ``race_frame``.
        series: The contenders in the order of their colours and point shapes.
        kind: "accuracy" or "loss".
        against: "steps" or "seconds".
        x_end: End of the axis across.
        dashed: Whether medians are dashed, as those of shipped runs are.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` or ``against`` is unknown.
    """
    require_choice("kind", kind, _ENDS)
    require_choice("against", against, _AGAINST)
    across = alt.X(
        "x:Q",
        scale=marks.number_scale((0.0, x_end)),
        axis=marks.axis(_AGAINST[against], tickCount=6, grid=False),
    )
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(_ENDS[kind], padding=3, clamp=True, zero=False),
        axis=marks.axis(_TITLES[kind]),
    )
    colour = marks.named_colours("series", series, colours=palette(dark).series)
    place = {"x": across, "y": up, "color": colour}
    form, unit = ("'.1f'", "' %'") if kind == "accuracy" else ("'.3f'", "''")
    at = "format(datum.x, 'd') + ' steps'"
    if against == "seconds":
        at = "format(datum.x, '.1f') + ' s'"
    words = (
        "datum.series + ', median after ' + "
        f"{at} + ': ' + format(datum.value, {form}) + {unit}"
    )
    thin = marks.rows_where("role", "seed").mark_line(
        strokeWidth=1, opacity=0.4, clip=True
    )
    median = marks.rows_where("role", "median")
    dash = marks.DASHES if dashed else marks.SOLID
    return marks.layered(
        frame,
        *marks.level(*_COINS[kind], below=True, dark=dark),
        thin.encode(**place, detail="seed:N"),
        median.mark_line(strokeWidth=2.5, strokeDash=dash, clip=True).encode(**place),
        median.transform_filter("datum.shaped")
        .mark_point(**_points(words))
        .encode(**place, shape=marks.named_shapes("series", series)),
        title=title,
        height=height,
        dark=dark,
    )


def ruler_frame(
    read: Mapping[str, Sequence[float]], *, floor: float = 1e-16
) -> pd.DataFrame:
    """Return the rulers of all contenders, for ``gradient_ruler``.

    Args:
        read: Contender -> one number a position.
        floor: What lies below has no number: a logarithmic axis that ends there cannot
            show it.

    Returns:
        A frame with the columns ``series, position, value, shaped``, of at least one
        row.
    """
    rows = [
        (name, place, value if value >= floor else np.nan, not place % _stride(values))
        for name, values in read.items()
        for place, value in enumerate(values)
    ]
    return pd.DataFrame(
        rows or [("", 0, np.nan, False)],
        columns=["series", "position", "value", "shaped"],
    )


def gradient_ruler(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...],
    seq_len: int = 60,
    floor: float = 1e-16,
    dashed: bool = False,
    title: str = "Gradient ruler",
    height: int = 340,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw how strongly the loss reads each position, on a logarithmic axis.

    Args:
        frame: From ``ruler_frame``.
        series: The contenders in the order of their colours and point shapes.
        seq_len: Number of positions.
        floor: Where the axis begins.
        dashed: Whether lines are dashed, as those of shipped runs are.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    across = alt.X(
        "position:Q",
        scale=marks.number_scale((0.0, seq_len - 1.0), padding=8),
        axis=marks.axis(
            "position t (the marker stands at 0)",
            format="d",
            tickMinStep=1,
            tickCount=6,
            grid=False,
        ),
    )
    ends = (floor, 1.0)
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(ends, log=True, padding=3, clamp=True),
        axis=marks.number_axis(
            "mean |∂loss/∂xₜ| (log scale)", ends, log=True, tickCount=9
        ),
    )
    colour = marks.named_colours("series", series, colours=palette(dark).series)
    place = {"x": across, "y": up, "color": colour}
    words = (
        "datum.series + ', position ' + datum.position + ': '"
        " + format(datum.value, '.1e')"
    )
    dash = marks.DASHES if dashed else marks.SOLID
    some = alt.Chart().transform_filter("datum.shaped")
    return marks.layered(
        frame,
        alt.Chart()
        .mark_line(strokeWidth=2.5, strokeDash=dash, clip=True)
        .encode(**place),
        some.mark_point(**_points(words)).encode(
            **place, shape=marks.named_shapes("series", series)
        ),
        title=title,
        height=height,
        dark=dark,
    )


def _stride(values: Sequence[float]) -> int:
    return max(1, len(values) // _SHAPES_ALONG)


def _points(words: str) -> dict[str, Any]:
    """Return the looks of points that say ``words`` when pointed at."""
    look = {"filled": True, "opacity": 1, "size": 55, "clip": True}
    return look | {"tooltip": {"expr": words}}
