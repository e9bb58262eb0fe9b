"""What is left of the accuracy with heads, or whole layers, switched off."""

from typing import Any

import streamlit as st

from pages._ui import parts
from pages._ui.controls import Controls
from pages._ui.reading_view import Shown

_FEWEST = 50  # test sequences; fewer tell little of an accuracy
_OWN_TESTS = 2  # with all heads on, and with those off that are chosen
_SECONDS = 0.6  # about what all tests of one table may take


def choose(c: Controls, config: Any) -> list[str]:
    """Return the names of the layers and heads that are off."""
    from core import influence_story

    names = list(influence_story.off_choices(config))
    return c.several(
        "Switched off",
        "off",
        names,
        [],
        most=len(names),
        help_text="What a head writes is multiplied by 0 before W_O adds it; the rest "
        "of the model stays.",
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _accuracy(key: str, _model: Any, off: frozenset[Any], count: int) -> float:
    from core import ablation

    return ablation.accuracy_without(_model, off, count=count)


@st.cache_resource(max_entries=16, show_spinner=False)
def _table(key: str, _model: Any, count: int) -> tuple[Any, Any]:
    from core import ablation

    heads = ablation.single_ablations(_model, count=count)
    return heads, ablation.layers_off(_model, count=count)


def num_tested(config: Any) -> int:
    """Return how many test sequences each of the accuracies is taken on."""
    from core import reading_story

    passes = _num_tests(config)
    if not reading_story.is_affordable(config, _FEWEST * passes):
        passes = _OWN_TESTS
    return reading_story.affordable(config, passes, seconds=_SECONDS, fewest=_FEWEST)


def _num_tests(config: Any) -> int:
    return _OWN_TESTS + config.num_layers * (1 + config.num_heads)


def draw(shown: Shown, picked: list[str]) -> None:
    """Say what the choice costs, and show what each head alone would.

    A table that would take too long is refused by itself.
    """
    from core import influence_story, reading_story

    config, kept = shown.config, (shown.key, shown.model)
    names = influence_story.off_choices(config)
    count = num_tested(config)
    reading_story.require_affordable(config, count * _OWN_TESTS)
    off = frozenset().union(*(names[name] for name in picked))
    before, after = (_accuracy(*kept, each, count) for each in (frozenset(), off))
    left, right, _ = st.columns([1, 1, 2])
    left.metric("Test accuracy, all on", reading_story.percent(before))
    right.metric(
        "Test accuracy, switched off",
        reading_story.percent(after),
        influence_story.points(after - before) if picked else None,
        delta_color="off",
    )
    parts.sentence(influence_story.off_sentence(before, after, picked, count))
    with parts.explained():
        _draw_table(shown, off, (before, after), count)


def _draw_table(
    shown: Shown, off: frozenset[Any], found: tuple[float, float], count: int
) -> None:
    """Draw the table, and say how it compares with all on and with what is off."""
    from core import influence_story, reading_story

    config = shown.config
    st.markdown("**Test accuracy with one head off, or one layer's attention**")
    reading_story.require_affordable(config, _FEWEST * _num_tests(config))
    heads, layers = _table(shown.key, shown.model, count)
    header = ["", *(f"head {n + 1}" for n in range(config.num_heads)), "all its heads"]
    st.markdown(parts.table(header, influence_story.ablation_rows(heads, layers)))
    before, after = found
    said = [
        influence_story.ablation_sentence(heads, layers, before),
        influence_story.more_off_sentence(heads, layers, off, after),
    ]
    parts.sentence(" ".join(filter(None, said)))
