"""Why scores are divided by √d_k: what their size does to the softmax.

A score is a dot product of ``d_k`` independent products, so its variance grows with
``d_k``. Large scores push the softmax to one key, where its gradient vanishes.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from core.attention import MultiHeadAttention, split_heads
from core.checks import require_choice, require_int, require_number
from core.initial import generator_from

DIVISORS: dict[str, Callable[[int], float]] = {
    "nothing": lambda d_k: 1.0,
    "sqrt_d_k": math.sqrt,
    "d_k": float,
}
DIVISOR_NAMES = {"nothing": "raw", "sqrt_d_k": "÷ √d_k", "d_k": "÷ d_k"}
POWERS_OF_TWO = tuple(2**exponent for exponent in range(13))  # 1 … 4096
ALL_WIDTHS = (1.0, 4096.0)  # first and last of them
MAX_D_K = 4096
MAX_KEYS = 64
MAX_TRIALS = 1_000
MAX_SPREAD = 100.0


class Saturation(NamedTuple):
    """Statistics of softmax rows, one a trial.

    Attributes:
        score_variance: Unbiased variance of the scores over the keys, (..., trials).
        largest_weight: Largest attention weight, (..., trials).
        entropy: Entropy of the weights in bits, between 0 (one key) and log2 of the
            number of keys, (..., trials).
        jacobian_norm: Frobenius norm of ``diag(p) - p pᵀ``, the Jacobian of the
            softmax: 0 where no gradient passes, at most 1/2, (..., trials).
    """

    score_variance: Tensor
    largest_weight: Tensor
    entropy: Tensor
    jacobian_norm: Tensor


class Band(NamedTuple):
    """The middle of many trials and where eight in ten of them lie."""

    mean: Tensor
    median: Tensor
    low: Tensor
    high: Tensor


class SoftmaxRow(NamedTuple):
    """One query over its keys, with the gradient of its largest weight.

    Attributes:
        scores: What enters the softmax, (S,).
        attn_weights: What leaves it, summing to 1, (S,).
        gradient: ``∂p_m / ∂score_j = p_m (δ_mj - p_j)`` of the largest weight ``p_m``,
            one row of the Jacobian, (S,). It sums to 0.
    """

    scores: Tensor
    attn_weights: Tensor
    gradient: Tensor


class MeasuredDivisor(NamedTuple):
    """What a layer divides its scores by, and the whole number whose root it is."""

    divisor: float
    width: int


class LabRow(NamedTuple):
    """Largest weight of one row of the course lab, to four decimals."""

    d_k: int
    unscaled: float
    scaled: float


def softmax_saturation(
    d_k: int,
    *,
    num_keys: int,
    num_trials: int,
    generator: torch.Generator,
    scale: float | None = None,
    spread: float = 1.0,
) -> Saturation:
    """Measure how sharp the softmax is over random queries and keys.

    ``p = softmax(scale · q Kᵀ)`` with normal ``q`` and ``K``. As ``Var(q·k) = d_k ·
    spread⁴``, raw scores grow as √d_k; scores divided by √d_k do not.

    Args:
        d_k: Width of query and keys, 1 to 4096. It is not the sequence length.
        num_keys: Keys a query, 2 to 64.
        num_trials: Independent queries, each with keys of its own, 1 to 1000.
        generator: Source of the numbers, on the CPU.
        scale: Factor of the scores; None means 1/√d_k, 1 leaves them raw.
        spread: Standard deviation of the entries of q and k, 0 to 100.

    Returns:
        Statistics of shape ``(num_trials,)``.

    Raises:
        ValueError: If an argument is out of range.

    Reference:
        Vaswani et al. 2017, section 3.2.1 and footnote 4, arXiv:1706.03762.
    """
    raw = _raw_scores([d_k], num_keys, num_trials, generator, spread)[0]
    factor = 1 / math.sqrt(d_k) if scale is None else scale
    require_number("scale", factor, 0.0)
    return saturation_of_scores(raw * factor)


def saturation_sweep(
    widths: Sequence[int] = POWERS_OF_TWO,
    *,
    num_keys: int,
    num_trials: int,
    generator: torch.Generator,
    spread: float = 1.0,
    divisors: Sequence[str] = tuple(DIVISORS),
) -> dict[str, Saturation]:
    """Measure ``softmax_saturation`` at many widths, under several divisors.

    The divisors share their scores, so that their curves differ by the divisor alone.

    Args:
        widths: The widths d_k, each 1 to 4096.
        num_keys: Keys a query, 2 to 64.
        num_trials: Independent queries at every width, 1 to 1000.
        generator: Source of the numbers, on the CPU.
        spread: Standard deviation of the entries of q and k, 0 to 100.
        divisors: Names in ``DIVISORS``.

    Returns:
        For each divisor the statistics of shape ``(len(widths), num_trials)``.

    Raises:
        ValueError: If an argument is out of range.
    """
    for index, name in enumerate(divisors):
        require_choice(f"divisors[{index}]", name, DIVISORS)
    raw = _raw_scores(widths, num_keys, num_trials, generator, spread)
    sweep = {}
    for name in divisors:
        by_width = torch.tensor([DIVISORS[name](d_k) for d_k in widths])
        sweep[name] = saturation_of_scores(raw / by_width[:, None, None])
    return sweep


def saturation_of_scores(scores: Tensor) -> Saturation:
    """Return the statistics of softmax rows with the given scores.

    Args:
        scores: What enters the softmax, (..., S), at least 2 keys.

    Returns:
        Statistics of shape (...).
    """
    attn_weights = scores.softmax(dim=-1)
    return Saturation(
        score_variance=scores.var(dim=-1),
        largest_weight=attn_weights.amax(dim=-1),
        entropy=torch.special.entr(attn_weights).sum(dim=-1) / math.log(2),
        jacobian_norm=jacobian_norm(attn_weights),
    )


def jacobian_norm(attn_weights: Tensor) -> Tensor:
    """Return the Frobenius norm of the Jacobian of the softmax.

    ``J = diag(p) - p pᵀ``; ``‖J‖² = Σ_i p_i² (1 - p_i)² + Σ_{i≠j} p_i² p_j²``. It lies
    between 0 (one key has everything) and 1/2 (two keys share it). The row and column
    of the largest weight are summed apart: ``1 - p`` of a weight near 1 would be lost
    to rounding.

    Args:
        attn_weights: Rows ``p`` that sum to 1, (..., S).

    Returns:
        Norms (...).
    """
    largest, index = attn_weights.max(dim=-1)
    rest = attn_weights.scatter(-1, index[..., None], 0.0)  # all weights but p_m
    squares = rest.square()
    total = squares.sum(dim=-1)
    with_largest = largest.square() * (rest.sum(dim=-1).square() + 2 * total)
    diagonal = (squares * (1 - rest).square()).sum(dim=-1)
    beside = total.square() - squares.square().sum(dim=-1)
    return (with_largest + diagonal + beside.clamp(min=0)).sqrt()


def trial_band(values: Tensor) -> Band:
    """Return mean, median and the 10 % and 90 % quantiles over the last dimension.

    Args:
        values: One statistic, (..., trials).

    Returns:
        Four tensors of shape (...).
    """
    share = torch.tensor([0.1, 0.5, 0.9], dtype=values.dtype, device=values.device)
    low, median, high = torch.quantile(values, share, dim=-1)
    return Band(mean=values.mean(dim=-1), median=median, low=low, high=high)


def softmax_row(
    d_k: int, *, num_keys: int, generator: torch.Generator, spread: float = 1.0
) -> dict[str, SoftmaxRow]:
    """Draw one query and its keys, and follow it through every divisor.

    ``p = softmax(q Kᵀ / divisor)``

    Args:
        d_k: Width of query and keys, 1 to 4096.
        num_keys: Number of keys S, 2 to 64.
        generator: Source of the numbers, on the CPU.
        spread: Standard deviation of the entries of q and k, 0 to 100.

    Returns:
        The row under each name in ``DIVISORS``; all have the same raw scores.

    Raises:
        ValueError: If an argument is out of range.
    """
    _check_draw([d_k], num_keys, 1, spread)
    query = spread * torch.randn(d_k, generator=generator)
    keys = spread * torch.randn(num_keys, d_k, generator=generator)
    raw = keys @ query  # (S,)
    return {name: _row(raw / divisor(d_k)) for name, divisor in DIVISORS.items()}


def expected_variance(widths: Sequence[int], spread: float = 1.0) -> Tensor:
    """Return the variance that raw scores have on average, ``d_k · spread⁴``."""
    return torch.tensor([d_k * spread**4 for d_k in widths])


def measured_divisor(
    d_model: int, num_heads: int, *, seq_len: int, seed: int = 0
) -> MeasuredDivisor:
    """Measure what a multi-head layer divides its scores by.

    ``divisor = ‖q kᵀ‖ / ‖scores‖`` with the q and k of the layer's own heads.

    Args:
        d_model: Width of the tokens.
        num_heads: Number of heads; must divide d_model.
        seq_len: Number of tokens, at least 1.
        seed: Seed of the tokens and of the weights.

    Raises:
        ValueError: If num_heads does not divide d_model, or ``seq_len`` is below 1.
    """
    require_int("seq_len", seq_len, 1)
    generator = generator_from(seed)
    layer = MultiHeadAttention(d_model, num_heads, generator=generator)
    tokens = torch.randn(1, seq_len, d_model, generator=generator)
    with torch.no_grad():
        scores = layer.attend(tokens, tokens, tokens).scores
        packed = layer.in_proj(tokens).chunk(3, dim=-1)
        q, k = (split_heads(x, num_heads) for x in packed[:2])
        raw = q @ k.transpose(-2, -1)  # (1, H, T, T)
    divisor = (raw.norm() / scores.norm()).item()
    return MeasuredDivisor(divisor, round(divisor**2))


def lab_table(widths: Sequence[int] = (8, 64, 512, 4096)) -> list[LabRow]:
    """Return the table of the course lab: largest weight over 16 keys.

    One generator, seeded 0, first gives the lab's worked example and then, for each
    width in turn, one query and its keys.

    Args:
        widths: The widths d_k, in the order in which they are drawn.
    """
    generator = generator_from(0)
    for _ in ("query", "key", "value"):  # of the worked example, 4 tokens of width 8
        torch.randn(4, 8, generator=generator)
    return [_lab_row(d_k, generator) for d_k in widths]


def _lab_row(d_k: int, generator: torch.Generator) -> LabRow:
    query = torch.randn(1, d_k, generator=generator)
    key = torch.randn(16, d_k, generator=generator)
    raw = query @ key.T
    unscaled, scaled = (
        round(scores.softmax(dim=-1).max().item(), 4)
        for scores in (raw, raw / math.sqrt(d_k))
    )
    return LabRow(d_k, unscaled, scaled)


def _row(scores: Tensor) -> SoftmaxRow:
    attn_weights = scores.softmax(dim=-1)
    largest, index = attn_weights.max(dim=-1)
    gradient = -largest * attn_weights
    gradient[index] = 0.0
    gradient[index] = -gradient.sum()  # p_m (1 - p_m), without rounding 1 - p_m
    return SoftmaxRow(scores, attn_weights, gradient)


def _raw_scores(
    widths: Sequence[int],
    num_keys: int,
    num_trials: int,
    generator: torch.Generator,
    spread: float,
) -> Tensor:
    """Return scores q·k of each width, ``(len(widths), num_trials, num_keys)``.

    Given q, the scores of its normal keys are independent and normal with standard
    deviation |q|, and |q|² follows a chi-square law with d_k degrees of freedom. So a
    row needs one length and S numbers, whatever d_k is, and is distributed exactly as
    if query and keys had been drawn.
    """
    _check_draw(widths, num_keys, num_trials, spread)
    seed = int(torch.randint(2**62, (), generator=generator))
    freedom = np.array(widths, dtype=float)[:, None]
    squares = np.random.default_rng(seed).chisquare(freedom, (len(widths), num_trials))
    lengths = torch.from_numpy(squares).sqrt()  # |q| at spread 1; float64: 1 - p shows
    shape = (len(widths), num_trials, num_keys)
    normal = torch.randn(shape, generator=generator)
    return spread**2 * lengths[..., None] * normal


def _check_draw(
    widths: Sequence[int], num_keys: int, num_trials: int, spread: float
) -> None:
    for d_k in widths:
        require_int("d_k", d_k, 1, MAX_D_K)
    require_int("num_keys", num_keys, 2, MAX_KEYS)
    require_int("num_trials", num_trials, 1, MAX_TRIALS)
    require_number("spread", spread, 0.0, MAX_SPREAD)
