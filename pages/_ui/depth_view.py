"""The encoder block page's deep stacks: at the start, after training, run here."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import block_view, measured_run, parts
from pages._ui.controls import Controls
from pages._ui.leases import Look

_DEPTHS = [2, 6, 12, 24]  # of the shipped runs
_RATES = [3e-3, 1e-3]
_MOST_LAYERS = 24
_AFTER = {  # shortcuts or not: ends of the axes after training
    True: {"tokens": (0.1, 100.0), "gradient": (1e-11, 1.0)},
    False: {"tokens": (0.1, 100.0), "gradient": (1e-17, 1.0)},
}
_TITLES = {
    "tokens": "Size of the tokens",
    "gradient": "Gradient that reaches each layer",
}


class Stack(NamedTuple):
    """What the controls say of a stack that nobody has trained."""

    depth: int
    seed: int


class Trained(NamedTuple):
    """What the controls say of the stacks that are trained."""

    depth: int
    residual: bool
    rate: float


def choose_stack(c: Controls) -> Stack:
    """Draw the controls of a fresh stack."""
    return Stack(c.whole("Layers", "depth", 1, _MOST_LAYERS, 12), c.seed())


def choose_trained(c: Controls) -> Trained:
    """Draw the controls of the trained stacks."""
    depth = c.listed("Layers", "trained", _DEPTHS, 12)
    residual, rate = block_view.residual_switch(c), _RATES[0]
    if residual:  # without shortcuts only the larger one was trained
        rate = c.choice("Learning rate", "rate", _RATES, shown="{:g}".format)
    return Trained(depth, residual, rate)


def draw_start(stack: Stack) -> None:
    """Draw tokens and gradients layer by layer, before any training."""
    from core import block_story, depth

    variants = depth.variants_with(True) + depth.variants_with(False)
    norms = {
        variant.name: start_norms(variant, stack.depth, stack.seed)
        for variant in variants
    }
    runs = {(name, f", seed {stack.seed}"): found for name, found in norms.items()}
    _draw_norms(
        runs,
        tuple(norms),
        stack.depth,
        "block_start",
        block_story.start_sentence(norms),
    )
    parts.random_weights_badge()
    parts.look_inside(
        "block", [depth.norms_by_layer], next(iter(norms.values()))._asdict()
    )


def draw_training(trained: Trained) -> None:
    """Draw how the shipped runs ended, their sizes, and runs made here."""
    from core import block_story, charts, depth
    from core.charts import depth as pictures

    shipped = depth.read_depth()
    variants = depth.variants_with(trained.residual)
    names = tuple(variant.name for variant in variants)
    own = [
        run
        for run in shipped.runs
        if run.variant in variants and run.rate == trained.rate
    ]
    parts.picture(
        charts.outcomes,
        pictures.outcomes_frame(
            [
                (r.variant.name, f", seed {r.seed}", r.depth, r.loss, r.accuracy)
                for r in own
            ],
            chosen=trained.depth,
        ),
        key="block_outcomes",
        caption=block_story.runs_sentence(own, variants),
        series=names,
        runs=tuple(dict.fromkeys(f", seed {run.seed}" for run in own)),
        height=250,
    )
    _watch(trained)
    runs = {
        (run.variant.name, f", seed {run.seed}"): run.norms[depth.MOMENTS[1]]
        for run in own
        if run.depth == trained.depth
    }
    sentence = block_story.trained_sentence(own, trained.depth)
    _draw_norms(
        runs,
        names,
        trained.depth,
        "block_trained",
        sentence,
        ends=_AFTER[trained.residual],
    )
    if trained.residual:
        parts.sentence(block_story.stall_sentence(shipped.runs))
    st.caption(parts.plain(shipped.origin))
    parts.look_inside(
        "block", [depth.run_depth, depth.depth_config], {"runs": len(shipped.runs)}
    )


@st.cache_resource(max_entries=256, show_spinner=False)
def start_norms(variant: Any, depth: int, seed: int) -> Any:
    """Return the sizes along a fresh stack; kept."""
    from core.depth import norms_at_start

    return norms_at_start(variant, depth, seed)


def _draw_norms(
    runs: dict[tuple[str, str], Any],
    series: tuple[str, ...],
    depth: int,
    key: str,
    sentence: str,
    *,
    ends: dict[str, Any] | None = None,
) -> None:
    """Draw the tokens' size and the gradient of every layer, side by side."""
    from core import charts
    from core.charts.depth import norm_points, runs_frame

    for column, (kind, title) in zip(st.columns(2), _TITLES.items(), strict=True):
        with column:
            parts.bare_chart(
                charts.run_lines,
                runs_frame(norm_points(runs, kind)),
                key=f"{key}_{kind}",
                alt=sentence,
                kind=kind,
                series=series,
                x_domain=(0.0 if kind == "tokens" else 1.0, float(max(depth, 2))),
                y_domain=(ends or {}).get(kind),
                title=f"{title}{', after training' if ends else ', at the start'}",
                height=340,
            )
    parts.sentence(sentence)


def _watch(trained: Trained) -> None:
    from core import block_story, depth, measuring

    total = depth.num_watched()
    measured_run.measured(
        "encoder_block/depth",
        trained,
        lambda chosen: measuring.Measurement(
            depth.watch_depth(chosen.depth, residual=chosen.residual, rate=chosen.rate),
            total,
        ),
        total=lambda chosen: total,
        label="Train here",
        ahead=block_story.live_cost_sentence(trained.depth),
        draw=_draw_watched,
    )


def _draw_watched(look: Look) -> None:
    from core import block_story, charts, depth
    from core.charts.depth import runs_frame

    if not look.records:
        return
    points: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for step in look.records:
        run = (step.variant.name, f", seed {step.seed}")
        points.setdefault(run, []).append((step.step, step.loss))
    variants = depth.variants_with(look.config.residual)
    parts.bare_chart(
        charts.run_lines,
        runs_frame(points),
        key="block_watched",
        alt="Training loss of each run so far, one line a run",
        kind="loss",
        series=tuple(variant.name for variant in variants),
        x_domain=(0.0, float(depth.RECIPE.max_steps)),
        title=f"Training {look.config.depth} layers here",
        height=300,
    )
    parts.sentence(block_story.watched_sentence(look.records))
