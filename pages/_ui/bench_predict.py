"""The bench's prediction: a ranking, asked before the shipped runs are shown."""

from typing import Any

import streamlit as st

from pages._ui import parts

_COMMITTED = "bench_committed"  # session key: name of a grid -> choice; None without
_SHOWN = "bench_shown"  # in the address: the grids shown, so that a reload keeps them


def revealed(preset: Any) -> bool:
    """Return whether this tab has predicted a grid, or asked to see it without."""
    known = st.session_state.get(_COMMITTED, {})
    return preset.name in known or preset.name in _in_address()


def ask(preset: Any, shipped: Any) -> None:
    """Ask for the ranking; once there is an answer, show the runs and judge it."""
    from core import grid_questions, grid_story

    question = grid_questions.QUESTIONS[preset.name]
    choices = [parts.Choice(*choice) for choice in question.choices]
    key = f"bench_predict_{preset.name}"
    picked = parts.ask_prediction(key, question.text, choices)
    if picked is not None:
        _note(preset.name, picked)
        st.rerun()
    if not revealed(preset):
        st.button(
            "Show without predicting",
            key=f"{key}_skip",
            icon=":material/visibility:",
            on_click=_note,
            args=(preset.name, None),
        )
        return
    committed = st.session_state.get(_COMMITTED, {}).get(preset.name)
    if committed is not None:
        cells = grid_story.summaries(shipped.results)
        right = grid_questions.right_choice(preset, cells)
        reveal = grid_story.sentences(cells, preset.factors)[0]
        parts.judge_prediction(choices, committed, right, parts.plain(reveal))


def _note(name: str, picked: int | None) -> None:
    kept = st.session_state.get(_COMMITTED, {})
    st.session_state[_COMMITTED] = kept | {name: picked}
    st.query_params[_SHOWN] = ".".join(sorted({name, *_in_address()}))


def _in_address() -> set[str]:
    """Return the grids that the address says are shown; only names of grids count."""
    from core.grid_presets import PRESETS

    return set(st.query_params.get(_SHOWN, "").split(".")) & set(PRESETS)
