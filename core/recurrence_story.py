"""What the pictures of recurrence beside attention say, worked out from their numbers.

Each function returns whole sentences, or the rows of the table that sets theory beside
measurement.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from core.captions import figure, listed, percent
from core.chains import Chains
from core.forget_bias import HIDDEN_SIZE, LstmRun
from core.growth import Crossing, Curve, Fit, crossing, fit_exponent, local_exponents
from core.layer_memory import score_bytes, state_bytes
from core.path_length import decay_a_step, first_below
from core.scaling import trial_band
from core.training import TrainConfig

NAMES = {"rnn": "RNN", "gru": "GRU", "lstm": "LSTM", "attention": "attention"}
PATHS = {"rnn": "O(n)", "lstm": "O(n)", "attention": "O(1)"}
WAITS = {"rnn": "n", "lstm": "n", "attention": "1"}
COSTS = {"rnn": "O(n\u00a0d²)", "lstm": "O(n\u00a0d²)", "attention": "O(n²\u00a0d)"}
_FIXED_COST = (
    "Below its range a fit does not hold; the fixed cost of a call rules there:"
)
_FEWEST = 3  # lengths of a fit
_NEAR_HALF = 0.6
_LEARNT = 0.99
_MIB = 2**20
_FLATTER = 0.25  # a slope that is smaller than the fit by as much
_RAISED = str.maketrans("0123456789.-", "⁰¹²³⁴⁵⁶⁷⁸⁹˙⁻")


class TheoryRow(NamedTuple):
    """One model in the table of theory and measurement, in words.

    Attributes:
        model: Its name.
        path: Longest path between two tokens.
        shortest: The shortest chain of operations from the first token to the last
            output, counted in the graph at two lengths.
        waits: Steps that wait for each other.
        longest: The longest chain of operations, counted likewise.
        cost: Operations of a layer.
        measured: The measured exponent with its range.
    """

    model: str
    path: str
    shortest: str
    waits: str
    longest: str
    cost: str
    measured: str


def medians(norms: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the median over the draws of each model's norms, (draws, T) -> (T,)."""
    return {name: trial_band(found.mT).median for name, found in norms.items()}


def closest(ratio: float, options: Sequence[float]) -> int:
    """Return which of several ratios, all positive, lies nearest on a log scale."""
    apart = [abs(math.log(option / ratio)) for option in options]
    return apart.index(min(apart))


def path_sentence(norms: Mapping[str, Tensor]) -> str:
    """Say how much of the norm a step keeps, and that attention knows no distance.

    Args:
        norms: Name in ``NAMES`` -> (draws, T), T at least 3.
    """
    middle = medians(norms)
    last = len(middle["attention"]) - 1
    kept = [
        f"{_share(decay_a_step(found))} ({NAMES[name]})"
        for name, found in middle.items()
        if name != "attention"
    ]
    ends = [figure(float(middle["attention"][at])) for at in (1, last)]
    return (
        f"Over the last {last - (last + 1) // 2} steps one step keeps {listed(kept)} "
        f"of the norm. Attention has {ends[0]} at distance 1 and {ends[1]} at distance "
        f"{last}: no step lies between."
    )


def floor_sentence(norms: Mapping[str, Tensor], floor: float) -> str | None:
    """Say which medians leave the axis at its lower end, and where; None if none."""
    found = ((NAMES[n], first_below(m, floor)) for n, m in medians(norms).items())
    left = [f"{name} from distance {at} on" for name, at in found if at is not None]
    return f"Below {floor:.0e}, the end of the axis: {listed(left)}." if left else None


