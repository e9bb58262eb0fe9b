"""Accuracy against length on the bottleneck page: shipped runs, and one run here."""

from typing import Any

import streamlit as st

from pages._ui import measured_run, parts
from pages._ui.bottleneck_view import ATTENTIONS
from pages._ui.controls import Controls
from pages._ui.leases import Look

MEASURES = {"exact": "whole strings", "letters": "letters"}
CONTEXTS = [2, 4, 8, 16, 32, 64]  # 64 is the whole state
_HEIGHT = 380
_ALT = (
    "Share of right answers against the length of the source, a thin line a seed and a "
    "thick one their median. The sentences below give the numbers."
)
_AHEAD = {
    "length": "About half a minute of computing on this server, a minute with additive "
    "attention; in turns with other runs.",
    "context": "About half a minute of computing on this server, in turns with other "
    "runs.",
}
_WHOLE = (
    "64 numbers are the last state itself; fewer are squeezed out of it by one linear "
    "layer and widened again by another."
)
CHOICES = [
    parts.Choice(
        "Up to 16, the longest in training",
        "Training shows such strings, but one vector of the same size has to hold "
        "twice as many letters as at 8.",
    ),
    parts.Choice(
        "Up to 8, 10, 12 or 14",
        "One vector of 64 numbers carries fewer letters than that after this training.",
    ),
    parts.Choice(
        "Up to 2, 4 or 6",
        "The vector carries more letters than that after this training.",
    ),
    parts.Choice(
        "At none of them: it needs attention to write anything",
        "The last state does reach the decoder, and short strings fit in it.",
    ),
]


def choose_measure(c: Controls) -> str:
    """Return what is counted: whole strings or single letters."""
    return c.choice("Right answers", "measure", list(MEASURES), shown=MEASURES.get)


def choose_context(c: Controls) -> int:
    """Return the size of the context vector of a run made here."""
    return c.listed("Context, trained here (numbers)", "context", CONTEXTS, 2)


def choose_attention(c: Controls) -> str:
    """Return the kind of attention of a run made here."""
    return c.menu(
        "Attention, trained here",
        "trained",
        list(ATTENTIONS),
        shown=ATTENTIONS.__getitem__,
    )


def draw(measure: str, attention: str, seed: int) -> None:
    """Draw accuracy against length for each kind of attention, and the run here."""
    _draw("length", measure, attention, None, seed)


def draw_by_context(measure: str, size: int, seed: int) -> None:
    """Draw accuracy against length for each size of the context vector."""
    from core import bottleneck

    whole = size == bottleneck.HIDDEN_SIZE
    _draw("context", measure, "none", None if whole else size, seed)


def predict() -> None:
    """Ask up to which length the model without attention is right half the time."""
    from core import bottleneck, bottleneck_story

    runs = bottleneck.read_shipped().by_attention()
    parts.predict(
        "bottleneck_reach",
        "Trained on 2 to 16 letters with 64 numbers between the networks and no "
        "attention, tested at 2, 4, … 16 letters: up to which of these lengths are at "
        "least half of new strings right?",
        CHOICES,
        bottleneck_story.right_band(runs),
        parts.plain(bottleneck_story.reach_sentence(runs)),
    )


def _draw(
    part: str, measure: str, attention: str, context: int | None, seed: int
) -> None:
    from core import bottleneck, measuring

    config = bottleneck.BottleneckConfig(attention, context, seed=seed)
    measured_run.measured(
        f"bottleneck/{part}",
        config,
        lambda config: measuring.Measurement(bottleneck.watch(config), config.total),
        total=lambda config: config.total,
        label="Train one here",
        ahead=_AHEAD[part],
        unit="training steps and tests",
        draw=lambda look: _draw_look(part, measure, look),
        elsewhere=_elsewhere,
    )
    functions = [bottleneck.watch, bottleneck.score_at]
    shapes = {"strings tested": str(bottleneck.NUM_TESTED)}
    parts.look_inside(f"bottleneck_{part}", functions, shapes)


def _setting(config: Any) -> str:
    from core import bottleneck_story

    name = bottleneck_story.NAMES[config.attention]
    return f"{name}, {config.passed_on} numbers in the context, seed {config.seed}"


def _elsewhere(look: Look) -> str:
    from core import bottleneck

    setting = _setting(look.config)
    if bottleneck.latest_results(look.records):
        return f"Trained here: {setting}. The dashed line is that run."
    return f"Training here: {setting}; not tested yet."


def _draw_look(part: str, measure: str, look: Look) -> None:
    """Draw the shipped curves and, dashed, what the run here has brought so far."""
    from core import bottleneck, charts
    from core import bottleneck_story as story
    from core.charts.by_length import by_length_frame

    shipped, narrow = bottleneck.read_shipped(), part == "context"
    runs = shipped.by_context() if narrow else shipped.by_attention()
    seeds = story.seed_curves(runs, measure, by_context=narrow)
    medians = story.median_curves(seeds)
    here = bottleneck.latest_results(look.records)
    parts.bare_chart(
        charts.by_length,
        by_length_frame(seeds, medians, here=story.points_of(here, measure)),
        key=f"bottleneck_{part}",
        alt=_ALT,
        series=tuple(medians),
        x_domain=(float(bottleneck.LENGTHS[0]), float(bottleneck.LENGTHS[-1])),
        y_title=f"{MEASURES[measure]} right",
        title="New strings by length: median of 3 seeds, thin lines single seeds"
        + (", no attention" if narrow else ", hidden size 64"),
        with_here=look.status.state != "new",
        height=_HEIGHT,
    )
    if here:
        steps = look.config.max_steps
        said = story.here_sentence(look.records, measure, max_steps=steps)
        parts.sentence(f"{_setting(look.config).capitalize()}. {said}")
    tell = story.apart_sentence if narrow else story.length_sentence
    parts.sentence(tell(runs, measure))
    parts.sentence(story.reach_sentence(runs, by_context=narrow))
    if narrow:
        parts.sentence(f"{story.width_sentence(runs)} {_WHOLE}")
    st.caption(parts.plain(f"Shipped table. {shipped.origin}"))
