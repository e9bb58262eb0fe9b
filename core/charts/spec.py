"""Vega-Lite specs that are built once and used with any rows.

A chart's spec depends on its options and the names of the columns, never on the rows.
So the spec is made once, from an empty frame, and kept; the rows travel apart from it.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import altair as alt
import pandas as pd

Chart = Callable[..., alt.Chart | alt.LayerChart]

_LEFT_TO_THE_PAGE = ("$schema", "data", "datasets")


def cached_spec(chart: Chart, frame: pd.DataFrame, **options: Hashable) -> dict:
    """Return the Vega-Lite spec of ``chart(frame, **options)``, without its data.

    The rows of ``frame`` play no part: two frames with the same columns share a spec.

    Args:
        chart: One of the chart functions of this package.
        frame: A tidy frame; only the names of its columns are read.
        options: Keyword options of the chart; each must be hashable.

    Returns:
        A spec to be shown together with a frame, for instance
        ``st.vega_lite_chart(frame, spec)``. Its parts are shared: do not change them.

    Raises:
        TypeError: If an option is not hashable, such as a list; pass a tuple.
    """
    key = tuple(sorted(options.items()))
    return dict(_spec(chart, tuple(frame.columns), key))


@lru_cache(maxsize=512)
def _spec(
    chart: Chart, columns: tuple[str, ...], options: tuple[tuple[str, Hashable], ...]
) -> dict[str, Any]:
    built = chart(pd.DataFrame(columns=list(columns)), **dict(options))
    spec = built.to_dict(validate=False)  # tests validate every chart
    spec["config"].pop("view", None)  # Altair's own sizes; the page gives the width
    return {part: spec[part] for part in spec if part not in _LEFT_TO_THE_PAGE}
