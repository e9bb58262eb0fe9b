"""The bug hunt of the multi-head page: one mistake to find, and all of them by name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
REASONS = {  # what is seen where this is the mistake
    MISTAKES[0]: "The softmax runs down the columns: they sum to 1, not the rows.",
    MISTAKES[1]: "The heads lie in memory one after another and are read as tokens.",
    MISTAKES[2]: "The weights are right, but they sum up keys.",
    MISTAKES[3]: "The scores are too small by the root of the number of heads.",
    MISTAKES[4]: "The heads lie side by side, and nothing mixes them.",
    MISTAKES[5]: "The weight lies on the keys that should be hidden.",
}
_HEIGHT = 380


def choose_case(c: Controls) -> int:
    """Return the number of the case."""
    return c.whole(
        "Case", "case", 1, CASES, 1, help_text="Each case has one mistake in it."
    )


def choose_mistake(c: Controls) -> str:
    """Return the name of the mistake that is put in."""
    return c.menu("Put a mistake in", "mistake", MISTAKES)


def choose_head(c: Controls, num_heads: int) -> int:
    """Return the number of the head whose map is drawn."""
    numbers = range(1, num_heads + 1)
    return c.listed("Head drawn", "broken_head", numbers, 1)


def draw_hunt(seen: Any, case: int, head: int) -> None:
    """Show what a hidden mistake does, and ask which it is."""
    from core import mistakes

    found = mistakes.see_mistakes(seen)
    name = mistakes.mistake_of_case(case, mistakes.mistakes_that_show(found))
    with _evidence(found[name], seen, head):
        stages = st.expander(
            "Show the stages: where does it begin?",
            icon=":material/troubleshoot:",
            key=f"heads_stages_{case}",
            on_change="rerun",
        )
        if stages.open:
            stages.markdown(_stages(found[name]))
    _ask(case, name, found, seen)


def draw_mistake(seen: Any, name: str, head: int) -> None:
    """Show what a named mistake does."""
    from core import mistakes

    found = mistakes.see_mistake(seen, name)
    with _evidence(found, seen, head):
        st.markdown(_stages(found))


@contextmanager
def _evidence(found: Any, seen: Any, head: int) -> Iterator[None]:
    """Draw the map with its row sums and the badge; the block follows the badge."""
    from core import charts, heads_story
    from core.charts.sums_frame import summed_frame

    said = heads_story.mistake_sentence(found, seen, head)
    small = len(seen.labels) <= heads_view.SMALL
    drawn, numbers = st.columns([3, 2], gap="large")
    with drawn:
        parts.bare_chart(
            charts.summed_heatmap,
            summed_frame(found.weights[head - 1], seen.labels, mask=seen.mask),
            key="heads_evidence",
            alt=said,
            title=f"Head {head}: weights and row sums",
            show_values=small,
            legend=not small,
            height=_HEIGHT,
        )
    with numbers:
        parity_badge.badge(found.parity, "nn.MultiheadAttention")
        yield
    parts.sentence(said)
    parts.random_weights_badge()


def _stages(found: Any) -> str:
    from core import heads_story

    return parts.table(["stage", "differs by"], heads_story.stage_rows(found))


def _ask(case: int, name: str, found: Mapping[str, Any], seen: Any) -> None:
    from core import heads_story

    choices = [
        parts.Choice(f"{mistake[:1].upper()}{mistake[1:]}", _hint(mistake, found))
        for mistake in MISTAKES
    ]
    picked = parts.ask_prediction(
        f"heads_case_{case}",
        "One step of this layer is wrong. Which mistake is it?",
        choices,
    )
    if picked is not None:
        reveal = f"{REASONS[name]} {heads_story.found_sentence(found[name], seen)}"
        parts.judge_prediction(choices, picked, MISTAKES.index(name), reveal)


def _hint(mistake: str, found: Mapping[str, Any]) -> str:
    from core import heads_story

    if not found[mistake].parity.agrees:
        return HINTS[mistake]
    said = heads_story.effect_sentence(found[mistake])
    return f"With these settings its badge would be green. {said}"
