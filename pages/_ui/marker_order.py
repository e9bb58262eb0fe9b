"""The grid of the marker page: what carries the order, from a shipped table."""

from typing import Any

import streamlit as st

from pages._ui import parts

_CONTROLS = {  # field of a run's configuration -> its control
    "seq_len": "length",
    "train_samples": "samples",
    "d_model": "width",
    "num_heads": "heads",
    "num_layers": "layers",
    "dropout": "dropout",
    "positional": "positions",
    "readout": "readout",
    "causal": "causal",
    "learning_rate": "rate",
    "batch_size": "batch",
    "max_steps": "steps",
    "seed": "seed",
}


def draw() -> None:
    """Draw the grid with what it shows, and offer to train one of its cells."""
    from core import charts, order_grid
    from core.charts.records import grid_frame

    shown = order_grid.read_order()
    results = order_grid.cell_results(shown.results)
    said = order_grid.grid_sentences(results)
    st.subheader("What carries the order?", anchor=False)
    picture, words = st.columns([3, 2], gap="medium")
    with picture:
        parts.bare_chart(
            charts.grid, grid_frame(results), key="marker_order", alt=" ".join(said)
        )
    with words:
        for sentence in said:
            parts.sentence(sentence)
    origin = f"Shipped table. {shown.origin}"
    st.caption(parts.plain(order_grid.recipe_sentence()), help=parts.plain(origin))
    _offer([result.cell for result in results])


def _offer(cells: list[Any]) -> None:
    """Let one cell be picked, and set the page's controls to it."""
    names = {cell.name: cell for cell in cells}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = st.selectbox(
            "Train a cell yourself",
            list(names),
            index=len(names) // 2,  # the first without positions
            key="marker_cell",
            width=360,
        )
        st.button(
            "Set the controls to this cell",
            key="marker_set_cell",
            icon=":material/tune:",
            help="Then press Run. Its run of seed 0 is one of those in the table.",
            on_click=parts.set_controls,
            args=("marker", _settings(names[picked])),
        )


def _settings(cell: Any) -> dict[str, Any]:
    config = cell.config(seed=0)
    own = {control: getattr(config, field) for field, control in _CONTROLS.items()}
    return own | {"target": "off"}
