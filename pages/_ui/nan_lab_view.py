"""The NaN lab of the masks page: a fully masked row under each fill and number type."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages._ui import parts
from pages._ui.controls import Controls

PRECISIONS = ["float32", "float16", "bfloat16"]
METHODS = ["overwritten", "added"]
_BATCH = (4, 2, 0)  # real tokens of each sequence: one has none
_MARKS = {
    "zeros": ":blue-badge[:material/check: {}]",
    "uniform": ":orange-badge[:material/warning: {}]",
    "leak": ":orange-badge[:material/warning: {}]",
    "nan": ":red-badge[:material/error: {}]",
    "overflow": ":red-badge[:material/error: {}]",
}


def choose_fill(c: Controls) -> tuple[str, str]:
    """Return the number type shown in full and the way a fill is put in."""
    precision = c.choice("Shown in full", "precision", PRECISIONS)
    method = c.choice(
        "The fill is",
        "method",
        METHODS,
        help_text="Put in place of the masked score, or added to it.",
    )
    return precision, method


def draw(precision: str, method: str) -> None:
    """Show a fully masked row under each fill value and number type."""
    from core import precision as lab

    rows = lab.fully_masked_rows(method)
    by_fill: dict[str, list[str]] = {row.fill: [f"`{row.fill}`"] for row in rows}
    for row in rows:
        by_fill[row.fill].append(_badge(row))
    st.markdown(
        f"One query, four keys with the scores {_listed(lab.SCORES)} and the values "
        f"{_listed(lab.VALUES)}. All four are masked: a very low number, the fill, is "
        "put in for each score, and the softmax follows. **Right is 0 throughout**: "
        "there is nothing to read. `finfo.min` is the lowest number of the type; "
        "`core.attention` is what this app does: it sets such a row to 0."
    )
    st.markdown(parts.table(["fill", *PRECISIONS], by_fill.values()))
    st.markdown(
        f"**The same in numbers, in {precision}**: the output is the sum of weights · "
        "values, the gradient is how fast the output changes with each filled score."
    )
    shown = [row for row in rows if row.dtype == precision]
    header = ["fill", f"in {precision}", "weights", "output", "gradient"]
    st.markdown(parts.table(header, map(_lab_row, shown)))
    for verdict in dict.fromkeys(row.verdict for row in shown):
        parts.sentence(verdict)
    st.markdown("**Where such a row comes from**: `core.attention` on a padded batch.")
    parts.sentence(lab.padded_batch_sentence(_BATCH))
    parts.look_inside(
        "masks",
        [lab.fill_outcome, lab.core_outcome, lab.padded_batch_sentence],
        {"scores": f"({len(lab.SCORES)},)", "values": f"({len(lab.VALUES)},)"},
    )


def _badge(row: Any) -> str:
    words = {
        "zeros": "0",
        "uniform": f"{row.attn_weights[0]:g} each",
        "leak": f"up to {max(row.attn_weights):.2f}",
        "nan": "NaN",
        "overflow": "too low: NaN",
    }
    return _MARKS[row.kind].format(words[row.kind])


def _lab_row(row: Any) -> list[str]:
    numbers = [(row.stored,), row.attn_weights, (row.output,), row.gradient]
    return [f"`{row.fill}`", *map(_listed, numbers)]


def _listed(numbers: Sequence[float | None]) -> str:
    shown = ("–" if number is None else f"{number:.3g}" for number in numbers)
    return ",\u2002".join(shown).replace("nan", "NaN")
