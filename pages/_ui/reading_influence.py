"""Weight beside influence, and the question which of the two a weight tells."""

from typing import Any

import streamlit as st

from pages._ui import parts
from pages._ui.controls import Controls
from pages._ui.reading_view import INFLUENCE, MAPS, OFF, Chosen, Shown

_DRAWS = [1, 2, 4, 8, 16, 32, 64]
_PRESET = 8  # of them; a slider moved works it out anew
_SECONDS = 0.5  # about what an occlusion may take
_SEED = 0  # of the noise that replaces an input
_HEIGHT = 174
_ALT = "One number for each position; the sentences beside it name the largest"
_CHOICES = [
    parts.Choice(
        "Yes, more than any other",
        "A weight says how much of a value is read, not what the answer makes of it.",
    ),
    parts.Choice(
        "No, but it is among the five that move it most",
        "That would be weight and influence in about the same order.",
    ),
    parts.Choice(
        "No, it stands further down",
        "That would need a large weight on a value that hardly reaches the answer.",
    ),
]


def choose_draws(c: Controls, config: Any) -> int:
    """Return how often each input is replaced by noise."""
    draws = _draws_offered(config)
    return c.listed(
        "Draws of noise for each input", "draws", draws, min(_PRESET, draws[-1])
    )


def _draws_offered(config: Any) -> list[int]:
    from core import reading_story

    most = reading_story.affordable(
        config, config.seq_len, seconds=_SECONDS, fewest=_DRAWS[0]
    )
    return [number for number in _DRAWS if number <= most]


@st.cache_resource(max_entries=64, show_spinner=False)
def _found(key: str, _model: Any, _reading: Any, chosen: Chosen, draws: int) -> Any:
    from core import influence

    return influence.influences(
        _model,
        _reading.inputs[:, None],
        layer=chosen.layer - 1,
        head=chosen.head - 1 if chosen.head else None,
        draws=draws,
        seed=_SEED,
        moved=_moved(key, _model, _reading, chosen.sequence, chosen.position, draws),
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _moved(
    key: str, _model: Any, _reading: Any, sequence: int, position: int, draws: int
) -> Any:
    """Return what each input moves, which is the same for every layer and head."""
    from core import influence, threads

    with threads.one_thread():
        x = _reading.inputs[:, None]
        return influence.occlusion(_model, x, draws=draws, seed=_SEED)


def draw(shown: Shown, reading: Any, chosen: Chosen, draws: int) -> None:
    """Draw the weight and three measures of influence, each on its own axis."""
    from core import charts, influence_story, reading_story
    from core.charts import tidy

    config = shown.config
    reading_story.require_affordable(config, draws * config.seq_len)
    found = _found(shown.key, shown.model, reading, chosen, draws)
    name = reading_story.map_name(chosen.layer, chosen.head, config.num_heads)
    columns = st.columns(2) * 2
    for column, measure in zip(columns, influence_story.measures(found), strict=True):
        with column:
            parts.bare_chart(
                charts.sequence,
                tidy.curves_frame({measure.title: measure.values}),
                key=f"reading_{measure.key}",
                alt=_ALT,
                num_positions=config.seq_len,
                marker=chosen.position,
                limit=charts.nice_limit(measure.largest),
                signed=measure.signed,
                room=0.25,
                y_title=measure.unit,
                title=f"{name}: {measure.title}" if measure.own else measure.title,
                height=_HEIGHT,
            )
    parts.sentence(influence_story.correlation_sentence(found))
    said = [
        influence_story.influence_sentence(found, name),
        influence_story.cls_sentence(reading, chosen.layer, chosen.head),
        influence_story.slope_sentence(found),
    ]
    parts.sentence(" ".join(filter(None, said)))
    st.caption(
        "Weight and contribution are of the map named, occlusion and gradient of "
        "the whole model. A weight is not called a cause here."
    )


def predict(shown: Shown, reading: Any, chosen: Chosen) -> None:
    """Ask whether the input with the largest weight moves the answer most."""
    from core import influence_story, reading_story

    config = shown.config
    draws = min(_PRESET, _draws_offered(config)[-1])
    name = reading_story.map_name(chosen.layer, chosen.head, config.num_heads)
    largest = influence_story.largest_input(reading, chosen.layer, chosen.head)
    can = reading_story.is_affordable(config, draws * config.seq_len)
    if largest is None or not can:
        return
    picked = parts.ask_prediction(
        "reading_predict",
        f"{name}, test sequence {reading.sequence}: of the inputs, position {largest} "
        "has the largest weight. Each input is replaced by noise in turn. Does this "
        "one move the answer most?",
        _CHOICES,
    )
    if picked is not None:
        found = _found(shown.key, shown.model, reading, chosen, draws)
        right = int(influence_story.fate_of_largest(found))
        reveal = parts.plain(influence_story.influence_sentence(found, name))
        parts.judge_prediction(_CHOICES, picked, right, reveal)


def experiments() -> dict[str, dict[str, Any]]:
    """Return the experiments of the page: what to look for, and the controls."""
    from core import influence

    case = influence.disagreement()
    disagree = {"layer": case.layer + 1, "head": case.head + 1}
    disagree |= {"sequence": case.sequence, "position": 0}
    return {
        "Weight and influence disagree: what is read most, what moves most?": {
            "view": INFLUENCE,
            "source": "shipped",
            **disagree,
        },
        "Switch off the attention of layer 1: what is left?": {
            "view": OFF,
            "source": "shipped",
            "off": ["layer 1"],
        },
        "Move the marker to position 30 at test time: where does the readout look?": {
            "view": MAPS,
            "source": "shipped",
            "position": 30,
        },
    }
