"""The encoder-decoder page's view of the stack: its diagram, and one part of it."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts, s2s_view
from pages._ui.controls import Controls
from pages._ui.s2s_view import Shown

PARTS = {  # place of the diagram -> its name in the menu
    "source": "Source: tokens",
    "source_embedded": "Source: embedding + positions",
    "norm of encoder_attention": "Encoder: LayerNorm of self-attention",
    "encoder_attention": "Encoder: self-attention",
    "sum of encoder_attention": "Encoder: self-attention + shortcut",
    "norm of encoder_feed_forward": "Encoder: LayerNorm of feed-forward",
    "encoder_feed_forward": "Encoder: feed-forward",
    "sum of encoder_feed_forward": "Encoder: feed-forward + shortcut",
    "encoder_after": "Encoder: after the layer",
    "memory": "Memory",
    "target": "Target: tokens",
    "target_embedded": "Target: embedding + positions",
    "norm of decoder_attention": "Decoder: LayerNorm of masked self-attention",
    "decoder_attention": "Decoder: masked self-attention",
    "sum of decoder_attention": "Decoder: masked self-attention + shortcut",
    "norm of cross_attention": "Decoder: LayerNorm of cross-attention",
    "cross_attention": "Decoder: cross-attention",
    "sum of cross_attention": "Decoder: cross-attention + shortcut",
    "norm of decoder_feed_forward": "Decoder: LayerNorm of feed-forward",
    "decoder_feed_forward": "Decoder: feed-forward",
    "sum of decoder_feed_forward": "Decoder: feed-forward + shortcut",
    "decoder_after": "Decoder: after the layer",
    "decoder_last_norm": "Decoder: last LayerNorm",
    "linear": "Linear: logits",
    "softmax": "Softmax",
}
MAPS = ("encoder_attention", "decoder_attention", "cross_attention")
_OUTSIDE = (  # parts that are in no layer
    "source", "source_embedded", "memory", "target", "target_embedded",
    "decoder_last_norm", "linear", "softmax",
)  # fmt: skip
_SAID_HEIGHT = 68  # three small lines: the diagram below stays where it is
_MANY = 20  # columns; more of them are narrow
_FIRST = "cross_attention"
MOVES = [
    parts.Choice(
        "Those from that place on",
        "The mask keeps every later token out of the earlier positions.",
    ),
    parts.Choice(
        "Only the one at that place",
        "Later positions read it: masked self-attention hides the future, not the "
        "past.",
    ),
    parts.Choice(
        "All of them",
        "Earlier positions may not read a later token, so nothing there can change.",
    ),
    parts.Choice(
        "None: the memory decides",
        "The memory comes from the source alone, but every position also reads the "
        "target fed before it.",
    ),
]


class Chosen(NamedTuple):
    """What the controls say."""

    part: str
    layer: int
    head: int
    forced: bool


def choose(c: Controls, config: Any) -> Chosen:
    """Return which part is looked into, and of which layer and head."""
    names = _names(config)
    part = c.menu(
        "Part of the stack",
        "part",
        names,
        preset=names.index(_FIRST),
        shown=PARTS.__getitem__,
    )
    return Chosen(
        part=part,
        layer=c.whole(
            "Layer",
            "layer",
            1,
            config.num_layers,
            config.num_layers,
            disabled=part in _OUTSIDE,
        ),
        head=c.listed(
            "Head",
            "head",
            range(config.num_heads + 1),
            0,
            shown=lambda head: str(head) if head else "mean",
            help_text="The mean is over all heads of the layer.",
            disabled=part not in MAPS,
        ),
        forced=c.switch(
            "Feed the true target",
            "stack_forced",
            False,
            help_text="Off: the tokens the model chose itself.",
        ),
    )


def draw(shown: Shown, chosen: Chosen) -> None:
    """Draw the stack with the shapes of this example, and the part looked into."""
    from core import stack_walk

    walk = s2s_view.walk(shown, forced=chosen.forced)
    panel = stack_walk.panel_of(shown.model, walk, shown.task, *chosen[:3])
    _draw_buttons(chosen.part, _names(shown.model.config), panel.sentences)
    _draw_diagram(shown, walk, chosen)
    _draw_part(panel)


def predict(shown: Shown) -> None:
    """Ask which logits another token fed in the middle of the target moves."""
    from core import decoding_walk, translation_story

    walk, vocabulary = s2s_view.walk(shown, forced=True), shown.task.target
    if len(walk.target_in) < 3:
        return  # no place has both an earlier and a later one
    place = len(walk.target_in) // 2
    picked = parts.ask_prediction(
        "s2s_predict",
        f"The decoder is fed {len(walk.target_in)} tokens at once. Another token is "
        f"put at place {place} of them (the start token is at 0). Which logits change?",
        MOVES,
    )
    if picked is None:
        return
    other = translation_story.other_token(walk, vocabulary, place)
    moved = decoding_walk.feed_another(shown.model, walk, place, other)
    right = translation_story.moved_answer(moved)
    said = parts.plain(translation_story.moved_sentence(moved, vocabulary))
    parts.judge_prediction(MOVES, picked, right, said)


def look_inside(shown: Shown, chosen: Chosen) -> None:
    """Show the functions of core behind the stack."""
    from core import blocks, encoder_decoder

    explained = s2s_view.walk(shown, forced=chosen.forced).explained
    parts.look_inside(
        "s2s",
        [
            encoder_decoder.EncoderDecoderTransformer.explain,
            blocks.EncoderBlock.attend,
            blocks.DecoderBlock.attend,
        ],
        {
            "source (B, S, d_model)": explained.source_embedded,
            "memory (B, S, d_model)": explained.memory.states,
            "target (B, T, d_model)": explained.target_embedded,
            "cross-attention (B, H, T, S)": explained.cross_maps[-1],
            "logits (B, T, V)": explained.logits,
        },
    )


def _draw_diagram(shown: Shown, walk: Any, chosen: Chosen) -> None:
    from core import charts, stack_walk
    from core.charts import stack_diagram
    from core.charts.diagram import diagram_frame

    config = shown.model.config
    nodes, edges = stack_diagram.stack_diagram(
        stack_walk.shapes_of(walk),
        num_layers=config.num_layers,
        norm_first=config.norm_first,
        marked=chosen.part,
        clickable=tuple(PARTS),
    )
    parts.clickable_chart(
        charts.diagram,
        diagram_frame(nodes, edges),
        key="s2s_stack",
        alt="The encoder-decoder stack with the shapes of this example",
        x_domain=stack_diagram.X_DOMAIN,
        y_domain=stack_diagram.Y_DOMAIN,
        title="The stack, shapes of this example without the batch: click a part",
        height=520,
        on_click=_open_part,
    )


def _open_part(name: str) -> None:
    if name in PARTS:  # what a browser sends may be anything
        parts.set_controls("s2s", {"part": name})


def _names(config: Any) -> list[str]:
    """Return the parts that a model has, in the order of the computation."""
    from core.charts import stack_diagram

    return stack_diagram.places(config.norm_first)


def _draw_buttons(part: str, names: list[str], sentences: list[str]) -> None:
    """Offer to walk to the part before and after; say what the part's numbers are.

    The sentences stand over the diagram, for a click there must change what is seen.
    """
    at = names.index(part)
    left, right = st.columns([1, 2], gap="small", vertical_alignment="center")
    with left.container(horizontal=True, gap="small"):
        for label, to, icon in (
            ("Part before", at - 1, "arrow_back"),
            ("Part after", at + 1, "arrow_forward"),
        ):
            st.button(
                label,
                key=f"s2s_{label}",
                icon=f":material/{icon}:",
                disabled=not 0 <= to < len(names),
                on_click=parts.set_controls,
                args=("s2s", {"part": names[min(max(to, 0), len(names) - 1)]}),
            )
    said = parts.plain(" ".join(sentences))
    with right.container(
        height=_SAID_HEIGHT, border=False, vertical_alignment="center"
    ):
        st.markdown(f":small[{said}]")


def _draw_part(panel: Any) -> None:
    from core import charts
    from core.charts import tidy

    frame = tidy.matrix_frame(
        panel.matrix,
        kind=panel.kind,
        row_labels=panel.rows,
        column_labels=panel.columns,
        mask=panel.mask,
    )
    parts.bare_chart(
        charts.heatmap,
        frame,
        # A picture that lives on would keep the order of its old labels.
        key=f"s2s_part {panel.rows} {panel.columns}",
        alt=" ".join(panel.sentences),
        kind=panel.kind,
        title=panel.title,
        limit=panel.limit,
        show_values=panel.numbers,
        narrow=panel.kind in ("logit", "probability") and len(panel.columns) > _MANY,
        row_title=panel.row_title,
        height=360,
    )
