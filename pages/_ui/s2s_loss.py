"""The encoder-decoder page's view of the loss: one position, worked out."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts, s2s_view
from pages._ui.controls import Controls
from pages._ui.s2s_view import Shown

_ROWS = 6
_SMOOTHING = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5]


class Chosen(NamedTuple):
    """What the controls say."""

    place: int
    smoothing: float


def choose(c: Controls, shown: Shown) -> Chosen:
    """Return which position is worked out, and how far the target is smoothed."""
    walk = s2s_view.walk(shown, forced=True)
    return Chosen(
        place=c.whole("Position", "place", 1, len(walk.steps), walk.least_sure + 1),
        smoothing=c.listed(
            "Label smoothing",
            "smoothed",
            _SMOOTHING,
            0.0,
            help_text="Share of the target that is spread over all tokens alike.",
        ),
    )


def draw(shown: Shown, chosen: Chosen) -> None:
    """Draw the distribution of one position beside its target, and the sum."""
    from core import charts, decoding_story, decoding_walk, translation_story
    from core.charts.next_token import next_token_frame

    walk = s2s_view.walk(shown, forced=True)
    vocabulary = shown.task.target
    at = chosen.place - 1
    step = walk.steps[at]
    losses = [_loss(one, chosen.smoothing) for one in walk.steps]
    top = decoding_walk.most_probable(step, _ROWS)
    said = translation_story.loss_sentence(losses[at], step.true, vocabulary)
    st.markdown(f"**Position {at + 1} of {len(walk.steps)}, fed the true tokens**")
    left, right = st.columns([4, 3], gap="medium")
    with left:
        frame = next_token_frame(
            vocabulary.decode(top),
            [float(step.distribution[token]) for token in top],
            [decoding_story.role_of(token, step) for token in top],
        )
        parts.bare_chart(
            charts.next_token,
            frame,
            key="s2s_loss",
            alt=said,
            title="What the model gives at this position",
            height=320,
        )
    with right:
        rows = translation_story.loss_rows(losses[at], top, vocabulary)
        st.markdown(parts.table(["token", "p", "q", "−q ln p"], rows))
    parts.sentence(said)
    parts.sentence(translation_story.sequence_loss_sentence(losses))


def look_inside(shown: Shown, chosen: Chosen) -> None:
    """Show the function of core that works the loss out."""
    from core.decoding_walk import position_loss

    logits = s2s_view.walk(shown, forced=True).explained.logits
    parts.look_inside("s2s", [position_loss], {"logits (1, T, V)": logits})


def _loss(step: Any, smoothing: float) -> Any:
    from core.decoding_walk import position_loss

    return position_loss(step.logits, step.true, smoothing)