def start_sentence(runs: Sequence[LstmRun], recipe: TrainConfig) -> str:
    """Say what an LSTM learns from PyTorch's start and from an open forget gate.

    Args:
        runs: Of several starts and seeds, the default among them.
        recipe: How they were trained.
    """
    by_start: dict[float | None, list[float]] = {}
    for run in runs:
        by_start.setdefault(run.forget_bias, []).append(run.accuracy)
    default = by_start.pop(None)
    opened = [
        f"{_range(found)} with bias +{bias:g}" for bias, found in by_start.items()
        if bias is not None
    ]  # fmt: skip
    best = max(by_start.values(), key=min)
    hard = max(default) < _NEAR_HALF and min(best) >= _LEARNT
    word = "; the task is hard from the default start, not out of reach" if hard else ""
    return (
        f"Marker task, {recipe.seq_len} tokens, LSTM of width {HIDDEN_SIZE}, after "
        f"{recipe.max_steps} steps ({len(default)} seeds each): {_range(default)} from "
        f"PyTorch's start, {listed(opened)}{word}."
    )


def fits_of(curves: Mapping[str, Curve]) -> dict[str, Fit]:
    """Return the fitted power of each model that has enough lengths."""
    found = {name: fit_exponent(curve) for name, curve in curves.items()}
    return {name: fit for name, fit in found.items() if fit is not None}


def crossings_of(curves: Mapping[str, Curve]) -> dict[str, Crossing]:
    """Return where attention passes each recurrence, where it does."""
    if "attention" not in curves:
        return {}
    others = (name for name in curves if name != "attention")
    found = {name: crossing(curves["attention"], curves[name]) for name in others}
    return {name: at for name, at in found.items() if at is not None}


def rules_of(curves: Mapping[str, Curve], longest: int) -> dict[str, float]:
    """Return the measured crossings up to a length, by the words at their rules."""
    return {
        f"attention passes {NAMES[name]}": at.seq_len
        for name, at in crossings_of(curves).items()
        if at.measured and at.seq_len <= longest
    }


def time_sentences(curves: Mapping[str, Curve], width: int) -> list[str]:
    """Say the fitted powers and their range, where they fail, and the crossings.

    Args:
        curves: Name in ``NAMES`` -> seconds against length.
        width: Width d of the layers.
    """
    fits = fits_of(curves)
    if all(len(curve.lengths) < _FEWEST for curve in curves.values()):
        return ["Too few lengths are measured for a fit."]
    powers = [
        f"{power(fit.exponent)} ({NAMES[name]}, n = {fit.low:,} to {fit.high:,})"
        for name, fit in fits.items()
    ]
    bent = [NAMES[name] for name in curves if name not in fits]
    found = [
        f"Time grows as {listed(powers)}." if powers else None,
        f"Not settled to a power at these lengths: {listed(bent)}." if bent else None,
        limit_sentence(curves),
        _crossing_sentence(curves, width),
    ]
    return [sentence for sentence in found if sentence]


def power(exponent: float) -> str:
    """Return a power of the length with its exponent raised: ``n¹˙⁹⁷``."""
    return "n" + f"{exponent:.2f}".translate(_RAISED)


def limit_sentence(curves: Mapping[str, Curve]) -> str | None:
    """Say where the fits do not hold; None where they hold at every length.

    A fixed cost is named only where every slope below the range is clearly flatter than
    the fit, as a fixed cost makes it.
    """
    bent: list[str] = []
    flat: dict[str, list[str]] = {}  # by the two lengths
    for name, fit in fits_of(curves).items():
        lengths = curves[name].lengths
        slopes = local_exponents(curves[name])[: lengths.index(fit.low)]
        if slopes and all(slope < fit.exponent - _FLATTER for slope in slopes):
            start = f"from n = {lengths[0]} to {lengths[1]} it is "
            flat.setdefault(start, []).append(f"{power(slopes[0])} ({NAMES[name]})")
        elif slopes:
            bent.append(f"at n = {fit.low:,} ({NAMES[name]})")
    found = []
    if flat:
        starts = listed([start + listed(slopes) for start, slopes in flat.items()])
        found.append(f"{_FIXED_COST} {starts}.")
    if bent:
        found.append(f"The slope changes {listed(bent)}; below, the fit does not hold.")
    return " ".join(found) or None


def left_out_sentence(left_out: Mapping[str, int]) -> str | None:
    """Say what was not measured since it would have taken too long; None if nothing.

    Args:
        left_out: Model -> the first length left out.
    """
    left = [f"{NAMES[name]} from n = {at:,} on" for name, at in left_out.items()]
    return (
        f"Left out: {listed(left)}; a measurement would take over 0.3 s, judged by "
        "half the length."
        if left
        else None
    )


