"""One mask at work: the same attention without it and with it, on a few tokens.

What a picture of a mask needs, gathered from plain values: words, the kind of mask, two
sizes, a width and a seed. Nothing here is learned; the projections are random.
"""

import functools
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from core.attention import MultiHeadAttention
from core.checks import MAX_SEED, require_choice, require_int
from core.head_parity import torch_layer
from core.initial import generator_from
from core.masks import (
    blocked_queries,
    causal_mask,
    padding_mask,
    sliding_window_mask,
)
from core.probes import change_one_token
from core.tokens import (
    MAX_TOKENS,
    position_labels,
    split_into_tokens,
    token_embeddings,
    token_labels,
)
from core.torch_masks import to_sdpa_mask, to_torch_mha_mask

MAX_D_K = 1024

# Name -> mask (T, T) of one sequence, from its length T, the number of real tokens and
# the reach of the window. Where two masks are named, a key must be open in both.
MASKS: dict[str, Callable[[int, int, int], Tensor]] = {
    "causal": lambda seq_len, length, window: causal_mask(seq_len),
    "none": lambda seq_len, length, window: torch.ones(seq_len, seq_len).bool(),
    "padding": lambda seq_len, length, window: _padding(seq_len, length),
    "causal + padding": lambda seq_len, length, window: (
        causal_mask(seq_len) & _padding(seq_len, length)
    ),
    "sliding window": lambda seq_len, length, window: sliding_window_mask(
        seq_len, window
    ),
    "sliding window + padding": lambda seq_len, length, window: (
        sliding_window_mask(seq_len, window) & _padding(seq_len, length)
    ),
}


class MaskedAttention(NamedTuple):
    """One head of self-attention over one sequence, without and with a mask.

    Attributes:
        tokens: T words.
        labels: T labels, all different.
        embeddings: Random vectors of the words, (T, d_k).
        layer: The head; its projections are random.
        mask: Boolean, (T, T), True = may attend.
        scores: Before the softmax, (T, T); they know nothing of the mask.
        weights_before: Weights without the mask, (T, T). Rows sum to 1.
        weights_after: Weights with the mask, (T, T). Rows sum to 1, or are 0 throughout
            where the query may attend to no key.
        blocked: Boolean, (T,), True = the query has nothing to attend to.
        reading_on: Labels of the padded queries that still have a key to read.
        warning: One sentence that names the queries with nothing to attend to; empty
            if every query has a key.
    """

    tokens: list[str]
    labels: list[str]
    embeddings: Tensor
    layer: MultiHeadAttention
    mask: Tensor
    scores: Tensor
    weights_before: Tensor
    weights_after: Tensor
    blocked: Tensor
    reading_on: list[str]
    warning: str


class Reach(StrEnum):
    """Which outputs move when one token is replaced."""

    NONE = "none"
    OWN = "its own"
    SOME = "some"
    EVERY = "every"


class Movement(NamedTuple):
    """What the replacement of one token moves.

    Attributes:
        distances: Euclidean distances of the outputs, (T,).
        still: Labels of the outputs whose distance is exactly 0.
        reach: How wide the replacement reaches.
    """

    distances: Tensor
    still: list[str]
    reach: Reach


class TorchConventions(NamedTuple):
    """One mask given to PyTorch's function and to its layer.

    Differences leave out the queries without a key: PyTorch's layer answers NaN there.

    Attributes:
        function_mask: For ``F.scaled_dot_product_attention``, True = may attend.
        layer_mask: For ``nn.MultiheadAttention``, True = may NOT attend.
        difference: Largest difference of both outputs, each mask in its own form, from
            ours.
        right_weights: Weights of the layer given ``layer_mask``, (T, T).
        opposite_weights: Weights of the layer given ``function_mask``, (T, T): the
            keys that should be hidden are the only ones read; NaN where none is left.
        float_weights: Weights of the layer given the mask as zeros and ones, (T, T):
            the numbers are added to the scores and hide nothing.
        opposite_leak: Most weight that a row of ``opposite_weights`` gives to keys that
            should be hidden.
        float_leak: The same of ``float_weights``.
        nan_rows: How many rows of ``opposite_weights`` are NaN.
    """

    function_mask: Tensor
    layer_mask: Tensor
    difference: float
    right_weights: Tensor
    opposite_weights: Tensor
    float_weights: Tensor
    opposite_leak: float
    float_leak: float
    nan_rows: int


def read_tokens(text: str | None, seq_len: int) -> list[str]:
    """Return the words of a text, or plain positions where there is none.

    Args:
        text: Words between spaces; None means positions ``0, 1, …``.
        seq_len: Number of positions, where there is no text.

    Returns:
        Between 1 and ``MAX_TOKENS`` tokens.

    Raises:
        ValueError: If the text has no word or too many, or ``seq_len`` is out of range.
    """
    if text is not None:
        return split_into_tokens(text)
    return position_labels(require_int("seq_len", seq_len, 1, MAX_TOKENS))


