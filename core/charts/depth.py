"""Pictures of deep stacks: sizes layer by layer, runs step by step, how they ended."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_choice

_COIN_WORDS = "always p = 1/2: ln 2 = 0.693"
_COIN = 0.6931471805599453  # ln 2, the loss of always answering p = 1/2
_NUM_COLOURS = 2  # of pre-norm and post-norm
_RUN_COLUMNS = ("series", "run", "at", "value")
_OUTCOME_COLUMNS = ("series", "run", "depth", "loss", "accuracy")


class RunLines(NamedTuple):
    """What lines of several runs show: titles, tooltip, ends of the y axis."""

    x_title: str
    y_title: str
    words: str  # Vega expression: what a point says
    ends: tuple[float, float]
    log: bool
    coin: bool  # whether the loss of a coin flip is marked
    points: bool  # whether every number is a visible point


_AT_LAYER = "datum.series + datum.run + ', layer ' + datum.at + ': '"
RUN_LINES = {
    "tokens": RunLines(
        "layers passed", "RMS of the tokens (log scale)",
        f"{_AT_LAYER} + 'root mean square ' + format(datum.value, '.3~g')",
        (0.1, 10.0), log=True, coin=False, points=True,
    ),
    "gradient": RunLines(
        "layer", "length of its gradient (log scale)",
        f"{_AT_LAYER} + 'gradient of length ' + format(datum.value, '.3~g')",
        (0.01, 100.0), log=True, coin=False, points=True,
    ),
    "loss": RunLines(
        "step", "loss (nats)",
        "datum.series + datum.run + ', step ' + datum.at + ': loss '"
        " + format(datum.value, '.3f')",
        (0.0, 1.5), log=False, coin=True, points=False,
    ),
}  # fmt: skip


def runs_frame(
    runs: Mapping[tuple[str, str], Sequence[tuple[int, float]]],
) -> pd.DataFrame:
    """Return the points of several runs, for ``run_lines``.

    Args:
        runs: (series, words on the run such as ", seed 1") to (place, value) pairs.

    Returns:
        A frame with the columns ``series, run, at, value``.
    """
    rows = [
        (series, run, at, value)
        for (series, run), points in runs.items()
        for at, value in points
    ]
    frame = pd.DataFrame(rows, columns=list(_RUN_COLUMNS))
    return frame.astype({"at": np.int64, "value": np.float64})


def norm_points(
    runs: Mapping[tuple[str, str], Any], kind: str
) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Return the sizes of each run as points, for ``runs_frame``.

    Args:
        runs: (series, words on the run) to its ``activations``, which start before
            the first layer, and its ``gradients``, which start at it.
        kind: "tokens" or "gradient".
    """
    first, field = (0, "activations") if kind == "tokens" else (1, "gradients")
    return {
        run: list(enumerate(getattr(norms, field).tolist(), start=first))
        for run, norms in runs.items()
    }


