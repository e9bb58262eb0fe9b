"""A heat map of weights with the sum of each row printed beside it."""

from typing import Any

import altair as alt
import pandas as pd

from core.charts.heatmap import MATRIX_KINDS, cell_axes, heatmap
from core.charts.palette import palette

ROW_SUM = "row sum"  # no token is called so: a token has no space
_SIZE = "clamp(bandwidth('y') - 4, 7, 13)"


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