def theory_rows(
    curves: Mapping[str, Curve], chains: Mapping[str, tuple[Chains, Chains]]
) -> list[TheoryRow]:
    """Return the table of theory and measurement, one row a model of ``curves``.

    Args:
        curves: Seconds against length.
        chains: The chains of each model, counted at two lengths.
    """
    fits = fits_of(curves)
    return [
        TheoryRow(
            NAMES[name],
            PATHS[name],
            _counted(*(found.shortest for found in chains[name])),
            WAITS[name],
            _counted(*(found.longest for found in chains[name])),
            COSTS[name],
            _measured(fits.get(name), curves[name]),
        )
        for name in curves
    ]


def chains_sentence(
    chains: Mapping[str, tuple[Chains, Chains]], lengths: tuple[int, int]
) -> str:
    """Say how many operations each further token adds to the longest chain.

    Args:
        chains: The chains of each model, counted at the two lengths.
        lengths: The two lengths, ascending.
    """
    added = {
        name: (second.longest - first.longest) / (lengths[1] - lengths[0])
        for name, (first, second) in chains.items()
    }
    growing = [f"{n:g} ({NAMES[name]})" for name, n in added.items() if n]
    still = [NAMES[name] for name, n in added.items() if not n]
    return (
        f"Counted in the graph that autograd records of single steps: a further token "
        f"adds {listed(growing)} operations that wait for each other, and none to "
        f"{listed(still)}."
    )


def fit_curves(fits: Mapping[str, Fit], lengths: Sequence[int]) -> dict[str, Curve]:
    """Return the points of fitted powers at given lengths, to be drawn."""
    ends = tuple(lengths)
    return {
        NAMES[name]: Curve(ends, tuple(fit.at(n) for n in ends))
        for name, fit in fits.items()
    }


def named_curves(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return curves under the names that pictures show."""
    return {NAMES[name]: curve for name, curve in curves.items()}


def memory_sentences(seq_len: int, num_heads: int, width: int) -> list[str]:
    """Work out the bytes of the scores and of the hidden states.

    Args:
        seq_len: Number of tokens n.
        num_heads: Number of heads.
        width: Width d of the hidden states.
    """
    scores, states = score_bytes(seq_len, num_heads), state_bytes(seq_len, width)
    return [
        f"Scores of one sequence: {num_heads} · {seq_len:,}² · 4 bytes = {scores:,} "
        f"bytes ({_size(scores)}). Hidden states: {seq_len:,} · {width} · 4 bytes = "
        f"{states:,} bytes ({_size(states)}).",
        "Points are read off real tensors of the explained path. The fused kernel of "
        "the fast path never holds all scores at once; its time still grows with n².",
    ]


def _crossing_sentence(curves: Mapping[str, Curve], width: int) -> str:
    found = crossings_of(curves)
    if not found:
        return (
            f"At d = {width} attention passes neither recurrence in what is measured."
        )
    parts = [
        f"the {NAMES[name]} at n ≈ {_rounded(at.seq_len)}"
        + ("" if at.measured else " (fits)")
        for name, at in found.items()
    ]
    return f"At d = {width} attention takes longer than {listed(parts)}."


def _measured(fit: Fit | None, curve: Curve) -> str:
    if fit is None:
        few = len(curve.lengths) < _FEWEST
        return "too few lengths" if few else "not settled at these lengths"
    return f"{power(fit.exponent)} for n = {fit.low:,} to {fit.high:,}"


def _counted(first: int, second: int) -> str:
    return f"{first} → {second}"


def _range(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"


def _share(kept: float | None) -> str:
    if kept is None:
        return "nothing that can be measured"
    return percent(kept) if kept < 1 else f"{100 * kept:.0f} %"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"


def _size(count: int) -> str:
    return f"{figure(count / _MIB)} MiB" if count >= _MIB else f"{count / 1024:.3g} KiB"
