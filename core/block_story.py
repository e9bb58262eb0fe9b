"""Sentences of the page on the encoder block, made from the numbers drawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from core.block_walk import Walk, change_when_idle, size
from core.built_in import HookCalls, Timing
from core.captions import figure, percent
from core.depth import (
    DEPTHS,
    LIVE_SEEDS,
    MOMENTS,
    RATES,
    RECIPE,
    DepthRun,
    DepthStep,
    LayerNorms,
    Variant,
)
from core.layer_norm import EPS_OUTSIDE, NormedRow
from core.models import ClassifierConfig

LEARNED = 0.95  # test accuracy from which a run counts as having learned
_STALLED = 0.6  # and below which it is called stalled
IDLE = ("pre-norm", "post-norm", "both", "neither")
ORDERS = {True: "pre-norm", False: "post-norm"}
_SAME_SPEED = 0.05  # a ratio closer to 1 is called about as fast
_GROUPS = ("attention", "feed-forward", "norms", "ends")


def walk_sentence(walks: Mapping[bool, Walk], number: int) -> str:
    """Say with what size the tokens enter and leave a block, in both orders.

    Args:
        walks: ``norm_first`` to the walk through the block.
        number: Which block of its stack it is, from 1.
    """
    sizes = []
    for norm_first, walk in walks.items():
        named = {point.name: point.rms for point in walk.points}
        out = next(p for p in reversed(walk.points) if p.name != "last_norm")
        ends = f"from {size(named['x'])} to {size(out.rms)}"
        sizes.append(f"{ends} ({ORDERS[norm_first]})")
    last = next(p.rms for p in walks[True].points if p.name == "last_norm")
    return (
        f"Block {number} takes the root mean square (RMS) of its tokens "
        f"{' and '.join(sizes)}; under pre-norm one last LayerNorm, after the last "
        f"block, makes it {size(last)}."
    )


def idle_answer(residual: bool) -> tuple[int, str]:
    """Return which order passes tokens on unchanged when both parts give zeros.

    Returns:
        Index in ``IDLE``, and the sentence with the measured changes.
    """
    moved = {
        norm_first: change_when_idle(norm_first=norm_first, residual=residual)
        for norm_first in (True, False)
    }
    still = (moved[True] == 0, moved[False] == 0)
    index = {(True, False): 0, (False, True): 1, (True, True): 2}.get(still, 3)
    numbers = " and ".join(
        f"{figure(change)} ({ORDERS[order]})" for order, change in moved.items()
    )
    return index, f"Largest change of an output, measured: {numbers}."


def start_sentence(norms: Mapping[str, LayerNorms]) -> str:
    """Say what the size of tokens and gradients does from the first layer to the last.

    Args:
        norms: Name of the variant to its sizes.
    """
    depth = len(next(iter(norms.values())).gradients)
    sizes, ratios = [], []
    for name, found in norms.items():
        sizes.append(f"{size(float(found.activations[-1]))} ({name})")
        ratios.append(f"{figure(_first_to_last(found))} ({name})")
    layers = "layer" if depth == 1 else "layers"
    said = f"After {depth} {layers} the tokens have a root mean square of "
    said += _listed(sizes)
    if depth == 1:
        return f"{said}."
    return (
        f"{said}; the gradient of the first layer is {_listed(ratios)} times that of "
        "the last."
    )


def runs_sentence(runs: Sequence[DepthRun], variants: Sequence[Variant]) -> str:
    """Say how many of the shipped runs learned, at each depth.

    Args:
        runs: Runs of all depths, at one learning rate.
        variants: The variants to speak of.
    """
    said = []
    for variant in variants:
        own = [run for run in runs if run.variant == variant]
        learned = [
            sum(run.accuracy >= LEARNED for run in own if run.depth == depth)
            for depth in DEPTHS
        ]
        said.append(f"{variant.name} {', '.join(map(str, learned))}")
    seeds = len({run.seed for run in runs})
    return (
        f"Learned (≥ {percent(LEARNED)}), of {seeds} seeds, in {RECIPE.max_steps} "
        f"steps at depth {', '.join(map(str, DEPTHS))}: {'; '.join(said)}."
    )


def stall_sentence(runs: Sequence[DepthRun]) -> str:
    """Say of the runs with shortcuts how many stalled, by norm and learning rate.

    Args:
        runs: Runs of all variants, depths and learning rates.
    """
    said = []
    for rate in RATES:
        counts = []
        for norm_first, order in ORDERS.items():
            variant = Variant(norm_first, True)
            own = [r for r in runs if (r.variant, r.rate) == (variant, rate)]
            stalled = sum(run.accuracy < _STALLED for run in own)
            counts.append(f"{stalled} of {len(own)} ({order})")
        said.append(f"{' and '.join(counts)} at learning rate {rate:g}")
    return (
        f"With shortcuts and without warm-up, runs under {percent(_STALLED)} over all "
        f"depths: {'; '.join(said)}. A deep stack may stall; no law says it must."
    )


def trained_sentence(runs: Sequence[DepthRun], depth: int) -> str:
    """Say how the gradients of first and last layer compare, and at which losses.

    Args:
        runs: Runs of the variants shown.
        depth: The depth shown.
    """
    own = [run for run in runs if run.depth == depth]
    losses = _spans((run.variant.name, run.loss) for run in own)
    before, after = (
        _spans((run.variant.name, _first_to_last(run.norms[moment])) for run in own)
        for moment in MOMENTS
    )
    return (
        f"{depth} layers, trained to a loss of {losses}: the gradient of the first is "
        f"{after} times that of the last, over the seeds; at the start it was "
        f"{before}. Lengths of gradients compare only at like losses."
    )


def watched_sentence(steps: Sequence[DepthStep]) -> str:
    """Say where the runs that are watched stand."""
    last = {(step.variant, step.seed): step for step in steps}
    said = []
    for step in last.values():
        ended = (
            f"{percent(step.accuracy)} right"
            if step.accuracy is not None
            else f"loss {step.loss:.3f}"
        )
        said.append(f"{step.variant.name}, seed {step.seed}: {ended}")
    return "; ".join(said) + "." if said else ""


def live_cost_sentence(depth: int) -> str:
    """Say what is trained when ``depth`` layers are watched, and how long it takes."""
    runs = 2 * len(LIVE_SEEDS)
    model = replace(RECIPE.model, num_layers=depth)
    seconds = runs * RECIPE.max_steps * RECIPE.batch_size * model.step_seconds
    return (
        f"{runs} runs of {RECIPE.max_steps} steps, taking turns: {seconds:.0f} s "
        "or more on two idle CPU cores."
    )


def layer_norm_sentence(found: NormedRow, eps: float) -> str:
    """Say the steps of one row in numbers."""
    steps = found.steps
    return (
        f"Mean {float(steps.mean):.4f}, biased variance {float(steps.variance):.4f}, "
        f"root of variance + {eps:g} = {float(steps.root):.4f}; the normalised row has "
        f"variance {float(steps.normalised.var(correction=0)):.6f}."
    )


def misreading_sentence(found: NormedRow, eps: float) -> str:
    """Say how far other readings of the formula end up from PyTorch."""
    far = dict(found.misreadings)
    if eps == 0:
        far.pop(EPS_OUTSIDE)
    said = [f"by {figure(distance)} with {name}" for name, distance in far.items()]
    ends = " With eps 0 its place plays no part." if eps == 0 else ""
    return f"Read otherwise it misses PyTorch's output {' and '.join(said)}.{ends}"


def hook_sentence(calls: HookCalls, num_layers: int) -> str:
    """Say what hooks on the built-in layers were handed."""
    times = "once" if calls.calls == 1 else f"{calls.calls} times"
    layers = "layer" if num_layers == 1 else "layers"
    return (
        f"Hooks on the attention of {num_layers} built-in {layers} were called {times} "
        f"in all and handed weights {calls.with_weights} times: "
        "nn.TransformerEncoderLayer asks its attention for none. So the maps of this "
        "playground come from the explained path, which computes them."
    )


def count_sentence(ours: int, built_in: int) -> str:
    """Say how many parameters both stacks have."""
    if ours == built_in:
        return f"Both stacks have {ours:,} parameters."
    return f"Our stack has {ours:,} parameters, the built-in one {built_in:,}."


def timing_sentences(timings: Sequence[Timing]) -> list[str]:
    """Say what each kind of run takes, ours beside the built-in one."""
    return [
        f"{timing.kind.capitalize()}: ours {_milliseconds(timing.ours)}, built-in "
        f"{_milliseconds(timing.built_in)} (medians of {timing.turns}); ours "
        f"{_faster(timing.ratio)}."
        for timing in timings
    ]


def parameter_groups(config: ClassifierConfig) -> dict[str, tuple[str, int]]:
    """Return each part that has parameters, with its group and their number."""
    return {
        part: (next((g for g in _GROUPS if part.startswith(g)), "ends"), count)
        for part, count in config.parameters_by_part.items()
        if count
    }


def parameters_sentence(config: ClassifierConfig) -> str:
    """Say how many parameters there are, and which share lies where."""
    total, by_group = config.num_parameters, dict.fromkeys(_GROUPS, 0)
    for group, count in parameter_groups(config).values():
        by_group[group] += count
    shares = [f"{percent(count / total)} {name}" for name, count in by_group.items()]
    layers = "layer" if config.num_layers == 1 else "layers"
    return (
        f"{total:,} parameters with {config.num_layers} {layers} of width "
        f"{config.d_model}: {', '.join(shares)}. The number of heads changes none of "
        "them."
    )


def _first_to_last(norms: LayerNorms) -> float:
    return float(norms.gradients[0] / norms.gradients[-1])


def _spans(numbers: Iterable[tuple[str, float]]) -> str:
    """Return the least and the most of each name's numbers, in words."""
    by_name: dict[str, list[float]] = {}
    for name, number in numbers:
        by_name.setdefault(name, []).append(number)
    return _listed(
        [
            f"{figure(min(own))} to {figure(max(own))} ({name})"
            for name, own in by_name.items()
        ]
    )


def _listed(parts: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a; b; c and d``."""
    *first, last = parts
    return f"{'; '.join(first)} and {last}" if first else last


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def _faster(ratio: float) -> str:
    if abs(ratio - 1) < _SAME_SPEED:
        return f"is about as fast (ratio {ratio:.2f})"
    return f"takes {ratio:.2f} times as long"
