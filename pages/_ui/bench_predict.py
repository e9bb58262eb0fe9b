"""The bench's prediction: a ranking, asked before the shipped runs are shown."""

from typing import Any

import streamlit as st

from pages._ui import parts

_COMMITTED = "bench_committed"  # session key: name of a grid -> choice; None without
_SHOWN = "bench_shown"  # in the address: the grids shown, so that a reload keeps them


def shown_grids() -> set[str]:
    """Return the grids that this tab has predicted, or asked to see without.

    The session keeps them while the page is left, which empties the address; the
    address keeps them over a reload, which empties the session.
    """
    written, known = _in_address(), st.session_state.get(_COMMITTED, {})
    kept = dict.fromkeys(written) | known
    st.session_state[_COMMITTED] = kept
    if written != set(kept):
        st.query_params[_SHOWN] = ".".join(sorted(kept))
    return set(kept)


def revealed(preset: Any) -> bool:
    """Return whether the runs of a grid may be shown."""
    return preset.name in shown_grids()


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
        reach, _, spread = grid_story.sentences(cells, preset.factors)
        reveal = parts.plain(f"{reach} {spread}")
        parts.judge_prediction(choices, committed, right, reveal)


def _note(name: str, picked: int | None) -> None:
    kept = st.session_state.get(_COMMITTED, {})
    st.session_state[_COMMITTED] = kept | {name: picked}


def _in_address() -> set[str]:
    """Return the grids that the address says are shown; only names of grids count."""
    from core.grid_presets import PRESETS

    return set(st.query_params.get(_SHOWN, "").split(".")) & set(PRESETS)
