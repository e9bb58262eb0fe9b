"""Curves of a run that is still going on."""

import math

import altair as alt
import pandas as pd

from core.charts import marks
from core.charts.palette import palette
from core.checks import require_choice, require_int

_LOSS_END = 1.0  # a curve above it leaves the picture
_ACCURACY_START = 40.0
# Of kept runs; solid and dotted are those of named curves.
_KEPT_DASHES = ([8, 3], [8, 3, 2, 3], [4, 2], [12, 4], [12, 3, 2, 3, 2, 3])


def live_curves(
    frame: pd.DataFrame,
    *,
    kind: str = "loss",
    max_steps: int = 1000,
    ends: tuple[float, float] | None = None,
    level: tuple[float, str] | None = None,
    named: tuple[tuple[str, str], ...] = (),
    title: str | None = None,
    y_title: str | None = None,
    height: int = 240,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw loss or accuracy against steps on axes that never move.

    The current run is solid, runs kept for comparison are thin and grey, each with a
    dash of its own and its name in the picture. Of a task of two classes a dashed line
    marks the loss of always answering ``p = 1/2``, ``ln 2 = 0.693``, and an accuracy of
    50 %. A cross stands at a step that could not be taken. Words stand before the lines
    that cross them.

    Args:
        frame: From ``records.live_frame``; accuracy in percent.
        kind: "loss" or "accuracy".
        max_steps: End of the step axis.
        ends: Ends of the y axis of another task, which has its own ``level``. Its
            accuracy may run anywhere, so kept runs are named in the picture of its
            loss, with the same dashes, and when pointed at.
        level: A value of that task to compare with, and its words; None draws none.
        named: Roles with their words, for a row of names above the picture: "current",
            "part", dotted, another measure of the current run, and "shipped", grey.
        title: Title of the picture in place of the usual one.
        y_title: Title of the y axis in place of the usual one, with its unit.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` is unknown or ``max_steps`` is below 1.
    """
    require_choice("kind", kind, ("loss", "accuracy"))
    require_int("max_steps", max_steps, 1)
    if kind == "loss":
        usual_ends, unit, usual = (0.0, _LOSS_END), "loss (nats)", "Training loss"
        coin = math.log(2), "always p = 1/2: ln 2 = 0.693"
    else:
        usual_ends, unit = (_ACCURACY_START, 100.0), "test accuracy (%)"
        coin, usual = (50.0, "coin flip: 50 %"), "Test accuracy"
    compared = coin if ends is None else level
    across = alt.X(
        "step:Q", scale=alt.Scale(domain=[0, max_steps], nice=False),
        axis=marks.axis("step", format="d", tickMinStep=1, tickCount=8, grid=False),
    )  # fmt: skip
    up = alt.Y(
        "value:Q",
        scale=marks.number_scale(ends or usual_ends, padding=3),
        axis=marks.axis(y_title or unit),
    )
    names = _kept_names(kind, own_task=ends is not None, dark=dark)
    layers = [*_lines(names, named, dark=dark), _points(kind)]
    return marks.layered(
        frame,
        *(layer.encode(x=across, y=up) for layer in layers),
        *marks.chosen("step", "", dark=dark),
        *(marks.level(*compared, dark=dark) if compared else ()),
        _cross(dark=dark).encode(x=across, y=alt.value("height")),
        title=title or usual,
        height=height,
        dark=dark,
    ).resolve_scale(  # of kept runs and of named curves
        color="independent", strokeDash="independent"
    )


def _kept_names(kind: str, *, own_task: bool, dark: bool) -> alt.Legend | None:
    """Return the names of kept runs, inside, so that no axis moves when one is kept.

    They stand where no curve of a run that learns goes.
    """
    if kind == "accuracy" and own_task:
        return None
    # Right of where the curve falls or rises; below the level and its words, or 100 %.
    offset = 14 if kind == "accuracy" else 30 if own_task else 48
    shown = palette(dark)
    return alt.Legend(
        title=None,
        orient="top-right",
        offset=offset,
        rowPadding=0,
        labelLimit=170,
        symbolSize=400,  # long enough to tell dashes
        symbolStrokeColor=shown.kept,
        symbolStrokeWidth=2,
        fillColor=shown.background,
        padding=0,  # so that nothing is seen while it is empty
        zindex=1,
    )


def _lines(
    names: alt.Legend | None, named: tuple[tuple[str, str], ...], *, dark: bool
) -> list[alt.Chart]:
    shown = palette(dark)
    dashes = alt.Scale(range=_KEPT_DASHES)
    kept = marks.rows_where("role", "kept").mark_line(
        strokeWidth=1.5, color=shown.kept, clip=True
    )
    kept = kept.encode(strokeDash=alt.StrokeDash("run:N", scale=dashes, legend=names))
    if named:
        return [kept, *_named_lines(named, dark=dark)]
    current = marks.rows_where("role", "current").mark_line(
        strokeWidth=2, color=shown.right, clip=True
    )
    return [kept, current.encode(detail="run:N")]


def _named_lines(named: tuple[tuple[str, str], ...], *, dark: bool) -> list[alt.Chart]:
    """Return the curves that have a role, with their names in a row above."""
    shown = palette(dark)
    looks = {
        "current": (shown.right, marks.SOLID),
        "part": (shown.right, [2, 2]),
        "shipped": (shown.kept, marks.SOLID),
    }
    roles = [role for role, _ in named]
    legend = marks.role_names(dict(named))
    colours, dashes = zip(*(looks[role] for role in roles), strict=True)
    rows = alt.Chart().transform_filter(alt.FieldOneOfPredicate("role", roles))
    line = rows.mark_line(strokeWidth=2, clip=True).encode(
        detail="run:N",
        color=alt.Color(
            "role:N", scale=alt.Scale(domain=roles, range=colours), legend=legend
        ),
        strokeDash=alt.StrokeDash(
            "role:N", scale=alt.Scale(domain=roles, range=dashes), legend=legend
        ),
    )
    return [line]


def _cross(*, dark: bool) -> alt.Chart:
    """Return a cross at the foot of the step that could not be taken."""
    return marks.rows_where("role", "failed").mark_text(
        text="✕", fontSize=16, color=palette(dark).wrong, baseline="bottom"
    )


def _points(kind: str) -> alt.Chart:
    """Return points that cannot be seen and tell their number when pointed at."""
    unit = "" if kind == "loss" else " + ' %'"
    words = (
        f"datum.run + ', step ' + datum.step + ': {kind} '"
        f" + format(datum.value, '.3f'){unit}"
    )
    curves = "datum.role !== 'chosen' && datum.role !== 'failed'"
    return (
        alt.Chart()
        .transform_filter(curves)
        .mark_point(
            opacity=0,
            size=80,
            filled=True,
            clip=True,
            aria=False,
            tooltip={"expr": words},
        )
    )
