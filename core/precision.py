"""What becomes of a row in which every key is masked: a lesson in four fill values.

Masked scores are often overwritten with a very low number. That is right as long as a
row keeps one key. Where it keeps none, the softmax sees equal numbers, or -inf alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from core.attention import scaled_dot_product_attention
from core.checks import RefusedError, require_choice
from core.initial import generator_from
from core.masks import blocked_query_warnings, padding_mask

CORE = "core.attention"
FILLS: dict[str, Callable[[torch.dtype], float]] = {
    "-inf": lambda dtype: -math.inf,
    "finfo.min": lambda dtype: torch.finfo(dtype).min,
    "-1e9": lambda dtype: -1e9,
    "-1e4": lambda dtype: -1e4,
}
DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
METHODS = ("overwritten", "added")
SCORES = (1.0, 0.5, -0.5, 2.0)
VALUES = (1.0, 2.0, 3.0, 4.0)

Kind = Literal["zeros", "uniform", "leak", "nan", "overflow"]


class FillOutcome(NamedTuple):
    """One fully masked row of four keys under one fill value.

    Attributes:
        fill: Name of the fill value, or ``core.attention`` for the rule of this
            project.
        dtype: Name of the number type.
        stored: The fill value as this type holds it; None for ``core.attention``.
        attn_weights: Weights of the four keys. Right is 0 throughout.
        output: Weighted sum of the values 1, 2, 3, 4. Right is 0.
        gradient: Gradient of the output with respect to what enters the softmax.
            Right is 0 throughout.
        kind: ``zeros``, ``uniform`` (every key the same weight), ``leak`` (weights
            that follow the masked scores), ``nan``, or ``overflow`` (the type cannot
            hold the fill value: it is taken as -inf, which makes the row NaN).
        verdict: One sentence with the numbers above.
    """

    fill: str
    dtype: str
    stored: float | None
    attn_weights: tuple[float, ...]
    output: float
    gradient: tuple[float, ...]
    kind: Kind
    verdict: str


def fully_masked_rows(method: str = "overwritten") -> list[FillOutcome]:
    """Return the outcome of every fill value in every number type.

    Args:
        method: How a fill is put in: ``overwritten`` replaces the masked score
            (``masked_fill``), ``added`` adds the fill to it.

    Returns:
        For each type the four fills and then ``core.attention``: 15 rows.

    Raises:
        ValueError: If ``method`` is not one of ``METHODS``.
    """
    require_choice("method", method, METHODS)
    outcomes = []
    for dtype in DTYPES:
        outcomes += [fill_outcome(fill, dtype, method) for fill in FILLS]
        outcomes.append(core_outcome(dtype))
    return outcomes


def fill_outcome(fill: str, dtype: str, method: str = "overwritten") -> FillOutcome:
    """Put a fill value into a fully masked row and take the softmax of it.

    Args:
        fill: Name in ``FILLS``.
        dtype: Name in ``DTYPES``.
        method: ``overwritten`` or ``added``.

    Raises:
        ValueError: If a name is unknown.
    """
    require_choice("fill", fill, FILLS)
    require_choice("dtype", dtype, DTYPES)
    require_choice("method", method, METHODS)
    kind_of_number = DTYPES[dtype]
    wanted = FILLS[fill](kind_of_number)
    stored = torch.tensor(wanted).to(kind_of_number)
    scores = torch.tensor(SCORES, dtype=kind_of_number)
    filled = stored.expand(4) if method == "overwritten" else scores + stored
    entry = filled.detach().clone().requires_grad_()
    attn_weights = entry.softmax(dim=-1)
    output = attn_weights @ torch.tensor(VALUES, dtype=kind_of_number)
    output.backward()
    overflow = math.isfinite(wanted) and not bool(stored.isfinite())
    return _outcome(fill, dtype, stored, attn_weights, output, entry.grad, overflow)


def core_outcome(dtype: str) -> FillOutcome:
    """Send the same row through ``core.attention``, with every key masked.

    Args:
        dtype: Name in ``DTYPES``.

    Raises:
        ValueError: If the name is unknown.
    """
    require_choice("dtype", dtype, DTYPES)
    # Width 1 and query 1: the keys are the scores, and their gradients are the same.
    query = torch.ones(1, 1, dtype=DTYPES[dtype])
    key = torch.tensor(SCORES, dtype=DTYPES[dtype])[:, None].requires_grad_()
    value = torch.tensor(VALUES, dtype=DTYPES[dtype])[:, None]
    mask = torch.zeros(1, 4, dtype=torch.bool)
    seen = scaled_dot_product_attention(query, key, value, mask=mask, scale=1.0)
    seen.output.sum().backward()
    weights, output = seen.attn_weights[0], seen.output[0, 0]
    return _outcome(CORE, dtype, None, weights, output, key.grad, overflow=False)


@torch.no_grad()
def padded_batch_sentence(lengths: Sequence[int], *, seed: int = 0) -> str:
    """Attend over a padded batch, and say which sequences have no token at all.

    Args:
        lengths: Number of real tokens of each sequence, ``(B,)``; the longest has at
            least one.
        seed: Draws the vectors of the tokens.

    Returns:
        The warnings of the batch, and by how much the outputs of the other sequences
        differ from what each gives alone, without padding.

    Raises:
        ValueError: If a length is negative or every length is 0.
    """
    if max(lengths, default=0) < 1:
        raise RefusedError(f"lengths {list(lengths)} must have one of at least 1")
    mask = padding_mask(lengths, max(lengths))  # (B, 1, S)
    x = torch.randn(len(lengths), max(lengths), 8, generator=generator_from(seed))
    together = scaled_dot_product_attention(x, x, x, mask=mask).output
    moved = 0.0
    for index, length in enumerate(lengths):
        if length:
            real = x[index, :length]
            alone = scaled_dot_product_attention(real, real, real).output
            moved = max(moved, float((together[index, :length] - alone).abs().max()))
    warnings = blocked_query_warnings(mask.expand(-1, max(lengths), -1))
    said = "".join(f" {warning[:1].upper()}{warning[1:]}." for warning in warnings)
    return (
        f"A batch of {len(lengths)} sequences with "
        f"{', '.join(map(str, lengths))} real tokens, padded to "
        f"{max(lengths)}.{said} The others give what they give alone"
        f"{f', to {moved:.0e}' if moved else ''}."
    )


def _outcome(
    fill: str,
    dtype: str,
    stored: Tensor | None,
    attn_weights: Tensor,
    output: Tensor,
    gradient: Tensor | None,
    overflow: bool,
) -> FillOutcome:
    weights = tuple(attn_weights.tolist())
    slopes = () if gradient is None else tuple(gradient.flatten().tolist())
    kind = "overflow" if overflow else _kind(weights)
    return FillOutcome(
        fill=fill,
        dtype=dtype,
        stored=None if stored is None else stored.item(),
        attn_weights=weights,
        output=output.item(),
        gradient=slopes,
        kind=kind,
        verdict=_verdict(kind, fill, dtype, weights, output.item(), slopes),
    )


def _kind(weights: tuple[float, ...]) -> Kind:
    if any(math.isnan(weight) for weight in weights):
        return "nan"
    if not any(weights):
        return "zeros"
    return "uniform" if len(set(weights)) == 1 else "leak"


def _verdict(
    kind: Kind,
    fill: str,
    dtype: str,
    weights: tuple[float, ...],
    output: float,
    slopes: tuple[float, ...],
) -> str:
    if kind == "overflow":
        return (
            f"The lowest number of {dtype} is {torch.finfo(DTYPES[dtype]).min:g}: "
            f"masked_fill refuses {fill}, and where it is added it becomes -inf and "
            "the row NaN."
        )
    if kind == "nan":
        return (
            "Where every score is -inf, the softmax divides 0 by 0: NaN, not a number, "
            "and so is all that is computed from it."
        )
    if kind == "zeros":
        steepest = max(abs(slope) for slope in slopes)
        return (
            f"Every weight is {max(weights):g}, the output {output:g} and the largest "
            f"gradient {steepest:g}: there is nothing to attend to."
        )
    if kind == "uniform":
        return (
            f"Every masked key gets weight {weights[0]:g} and the output is "
            f"{output:g}: no error, and wrong."
        )
    return (
        f"The masked keys get weights from {min(weights):.2f} to {max(weights):.2f}, "
        "as if nothing were masked: no error, and wrong."
    )
