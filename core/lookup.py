"""Attention as a soft dictionary lookup, with the matrix of every stage.

project, score, scale, softmax, weigh, sum: one head, a few words, and numbers short
enough to be followed by hand. Nothing here is learned; the projections are random.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.attention import scaled_dot_product_attention
from core.checks import RefusedError, require_choice, require_int, require_number
from core.initial import generator_from
from core.tokens import MAX_TOKENS, token_embeddings, token_labels

STAGES = ("project", "score", "scale", "softmax", "weigh", "sum")
VECTORS = ("q", "k", "v")
MAX_WIDTH = 64
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0
TEMPERATURES = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
)  # fmt: skip
_MAX_VALUE = 1e3
_TIE = 1e-9  # scores closer than this are called equal


class Lookup(NamedTuple):
    """One head that reads a few words, stage by stage, in float64.

    Attributes:
        query_labels: T labels of the words that read.
        key_labels: S labels of the words that are read.
        x_query: Vectors of the words that read, (T, d_model), to one decimal.
        x_key: Vectors of the words that are read, (S, d_model), to one decimal.
        w_q: Projection to queries, (d_model, d_k), to one decimal.
        w_k: Projection to keys, (d_model, d_k), to one decimal.
        w_v: Projection to values, (d_model, d_k), to one decimal.
        q: Queries, (T, d_k).
        k: Keys, (S, d_k).
        v: Values, (S, d_v) with d_v = d_k.
        scores: Products q·k before any scaling, (T, S).
        scaled: Scores divided by √d_k and by the temperature, (T, S).
        attn_weights: Softmax of the scaled scores, (T, S). Rows sum to 1.
        weighted: Each value times its weight, (T, S, d_v).
        output: Sums of the weighted values, (T, d_v).
        temperature: Divisor of the scores beside √d_k; 1 is the paper's attention.
    """

    query_labels: list[str]
    key_labels: list[str]
    x_query: Tensor
    x_key: Tensor
    w_q: Tensor
    w_k: Tensor
    w_v: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    scores: Tensor
    scaled: Tensor
    attn_weights: Tensor
    weighted: Tensor
    output: Tensor
    temperature: float


class Edit(NamedTuple):
    """One number of one vector, replaced before anything is scored.

    Attributes:
        which: "q", "k" or "v".
        token: Position of the token; among the queries for "q", else among the keys.
        dimension: Which number of its vector.
        value: What stands there instead.
    """

    which: str
    token: int
    dimension: int
    value: float


class Movement(NamedTuple):
    """What differs between two lookups; 0 is exact where nothing moved.

    Attributes:
        weights: Change of every weight, (T, S).
        outputs: Change of every output, (T, d_v).
        weight_rows: Length of the change of each row of weights, (T,).
        output_rows: Length of the change of each output, (T,).
    """

    weights: Tensor
    outputs: Tensor
    weight_rows: Tensor
    output_rows: Tensor


class HardLookup(NamedTuple):
    """What a dictionary returns that knows only hits and misses.

    Attributes:
        best: For each query the keys of the highest score; more than one where tied.
        weights: All weight on the best key, shared evenly where tied, (T, S). It is
            the limit of the soft weights as the temperature falls to 0.
    """

    best: list[tuple[int, ...]]
    weights: Tensor


class TemperatureSweep(NamedTuple):
    """One query at many temperatures.

    Attributes:
        temperatures: What the scores were divided by beside √d_k, (P,).
        largest_weight: Largest of the weights, (P,).
        distance: Length of soft output minus hard output, (P,).
    """

    temperatures: Tensor
    largest_weight: Tensor
    distance: Tensor


def look_up(
    tokens: Sequence[str],
    *,
    queries: Sequence[str] | None = None,
    d_model: int,
    d_k: int,
    seed: int,
    temperature: float = 1.0,
    edit: Edit | None = None,
) -> Lookup:
    """Let words read words, and keep the matrix of every stage.

    ``softmax(q kᵀ / (√d_k · temperature)) v`` with ``q = x W_q, k = x W_k, v = x W_v``

    Args:
        tokens: S words that are read, 1 to ``MAX_TOKENS``.
        queries: T words that read; None means the same words (self-attention).
        d_model: Width of a word's vector, 1 to ``MAX_WIDTH``.
        d_k: Width of query, key and value, 1 to ``MAX_WIDTH``.
        seed: Draws the vectors of the words and the projections.
        temperature: Divisor of the scores beside √d_k, 0.01 to 100.
        edit: A number to replace after the projection; None replaces none.

    Raises:
        ValueError: If there are too few or too many words or a value is out of range.

    Reference:
        Vaswani et al., 2017, "Attention Is All You Need", section 3.2.1,
        arXiv:1706.03762.
    """
    readers = tokens if queries is None else queries
    require_int("len(tokens)", len(tokens), 1, MAX_TOKENS)
    require_int("len(queries)", len(readers), 1, MAX_TOKENS)
    require_int("d_model", d_model, 1, MAX_WIDTH)
    require_int("d_k", d_k, 1, MAX_WIDTH)
    temperature = _temperature(temperature)
    x_query, x_key = (_vectors(words, d_model, seed) for words in (readers, tokens))
    w_q, w_k, w_v = _projections(d_model, d_k, seed)
    q, k, v = _edited(
        {
            "q": _product(x_query, w_q),
            "k": _product(x_key, w_k),
            "v": _product(x_key, w_v),
        },
        edit,
    )
    scale = 1 / (math.sqrt(d_k) * temperature)
    attended = scaled_dot_product_attention(q, k, v, scale=scale)
    return Lookup(
        query_labels=token_labels(readers),
        key_labels=token_labels(tokens),
        x_query=x_query,
        x_key=x_key,
        w_q=w_q,
        w_k=w_k,
        w_v=w_v,
        q=q,
        k=k,
        v=v,
        scores=q @ k.T,  # (T, S)
        scaled=attended.scores,  # (T, S)
        attn_weights=attended.attn_weights,  # (T, S)
        weighted=attended.attn_weights[..., None] * v,  # (T, S, d_v)
        output=attended.output,  # (T, d_v)
        temperature=temperature,
    )


def movement(before: Lookup, after: Lookup) -> Movement:
    """Return how far each weight and each output moved between two lookups.

    ``after - before``. A new number in query i moves row i alone; in key j it moves
    column j of the scores and, through the softmax, every row; in value j it moves no
    weight and every output i by ``weight_ij`` times the change.

    Args:
        before: A lookup.
        after: The same words and widths, with a number edited.

    Raises:
        ValueError: If the two are of different shapes.
    """
    shapes = [(*x.attn_weights.shape, x.output.shape[1]) for x in (before, after)]
    if shapes[0] != shapes[1]:
        raise RefusedError(
            f"before and after must have the same (T, S, d_v), got {shapes[0]} and "
            f"{shapes[1]}"
        )
    weights = after.attn_weights - before.attn_weights
    outputs = after.output - before.output
    return Movement(weights, outputs, weights.norm(dim=1), outputs.norm(dim=1))


def hard_lookup(scores: Tensor) -> HardLookup:
    """Return the key that matches each query best, and nothing of the others.

    Args:
        scores: (T, S) with S at least 1, before the softmax; their scale is no matter.

    Raises:
        ValueError: If there is no key.
    """
    if scores.ndim != 2 or scores.shape[1] == 0:
        shape = tuple(scores.shape)
        raise RefusedError(f"scores {shape} must have shape (T, S) with a key to pick")
    is_best = scores >= scores.max(dim=1, keepdim=True).values - _TIE  # (T, S)
    best = [tuple(row.nonzero().flatten().tolist()) for row in is_best]
    return HardLookup(
        best, is_best / is_best.sum(dim=1, keepdim=True, dtype=scores.dtype)
    )


def temperature_sweep(
    seen: Lookup, query: int, temperatures: Sequence[float] = TEMPERATURES
) -> TemperatureSweep:
    """Return how hard the lookup of one query is at each temperature.

    Near 0 the largest weight is 1 and the output is the hard one; at large temperatures
    every key has the weight 1/S and the output is the mean of the values.

    Args:
        seen: A lookup; its own temperature plays no part.
        query: Which of its T queries.
        temperatures: P temperatures, each from 0.01 to 100.

    Raises:
        ValueError: If the query does not exist or a temperature is out of range.
    """
    require_int("query", query, 0, len(seen.q) - 1)
    divisors = torch.tensor(
        [_temperature(temperature) for temperature in temperatures], dtype=seen.q.dtype
    )
    # One query a temperature: dividing the query divides its scores.
    cooled = seen.q[query] / divisors[:, None]  # (P, d_k)
    soft = scaled_dot_product_attention(cooled, seen.k, seen.v)
    hard = hard_lookup(seen.scores[query : query + 1]).weights @ seen.v  # (1, d_v)
    largest = soft.attn_weights.max(dim=1).values
    return TemperatureSweep(divisors, largest, (soft.output - hard).norm(dim=1))


def influence_of_keys(seen: Lookup, query: int) -> Tensor:
    """Return how far the output of one query moves when each key is hidden from it.

    A weight says how much of a value goes into the output; it does not say what the
    output would be without it, since the other weights then share what is set free.

    Args:
        seen: A lookup.
        query: Which of its T queries.

    Returns:
        Distances, (S,). Hiding the only key leaves the output 0.

    Raises:
        ValueError: If the query does not exist.
    """
    require_int("query", query, 0, len(seen.q) - 1)
    num_keys = len(seen.k)
    readers = (seen.q[query] / seen.temperature).expand(num_keys, -1)  # (S, d_k)
    others = ~torch.eye(num_keys, dtype=torch.bool)  # row j hides key j
    without = scaled_dot_product_attention(readers, seen.k, seen.v, mask=others).output
    return (without - seen.output[query]).norm(dim=1)


def telling_edits(seen: Lookup, which: str) -> list[Edit]:
    """Return edits of one vector, first what as many rows as can be see.

    A query with a 0 in the edited dimension does not notice a new key, so dimensions
    are ordered by their zeros among the queries, and tokens from the last. The number
    grows by 1.

    Args:
        seen: The lookup to be edited.
        which: "q", "k" or "v".

    Raises:
        ValueError: If ``which`` is unknown.
    """
    vectors = getattr(seen, require_choice("which", which, VECTORS))
    zeros = (seen.q == 0).sum(dim=0)
    return [
        Edit(which, token, dimension, float(vectors[token, dimension]) + 1)
        for dimension in zeros.argsort(stable=True).tolist()
        for token in reversed(range(len(vectors)))
    ]


def _vectors(words: Sequence[str], d_model: int, seed: int) -> Tensor:
    return _to_decimals(token_embeddings(words, d_model, seed).double(), 1)


def _projections(d_model: int, d_k: int, seed: int) -> tuple[Tensor, ...]:
    drawn = torch.randn(
        3, d_model, d_k, generator=generator_from(seed), dtype=torch.float64
    )
    return _to_decimals(drawn / math.sqrt(d_model), 1).unbind()


def _to_decimals(numbers: Tensor, decimals: int) -> Tensor:
    return (10**decimals * numbers).round() / 10**decimals + 0.0  # never -0


def _product(x: Tensor, w: Tensor) -> Tensor:
    return _to_decimals(x @ w, 2)  # products of one decimal each have two


def _edited(vectors: dict[str, Tensor], edit: Edit | None) -> tuple[Tensor, ...]:
    """Return q, k and v, with the number that ``edit`` names replaced."""
    if edit is not None:
        which = require_choice("which", edit.which, VECTORS)
        matrix = vectors[which].clone()
        require_int("token", edit.token, 0, matrix.shape[0] - 1)
        require_int("dimension", edit.dimension, 0, matrix.shape[1] - 1)
        value = require_number("value", edit.value, -_MAX_VALUE, _MAX_VALUE)
        matrix[edit.token, edit.dimension] = value
        vectors = vectors | {which: matrix}
    return tuple(vectors.values())


def _temperature(value: float) -> float:
    return require_number("temperature", value, MIN_TEMPERATURE, MAX_TEMPERATURE)