def run_lines(
    frame: pd.DataFrame,
    *,
    kind: str = "tokens",
    series: tuple[str, ...],
    x_domain: tuple[float, float],
    y_domain: tuple[float, float] | None = None,
    title: str = "Runs",
    height: int = 300,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw one line a run; runs of one series share colour, dash and point shape.

    Of four series the last two have the colours of the first two, dashed.

    Args:
        frame: From ``runs_frame``.
        kind: "tokens", "gradient" or "loss".
        series: Names in the order of their colours.
        x_domain: Ends of the axis of layers or steps.
        y_domain: Ends of the y axis; None means those of the kind.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` is unknown.
    """
    require_choice("kind", kind, RUN_LINES)
    what = RUN_LINES[kind]
    ends = y_domain or what.ends
    across = alt.X(
        "at:Q", scale=marks.number_scale(x_domain, padding=8),
        axis=marks.axis(what.x_title, format="d", tickMinStep=1, grid=False),
    )  # fmt: skip
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(ends, log=what.log, padding=3),
        axis=marks.number_axis(what.y_title, ends, log=what.log),
    )
    symbol = None if what.points else "stroke"
    colours = _colours(dark)
    colour = marks.named_colours("series", series, colours=colours, symbol=symbol)
    line = alt.Chart().mark_line(strokeWidth=2, clip=True)
    point = alt.Chart().mark_point(
        filled=True, size=45, opacity=1 if what.points else 0, clip=True,
        tooltip={"expr": what.words},
    )  # fmt: skip
    # Shapes where there are points, dashes where there is but a line.
    if what.points:
        point = point.encode(shape=marks.named_shapes("series", series))
    if not what.points or len(series) > _NUM_COLOURS:
        line = line.encode(strokeDash=_dashes(series, symbol))
    if len(series) > _NUM_COLOURS:
        for channel in (colour, point.encoding.shape, line.encoding.strokeDash):
            channel["legend"]["columns"] = _NUM_COLOURS
    coin = marks.level(_COIN, _COIN_WORDS, dark=dark)
    return marks.layered(
        frame,
        line.encode(x=across, y=up, color=colour, detail="run:N"),
        point.encode(x=across, y=up, color=colour),
        *(coin if what.coin else []),
        title=title,
        height=height,
        dark=dark,
    )


def outcomes_frame(
    runs: Sequence[tuple[str, str, int, float, float]], *, chosen: int | None = None
) -> pd.DataFrame:
    """Return one row a run, for ``outcomes``.

    Args:
        runs: Series, words on the run, depth, final loss, test accuracy in [0, 1].
        chosen: The depth to be marked; None marks none.

    Returns:
        A frame with the columns ``series, run, depth, loss, accuracy, chosen``.
    """
    frame = pd.DataFrame(runs, columns=list(_OUTCOME_COLUMNS))
    return frame.assign(chosen=frame["depth"] == chosen)


def outcomes(
    frame: pd.DataFrame,
    *,
    series: tuple[str, ...],
    runs: tuple[str, ...],
    title: str = "Final loss of every run",
    height: int = 300,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the final loss of every run over its depth, all of them side by side.

    A band stands behind the depth that is chosen.

    Args:
        frame: From ``outcomes_frame``.
        series: Names in the order of their colours and point shapes.
        runs: Words on the runs of each series, in their order from left to right.
        title: Title of the picture.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.
    """
    across = alt.X(
        "depth:N", sort=None, axis=marks.axis("layers", grid=True, tickBand="extent")
    )
    left = across.copy().bandPosition(0)
    places = [name + run for name in series for run in runs]
    beside = alt.XOffset("place:N", scale=alt.Scale(domain=places))
    up = alt.Y(
        "loss:Q",
        scale=marks.number_scale((0.0, 1.0), padding=6, clamp=True),
        axis=marks.axis("loss, last steps (nats)"),
    )
    words = (
        "datum.series + datum.run + ', ' + datum.depth + ' layers: loss '"
        " + format(datum.loss, '.3f') + ', ' + format(100 * datum.accuracy, '.1f')"
        " + ' % of the test sequences right'"
    )
    look: dict[str, Any] = {"filled": True, "size": 90, "opacity": 1}
    placed = alt.Chart().transform_calculate(place="datum.series + datum.run")
    dots = placed.mark_point(tooltip={"expr": words}, **look)
    return marks.layered(
        frame,
        _band(dark).encode(x=left, x2=alt.X2("depth:N", bandPosition=1)),
        dots.encode(
            x=across,
            xOffset=beside,
            y=up,
            color=marks.named_colours("series", series, colours=_colours(dark)),
            shape=marks.named_shapes("series", series),
        ),
        *_coin_on_the_left(dark),
        title=title,
        height=height,
        dark=dark,
    )


def _band(dark: bool) -> alt.Chart:
    """Return a band at the chosen depth; every row stays, and with it the order."""
    rows = alt.Chart().transform_window(rank="row_number()", groupby=["depth"])
    seen = "datum.chosen && datum.rank === 1 ? 0.25 : 0"
    return rows.mark_rect(
        color=palette(dark).reference,
        opacity={"expr": seen},
    )


def _coin_on_the_left(dark: bool) -> list[alt.Chart]:
    """Return the line of a coin flip with its words where shallow stacks learn."""
    line, *words = marks.level(_COIN, _COIN_WORDS, dark=dark)
    for text in words:
        text.mark.align, text.mark.dx = "left", 4
    return [line, *(text.encode(x=alt.value(0)) for text in words)]


def _dashes(series: tuple[str, ...], symbol: str | None) -> alt.StrokeDash:
    """Return solid lines for the first half of the series, dashes for the others."""
    kinds = (marks.SOLID, marks.DASHES)
    dashes = [kinds[2 * index // len(series)] for index in range(len(series))]
    scale = alt.Scale(domain=list(series), range=dashes)
    return alt.StrokeDash("series:N", scale=scale, legend=marks.legend(symbol))


def _colours(dark: bool) -> tuple[str, ...]:
    """Return the colours of pre-norm and post-norm, the same in every picture."""
    return palette(dark).series[:_NUM_COLOURS]
