"""Classic mistakes in a copy of multi-head attention: one broken step each.

A layer is put together by a recipe, and a mistake is the right recipe with a single
entry changed. So what a picture shows can come from that entry alone.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from core.attention import (
    AttentionOutput,
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
)
from core.checks import RefusedError, require_choice, require_int
from core.head_parity import parity_with_torch, results_of_torch
from core.heads import HeadsSeen
from core.initial import generator_from
from core.parity import Parity, compare, tolerance_of

MAX_CASES = 24
STAGES = ("scores", "weights", "heads", "concatenated", "output")
_KEY, _VALUE = 1, 2  # places in the packed projection


class Stages(NamedTuple):
    """A layer at work on one batch, in the order in which it computes.

    Attributes:
        scores: Before mask and softmax, (B, H, T, T).
        weights: After the softmax, (B, H, T, T).
        heads: Weighted sums of the values, (B, H, T, d_k).
        concatenated: The heads side by side, (B, T, d_model).
        output: After the output projection, (B, T, d_model).
    """

    scores: Tensor
    weights: Tensor
    heads: Tensor
    concatenated: Tensor
    output: Tensor


class Recipe(NamedTuple):
    """How a layer is put together; the defaults are right.

    Attributes:
        attend: Takes q, k, v, mask and scale: scores, softmax, weighted sum.
        values_from: Which third of the packed projection makes the values.
        scaled_by: Takes d_model and d_k; what scores are divided by the root of.
        allowed: Takes the mask, True = may attend; the mask that is used.
        merge: Puts the heads side by side.
        project: Whether the output projection follows.
    """

    attend: Callable[..., AttentionOutput] = scaled_dot_product_attention
    values_from: int = _VALUE
    scaled_by: Callable[[int, int], int] = lambda d_model, d_k: d_k
    allowed: Callable[[Tensor], Tensor] = lambda mask: mask
    merge: Callable[[Tensor], Tensor] = merge_heads
    project: bool = True


class MistakeSeen(NamedTuple):
    """What one mistake does to the attention of a sequence.

    Attributes:
        weights: One map a head, (H, T, T).
        row_sums: What the weights of each query sum to, (H, T).
        stages: Stage to the largest difference from the right layer there; a mistake
            shows first at the stage where it was made.
        parity: The broken layer beside PyTorch's.
    """

    weights: Tensor
    row_sums: Tensor
    stages: dict[str, float]
    parity: Parity


def softmax_over_queries(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> AttentionOutput:
    """Attend with the softmax over the queries: columns sum to 1, rows need not.

    Takes what ``scaled_dot_product_attention`` takes.
    """
    turned = None if mask is None else mask.mT
    seen = scaled_dot_product_attention(key, query, query, mask=turned, scale=scale)
    weights = seen.attn_weights.mT
    return AttentionOutput(weights @ value, weights, seen.scores.mT)


def merge_without_transpose(x: Tensor) -> Tensor:
    """Read (..., H, T, d_k) as (..., T, d_model) where it lies: tokens get mixed."""
    num_heads, seq_len, d_k = x.shape[-3:]
    return x.flatten(-3).unflatten(-1, (seq_len, num_heads * d_k))


RIGHT = Recipe()
MISTAKES: dict[str, Recipe] = {
    "softmax over the wrong axis": Recipe(attend=softmax_over_queries),
    "heads merged without the transpose": Recipe(merge=merge_without_transpose),
    "values through the key projection": Recipe(values_from=_KEY),
    "scaled by √d_model": Recipe(scaled_by=lambda d_model, d_k: d_model),
    "output projection left out": Recipe(project=False),
    "mask inverted": Recipe(allowed=torch.logical_not),
}


class MistakenAttention(MultiHeadAttention):
    """A copy of a layer of self-attention, put together by a recipe of its own."""

    def __init__(self, layer: MultiHeadAttention, recipe: Recipe) -> None:
        """Copy the weights of ``layer``; the recipe says what is done with them."""
        bias = layer.in_proj.bias is not None
        super().__init__(layer.d_model, layer.num_heads, bias=bias)
        self.to(layer.in_proj.weight)
        self.load_state_dict(layer.state_dict())
        self.recipe = recipe

    def stages(self, x: Tensor, mask: Tensor | None = None) -> Stages:
        """Return every stage of self-attention over ``x``, (B, T, d_model).

        Args:
            x: Tokens that read and are read.
            mask: Boolean, (T, T), True = may attend; None means every key is open.
        """
        recipe, width = self.recipe, self.d_model
        parts = self._project_and_split(x, x, x)
        scale = 1 / math.sqrt(recipe.scaled_by(width, width // self.num_heads))
        used = None if mask is None else recipe.allowed(mask)
        seen = recipe.attend(
            parts[0], parts[_KEY], parts[recipe.values_from], mask=used, scale=scale
        )
        concatenated = recipe.merge(seen.output)  # (B, T, d_model)
        output = self.out_proj(concatenated) if recipe.project else concatenated
        return Stages(seen.scores, seen.attn_weights, seen.output, concatenated, output)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
    ) -> Tensor:
        """Return the output alone; a broken layer has no fast path."""
        return self.attend(query, key, value, mask=mask).output

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
    ) -> AttentionOutput:
        """Return output, weights and scores of self-attention, as the recipe has it.

        Raises:
            ValueError: If query, key and value are not one tensor.
        """
        if not (query is key is value):
            raise RefusedError("query, key and value must be one: self-attention")
        stages = self.stages(query, mask)
        return AttentionOutput(stages.output, stages.weights, stages.scores)


def see_mistake(
    seen: HeadsSeen, name: str, *, theirs: Mapping[str, Tensor] | None = None
) -> MistakeSeen:
    """Put a mistake into a copy of the layer and compare with the right one.

    Args:
        seen: The right layer at work.
        name: Name in ``MISTAKES``.
        theirs: What PyTorch's layer gives, from ``results_of_torch``, where known.

    Raises:
        ValueError: If the name is unknown, or no query has a key.
    """
    require_choice("name", name, MISTAKES)
    broken = MistakenAttention(seen.layer, MISTAKES[name])
    right = MistakenAttention(seen.layer, RIGHT)
    x = seen.embeddings
    with torch.no_grad():
        found, expected = (
            layer.stages(x[None], seen.mask)._asdict() for layer in (broken, right)
        )
    weights = found["weights"][0]
    return MistakeSeen(
        weights=weights,
        row_sums=weights.sum(dim=-1),
        stages=compare(found, expected, tolerance=tolerance_of(x.dtype)).differences,
        parity=parity_with_torch(broken, x, seen.mask, theirs=theirs),
    )


def see_mistakes(seen: HeadsSeen) -> dict[str, MistakeSeen]:
    """Put each mistake into a copy of the layer; return what each of them does.

    Raises:
        ValueError: If no query has a key.
    """
    theirs = results_of_torch(seen.layer, seen.embeddings, seen.mask)
    return {name: see_mistake(seen, name, theirs=theirs) for name in MISTAKES}


def mistakes_that_show(found: Mapping[str, MistakeSeen]) -> list[str]:
    """Return the mistakes that turn the badge red.

    With one head there is nothing to transpose and √d_model is √d_k; without a mask
    there is none to invert; one token has but one way to spread its weight.
    """
    return [name for name, seen in found.items() if not seen.parity.agrees]


def mistake_of_case(case: int, names: list[str]) -> str:
    """Return the mistake of a case of the hunt: each comes once before any comes again.

    Args:
        case: Number of the case, 1 to ``MAX_CASES``.
        names: Mistakes to choose from, at least one.

    Raises:
        ValueError: If ``case`` is out of range or there is nothing to choose from.
    """
    require_int("case", case, 1, MAX_CASES)
    if not names:
        raise RefusedError("no mistake shows: no query has a key to attend to")
    turn, place = divmod(case - 1, len(names))
    order = torch.randperm(len(names), generator=generator_from(turn))
    return names[int(order[place])]
