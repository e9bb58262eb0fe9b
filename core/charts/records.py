"""From the records and results of training runs to the frames of their charts."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from core.checks import require_choice, require_int

Points = Sequence[tuple[int, float]]


def record_points(
    records: Sequence[Any], kind: str = "loss"
) -> list[tuple[int, float]]:
    """Return (step, value) of each record that carries a value.

    Args:
        records: What a trainer gives: each has ``step``, ``loss`` and ``accuracy``, the
            last in [0, 1], or None where it was not measured.
        kind: "loss", or "accuracy", which becomes percent.

    Raises:
        ValueError: If ``kind`` is neither.
    """
    require_choice("kind", kind, ("loss", "accuracy"))
    if kind == "loss":
        return [(record.step, record.loss) for record in records]
    return [
        (record.step, 100 * record.accuracy)
        for record in records
        if record.accuracy is not None
    ]


def live_frame(
    current: Mapping[str, Points],
    *,
    kept: Mapping[str, Points] | None = None,
    others: Mapping[str, Mapping[str, Points]] | None = None,
    chosen: int | None = None,
    failed: int | None = None,
    max_points: int = 600,
) -> pd.DataFrame:
    """Return the curves of a live run and of earlier ones, for ``live_curves``.

    Args:
        current: Name of the run -> (step, value) pairs so far.
        kept: Name -> pairs of runs kept for comparison; one without pairs gets a row
            without a value, so that each has the same dash in every chart.
        others: Role -> name -> pairs of further curves, such as "shipped".
        chosen: The step looked at; it gets a row of its own.
        failed: The step that could not be taken; it gets a row of its own, too.
        max_points: Most points a curve may have; longer ones are thinned.

    Returns:
        A frame with the columns ``run, role, step, value``; ``role`` is "current",
        "kept", "chosen", "failed" or one of ``others``. It has at least one row, if
        without a value: reference lines are drawn only where there are rows.
    """
    parts = [
        (role, name, points)
        for role, curves in (
            ("kept", kept or {}),
            *(others or {}).items(),
            ("current", current),
        )
        for name, points in curves.items()
    ]
    rows = [
        (name, role, step, value)
        for role, name, points in parts
        for step, value in thin(points, max_points)
    ]
    rows += [
        (name, "kept", 0, np.nan) for name, points in (kept or {}).items() if not points
    ]
    for role, step in (("chosen", chosen), ("failed", failed)):
        if step is not None:
            rows.append((role, role, step, np.nan))
    if not rows:
        rows.append((next(iter(current), ""), "current", 0, np.nan))
    frame = pd.DataFrame(rows, columns=["run", "role", "step", "value"])
    return frame.astype({"step": np.int64, "value": np.float64})


def grid_frame(results: Sequence[Any]) -> pd.DataFrame:
    """Return one row a cell of results, for ``grid``.

    Args:
        results: Each has a ``cell``, whose ``setting`` and ``readout`` name it down and
            across, its ``mean``, and ``accuracies``, one in [0, 1] a seed.

    Returns:
        A frame with the columns ``setting, readout, mean, low, high, seeds``.
    """
    rows = [
        (
            result.cell.setting,
            result.cell.readout,
            result.mean,
            min(result.accuracies),
            max(result.accuracies),
            len(result.accuracies),
        )
        for result in results
    ]
    names = ["setting", "readout", "mean", "low", "high", "seeds"]
    return pd.DataFrame(rows, columns=names)


def thin(points: Points, max_points: int = 600) -> list[tuple[int, float]]:
    """Return at most ``max_points`` of a curve, its first, last and extreme ones.

    The curve is cut into equal stretches and the lowest and the highest point of each
    is kept, so a spike of a single step stays visible. Values that are not finite are
    left out.

    Args:
        points: (step, value) pairs in the order of the steps.
        max_points: At least 4.

    Returns:
        Pairs in the order of the steps.

    Raises:
        ValueError: If ``max_points`` is below 4.
    """
    require_int("max_points", max_points, 4)
    count = len(points)
    steps = np.fromiter((step for step, _ in points), np.int64, count)
    values = np.fromiter((value for _, value in points), np.float64, count)
    finite = np.isfinite(values)
    steps, values = steps[finite], values[finite]
    if len(steps) > max_points:
        kept = _first_last_and_extremes(values, (max_points - 2) // 2)
        steps, values = steps[kept], values[kept]
    return list(zip(steps.tolist(), values.tolist(), strict=True))


def _first_last_and_extremes(values: np.ndarray, stretches: int) -> list[int]:
    edges = np.linspace(0, len(values), stretches + 1).astype(np.int64).tolist()
    picked = {0, len(values) - 1}
    for start, end in pairwise(edges):
        stretch = values[start:end]
        picked |= {start + int(stretch.argmin()), start + int(stretch.argmax())}
    return sorted(picked)