@torch.no_grad()
def masked_attention(
    tokens: Sequence[str], kind: str, *, length: int, window: int, d_k: int, seed: int
) -> MaskedAttention:
    """Let a sequence attend to itself without a mask and with one.

    ``softmax(scores)`` beside ``softmax(scores where the mask is True, else -inf)``.

    Args:
        tokens: T words, between 1 and ``MAX_TOKENS``.
        kind: Name in ``MASKS``.
        length: Number of real tokens, in [0, T]; the rest is padding. Used where the
            kind names padding, checked always.
        window: Reach of the window, at least 1. Used where the kind names a window,
            checked always.
        d_k: Width of the only head, and of the tokens.
        seed: Draws the projections and the vectors of the words.

    Raises:
        ValueError: If there are too many tokens or a value is out of range.
    """
    require_int("len(tokens)", len(tokens), 1, MAX_TOKENS)
    require_choice("kind", kind, MASKS)
    require_int("length", length, 0, len(tokens))
    require_int("window", window, 1)
    require_int("d_k", d_k, 1, MAX_D_K)
    generator = generator_from(seed)
    layer = MultiHeadAttention(d_k, 1, bias=False, generator=generator).eval()
    x = token_embeddings(tokens, d_k, seed)
    labels, mask = token_labels(tokens), MASKS[kind](len(tokens), length, window)
    blocked, padded = blocked_queries(mask), blocked_queries(mask.mT)
    before = layer.attend(x[None], x[None], x[None])
    after = layer.attend(x[None], x[None], x[None], mask=mask)
    return MaskedAttention(
        tokens=list(tokens),
        labels=labels,
        embeddings=x,
        layer=layer,
        mask=mask,
        scores=after.scores[0, 0],
        weights_before=before.attn_weights[0, 0],
        weights_after=after.attn_weights[0, 0],
        blocked=blocked,
        reading_on=_named(labels, padded & ~blocked),
        warning=_warning(labels, blocked),
    )


def movement_of_outputs(seen: MaskedAttention, index: int, seed: int) -> Movement:
    """Return how far each output moves when one token is replaced by a random one.

    It is exactly 0 at every other position that may not read the replaced one.

    Args:
        seen: The attention to be probed, with its mask.
        index: Position of the token to replace, in [0, T - 1].
        seed: Draws the new token.

    Raises:
        ValueError: If ``index`` or ``seed`` is out of range.
    """
    require_int("seed", seed, 0, MAX_SEED)
    # The seed itself has drawn the projections; the next one draws other numbers.
    generator = torch.Generator().manual_seed(seed + 1)
    x = seen.embeddings[None]
    moved = change_one_token(seen.layer, x, index, generator=generator, mask=seen.mask)
    still = _named(seen.labels, moved[0] == 0)
    return Movement(moved[0], still, reach_of_movement(moved[0], index))


def reach_of_movement(moved: Tensor, index: int) -> Reach:
    """Return how wide the replacement of one token reaches.

    Args:
        moved: Distances of the outputs, (T,), at least 0.
        index: Position of the token that was replaced.
    """
    count = int((moved > 0).sum())
    if count == len(moved):
        return Reach.EVERY
    if count == 1 and moved[index] > 0:
        return Reach.OWN
    return Reach.SOME if count else Reach.NONE


def kept(mask: Tensor) -> Tensor:
    """Return a mask whose rows without a key are opened.

    PyTorch's layer answers NaN there; a picture should not call that masked.

    Args:
        mask: Boolean, (T, S), True = may attend.
    """
    return mask | ~mask.any(dim=-1, keepdim=True)


def weight_on_masked(weights: Tensor, mask: Tensor) -> Tensor:
    """Return how much weight each query gives to keys that it may not read.

    Args:
        weights: A map, (T, S); NaN counts as no weight.
        mask: Boolean, (T, S), True = may attend.

    Returns:
        Sums over the masked keys, (T,); right is 0 throughout.
    """
    return weights.nan_to_num(0.0).masked_fill(mask, 0.0).sum(dim=-1)


@torch.no_grad()
def torch_conventions(seen: MaskedAttention) -> TorchConventions:
    """Give the mask of ``seen`` to PyTorch's function and to its layer.

    Returns:
        The mask in both forms, what PyTorch makes of it, and what it makes of two
        common mistakes: the form of the other interface, and numbers for a mask.
    """
    x, has_key = seen.embeddings[None], ~seen.blocked
    ours = seen.layer(x, x, x, mask=seen.mask)[0]
    function_mask, layer_mask = to_sdpa_mask(seen.mask), to_torch_mha_mask(seen.mask)
    q, k, v = seen.layer.in_proj(x).chunk(3, dim=-1)
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=function_mask)
    from_function = seen.layer.out_proj(attended)[0]
    in_torch = functools.partial(torch_layer(seen.layer), x, x, x)
    from_layer, right_weights = in_torch(attn_mask=layer_mask)
    both = torch.stack([from_function, from_layer[0]])
    opposite_weights = in_torch(attn_mask=function_mask)[1][0]
    float_weights = in_torch(attn_mask=seen.mask.float())[1][0]
    return TorchConventions(
        function_mask=function_mask,
        layer_mask=layer_mask,
        difference=_difference(both[:, has_key], ours[has_key]),
        right_weights=right_weights[0],
        opposite_weights=opposite_weights,
        float_weights=float_weights,
        opposite_leak=float(weight_on_masked(opposite_weights, seen.mask).max()),
        float_leak=float(weight_on_masked(float_weights, seen.mask).max()),
        nan_rows=int(opposite_weights.isnan().any(dim=-1).sum()),
    )


def _padding(seq_len: int, length: int) -> Tensor:
    return padding_mask([length], seq_len)[0].expand(seq_len, seq_len)


def _named(labels: list[str], which: Tensor) -> list[str]:
    return [label for label, named in zip(labels, which, strict=True) if named]


def _warning(labels: list[str], blocked: Tensor) -> str:
    if blocked.all():
        return "the sequence is all padding: no query has anything to attend to"
    names = [f'"{label}"' for label in _named(labels, blocked)]
    if len(names) < 2:
        return "".join(f"query {name} has nothing to attend to" for name in names)
    return f"queries {', '.join(names)} have nothing to attend to"


def _difference(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max()) if found.numel() else 0.0
