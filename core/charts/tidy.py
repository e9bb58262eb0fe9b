"""From tensors to tidy frames: the one place where a tensor meets pandas.

Each function here feeds one kind of chart and always gives the same columns in the same
order, also for no rows. Numbers are kept as they are; rounding is left to the tooltip.
What has no number to show (a masked cell, an undefined value) is null, never an
infinity.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from core.charts.heatmap import MATRIX_KINDS
from core.charts.lines import CENTRES
from core.checks import RefusedError, require_choice
from core.scaling import trial_band
from core.tokens import distinct_labels

Labels = Sequence[str | int]


def to_array(tensor: Tensor) -> np.ndarray:
    """Return the numbers of a tensor as float64, detached and on the CPU."""
    return tensor.detach().to(device="cpu", dtype=torch.float64).numpy()


def matrix_frame(
    matrix: Tensor,
    *,
    kind: str = "weight",
    row_labels: Labels | None = None,
    column_labels: Labels | None = None,
    mask: Tensor | None = None,
    marked: Tensor | None = None,
) -> pd.DataFrame:
    """Return one row per cell of a matrix, in reading order.

    Args:
        matrix: (T, S), or (positions, dimensions) for an encoding; for the kind
            "allowed" a boolean mask, True = may attend.
        kind: What the cells are, as for ``heatmap``.
        row_labels: T labels; positions where None.
        column_labels: S labels; positions where None.
        mask: Boolean, (T, S) or what broadcasts to it; True = may attend.
        marked: Boolean, (T, S), True = the cell gets a frame; None adds no column.

    Returns:
        A frame of T·S rows with the columns ``query, key, <kind>, status`` (other
        names for similarities and encodings, see ``MATRIX_KINDS``). ``status`` is
        "allowed", "masked", "nothing" (the query may read no key at all) or "missing"
        (not a number); the number is null unless it is "allowed". Of a mask itself
        every cell has its number, 1 or 0. Where cells are marked, a column ``marked``.

    Raises:
        ValueError: If the matrix has not two dimensions or labels do not fit.
    """
    require_choice("kind", kind, MATRIX_KINDS)
    if matrix.ndim != 2:
        raise RefusedError(f"matrix must have 2 dimensions, got {matrix.ndim}")
    what = MATRIX_KINDS[kind]
    rows = _labels("row_labels", row_labels, matrix.shape[0])
    columns = _labels("column_labels", column_labels, matrix.shape[1])
    values = to_array(matrix)
    status = _status(values, kind, None if mask is None else to_array(mask) > 0)
    cells = {
        what.row: np.repeat(np.array(rows, dtype=object), len(columns)),
        what.column: np.tile(np.array(columns, dtype=object), len(rows)),
        what.value: _shown(values, status, kind).ravel(),
        "status": status.ravel(),
    }
    if marked is not None:
        cells["marked"] = (to_array(marked) > 0).ravel()
    return pd.DataFrame(cells)


def bars_frame(
    series: Mapping[str, Tensor], labels: Labels, *, value: str = "weight"
) -> pd.DataFrame:
    """Return one row per key and series, for ``bars``.

    Args:
        series: Name -> (S,), for instance raw and scaled weights of one query.
        labels: S labels of the keys.
        value: Name of the column of numbers: "weight" or "gradient".

    Returns:
        A frame with the columns ``key, series, <value>``.

    Raises:
        ValueError: If a series has another length than the labels.
    """
    keys = distinct_labels(labels)
    for name, numbers in series.items():
        _require_length(name, numbers, len(keys))
    return pd.DataFrame(
        {
            "key": keys * len(series),
            "series": [name for name in series for _ in keys],
            value: _joined([to_array(numbers) for numbers in series.values()]),
        }
    )


def sweep_frame(
    widths: Sequence[int],
    trials: Mapping[str, Tensor],
    *,
    references: Mapping[str, Tensor] | None = None,
    chosen: float | None = None,
    centre: str = "median",
) -> pd.DataFrame:
    """Return middle and 10–90 % band of each series along a sweep, for ``sweep``.

    Args:
        widths: The P swept values of d_k, such as 4, 16, 64.
        trials: Name -> (P, trials), or (P,) where there is but one number a point.
        references: Name -> (P,), lines to compare with.
        chosen: The value the page has chosen; it gets a row of its own, so that the
            rule moves without a new spec.
        centre: "median" or "mean" of the trials.

    Returns:
        A frame with the columns ``d_k, series, role, low, <centre>, high``; ``role`` is
        "series", "reference" or "chosen".

    Raises:
        ValueError: If a series has another number of points than ``widths``, or
            ``centre`` is unknown.
    """
    require_choice("centre", centre, CENTRES)
    parts = [
        *(("series", name, numbers) for name, numbers in trials.items()),
        *(("reference", name, numbers) for name, numbers in (references or {}).items()),
    ]
    rows = [
        (float(d_k), name, role, *band)
        for role, name, numbers in parts
        for d_k, *band in zip(
            widths, *_band(name, numbers, len(widths), centre), strict=True
        )
    ]
    if chosen is not None:
        rows.append((float(chosen), "chosen", "chosen", np.nan, np.nan, np.nan))
    names = ["d_k", "series", "role", "low", centre, "high"]
    return pd.DataFrame(rows, columns=names)


def temperature_frame(
    temperatures: Tensor, values: Tensor, *, chosen: float
) -> pd.DataFrame:
    """Return a quantity at each temperature, for ``temperature_curve``.

    Args:
        temperatures: (P,), each above 0.
        values: (P,), the quantity.
        chosen: The temperature the page has chosen; it gets a row of its own.

    Returns:
        A frame with the columns ``temperature, value, role``; ``role`` is "sweep" or
        "chosen".

    Raises:
        ValueError: If there are more or fewer values than temperatures.
    """
    _require_length("values", values, len(temperatures))
    points = zip(temperatures.tolist(), _finite(to_array(values)).tolist(), strict=True)
    rows = [(*point, "sweep") for point in points] + [(chosen, np.nan, "chosen")]
    return pd.DataFrame(rows, columns=["temperature", "value", "role"])


def curves_frame(curves: Mapping[str, Tensor]) -> pd.DataFrame:
    """Return one row per curve and whole-numbered position, for ``curves``.

    Args:
        curves: Name -> (n,); the lengths may differ.

    Returns:
        A frame with the columns ``position, series, value``.

    Raises:
        ValueError: If a curve is no vector.
    """
    for name, curve in curves.items():
        _require_length(name, curve, len(curve))
    numbers = {name: to_array(curve) for name, curve in curves.items()}
    positions = [np.arange(len(curve)) for curve in numbers.values()]
    return pd.DataFrame(
        {
            "position": _joined(positions).astype(np.int64),
            "series": [name for name, curve in numbers.items() for _ in curve],
            "value": _finite(_joined(list(numbers.values()))),
        }
    )


def movement_frame(moved: Tensor, labels: Labels) -> pd.DataFrame:
    """Return how far each output moved, for ``movement``.

    Args:
        moved: (T,), distances, at least 0.
        labels: T labels of the positions.

    Returns:
        A frame with the columns ``position, moved``.

    Raises:
        ValueError: If there are more or fewer labels than distances.
    """
    _require_length("moved", moved, len(labels))
    return pd.DataFrame(
        {"position": distinct_labels(labels), "moved": _finite(to_array(moved))}
    )


def readout_frame(rows: Sequence[Tensor]) -> pd.DataFrame:
    """Return the weights of one query for every layer and head, for ``readout_rows``.

    Args:
        rows: One (H, S) tensor a layer: the row of the readout in each head.

    Returns:
        A frame with the columns ``layer, head, position, weight``. Heads count from 1;
        ``head`` is "mean" for the mean over the heads.
    """
    names = ["layer", "head", "position", "weight"]
    parts = [_readout_layer(f"layer {n}", row) for n, row in enumerate(rows, start=1)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


def digits_frame(digits: Tensor) -> pd.DataFrame:
    """Return one row per position and bit of a binary counter, for ``digits``.

    Args:
        digits: (positions, bits) of the whole numbers 0 and 1.

    Returns:
        A frame with the columns ``position, bit, digit``.

    Raises:
        ValueError: If ``digits`` has not two dimensions.
    """
    if digits.ndim != 2:
        raise RefusedError(f"digits must have 2 dimensions, got {digits.ndim}")
    positions, bits = digits.shape
    return pd.DataFrame(
        {
            "position": np.repeat(np.arange(positions), bits),
            "bit": np.tile(np.arange(bits), positions),
            "digit": to_array(digits).ravel().astype(np.int64),
        }
    )


def comparison_frame(numbers: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return one row per label and series, for ``comparison``.

    Args:
        numbers: Label -> series -> number.

    Returns:
        A frame with the columns ``label, series, value``.
    """
    rows = [
        (label, series, float(value))
        for label, by_series in numbers.items()
        for series, value in by_series.items()
    ]
    frame = pd.DataFrame(rows, columns=["label", "series", "value"])
    return frame.assign(value=_finite(frame["value"].to_numpy(dtype=np.float64)))


