"""Weight against influence: what an input moves, beside the weight it gets.

Three measures stand beside the attention weight of an input: what the answer loses
without it, what the slope of the answer says of it, and how long the vector is that it
hands to the readout. They need not agree with the weight, nor with one another.
"""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from core.attention import MultiHeadAttention, split_heads
from core.blocks import EncoderBlock
from core.checks import MAX_SEED, RefusedError, require_int
from core.initial import generator_from
from core.models import TransformerClassifier
from core.reading import logits_of
from core.threads import one_thread
from core.trained import TrainedModel, read_shipped

MAX_DRAWS = 100
_ROUNDED = 8  # last places of an answer that another batch size may move


class Influences(NamedTuple):
    """Weight and three measures of influence, over the T inputs, CLS left out.

    Attributes:
        weight: Weight that the readout gives each input, (T,).
        occlusion: Mean distance the logit moves where the input is replaced, (T,).
        gradient: Input times slope of the logit, with its sign, (T,).
        contribution: Length of the vector that the input hands to the readout, (T,).
        correlations: Name of each measure to its rank correlation with the weight; the
            gradient goes in by its size. None where there is no order to compare.
    """

    weight: Tensor
    occlusion: Tensor
    gradient: Tensor
    contribution: Tensor
    correlations: dict[str, float | None]


class Disagreement(NamedTuple):
    """Where to look for weight and influence that disagree.

    Attributes:
        trained: The model.
        sequence: Number of the test sequence.
        layer: Its layer, from 0.
        head: Its head, from 0.
    """

    trained: TrainedModel
    sequence: int
    layer: int
    head: int


def occlusion(model: nn.Module, x: Tensor, *, draws: int, seed: int) -> Tensor:
    """Return how far the logit moves where each input is replaced by noise.

    ``o_t = mean over draws of |f(x) - f(x with x_t = u)|``, u uniform on [-1, 1), the
    noise of the marker task. Each input has draws of its own, one from each of equally
    long parts of [-1, 1), so that few of them cover it. A distance no longer than
    rounding makes counts as 0.

    Args:
        model: Answers (B, T, 1) with logits (B, 1).
        x: One sequence, (T, 1).
        draws: Draws for each input, 1 to ``MAX_DRAWS``.
        seed: Decides the draws.

    Returns:
        Mean distances, (T,), all >= 0.

    Raises:
        ValueError: If a number is out of range or x is not one sequence.

    Reference:
        Zeiler and Fergus, 2014, "Visualizing and Understanding Convolutional Networks",
        section 4.2, arXiv:1311.2901.
    """
    _require_sequence(x)
    require_int("draws", draws, 1, MAX_DRAWS)
    require_int("seed", seed, 0, MAX_SEED)
    length, source = len(x), generator_from(seed)
    within = torch.rand(draws, length, generator=source, dtype=x.dtype)
    parts = torch.arange(draws)[:, None]
    noise = 2 * (parts + within) / draws - 1  # (draws, T)
    occluded = x[:, 0].repeat(draws, length, 1)  # (draws, T, T): which input, position
    occluded.diagonal(dim1=1, dim2=2).copy_(noise)
    answer = logits_of(model, x[None])
    moved = (logits_of(model, occluded.view(-1, length, 1)) - answer).abs()
    rounded = _ROUNDED * torch.finfo(x.dtype).eps * max(1.0, abs(answer.item()))
    moved[moved <= rounded] = 0
    return moved.view(draws, length).mean(dim=0)


def gradient_times_input(model: nn.Module, x: Tensor) -> Tensor:
    """Return each input times the slope of the logit in it, ``x_t ∂f/∂x_t``.

    For a logit that is linear in the inputs these are its summands.

    Args:
        model: Answers (B, T, 1) with logits (B, 1).
        x: One sequence, (T, 1).

    Returns:
        Products with their sign, (T,).

    Raises:
        ValueError: If x is not one sequence.

    Reference:
        Shrikumar et al., 2016, "Not Just a Black Box", arXiv:1605.01713.
    """
    _require_sequence(x)
    with torch.enable_grad():
        moved = x.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(model(moved[None]).sum(), moved)
    return (x * slope)[:, 0].detach()


def contributions(model: TransformerClassifier, x: Tensor) -> Tensor:
    """Return how long a vector each position hands to the readout in each head.

    ``‖a_j v_j W_O,h‖`` with weight a_j of the readout's row, value v_j with its bias,
    and the block W_O,h of the head. For the mean readout a_j is the mean over all
    queries: it is then the length of the mean vector.

    Args:
        model: A model that drops nothing.
        x: One sequence, (T, 1).

    Returns:
        Lengths, (L, H, S), S with the CLS token.

    Raises:
        ValueError: If x is not one sequence that the model reads.

    Reference:
        Kobayashi et al., 2020, "Attention is Not Only a Weight", arXiv:2004.10102.
    """
    _, vectors = _rows_and_vectors(model, x)
    return vectors.norm(dim=-1)


