"""The rows of a map of weights and of its row sums."""

import pandas as pd
import torch
from torch import Tensor

from core.charts import tidy
from core.charts.sums import ROW_SUM


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
            "key": ROW_SUM,
            "weight": tidy.to_array(weights.sum(dim=-1)),
            "status": "sum",
            "marked": False,
        }
    )
    return pd.concat([cells, sums], ignore_index=True)
