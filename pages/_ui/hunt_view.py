"""The bug hunt of the multi-head page: one mistake to find, and all of them by name."""

from typing import Any

import streamlit as st

from pages._ui import heads_view, parity_badge, parts
from pages._ui.controls import Controls

CASES = 24
MISTAKES = [
    "softmax over the wrong axis",
    "heads merged without the transpose",
    "values through the key projection",
    "scaled by √d_model",
    "output projection left out",
    "mask inverted",
]
HINTS = {  # what would be seen if this were the mistake
    MISTAKES[0]: "Then columns of the map would sum to 1, and rows need not.",
    MISTAKES[1]: "Then the heads would be right, and wrong as soon as concatenated.",
    MISTAKES[2]: "Then the weights would be right, and what the heads sum up wrong.",
    MISTAKES[3]: "Then the scores would be off already, with rows that sum to 1.",
    MISTAKES[4]: "Then everything would be right up to the concatenation.",
    MISTAKES[5]: "Then the map would show weight on keys that should be hidden.",
}
_ALL_KEYS = "all keys"
_EVIDENCE_HEIGHT = 380


def choose_case(c: Controls) -> int:
    """Return the number of the case."""
    return c.whole(
        "Case", "case", 1, CASES, 1, help_text="Each case has one mistake in it."
    )


def choose_mistake(c: Controls) -> str:
    """Return the name of the mistake that is put in."""
    return c.menu("Put a mistake in", "mistake", MISTAKES)


def draw_hunt(seen: Any, case: int, head: int) -> None:
    """Show what a hidden mistake does, and ask which it is."""
    from core import mistakes

    showing = mistakes.mistakes_that_show(seen)
    name = mistakes.mistake_of_case(case, showing)
    found = mistakes.see_mistake(seen, name)
    draw_evidence(found, seen, head, f"Case {case}, head {head}")
    _ask(case, name, showing, found, seen)


def draw_mistake(seen: Any, name: str, head: int) -> None:
    """Show what a named mistake does."""
    from core import mistakes

    found = mistakes.see_mistake(seen, name)
    draw_evidence(found, seen, head, f"{name[:1].upper()}{name[1:]}, head {head}")


def draw_evidence(found: Any, seen: Any, head: int, title: str) -> None:
    """Draw the map with its row sums, the badge, and each stage's distance."""
    from core import heads_story

    said = heads_story.mistake_sentence(found, head)
    drawn, numbers = st.columns([3, 2], gap="large")
    with drawn:
        heads_view.draw_map(
            heads_story.with_row_sums(found.weights[head - 1]),
            seen,
            title=f"{title}: weights, and their sum over all keys",
            key="heads_evidence",
            alt=said,
            columns=[*seen.labels, _ALL_KEYS],
            height=_EVIDENCE_HEIGHT,
        )
    with numbers:
        parity_badge.badge(found.parity, "nn.MultiheadAttention")
        st.markdown(
            heads_view.table(["stage", "differs by"], heads_story.stage_rows(found))
        )
    parts.sentence(said)
    parts.random_weights_badge()


def _ask(case: int, name: str, showing: list[str], found: Any, seen: Any) -> None:
    from core import heads_story

    choices = [
        parts.Choice(f"{mistake[:1].upper()}{mistake[1:]}", _hint(mistake, showing))
        for mistake in MISTAKES
    ]
    picked = parts.ask_prediction(
        f"heads_case_{case}",
        "One step of this layer is wrong. Which mistake is it?",
        choices,
    )
    if picked is not None:
        stage = heads_story.first_wrong_stage(found, seen)
        reveal = f"The first stage that is off: {stage}. {HINTS[name]}"
        parts.judge_prediction(choices, picked, MISTAKES.index(name), reveal)


def _hint(mistake: str, showing: list[str]) -> str:
    if mistake in showing:
        return HINTS[mistake]
    return "With these settings it would change nothing, and the badge would be green."
