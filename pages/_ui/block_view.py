"""The encoder block page's own pieces: the block, one row, PyTorch, parameters."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import measured_run, parity_badge, parts
from pages._ui.controls import MOST_TOKENS, Controls
from pages._ui.leases import Look

_WIDTHS = [8, 16, 32, 64, 128]  # d_model
_HEADS = [1, 2, 4, 8]
_MOST_BLOCKS, _MOST_LAYERS = 24, 12
_TURNS = 15
_TIMES = (0.1, 10_000.0)  # milliseconds, ends of the axis
_WHY = (
    "In a training step our last layer computes only the position that is read, and "
    "our dropout draws four entries at once; the forward pass has neither."
)
_ON_THE_PATH = (
    "After post-norm's sum a LayerNorm stands on the path itself: every token is "
    "rescaled there."
)
IDLE = [
    parts.Choice("The pre-norm block alone", ""),
    parts.Choice("The post-norm block alone", _ON_THE_PATH),
    parts.Choice("Both", _ON_THE_PATH),
    parts.Choice(
        "Neither",
        "Pre-norm's LayerNorms stand beside the path: what the shortcut carries meets "
        "none of them.",
    ),
]
_FORMULAS = {  # shortcuts or not
    True: (r"\mathrm{LN}(x + f(x))", r"x + f(\mathrm{LN}(x))"),
    False: (r"\mathrm{LN}(f(x))", r"f(\mathrm{LN}(x))"),
}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "Block 24 of the stack: pre-norm's tokens have grown, post-norm's have not": {
        "view": "Block", "number": 24, "residual": True, "d_model": 32, "heads": 4,
        "seq_len": 6, "seed": 0,
    },
    "24 layers: what becomes of tokens and gradients without shortcuts (dashed)?": {
        "view": "Depth", "depth": 24, "seed": 0,
    },
    "12 layers without warm-up: which of the runs learned?": {
        "view": "Training", "trained": 12, "residual": True, "rate": 3e-3,
    },
}  # fmt: skip


class Walked(NamedTuple):
    """What the controls of the first view say."""

    d_model: int
    num_heads: int
    seq_len: int
    number: int
    residual: bool
    seed: int


class RowChoice(NamedTuple):
    """What the controls of the view on one row say."""

    d_model: int
    eps: float
    seed: int


class Size(NamedTuple):
    """What the controls say of a stack that is compared or counted."""

    d_model: int
    num_layers: int
    num_heads: int = 1
    norm_first: bool = True


def formula(settings: Any) -> str:
    """Return both orders of the norms as TeX, with the shortcuts that are drawn."""
    post, pre = _FORMULAS[getattr(settings, "residual", True)]
    lines = rf"\text{{post: }}&{post}\\\text{{pre: }}&{pre}"
    return rf"\begin{{aligned}}{lines}\end{{aligned}}"


def residual_switch(c: Controls) -> bool:
    """Return whether there are shortcuts."""
    return c.switch("Shortcuts (residuals)", "residual", True)


def choose_walk(c: Controls) -> Walked:
    """Draw the controls of the first view."""
    residual = residual_switch(c)
    number = c.whole("Number of the block in its stack", "number", 1, _MOST_BLOCKS, 6)
    d_model, num_heads = _choose_width(c), _choose_heads(c)
    seq_len = c.whole("Tokens, T", "seq_len", 1, MOST_TOKENS, 6)
    return Walked(d_model, num_heads, seq_len, number, residual, c.seed())


def choose_row(c: Controls) -> RowChoice:
    """Draw the controls of one row."""
    return RowChoice(
        c.listed("Numbers in the row, d_model", "width", [2, 4, 8, 12], 8),
        c.listed("eps", "eps", [0.0, 1e-5, 1e-3, 0.1], 1e-5, shown="{:g}".format),
        c.seed(),
    )


def choose_size(c: Controls) -> Size:
    """Draw the controls that decide how many parameters a stack has."""
    d_model = _choose_width(c)
    return Size(d_model, c.whole("Layers", "layers", 1, _MOST_LAYERS, 2))


def choose_built_in(c: Controls) -> Size:
    """Draw the controls of a stack to be built in both ways."""
    size = choose_size(c)
    num_heads = _choose_heads(c)
    norm = c.choice("Norm", "norm", ["pre-norm", "post-norm"])
    return size._replace(num_heads=num_heads, norm_first=norm == "pre-norm")


def draw_block(shown: Walked) -> None:
    """Draw the block in both orders of the norms, with shapes and sizes throughout."""
    from core import block_story, block_walk, charts
    from core.charts import block_diagram
    from core.charts.diagram import diagram_frame

    walks = {order: walk(shown, norm_first=order) for order in (False, True)}
    nodes_and_edges = block_diagram.block_diagram(walks, shown.number)
    parts.picture(
        charts.diagram,
        diagram_frame(*nodes_and_edges),
        key="block_diagram",
        caption=block_story.walk_sentence(walks, shown.number),
        x_domain=block_diagram.X_DOMAIN,
        y_domain=block_diagram.Y_DOMAIN,
        title="One block, the norm after or before",
        height=500,
    )
    parts.random_weights_badge("Tokens and weights")
    points = {point.name: point.value for point in walks[True].points}
    right, reveal = block_story.idle_answer(residual=True)
    parts.predict(
        "block_predict",
        "With shortcuts, let attention and feed-forward give only zeros. "
        "Which block then passes its tokens on exactly as they came?",
        IDLE,
        right,
        reveal,
    )
    parts.look_inside("block", [type(walks[True].block), block_walk.walk_block], points)


def draw_row(shown: RowChoice) -> None:
    """Draw one row on its way through LayerNorm, and hold it against PyTorch."""
    from core import block_story, charts, layer_norm
    from core.charts import tidy

    found = layer_norm.norm_a_row(shown.d_model, shown.eps, shown.seed)
    rows = found.table
    frame = tidy.matrix_frame(rows.numbers, kind="vector", row_labels=rows.labels)
    parts.picture(
        charts.heatmap,
        frame,
        key="block_row",
        caption=block_story.layer_norm_sentence(found, shown.eps),
        kind="vector",
        title="One token through LayerNorm",
        row_title="step",
        limit=charts.nice_limit(float(rows.numbers.abs().max())),
        show_values=True,
        digits=3,
        height=300,
    )
    parity_badge.badge(found.parity, "by hand against PyTorch's layer_norm, float64")
    parts.sentence(block_story.misreading_sentence(found, shown.eps))
    parts.random_weights_badge("Row and weights")
    steps = found.steps
    parts.look_inside(
        "block",
        [layer_norm.layer_norm_by_hand, layer_norm.misread_layer_norms],
        {"row": found.row, "mean": steps.mean, "output": steps.output},
    )


def draw_built_in(size: Size) -> None:
    """Hold our stack against ``nn.TransformerEncoder``: tokens, counts, hooks, time."""
    from core import block_story, built_in

    found = against_built_in(size)
    st.code(built_in.shortcut_code(_model_of(size)), language="python")
    parity_badge.badge(found.parity, "our stack against nn.TransformerEncoder")
    parts.sentence(block_story.count_sentence(found.ours, found.built_in))
    parts.sentence(block_story.hook_sentence(found.hooks, size.num_layers))
    parts.random_weights_badge()
    _time(size)
    parts.look_inside(
        "block",
        [built_in.to_torch_encoder, built_in.weights_seen_by_hooks],
        {"layers": size.num_layers, "d_model": size.d_model},
    )


def draw_parameters(size: Size) -> None:
    """Draw where the parameters of the classifier sit."""
    from core import block_story, charts, models
    from core.charts.amounts import amounts_frame, amounts_limit

    config = _model_of(size)
    groups = block_story.parameter_groups(config)
    parts.picture(
        charts.amounts,
        amounts_frame(groups),
        key="block_parameters",
        caption=block_story.parameters_sentence(config),
        limit=amounts_limit(groups),
        height=400,
    )
    parts.look_inside(
        "block", [models.ClassifierConfig.parameters_by_part.fget], groups
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def walk(shown: Walked, *, norm_first: bool) -> Any:
    """Return the walk through the block; kept."""
    from core import block_walk

    return block_walk.walk_stack(**shown._asdict(), norm_first=norm_first)


@st.cache_resource(max_entries=64, show_spinner=False)
def against_built_in(size: Size) -> Any:
    """Return what the comparison at rest finds; kept."""
    from core import built_in

    return built_in.compare_stacks(_model_of(size))


def _choose_width(c: Controls) -> int:
    return c.listed("Width, d_model", "d_model", _WIDTHS, 32)


def _choose_heads(c: Controls) -> int:
    return c.listed("Heads", "heads", _HEADS, 4)  # each divides each width


def _model_of(size: Size) -> Any:
    from core.models import ClassifierConfig

    return ClassifierConfig(**size._asdict())


def _time(size: Size) -> None:
    from core import measuring
    from core.built_in import KINDS, time_stacks, timed_config

    total, config = len(KINDS) * _TURNS, timed_config(_model_of(size))
    measured_run.measured(
        "encoder_block/timing",
        config,
        lambda config: measuring.Measurement(time_stacks(config, _TURNS), total),
        total=lambda config: total,
        label="Measure the time here",
        ahead=f"A forward pass and a training step of both stacks, {_TURNS} times in "
        f"turn, on batches of {config.batch_size}.",
        draw=_draw_times,
    )


def _draw_times(look: Look) -> None:
    from core import block_story, charts
    from core.built_in import timings
    from core.charts import tidy

    found = timings(look.records)
    if not found:
        return
    numbers = {
        timing.kind: {"ours": 1e3 * timing.ours, "built-in": 1e3 * timing.built_in}
        for timing in found
    }
    parts.bare_chart(
        charts.comparison,
        tidy.comparison_frame(numbers),
        key="block_times",
        alt="Median time of a forward pass and of a training step, ours and built-in",
        series=("ours", "built-in"),
        domain=_TIMES,
        log=True,
        zero=False,
        x_title=f"milliseconds for {look.config.batch_size} sequences (log scale)",
        title="Measured here",
        height=200,
    )
    parts.sentence(" ".join(block_story.timing_sentences(found)))
    parts.sentence(_WHY)
