"""The applications page's own pieces: the template, its sizes, its diagram."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts
from pages._ui.controls import Controls

HEIGHT = 540
_WIDTHS, _HEADS = [16, 32, 64, 128], [1, 2, 4, 8]  # each divides each
_MOST_LAYERS = 4
LONGER = [
    parts.Choice(
        "The encoder's alone",
        "Each target position also weighs every source token: cross-attention has one "
        "more column.",
    ),
    parts.Choice(
        "Cross-attention's alone",
        "The source tokens read one another before the decoder reads them.",
    ),
    parts.Choice("The encoder's and cross-attention's", ""),
    parts.Choice(
        "All three",
        "Masked self-attention meets the target alone; the source reaches the decoder "
        "only through the memory.",
    ),
]
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "Patches of twice the side: a quarter as many, what becomes of the map?": {
        "template": "Image and question", "patch": 32, "image_source_len": 9,
        "image_target_len": 10,
    },
    "A reply of one token: cross-attention has a row for <s> and one for it": {
        "template": "Chat", "chat_source_len": 21, "chat_target_len": 1,
    },
    "A source of one token: what can the encoder's self-attention still weigh?": {
        "template": "Translation", "translation_source_len": 1,
        "translation_target_len": 10,
    },
}  # fmt: skip


class Sizes(NamedTuple):
    """What the controls say; the names are those of ``run_template``."""

    name: str
    source_len: int
    target_len: int
    patch_side: int
    d_model: int
    num_heads: int
    num_layers: int


class Chosen(NamedTuple):
    """The run that is wanted, and the order of the norms in it."""

    sizes: Sizes
    norm_first: bool


def choose(c: Controls) -> Chosen:
    """Draw the controls."""
    from core.templates import PATCH_SIDES, TEMPLATES

    name = c.menu("Template", "template", list(TEMPLATES))
    template = TEMPLATES[name]
    words, target = len(template.source_tokens), len(template.target_tokens)
    patch_side = 16
    if template.has_image:
        label = "Side of a patch, pixels"
        patch_side = c.listed(label, "patch", PATCH_SIDES, patch_side)
    label = "Words of the question" if template.has_image else "Source tokens, S"
    # Lengths of their own: one that fits another template would cut this one.
    of, to = f"{template.key}_source_len", f"{template.key}_target_len"
    source_len = c.whole(label, of, 1, words, words)
    target_len = c.whole("Target tokens", to, 1, target, target)
    d_model = c.listed("Width, d_model", "d_model", _WIDTHS, 64)
    heads = c.listed("Heads, H", "heads", _HEADS, 4)
    layers = c.whole("Layers on each side", "layers", 1, _MOST_LAYERS, 2)
    norm = c.choice("Norm", "norm", ["pre-norm", "post-norm"])
    sizes = Sizes(name, source_len, target_len, patch_side, d_model, heads, layers)
    return Chosen(sizes, norm == "pre-norm")


def draw(chosen: Chosen) -> None:
    """Draw the diagram of the template and what it says in numbers."""
    from core import charts, template_story
    from core.charts import stack_diagram
    from core.charts.diagram import diagram_frame

    found = _run(chosen)
    layers, norm_first = chosen.sizes.num_layers, chosen.norm_first
    drawn = template_story.template_diagram(
        found, num_layers=layers, norm_first=norm_first
    )
    parts.picture(
        charts.diagram,
        diagram_frame(*drawn),
        key="apps_diagram",
        caption=template_story.flow_sentence(found),
        x_domain=stack_diagram.X_DOMAIN,
        y_domain=stack_diagram.Y_DOMAIN,
        title=f"{found.name} on the encoder-decoder stack",
        height=HEIGHT,
    )
    parts.sentence(template_story.example_sentence(found))
    if found.patches:
        parts.sentence(template_story.patch_sentence(found))
    parts.random_weights_badge("All weights" + " and pixels" * bool(found.patches))
    parts.sentence(template_story.one_sequence_sentence(found))


def predict(chosen: Chosen) -> None:
    """Ask which maps a longer source changes; the answer is run, once asked for."""
    from core import template_story

    question = (
        "The source grows by one token, the target stays. Which attention maps change "
        "their shape?"
    )
    picked = parts.ask_prediction("apps_predict", question, LONGER)
    if picked is not None:
        found, longer = (_run(chosen, more=more) for more in (0, 1))
        right, reveal = template_story.longer_source_answer(found, longer)
        parts.judge_prediction(LONGER, picked, right, reveal)


def look_inside(chosen: Chosen) -> None:
    """Show the code that ran, with the shapes of this template."""
    from core import template_run, template_story
    from core.encoder_decoder import EncoderDecoderTransformer

    found = _run(chosen)
    functions = [EncoderDecoderTransformer.explain]
    if found.patches:
        functions = [template_run.patches_of, template_run.embed_patches, *functions]
    parts.look_inside("apps", functions, template_story.shapes_shown(found))


def _run(chosen: Chosen, *, more: int = 0) -> Any:
    sizes = chosen.sizes._asdict()
    return _kept_run(**sizes, norm_first=chosen.norm_first, more=more)


@st.cache_resource(max_entries=256, show_spinner=False)
def _kept_run(**sizes: Any) -> Any:
    """Return what the untrained model gives, words and shapes alone."""
    from core.template_run import run_template

    return run_template(**sizes)
