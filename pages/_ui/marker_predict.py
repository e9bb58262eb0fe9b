"""The prediction of the marker page, judged on the run that the tab holds."""

from typing import Any

import streamlit as st

from pages._ui import live_run, marker_view, parts
from pages._ui.leases import HeldRun, Look


def ask_ahead(held: HeldRun) -> None:
    """Ask for the answer that a commitment waits for, before the page is drawn."""
    look = held.look()
    if _commitment(held) in st.session_state and live_run.at_rest(look):
        marker_view.moved(held, look, _asked_position(look))


def predict(held: HeldRun, moving: bool) -> None:
    """Ask what moving the marker does; the answer is measured on this tab's run.

    A commitment is kept until the run has trained and rests, and is judged then.

    Args:
        held: The run held by this tab.
        moving: Whether the run trains, or an answer is due.
    """
    look, commitment = held.look(), _commitment(held)
    choices = _choices()
    picked = parts.ask_prediction(
        f"{held.page}_predict",
        "Train the run, then move the marker of the test sequences from position 0 to "
        f"{_asked_position(look)}. What happens to the test accuracy?",
        choices,
    )
    if picked is not None:
        st.session_state[commitment] = picked
        st.rerun()  # so that the answer is asked for, and waited for
    if commitment not in st.session_state:
        return
    if moving or not live_run.at_rest(look):
        parts.note(
            f"You committed to: {choices[st.session_state[commitment]].text}. "
            "It is judged on your run: train it, then let it rest."
        )
        return
    answer = marker_view.moved(held, look, _asked_position(look))
    if answer is None and held.waits:
        st.rerun()  # the run came to rest only just now
    picked = st.session_state.pop(commitment)
    if answer is not None:
        _judge(choices, picked, answer)


def _commitment(held: HeldRun) -> str:
    return f"{held.page}_committed"


def _asked_position(look: Look) -> int:
    return look.config.seq_len // 2


def _choices() -> list[parts.Choice]:
    """Return the answers of the prediction, in the order of the fates."""
    from core.marker_story import Fate

    choices = {
        Fate.STAYS: parts.Choice(
            "It stays where it is",
            "That would need a model that looks for the marker's size wherever it "
            "stands; training never asked for it.",
        ),
        Fate.HALF: parts.Choice(
            "It falls to about half",
            "A coin flip is the answer of a model that reads only the old place.",
        ),
        Fate.NEAR_ZERO: parts.Choice(
            "It falls to nearly 0 %",
            "Nearly 0 % would mean knowing the marker and answering the opposite.",
        ),
        Fate.BETWEEN: parts.Choice(
            "It ends somewhere between these",
            "In between would mean that the model finds some markers at the new place.",
        ),
    }
    return [choices[fate] for fate in Fate]


def _judge(choices: list[parts.Choice], picked: int, moved: Any) -> None:
    from core import marker_story

    if not marker_story.has_learned(moved):
        parts.note(
            "This run has not learned the task yet, so it cannot answer. "
            + marker_story.moved_sentence(moved)
        )
        return
    right = marker_story.fate_of_accuracy(moved)
    parts.judge_prediction(choices, picked, right, marker_story.moved_sentence(moved))
