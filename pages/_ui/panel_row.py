"""Matrices side by side, each with its numbers in the cells."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages._ui import parts

_WIDTH = 820  # of the main area at 1280 pixels
_LABELS, _CELL = 82, 36  # room of a matrix for its row labels, and for a column
_ROW, _AROUND = 19, 98  # height of a row, and of title and axes
_LOWEST = 140  # height of a matrix of one row
_LEAST_CHANGE = 0.1  # end of the colours of changes that are smaller still
_WIDEST = 66  # pixels that a cell is stretched to where its label is no longer
_SIGN, _SIDES = 8, 36  # pixels of a letter, and beside a title


def draw(panels: Sequence[Any], *, key: str, alt: str) -> None:
    """Draw matrices side by side; what has no room begins a new line."""
    lines: list[list[Any]] = [[]]
    for panel in panels:
        if lines[-1] and _room([*lines[-1], panel]) > _WIDTH:
            lines.append([])
        lines[-1].append(panel)
    for number, line in enumerate(lines):
        _draw_line(line, key=f"{key}_{number}", alt=alt)


def _draw_line(line: Sequence[Any], *, key: str, alt: str) -> None:
    from core import charts
    from core.charts import tidy

    needed = [_room([panel]) for panel in line]
    wanted = [max(_room([panel]), _stretched(panel)) for panel in line]
    spare = _WIDTH - sum(wanted)
    columns = st.columns([*wanted, spare] if spare > 0 else needed)
    height = _AROUND + _ROW * max(len(panel.rows) for panel in line)
    for place, panel in enumerate(line):
        with columns[place]:
            parts.bare_chart(
                charts.heatmap,
                tidy.matrix_frame(
                    panel.matrix,
                    kind=panel.kind,
                    row_labels=panel.rows,
                    column_labels=panel.columns,
                    marked=panel.marked,
                ),
                key=f"{key}_{place}",
                alt=alt,
                kind=panel.kind,
                title=panel.title,
                limit=_limit(panel),
                show_values=True,
                digits=panel.digits,
                legend=False,
                role=panel.role,
                row_title=panel.row_title,
                framed=True,
                height=_LOWEST if len(panel.rows) == 1 else max(height, _LOWEST),
            )


def _limit(panel: Any) -> float:
    """Return the end of a matrix's colours: 1 for weights, never tiny for changes."""
    from core import charts

    if panel.kind in ("weight", "lookup"):
        return 1.0
    least = _LEAST_CHANGE if "change" in panel.kind else 0.0
    return charts.nice_limit(max(least, float(panel.matrix.abs().max())))


def _room(line: Sequence[Any]) -> int:
    """Return the pixels that panels need for their cells and for their titles."""
    return sum(
        max(
            _LABELS + _CELL * len(panel.columns),
            _SIGN * len(panel.title) + _SIDES,
        )
        for panel in line
    )


def _stretched(panel: Any) -> int:
    """Return the pixels that a panel is stretched to where there is room."""
    longest = max(len(str(label)) for label in panel.columns)
    return _LABELS + max(_WIDEST, _SIGN * longest) * len(panel.columns)
