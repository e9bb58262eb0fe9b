"""After training on the marker page: the same model on sequences of another length."""

import streamlit as st

from pages._ui import live_run, parts
from pages._ui.controls import Controls
from pages._ui.leases import HeldRun

_AS_TRAINED = "as trained"
_LENGTHS = (_AS_TRAINED, "10", "20", "30", "60", "120", "240", "300")


def choose(c: Controls, held: HeldRun | None) -> int | None:
    """Return the length to test at; None where it is that of training.

    The control is drawn only where there is a trained model that rests.
    """
    if held is None or not live_run.at_rest(held.look()):
        return None
    picked = c.menu(
        "Sequence length at test time",
        "test_length",
        _LENGTHS,
        help_text="The model is as it is; only the test sequences grow or shrink.",
    )
    return None if picked == _AS_TRAINED else int(picked)


def draw(held: HeldRun, length: int | None) -> None:
    """Say how the trained model answers at the other length, once it has been asked."""
    from core import marker_story

    look = held.look()
    if length is None or not live_run.at_rest(look):
        return
    found = live_run.ask(
        held,
        ("length", look.status.step_count, length),
        lambda trainer: marker_story.test_at_length(trainer, length),
    )
    if found is not None:
        st.subheader(f"Sequences of length {length}", anchor=False)
        parts.sentence(marker_story.length_sentence(found))
