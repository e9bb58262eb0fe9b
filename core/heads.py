"""Several heads over one sequence: what each reads and writes, and how they differ.

What a picture of multi-head attention needs, gathered from plain values: words, two
sizes, a mask and a seed. Nothing here is learned; the projections are random.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from core.attention import MultiHeadAttention, merge_heads, split_heads
from core.checks import require_choice, require_divisible, require_int
from core.initial import generator_from
from core.masks import causal_mask
from core.tokens import MAX_TOKENS, token_embeddings, token_labels

MAX_D_MODEL = 256
MAX_HEADS = 16
DTYPES = {"float32": torch.float32, "float64": torch.float64}

# Name -> mask (T, T) of one sequence of T tokens, True = may attend; None: no mask.
MASKS: dict[str, Callable[[int], Tensor | None]] = {
    "causal": causal_mask,
    "none": lambda seq_len: None,
    "left padding": lambda seq_len: _left_padding(seq_len),
}


class HeadsSeen(NamedTuple):
    """Self-attention over one sequence, kept stage by stage.

    Attributes:
        tokens: T words.
        labels: T labels, all different.
        layer: The layer; its projections are random.
        embeddings: Random vectors of the words, (T, d_model).
        mask: Boolean, (T, T), True = may attend; None where nothing is masked.
        scores: Before mask and softmax, (H, T, T).
        weights: After the softmax, one map a head, (H, T, T).
        head_outputs: What each head hands on, (H, T, d_k).
        concatenated: The heads side by side, (T, d_model).
        output: The same after the output projection, (T, d_model).
    """

    tokens: list[str]
    labels: list[str]
    layer: MultiHeadAttention
    embeddings: Tensor
    mask: Tensor | None
    scores: Tensor
    weights: Tensor
    head_outputs: Tensor
    concatenated: Tensor
    output: Tensor


class HeadDifferences(NamedTuple):
    """How far the maps of the heads lie apart.

    Attributes:
        pairwise: Share of its weight that a query places elsewhere in the other head,
            0 (equal) to 1 (no key in common), mean over the queries, (H, H).
        mean: Mean over all pairs of heads; NaN where there is none to compare.
        furthest: Indices of the two heads furthest apart; None where there is no pair.
        num_queries: Number of queries that have a choice: two keys or more.
    """

    pairwise: Tensor
    mean: float
    furthest: tuple[int, int] | None
    num_queries: int


class HeadCost(NamedTuple):
    """What a layer of one width costs with a number of heads.

    Attributes:
        num_heads: Number of heads H.
        d_k: Width of one head.
        parameters: Learned numbers of the layer.
        flops: Multiplications and additions of its matrix products, for one sequence.
        map_cells: Attention weights it works out, H · T · T.
    """

    num_heads: int
    d_k: int
    parameters: int
    flops: int
    map_cells: int


def head_counts(d_model: int) -> list[int]:
    """Return the numbers of heads that divide ``d_model``, up to ``MAX_HEADS``."""
    require_int("d_model", d_model, 1, MAX_D_MODEL)
    most = min(d_model, MAX_HEADS)
    return [heads for heads in range(1, most + 1) if d_model % heads == 0]


def require_heads(d_model: int, num_heads: int) -> None:
    """Check that a layer of width ``d_model`` can have so many heads.

    Raises:
        ValueError: If a number is out of range or num_heads does not divide d_model.
    """
    require_int("d_model", d_model, 1, MAX_D_MODEL)
    require_int("num_heads", num_heads, 1, MAX_HEADS)
    require_divisible("d_model", d_model, "num_heads", num_heads)


@torch.no_grad()
def attend_heads(
    tokens: Sequence[str],
    *,
    d_model: int,
    num_heads: int,
    mask: str,
    seed: int,
    dtype: str = "float64",
) -> HeadsSeen:
    """Let a sequence attend to itself through several heads.

    ``output = Concat(head_1, …, head_H) W_O``

    Args:
        tokens: T words, between 1 and ``MAX_TOKENS``.
        d_model: Width of the tokens, at most ``MAX_D_MODEL``.
        num_heads: Number of heads H, at most ``MAX_HEADS``; must divide d_model.
        mask: Name in ``MASKS``.
        seed: Draws the projections and the vectors of the words.
        dtype: Name in ``DTYPES``: the precision of every number.

    Raises:
        ValueError: If a value is out of range or num_heads does not divide d_model.
    """
    require_int("len(tokens)", len(tokens), 1, MAX_TOKENS)
    require_choice("mask", mask, MASKS)
    require_choice("dtype", dtype, DTYPES)
    layer = _layer(d_model, num_heads, seed).to(DTYPES[dtype])
    x = token_embeddings(tokens, d_model, seed).to(DTYPES[dtype])
    allowed = MASKS[mask](len(tokens))
    seen = layer.attend(x[None], x[None], x[None], mask=allowed)
    values = split_heads(layer.in_proj(x).chunk(3, dim=-1)[2], num_heads)
    head_outputs = seen.attn_weights[0] @ values  # (H, T, d_k)
    return HeadsSeen(
        tokens=list(tokens),
        labels=token_labels(tokens),
        layer=layer,
        embeddings=x,
        mask=allowed,
        scores=seen.scores[0],
        weights=seen.attn_weights[0],
        head_outputs=head_outputs,
        concatenated=merge_heads(head_outputs),
        output=seen.output[0],
    )


def head_differences(weights: Tensor, mask: Tensor | None = None) -> HeadDifferences:
    """Measure how differently the heads spread their weight.

    ``d(i, j) = mean over queries of ½ Σ_s |w_i,s - w_j,s|``, the total variation
    distance of two rows. A query with a single key has no choice and is left out: it
    would make any two heads look alike.

    Args:
        weights: One map a head, (H, T, S).
        mask: Boolean, (T, S), True = may attend; None means every key is open.
    """
    num_heads, _, num_keys = weights.shape
    open_keys = torch.tensor(num_keys) if mask is None else mask.sum(dim=-1)
    rows = weights[:, (open_keys >= 2).expand(weights.shape[1])]  # (H, T', S)
    apart = (rows[:, None] - rows[None]).abs().sum(dim=-1) / 2  # (H, H, T')
    pairwise = apart.mean(dim=-1)
    first, second = torch.triu_indices(num_heads, num_heads, offset=1)
    pairs = pairwise[first, second]
    if not pairs.numel() or not rows.shape[1]:
        return HeadDifferences(pairwise, math.nan, None, rows.shape[1])
    most = int(pairs.argmax())
    furthest = (int(first[most]), int(second[most]))
    return HeadDifferences(pairwise, float(pairs.mean()), furthest, rows.shape[1])


def head_shares(seen: HeadsSeen) -> Tensor:
    """Return what each head adds to the output, (H, T, d_model).

    ``Concat(heads) W_O = Σ_h head_h W_O,h``: the output projection has a block for each
    head. The shares and the bias sum to the output.
    """
    weight = seen.layer.out_proj.weight.detach()  # (d_model, d_model), to × from
    blocks = weight.unflatten(1, (seen.layer.num_heads, -1)).movedim(1, 0)
    return seen.head_outputs @ blocks.mT


def head_costs(
    d_model: int, seq_len: int, heads: Sequence[int] | None = None
) -> list[HeadCost]:
    """Count what layers of one width cost, each built and run once.

    Args:
        d_model: Width of the tokens.
        seq_len: Number of tokens T, 1 to ``MAX_TOKENS``.
        heads: Numbers of heads; None means all of ``head_counts``.

    Raises:
        ValueError: If a size is out of range or a number does not divide d_model.
    """
    require_int("seq_len", seq_len, 1, MAX_TOKENS)
    counts = head_counts(d_model) if heads is None else heads
    return [_cost(_layer(d_model, number, 0), seq_len) for number in counts]


def _layer(d_model: int, num_heads: int, seed: int) -> MultiHeadAttention:
    require_heads(d_model, num_heads)
    source = generator_from(seed)
    return MultiHeadAttention(d_model, num_heads, generator=source).eval()


@torch.no_grad()
def _cost(layer: MultiHeadAttention, seq_len: int) -> HeadCost:
    x = torch.zeros(1, seq_len, layer.d_model)
    with _ProductCounter() as counted:
        seen = layer.attend(x, x, x)
    return HeadCost(
        num_heads=layer.num_heads,
        d_k=layer.d_model // layer.num_heads,
        parameters=sum(parameter.numel() for parameter in layer.parameters()),
        flops=counted.flops,
        map_cells=seen.attn_weights.numel(),
    )


class _ProductCounter(TorchDispatchMode):
    """Counts the matrix products of this thread alone, by PyTorch's own formulas.

    ``FlopCounterMode`` counts the same but hooks into every module of the process,
    where other threads may be training.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **(kwargs or {}), out_val=result)
        return result


def _left_padding(seq_len: int) -> Tensor:
    mask = causal_mask(seq_len)
    mask[:, 0] = False  # then query 0 has no key at all
    return mask