def _labels(name: str, labels: Labels | None, count: int) -> list[str] | list[int]:
    if labels is None:
        return list(range(count))
    if len(labels) != count:
        raise RefusedError(f"{name} ({len(labels)}) must name all {count} of them")
    return distinct_labels(labels)


def _require_length(name: str, numbers: Tensor, count: int) -> None:
    if numbers.ndim != 1 or len(numbers) != count:
        shape = tuple(numbers.shape)
        raise RefusedError(
            f"{name} {shape} must be one number for each of {count} labels"
        )


def _status(values: np.ndarray, kind: str, mask: np.ndarray | None) -> np.ndarray:
    status = np.full(values.shape, "allowed", dtype=object)
    status[~np.isfinite(values)] = "missing"
    if kind == "score":
        status[np.isneginf(values)] = "masked"
    if kind == "allowed":
        mask = values > 0
    if mask is not None:
        status[~np.broadcast_to(mask, values.shape)] = "masked"
    nothing = (status == "masked").all(axis=1)
    if kind == "weight":
        nothing |= (values == 0).all(axis=1)
    if values.shape[1]:
        status[nothing] = "nothing"
    return status


def _shown(values: np.ndarray, status: np.ndarray, kind: str) -> np.ndarray:
    if kind == "allowed":
        return (values > 0).astype(np.int64)
    return np.where(status == "allowed", values, np.nan)


def _readout_layer(layer: str, rows: Tensor) -> pd.DataFrame:
    weights = to_array(rows)
    heads = [str(head) for head in range(1, len(weights) + 1)] + ["mean"]
    table = np.vstack([weights, weights.mean(axis=0, keepdims=True)])
    return pd.DataFrame(
        {
            "layer": layer,
            "head": np.repeat(heads, table.shape[1]),
            "position": np.tile(np.arange(table.shape[1]), len(heads)),
            "weight": table.ravel(),
        }
    )


def _band(name: str, numbers: Tensor, count: int, centre: str) -> list[list[float]]:
    """Return low, middle and high at each of ``count`` points."""
    if numbers.ndim not in (1, 2) or len(numbers) != count:
        shape = tuple(numbers.shape)
        raise RefusedError(f"{name} {shape} must have {count} points, one for each x")
    band = trial_band(numbers.detach().cpu().double().reshape(count, -1))
    ends_and_middle = (band.low, getattr(band, centre), band.high)
    return [_finite(to_array(numbers)).tolist() for numbers in ends_and_middle]


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0)


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.nan)