def rank_correlation(first: Tensor, second: Tensor) -> float | None:
    """Return Spearman's rank correlation of two lists of numbers.

    The correlation of their ranks: 1 where both rise together, -1 where one falls as
    the other rises. Equal numbers share the mean of their ranks.

    Args:
        first: Numbers, (N,).
        second: As many others, (N,).

    Returns:
        In [-1, 1], or None where one of them has a single value throughout.

    Raises:
        ValueError: If they are not two lists of one length.

    Reference:
        Spearman, 1904, "The Proof and Measurement of Association between Two Things",
        American Journal of Psychology 15.
    """
    if first.ndim != 1 or first.shape != second.shape:
        raise RefusedError(
            f"first {tuple(first.shape)} and second {tuple(second.shape)} must be two "
            "lists of one length"
        )
    a, b = (ranks - ranks.mean() for ranks in (_ranks(first), _ranks(second)))
    scale = (a.square().sum() * b.square().sum()).sqrt().item() if len(a) else 0.0
    return (a * b).sum().item() / scale if scale else None


@one_thread()
def influences(
    model: TransformerClassifier,
    x: Tensor,
    *,
    layer: int | None,
    head: int | None,
    draws: int,
    seed: int,
    moved: Tensor | None = None,
) -> Influences:
    """Return the weight of each input beside three measures of its influence.

    Weight and contribution belong to the chosen head; occlusion and gradient to the
    whole model. Over all heads of a layer the weight is their mean, and the
    contribution the length of the sum of their vectors, which is what they add to the
    readout. Over all layers both are means.

    Args:
        model: A model that drops nothing.
        x: One sequence, (T, 1).
        layer: A layer, from 0; None means all.
        head: A head, from 0; None means all.
        draws: Draws of the occlusion, 1 to ``MAX_DRAWS``.
        seed: Decides these draws.
        moved: The occlusion where it is known already, (T,); None works it out.

    Raises:
        ValueError: If a number is out of range or x is not one sequence.
    """
    layers = _chosen("layer", layer, model.config.num_layers)
    heads = _chosen("head", head, model.config.num_heads)
    rows, vectors = _rows_and_vectors(model, x)
    if moved is None:
        moved = occlusion(model, x, draws=draws, seed=seed)
    rows, vectors = rows[layers, heads], vectors[layers, heads]
    weight = rows.mean(dim=(0, 1))[-len(x) :]
    measures = {
        "occlusion": moved,
        "gradient": gradient_times_input(model, x),
        "contribution": vectors.sum(dim=1).norm(dim=-1).mean(dim=0)[-len(x) :],
    }
    correlations = {
        name: rank_correlation(weight, values.abs())
        for name, values in measures.items()
    }
    return Influences(weight, **measures, correlations=correlations)


def disagreement() -> Disagreement:
    """Return where a head of the shipped model looks most at what does not count.

    Searched were all heads of both layers over all test sequences, for the largest
    weight on an input other than the marker that leaves the marker less. It is found in
    the last layer, on a number of the other sign. The model answers right, and the
    logit hardly moves where that number is replaced. The measures disagree too: the
    logit moves most without the marker, yet its slope is close to 0 in every input, for
    the model is as sure as it can be.
    """
    return Disagreement(read_shipped("marker"), sequence=805, layer=1, head=1)


@torch.no_grad()
def _rows_and_vectors(model: TransformerClassifier, x: Tensor) -> tuple[Tensor, Tensor]:
    # Weights of the readout (L, H, S), and what each position hands to it,
    # (L, H, S, d_model).
    _require_sequence(x)
    tokens = model.tokens_of(x[None])
    mask = model.mask_of(tokens)
    read = model.config.positions_read or slice(None)
    rows, vectors = [], []
    for block in cast("list[EncoderBlock]", model.blocks):
        keys = block.attention_norm(tokens) if block.norm_first else tokens
        seen = block.attend(tokens, mask=mask)
        row = seen.attn_weights[0, :, read].mean(dim=1)  # (H, S)
        rows.append(row)
        vectors.append(row[..., None] * _projected_values(block.attention, keys[0]))
        tokens = seen.output
    return torch.stack(rows), torch.stack(vectors)


def _projected_values(attention: MultiHeadAttention, tokens: Tensor) -> Tensor:
    # v_j W_O,h, (H, S, d_model)
    values = attention.in_proj(tokens).chunk(3, dim=-1)[2]
    blocks = attention.out_proj.weight.unflatten(1, (attention.num_heads, -1))
    return split_heads(values, attention.num_heads) @ blocks.permute(1, 2, 0)


def _ranks(values: Tensor) -> Tensor:
    _, which, counts = values.unique(return_inverse=True, return_counts=True)
    return (counts.cumsum(0) - (counts - 1) / 2)[which].double()


def _chosen(name: str, value: int | None, size: int) -> slice:
    if value is None:
        return slice(None)
    require_int(name, value, 0, size - 1)
    return slice(value, value + 1)


def _require_sequence(x: Tensor) -> None:
    if x.ndim != 2 or x.shape[1] != 1 or len(x) < 1:
        raise RefusedError(
            f"x {tuple(x.shape)} must be one sequence of shape (length, 1) with "
            "length >= 1"
        )
