"""Probes of an attention layer: change one token, or the order, and see what moves."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from core.attention import MultiHeadAttention
from core.checks import MAX_SEED, RefusedError, require_choice, require_int
from core.initial import generator_from
from core.masks import causal_mask
from core.positional import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
    sinusoidal_encoding,
)


class AttentionLayer(Protocol):
    """What can be probed: a layer such as ``MultiHeadAttention`` without dropout."""

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
    ) -> Tensor:
        """Return the attended tokens ``(B, T, d_model)``."""
        ...


class PermutationDistances(NamedTuple):
    """How far a layer's answer moves when the tokens change places.

    Attributes:
        moved: ``‖f(P x) - f(x)‖`` at each position, (B, T): large where another token
            stands now.
        after_undoing: ``‖f(P x) - P f(x)‖`` at each position, (B, T): 0 if the layer is
            equivariant, so that outputs change places exactly as tokens do.
        pooled: ``‖mean f(P x) - mean f(x)‖`` of the mean over positions, (B,): 0 if
            the pooled output is invariant, so that the order cannot be read from it.
    """

    moved: Tensor
    after_undoing: Tensor
    pooled: Tensor


@torch.no_grad()
def change_one_token(
    layer: AttentionLayer,
    x: Tensor,
    index: int,
    *,
    generator: torch.Generator,
    mask: Tensor | None = None,
) -> Tensor:
    """Replace one token by a random one and measure how far each output moves.

    ``‖f(x') - f(x)‖`` with ``x'`` equal to ``x`` except at ``index``. Under a causal
    mask it is exactly 0 before ``index``.

    Args:
        layer: Self-attention is ``layer(x, x, x, mask=mask)``.
        x: Tokens ``(B, T, d_model)``.
        index: Position of the token to replace, in ``[0, T - 1]``.
        generator: Source of the new, standard normal token, on the CPU.
        mask: Boolean, True = may attend; None opens every key.

    Returns:
        Euclidean distances ``(B, T)``.

    Raises:
        ValueError: If ``index`` is out of range.
    """
    require_int("index", index, 0, x.shape[-2] - 1)
    new_token = torch.randn(x[..., index, :].shape, generator=generator)
    changed = x.clone()
    changed[..., index, :] = new_token.to(x)
    before = layer(x, x, x, mask=mask)
    after = layer(changed, changed, changed, mask=mask)
    return (after - before).norm(dim=-1)


@torch.no_grad()
def permutation_distances(
    layer: AttentionLayer,
    x: Tensor,
    permutation: Sequence[int],
    *,
    positions: Callable[[Tensor], Tensor] | None = None,
    mask: Tensor | None = None,
) -> PermutationDistances:
    """Reorder the tokens and compare the layer's outputs with those before.

    ``(P x)[t] = x[permutation[t]]``. Without positions and mask
    ``f(P x) = P f(x)``: attention does not see the order. With positions, which stay
    where they are while the tokens move, it does.

    Args:
        layer: Self-attention is ``layer(x, x, x, mask=mask)``.
        x: Tokens without positions, ``(B, T, d_model)``.
        permutation: The numbers 0 to T - 1 in the new order.
        positions: Adds positions to tokens, for example a
            ``SinusoidalPositionalEncoding``; None adds none.
        mask: Boolean, True = may attend; it belongs to positions, not to tokens.

    Returns:
        Euclidean distances, named.

    Raises:
        ValueError: If ``permutation`` is not one of T tokens.
    """
    order = _checked_permutation(permutation, x.shape[-2])

    def outputs(tokens: Tensor) -> Tensor:
        placed = tokens if positions is None else positions(tokens)
        return layer(placed, placed, placed, mask=mask)

    before, after = outputs(x), outputs(x[..., order, :])
    return PermutationDistances(
        moved=(after - before).norm(dim=-1),
        after_undoing=(after - before[..., order, :]).norm(dim=-1),
        pooled=(after.mean(dim=-2) - before.mean(dim=-2)).norm(dim=-1),
    )


class OrderProbe(NamedTuple):
    """One attention layer, one new order of its tokens, three ways to know the order.

    Attributes:
        plain: No positions and no mask.
        placed: Sinusoids added to the tokens.
        causal: No positions, but a causal mask.
    """

    plain: PermutationDistances
    placed: PermutationDistances
    causal: PermutationDistances


def probe_order(tokens: Tensor, order: Sequence[int], *, seed: int) -> OrderProbe:
    """Reorder the tokens of a random single-head layer, with and without positions.

    It is computed in float64, so that what is 0 in theory is a rounding error far
    below every real distance.

    Args:
        tokens: Tokens without positions, ``(T, d_model)``.
        order: The numbers 0 to T - 1 in the new order.
        seed: Seed of the layer's random weights.

    Returns:
        Distances of a batch of one, named.

    Raises:
        ValueError: If ``order`` is not one of T tokens.
    """
    seq_len, d_model = tokens.shape
    source = generator_from(seed)
    layer = MultiHeadAttention(d_model, 1, generator=source).double().eval()
    x = tokens.double().unsqueeze(0)
    sinusoids = SinusoidalPositionalEncoding(max(seq_len, 1), d_model)
    return OrderProbe(
        plain=permutation_distances(layer, x, order),
        placed=permutation_distances(layer, x, order, positions=sinusoids),
        causal=permutation_distances(layer, x, order, mask=causal_mask(seq_len)),
    )


def new_order(seq_len: int, how: str, *, seed: int = 0) -> list[int]:
    """Return the positions in a new order.

    Args:
        seq_len: Number of tokens T.
        how: "swap" exchanges the first and the last, "reverse" turns the order round,
            "shuffle" draws it.
        seed: Seed of the shuffle.

    Raises:
        ValueError: If ``how`` is unknown, or ``seq_len`` or the seed is out of range.
    """
    require_int("seq_len", seq_len, 0)
    require_choice("how", how, ("swap", "reverse", "shuffle"))
    require_int("seed", seed, 0, MAX_SEED)
    order = list(range(seq_len))
    if how == "reverse":
        return order[::-1]
    if how == "shuffle":
        source = generator_from(seed)
        return torch.randperm(seq_len, generator=source).tolist()
    return order[-1:] + order[1:-1] + order[:1] if seq_len > 1 else order


class PositionTables(NamedTuple):
    """What two encodings add to the same tokens, row by row.

    Attributes:
        sinusoidal: Sinusoids, ``(T, d_model)``.
        learned: A learned table as it starts, ``(T, d_model)``; NaN where the table
            has no vector.
        refusal: What the table says to so many tokens; empty if it holds them all.
    """

    sinusoidal: Tensor
    learned: Tensor
    refusal: str


@torch.no_grad()
def position_tables(
    seq_len: int, d_model: int, *, max_len: int, seed: int, base: float = 10_000.0
) -> PositionTables:
    """Return sinusoids and a fresh learned table side by side, also past its end.

    Args:
        seq_len: Number of tokens T; it may exceed ``max_len``.
        d_model: Width of a token, at least 1.
        max_len: Positions of the learned table, at least 1.
        seed: Seed of the table's first, random vectors.
        base: Base of the sinusoids, at least 1.

    Raises:
        ValueError: If a size or the seed is out of range.
    """
    sinusoidal = sinusoidal_encoding(seq_len, d_model, base=base)
    source = generator_from(seed)
    layer = LearnedPositionalEncoding(max_len, d_model, generator=source)
    tokens = torch.zeros(seq_len, d_model)
    learned = torch.full_like(tokens, torch.nan)
    learned[:max_len] = layer(tokens[:max_len])
    try:
        layer(tokens)
    except RefusedError as refusal:
        return PositionTables(sinusoidal, learned, str(refusal))
    return PositionTables(sinusoidal, learned, "")


def _checked_permutation(permutation: Sequence[int], seq_len: int) -> list[int]:
    order = list(permutation)
    if sorted(order) != list(range(seq_len)):
        raise RefusedError(
            f"permutation {order} must hold each of 0 to {seq_len - 1} once"
        )
    return order
