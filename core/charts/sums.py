"""A heat map of weights with the sum of each row printed beside it."""

from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from core.charts import tidy
from core.charts.heatmap import MATRIX_KINDS, cell_axes, heatmap
from core.charts.palette import palette

_SUM = "row sum"  # no token is called so: a token has no space
_SIZE = "clamp(bandwidth('y') - 4, 7, 13)"


def summed_frame(
    weights: Tensor, labels: tidy.Labels, *, mask: Tensor | None = None
) -> pd.DataFrame:
    """Return one row per cell and one per row sum, for ``summed_heatmap``.

    A weight on a key that the mask hides keeps its number and is marked.

    Args:
        weights: Of one head, (T, T).
        labels: T labels of the tokens.
        mask: Boolean, (T, T), True = may attend; None means every key is open.

    Returns:
        The columns of ``tidy.matrix_frame`` and ``marked``; a sum has the status "sum".
    """
    hidden = torch.zeros_like(weights, dtype=torch.bool) if mask is None else ~mask
    leaks = hidden & (weights != 0)
    cells = tidy.matrix_frame(
        weights,
        row_labels=labels,
        column_labels=labels,
        mask=leaks | ~hidden,
        marked=leaks,
    )
    sums = pd.DataFrame(
        {
            "query": list(labels),
            "key": _SUM,
            "weight": tidy.to_array(weights.sum(dim=-1)),
            "status": "sum",
            "marked": False,
        }
    )
    return pd.concat([cells, sums], ignore_index=True)


def summed_heatmap(
    frame: pd.DataFrame, *, dark: bool = False, **options: Any
) -> alt.LayerChart:
    """Draw a map of weights, its marked cells framed, and each row's sum as a number.

    Args:
        frame: From ``summed_frame``.
        dark: Whether the theme is dark.
        **options: Options of ``heatmap``.
    """
    chart = heatmap(frame, framed=True, dark=dark, **options)
    chart.layer = [
        layer.transform_filter("datum.status !== 'sum'") for layer in chart.layer
    ]
    x, y = cell_axes(
        MATRIX_KINDS["weight"], every_label=options.get("show_values", False)
    )
    words = '"the weights of query \'" + datum.query + "\' sum to " + '
    sums = (
        alt.Chart()
        .transform_filter("datum.status === 'sum'")
        .mark_text(
            text={"expr": "format(datum.weight, '.2f')"},
            fontSize={"expr": _SIZE},
            fontWeight="bold",
            align="left",
            dx={"expr": "6 - bandwidth('x') / 2"},
            color=palette(dark).text,
            tooltip={"expr": f"{words}format(datum.weight, '.4f')"},
        )
    )
    chart.layer.append(sums.encode(x=x, y=y))
    return chart
