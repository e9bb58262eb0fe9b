"""Maps of any size: cells that answer to the pointer, or one picture where dense."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages._ui import parts

# A browser without a GPU needs a third of a second to draw 10,000 cells one by one.
MOST_CELLS = 2_048


def draw_map(
    matrix: Any,
    *,
    key: str,
    alt: str,
    kind: str,
    marked: int | None = None,
    **options: Any,
) -> None:
    """Draw a matrix, with one row framed where ``marked`` names it.

    Args:
        matrix: (rows, columns), at least one cell.
        key: Stable identity of the picture.
        alt: Its alternative text.
        kind: What the cells are, as for ``core.charts.heatmap``.
        marked: Position to be framed; None frames none.
        **options: Title, limit, height; of a small map also ``show_values``.
    """
    draw = _draw_picture if _is_dense(matrix) else _draw_cells
    draw(matrix, marked, key=key, alt=alt, kind=kind, **options)


def offer_cells(
    matrix: Any, key: str, *, kind: str, labels: Sequence[str] | None = None
) -> None:
    """Offer the numbers of a dense map, which its picture does not carry.

    Args:
        matrix: (rows, columns); a map that is not dense is not offered.
        key: Name of the file and of the button.
        kind: What the cells are, as for ``core.charts.heatmap``.
        labels: Names of rows and columns alike; None writes their positions.
    """
    from core.charts import tidy

    def cells() -> str:
        named = {"row_labels": labels, "column_labels": labels}
        return tidy.matrix_frame(matrix, kind=kind, **named).to_csv(index=False)

    if _is_dense(matrix):
        st.download_button(
            "Cells as CSV",
            cells,
            file_name=f"{key}.csv",
            mime="text/csv",
            key=f"{key}_csv",
            type="tertiary",
            icon=":material/download:",
            on_click="ignore",
        )


def marked_rows(frame: Any, position: int) -> Any:
    """Return the frame with a column that says which rows are of ``position``."""
    return frame.assign(marked=frame["position"] == position)


def _is_dense(matrix: Any) -> bool:
    return matrix.numel() > MOST_CELLS


def _draw_cells(matrix: Any, marked: int | None, *, kind: str, **options: Any) -> None:
    from core import charts
    from core.charts import tidy
    from core.charts.digits import marked_heatmap

    frame = tidy.matrix_frame(matrix, kind=kind)
    chart = charts.heatmap
    if marked is not None:
        chart, frame = marked_heatmap, marked_rows(frame, marked)
    parts.bare_chart(chart, frame, kind=kind, **options)


def _draw_picture(
    matrix: Any, marked: int | None, *, kind: str, limit: float = 1.0, **options: Any
) -> None:
    from core.charts import tidy
    from core.charts.image_grid import pixel_frame, pixel_map

    frame = pixel_frame(
        tidy.to_array(matrix),
        kind=kind,
        limit=limit,
        marked=marked,
        dark=parts.is_dark(),
    )
    parts.bare_chart(pixel_map, frame, kind=kind, limit=limit, **options)
