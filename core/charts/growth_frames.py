"""From norms over distance and curves over length to the frames of their charts."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from torch import Tensor

from core.charts.tidy import to_array
from core.growth import Curve
from core.scaling import trial_band


def reach_frame(
    norms: Mapping[str, Tensor],
    *,
    references: Mapping[str, Tensor] | None = None,
    floor: float = 1e-20,
) -> pd.DataFrame:
    """Return median and 10–90 % band of norms at each distance, for ``reach``.

    Args:
        norms: Name -> (draws, T).
        references: Name -> (draws, T), lines to compare with.
        floor: Where a median lies below it, the row has no numbers: a logarithmic axis
            that ends there cannot show it. The lower edge of a band stops there.

    Returns:
        A frame with the columns ``distance, series, role, low, median, high``.
    """
    parts = [
        *(_reach_rows(name, found, "series", floor) for name, found in norms.items()),
        *(
            _reach_rows(name, found, "reference", floor)
            for name, found in (references or {}).items()
        ),
    ]
    names = ["distance", "series", "role", "low", "median", "high"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


def growth_frame(
    measured: Mapping[str, Curve],
    *,
    earlier: Mapping[str, Curve] | None = None,
    fits: Mapping[str, Curve] | None = None,
    chosen: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Return the points of curves over length, for ``growth``.

    Args:
        measured: Name -> what was measured.
        earlier: Name -> what was measured before, to compare with.
        fits: Name -> points of its fitted power.
        chosen: Words -> the length at which a rule with them stands.

    Returns:
        A frame with the columns ``length, series, role, value``; ``role`` is
        "measured", "earlier", "fit" or "chosen"; the value of a chosen row is the line
        its words stand in.
    """
    kinds = {"fit": fits or {}, "earlier": earlier or {}, "measured": measured}
    rows = [
        (float(length), name, role, float(value))
        for role, curves in kinds.items()
        for name, curve in curves.items()
        for length, value in zip(*curve, strict=True)
    ]
    rows += [
        (float(length), words, "chosen", float(line))
        for line, (words, length) in enumerate((chosen or {}).items())
    ]
    frame = pd.DataFrame(rows, columns=["length", "series", "role", "value"])
    return frame.astype({"length": np.float64, "value": np.float64})


def _reach_rows(name: str, norms: Tensor, role: str, floor: float) -> pd.DataFrame:
    band = trial_band(norms.mT)
    low, median, high = (to_array(part) for part in (band.low, band.median, band.high))
    hidden = median < floor
    return pd.DataFrame(
        {
            "distance": np.arange(len(median)),
            "series": name,
            "role": role,
            "low": np.where(hidden, np.nan, np.maximum(low, floor)),
            "median": np.where(hidden, np.nan, median),
            "high": np.where(hidden, np.nan, high),
        }
    )
