"""One mask at work: the same attention without it and with it, on a few tokens.

What a picture of a mask needs, gathered from plain values: words, the kind of mask, two
sizes, a width and a seed. Nothing here is learned; the projections are random.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.attention import MultiHeadAttention
from core.checks import require_choice, require_int
from core.masks import (
    blocked_queries,
    blocked_query_warnings,
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
MAX_SEED = 2**63 - 2  # the seed after it must still fit into 64 bits

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
        row_sums: Sums of the rows of ``weights_after``, (T,).
        blocked: Boolean, (T,), True = the query has nothing to attend to.
        warning: One sentence that names the queries with nothing to attend to, or the
            sequence if it is all padding; empty if every query has a key.
    """

    tokens: list[str]
    labels: list[str]
    embeddings: Tensor
    layer: MultiHeadAttention
    mask: Tensor
    scores: Tensor
    weights_before: Tensor
    weights_after: Tensor
    row_sums: Tensor
    blocked: Tensor
    warning: str


class TorchConventions(NamedTuple):
    """One mask given to PyTorch's function and to its layer.

    Differences leave out the queries without a key: PyTorch's layer answers NaN there.

    Attributes:
        function_mask: For ``F.scaled_dot_product_attention``, True = may attend.
        layer_mask: For ``nn.MultiheadAttention``, True = may NOT attend.
        function_difference: Largest difference of that function's output from ours.
        layer_difference: Largest difference of that layer's output from ours.
        right_weights: Weights of the layer given ``layer_mask``, (T, T).
        opposite_weights: Weights of the layer given ``function_mask``, (T, T): the
            keys that should be hidden are the only ones read; NaN where none is left.
        float_weights: Weights of the layer given the mask as zeros and ones, (T, T):
            the numbers are added to the scores and hide nothing.
    """

    function_mask: Tensor
    layer_mask: Tensor
    function_difference: float
    layer_difference: float
    right_weights: Tensor
    opposite_weights: Tensor
    float_weights: Tensor


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
    require_int("number of tokens", len(tokens), 1, MAX_TOKENS)
    require_choice("kind", kind, MASKS)
    require_int("length", length, 0, len(tokens))
    require_int("window", window, 1)
    require_int("d_k", d_k, 1, MAX_D_K)
    require_int("seed", seed, 0, MAX_SEED)
    generator = torch.Generator().manual_seed(seed)
    layer = MultiHeadAttention(d_k, 1, bias=False, generator=generator).eval()
    x = token_embeddings(tokens, d_k, seed)
    mask = MASKS[kind](len(tokens), length, window)
    before = layer.attend(x[None], x[None], x[None])
    after = layer.attend(x[None], x[None], x[None], mask=mask)
    return MaskedAttention(
        tokens=list(tokens),
        labels=token_labels(tokens),
        embeddings=x,
        layer=layer,
        mask=mask,
        scores=after.scores[0, 0],
        weights_before=before.attn_weights[0, 0],
        weights_after=after.attn_weights[0, 0],
        row_sums=after.attn_weights[0, 0].sum(dim=-1),
        blocked=blocked_queries(mask),
        warning=_warning(mask),
    )


def movement_of_outputs(seen: MaskedAttention, index: int, seed: int) -> Tensor:
    """Return how far each output moves when one token is replaced by a random one.

    Args:
        seen: The attention to be probed, with its mask.
        index: Position of the token to replace, in [0, T - 1].
        seed: Draws the new token.

    Returns:
        Euclidean distances, (T,); exactly 0 at every other position that may not read
        the replaced one.

    Raises:
        ValueError: If ``index`` is out of range.
    """
    # The seed itself has drawn the projections; the next one draws other numbers.
    generator = torch.Generator().manual_seed(seed + 1)
    x = seen.embeddings[None]
    moved = change_one_token(seen.layer, x, index, generator=generator, mask=seen.mask)
    return moved[0]


def reach_of_movement(moved: Tensor, index: int) -> int:
    """Return how wide the replacement of one token reaches.

    Args:
        moved: Distances of the outputs, (T,), at least 0.
        index: Position of the token that was replaced.

    Returns:
        0 if no output moved, 1 if only its own did, 3 if every output did, else 2.
    """
    count = int((moved > 0).sum())
    if count == len(moved):
        return 3
    if count == 1 and moved[index] > 0:
        return 1
    return 2 if count else 0


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
    in_torch = functools.partial(_torch_layer(seen.layer), x, x, x)
    from_layer, right_weights = in_torch(attn_mask=layer_mask)
    return TorchConventions(
        function_mask=function_mask,
        layer_mask=layer_mask,
        function_difference=_difference(from_function[has_key], ours[has_key]),
        layer_difference=_difference(from_layer[0][has_key], ours[has_key]),
        right_weights=right_weights[0],
        opposite_weights=in_torch(attn_mask=function_mask)[1][0],
        float_weights=in_torch(attn_mask=seen.mask.float())[1][0],
    )


def _padding(seq_len: int, length: int) -> Tensor:
    return padding_mask([length], seq_len)[0].expand(seq_len, seq_len)


def _warning(mask: Tensor) -> str:
    sentences = blocked_query_warnings(mask[None])
    if len(sentences) < 2:
        return "".join(sentences)
    queries = ", ".join(map(str, blocked_queries(mask).nonzero().flatten().tolist()))
    return f"sequence 0, queries {queries} have nothing to attend to"


def _torch_layer(layer: MultiHeadAttention) -> nn.MultiheadAttention:
    # Made on "meta" it draws no numbers of its own: they would be global ones.
    copy = nn.MultiheadAttention(
        layer.d_model, layer.num_heads, bias=False, batch_first=True, device="meta"
    ).to_empty(device="cpu")
    copy.load_state_dict(
        {
            "in_proj_weight": layer.in_proj.weight,
            "out_proj.weight": layer.out_proj.weight,
        }
    )
    return copy.eval()


def _difference(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max()) if found.numel() else 0.0
