"""The encoder-decoder page's view of decoding: one step, and the beam beside it."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts, s2s_view
from pages._ui.controls import Controls
from pages._ui.s2s_view import Shown

_BARS = 8
_BEAMS = [1, 2, 3, 4, 6, 8]


class Chosen(NamedTuple):
    """What the controls say."""

    forced: bool
    step: int
    beam: int


def choose(c: Controls, shown: Shown) -> Chosen:
    """Return which step is shown, what the decoder is fed, and the beam's width."""
    forced = c.switch(
        "Teacher forcing",
        "forced",
        False,
        help_text="On: every step is fed the true token before it, as in training. "
        "Off: the token the model chose itself.",
    )
    count = len(s2s_view.walk(shown, forced=forced).steps)
    return Chosen(
        forced=forced,
        step=c.whole("Step", "step", 1, count, 1),
        beam=c.listed("Beam", "beam", _BEAMS, 4, help_text="Hypotheses kept a step."),
    )


def draw(shown: Shown, chosen: Chosen) -> None:
    """Draw one step: what could come next, what it reads, what the beam holds."""
    walk = s2s_view.walk(shown, forced=chosen.forced)
    at = chosen.step - 1
    _draw_buttons(at, len(walk.steps))
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_distribution(shown, walk, at)
    with right:
        _draw_beam(shown, chosen)
    _draw_words(shown, walk, at)


def look_inside(shown: Shown, chosen: Chosen) -> None:
    """Show the functions of core that decode."""
    from core import decoding, decoding_walk

    walk = s2s_view.walk(shown, forced=chosen.forced)
    parts.look_inside(
        "s2s",
        [decoding.greedy_decode, decoding.beam_search, decoding_walk.walk_decoding],
        {
            "source (1, S)": f"(1, {len(walk.source)})",
            "target_in (1, T)": f"(1, {len(walk.target_in)})",
            "logits (1, T, V)": walk.explained.logits,
        },
    )


def _draw_buttons(at: int, count: int) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, to, icon in (
            ("Back", at, "arrow_back"),
            ("Next token", at + 2, "arrow_forward"),
        ):
            st.button(
                label,
                key=f"s2s_to_{label}",
                icon=f":material/{icon}:",
                disabled=not 1 <= to <= count,
                on_click=parts.set_controls,
                args=("s2s", {"step": to}),
            )
        st.markdown(f"**Step {at + 1} of {count}**")


def _draw_distribution(shown: Shown, walk: Any, at: int) -> None:
    from core import charts, decoding_story
    from core.charts.next_token import next_token_frame
    from core.decoding_walk import most_probable

    step = walk.steps[at]
    top = most_probable(step, _BARS)
    frame = next_token_frame(
        shown.task.target.decode(top),
        [float(step.distribution[token]) for token in top],
        [decoding_story.role_of(token, step) for token in top],
    )
    parts.picture(
        charts.next_token,
        frame,
        key="s2s_next",
        caption=decoding_story.step_sentence(walk, at, shown.task.target),
        title=f"The next token, {_BARS} most probable of {len(shown.task.target)}",
        height=330,
    )


def _draw_beam(shown: Shown, chosen: Chosen) -> None:
    from core import decoding_story

    held = _beam(shown.key, shown.source, chosen.beam, shown.model, shown.task)
    greedy = s2s_view.walk(shown, forced=False)
    now = held.steps[min(chosen.step, len(held.steps)) - 1]
    title = decoding_story.beam_title(chosen.beam, chosen.step, len(held.steps))
    st.markdown(f"**{title}**")
    words = shown.task.target, shown.task.separator
    rows = decoding_story.beam_rows(now, *words, greedy)
    cells = [[parts.plain(cell) for cell in row] for row in rows]
    st.markdown(parts.table(["rank", "tokens", "ln p", ""], cells))
    parts.sentence(decoding_story.beam_sentence(held.best, greedy, *words))
    if chosen.forced:
        parts.sentence("Beam and greedy decoding are always fed their own tokens.")


def _draw_words(shown: Shown, walk: Any, at: int) -> None:
    from core import decoding_story, translation_story

    task = shown.task
    parts.sentence(decoding_story.answer_sentence(walk, task.target, task.separator))
    last = walk.explained.cross_maps[-1]
    name = translation_story.map_name(
        len(walk.explained.cross_maps), translation_story.MEAN, last.shape[1]
    )
    row = last[0].mean(dim=0)[at]
    parts.sentence(translation_story.row_sentence(name, row, shown.labels))


class _Beam(NamedTuple):
    """What a beam held after each step, and with what it ended."""

    steps: list[Any]
    best: list[Any]


@st.cache_resource(max_entries=64, show_spinner=False)
def _beam(
    key: str, source: tuple[int, ...], width: int, _model: Any, _task: Any
) -> _Beam:
    from core.decoding_walk import search

    return _Beam(*search(_model, source, beam_size=width, max_len=_task.max_target))
