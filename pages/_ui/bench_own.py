"""The bench's own side: a table the visitor brings, a grid the visitor picks."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts
from pages._ui.controls import Controls

_BROUGHT = "bench_brought_runs"  # session key: the last sound table
_LEVELS: dict[str, list[Any]] = {
    "model": ["transformer", "rnn", "gru", "lstm", "lstm bias +3"],
    "positional": ["sinusoidal", "learned", "none"],
    "causal": [False, True],
    "readout": ["cls", "mean", "last", "first"],
    "num_heads": [1, 2, 4, 8, 16],
    "num_layers": [1, 2, 4],
    "seq_len": [20, 60, 150, 300],
    "noise": ["uniform", "normal"],
    "dropout": [0.0, 0.1, 0.3],
    "norm": ["pre", "post"],
    "warmup_steps": [0, 75],
}
_PRESET = {"positional": ["sinusoidal", "none"], "readout": ["cls", "mean"]}
_LARGEST_FILE = 1  # megabyte


class Brought(NamedTuple):
    """A table that was brought: the name of its file, and its runs."""

    name: str
    runs: tuple[Any, ...]


def brought() -> tuple[Any, ...]:
    """Let a table be brought; return the runs of the last one that was sound."""
    file = st.file_uploader(
        "Continue or compare with a table of your own",
        type="csv",
        key="bench_upload",
        max_upload_size=_LARGEST_FILE,
        help="The form is that of the download. Runs it holds are not run again.",
    )
    if file is not None:
        _read(file)
    elif _BROUGHT in st.session_state:
        # Not at once: a file put in the place of another takes that one out first.
        st.button(
            "Forget your table",
            key="bench_forget",
            icon=":material/delete:",
            on_click=st.session_state.pop,
            args=(_BROUGHT, None),
        )
    earlier = st.session_state.get(_BROUGHT)
    return () if earlier is None else earlier.runs


def choose(c: Controls) -> Any:
    """Return the grid of the levels picked; refused where it cannot be run."""
    from core.grid_cell import Cell
    from core.grid_presets import FACTORS, Preset, check_size, level_words

    base, levels = Cell(max_steps=300), {}
    for name, values in _LEVELS.items():
        words = {level_words(name, value): value for value in values}
        wanted = _PRESET.get(name, [getattr(base, name)])
        preset = [word for word, value in words.items() if value in wanted]
        picked = c.several(
            FACTORS[name].capitalize(), name, list(words), preset, most=len(words)
        )
        levels[name] = tuple(words[word] for word in picked)
    if not all(levels.values()):
        empty = next(FACTORS[name] for name, values in levels.items() if not values)
        parts.refused(f"{empty.capitalize()} needs at least one level")
        return None
    varying = {name: v for name, v in levels.items() if len(v) > 1}
    fixed = {name: v[0] for name, v in levels.items() if name not in varying}
    grid = None
    with parts.explained():
        check_size(levels, 1)
        shown = varying or {"model": levels["model"]}
        made = Preset("own", "A grid of your own", shown, Cell(max_steps=300, **fixed))
        grid = made if made.cells else None
    return grid


def _read(file: Any) -> None:
    """Take in a table; where it is refused, say so, and that the earlier one stays."""
    from core.grid_story import earlier_sentence
    from core.grid_table import brought_runs

    with parts.explained():
        st.session_state[_BROUGHT] = Brought(file.name, brought_runs(file.getvalue()))
        return
    if _BROUGHT in st.session_state:
        parts.note(earlier_sentence(st.session_state[_BROUGHT].name))
