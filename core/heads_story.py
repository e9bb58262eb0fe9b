"""What the pictures of multi-head attention say in numbers, one sentence a picture."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from core import captions
from core.attention import MultiHeadAttention
from core.charts.palette import nice_limit
from core.head_parity import GRADIENTS, OUTPUT, WEIGHTS, compared_rows
from core.heads import (
    HeadCost,
    HeadDifferences,
    HeadsSeen,
    head_costs,
    head_differences,
    head_shares,
)
from core.mistakes import STAGES, MistakeSeen
from core.parity import Parity, tolerance_of

_FEW_HEADS = 8  # more have no room for the word above their tile
_ROUNDING = 1e-5  # row sums that lie closer to 1 than this are 1


class Step(NamedTuple):
    """One step through the layer: what it does, what leaves it, what it has learned."""

    does: str
    gives: str
    shape: str
    parameters: int


def reads_sentence(seen: HeadsSeen) -> str:
    """Say what each head reads and what it writes."""
    num_heads, _, d_k = seen.head_outputs.shape
    width = seen.concatenated.shape[1]
    heads = "The one head reads" if num_heads == 1 else "Every head reads"
    return f"{heads} all {width} numbers of a token and writes {d_k} of them."


def split_line(seen: HeadsSeen) -> str:
    """Return the widths on the way of one token through the heads and back."""
    num_heads, _, d_k = seen.head_outputs.shape
    width = seen.concatenated.shape[1]
    heads = (
        "the one head reads" if num_heads == 1 else f"each of {num_heads} heads reads"
    )
    return (
        f"One token: {width} numbers → {heads} all {width}, writes {d_k} → "
        f"concatenate: {num_heads} × {d_k} = {width} → W_O → {width}"
    )


def differences_sentence(found: HeadDifferences) -> str:
    """Say how differently the heads of a layer spread their weight."""
    if len(found.pairwise) < 2:
        return "One head: there is no other to differ from."
    if found.furthest is None:
        return "No query has two keys to choose from: all heads are equal by necessity."
    first, second = found.furthest
    most = captions.percent(float(found.pairwise[first, second]))
    pairs = math.comb(len(found.pairwise), 2)
    if pairs == 1:
        return f"The two heads place {most} of their weight on different keys."
    return (
        f"Two heads place {captions.percent(found.mean)} of their weight on different "
        f"keys, on average over {pairs} pairs; heads {first + 1} and {second + 1} "
        f"most, {most}."
    )


def large_map(seen: HeadsSeen, head: int | None) -> tuple[Tensor, str]:
    """Return the map drawn large and its name: of one head, or the mean of all.

    Args:
        seen: The layer at work.
        head: Number of the head, from 1; None means the mean.
    """
    if head is None:
        return seen.weights.mean(dim=0), f"Mean of all {len(seen.weights)} heads"
    return seen.weights[head - 1], f"Head {head} of {len(seen.weights)}"


def heads_sentence(seen: HeadsSeen) -> str:
    """Say how differently the heads of a layer at work spread their weight."""
    return differences_sentence(head_differences(seen.weights, seen.mask))


def map_sentence(name: str, weights: Tensor, seen: HeadsSeen) -> str:
    """Say which query that has a choice puts most weight on one key of a map.

    A query with a single key gives it everything by necessity, and says nothing.

    Args:
        name: Whose map it is: of one head, or the mean.
        weights: The map, (T, T).
        seen: The layer at work.
    """
    labels, mask = seen.labels, seen.mask
    open_keys = torch.full((len(labels),), len(labels)) if mask is None else mask.sum(1)
    bound = [f'"{labels[t]}"' for t in torch.nonzero(open_keys == 1).flatten().tolist()]
    rows = torch.nonzero(open_keys > 1).flatten()
    said = [f"Query {query} has one key: all its weight." for query in bound]
    if len(rows):
        chosen = [labels[row] for row in rows.tolist()]
        top = captions.map_sentence(weights[rows], chosen, labels)
        said.insert(
            0, f"{name}, {top.replace('of the map', 'where there is a choice')}."
        )
    return " ".join(said) or f"{name}: no query has anything to attend to."


def steps_of(seen: HeadsSeen) -> list[Step]:
    """Return the steps of the layer with the shapes and parameters of its tensors."""
    layer, (num_heads, seq_len, d_k) = seen.layer, seen.head_outputs.shape
    width = seen.embeddings.shape[1]
    split, shape = (num_heads, seq_len, d_k), (seq_len, width)
    return [
        Step("project", "q, k, v", f"3 × {shape}", _learned(layer.in_proj)),
        Step("split", "q, k, v of each head", f"3 × {split}", 0),
        Step("attend", "weights", _shape(seen.weights), 0),
        Step("sum values", "what each head writes", _shape(seen.head_outputs), 0),
        Step("concatenate", "heads side by side", _shape(seen.concatenated), 0),
        Step("project by W_O", "output", _shape(seen.output), _learned(layer.out_proj)),
    ]


def outputs_of_heads(seen: HeadsSeen) -> dict[str, Tensor]:
    """Return what each head writes, (T, d_k), under a name that has room above it."""
    named = "head {}" if len(seen.head_outputs) <= _FEW_HEADS else "{}"
    return {
        named.format(number): written
        for number, written in enumerate(seen.head_outputs, start=1)
    }


def merge_sentence(seen: HeadsSeen) -> str:
    """Say what concatenation keeps apart and the output projection mixes."""
    num_heads, _, d_k = seen.head_outputs.shape
    width = seen.output.shape[1]
    shares = head_shares(seen)
    bias = seen.layer.out_proj.bias
    total = shares.sum(dim=0) + (0.0 if bias is None else bias.detach())
    gap = float((total - seen.output).abs().max())
    return (
        f"{reads_sentence(seen)} Side by side they are {num_heads} × {d_k} = {width}; "
        f"W_O ({width} × {width}) then makes every number from all of them. "
        f"The shares of the heads sum to the output, to {gap:.0e}."
    )


def value_limit(*matrices: Tensor) -> float:
    """Return one limit of a colour scale that holds the numbers of all matrices."""
    return nice_limit(max(float(matrix.abs().max()) for matrix in matrices))


def compared_sentence(seen: HeadsSeen) -> str:
    """Say which rows are compared with PyTorch's: those of queries that have a key."""
    rows = compared_rows(len(seen.tokens), seen.mask)
    left_out = int((~rows).sum())
    if not left_out:
        return f"All {len(rows)} queries are compared."
    return (
        f"{int(rows.sum())} of {len(rows)} queries are compared: {left_out} may attend "
        "to no key, where PyTorch's layer answers NaN and core answers 0."
    )


def initial_sentence(layer: MultiHeadAttention) -> str:
    """Say how widely the packed projection is spread, beside separate projections."""
    width = layer.d_model
    measured = float(layer.in_proj.weight.detach().std())
    packed, separate = math.sqrt(2 / (4 * width)), math.sqrt(2 / (2 * width))
    return (
        f"The weights are copied: two fresh layers agree in nothing. Spread of in_proj "
        f"here {measured:.4f}; Xavier expects {packed:.4f} of one packed matrix, as in "
        f"PyTorch, and {separate:.4f} of three separate ones."
    )


def parity_rows(parity: Parity) -> list[tuple[str, str]]:
    """Return each thing that was compared with its largest difference."""
    return _distances(parity.differences)


def costs_sentence(costs: Sequence[HeadCost], seq_len: int) -> str:
    """Say what more heads cost and what they do not."""
    parameters = sorted({cost.parameters for cost in costs})
    flops = sorted({cost.flops for cost in costs})
    least, most = costs[0], costs[-1]
    return (
        f"From {least.num_heads} to {most.num_heads} heads: parameters "
        f"{_as_one(parameters)}, operations {_as_one(flops)} at {seq_len} tokens. The "
        f"maps alone grow, from {least.map_cells:,} weights to {most.map_cells:,}."
    )


def growth_of_parameters(d_model: int, before: int, after: int) -> float:
    """Return by which factor the parameters grow from one number of heads to another.

    Args:
        d_model: Width of both layers.
        before: Number of heads of the first; must divide d_model.
        after: Number of heads of the second; must divide d_model.
    """
    first, second = head_costs(d_model, 1, (before, after))
    return second.parameters / first.parameters


def products_sentence(d_model: int, seq_len: int) -> str:
    """Say what the matrix products of a layer add up to, whatever the heads are.

    Four projections of T × d_model by d_model × d_model, then scores and weighted sums,
    H times T × T by d_k each; a product of n × m by m × p takes 2 n m p operations.

    Args:
        d_model: Width of the tokens.
        seq_len: Number of tokens T.
    """
    projections = 4 * (2 * seq_len * d_model * d_model)
    attention = 2 * (2 * seq_len * seq_len * d_model)
    return (
        f"{projections + attention:,} = {projections:,} in four projections + "
        f"{attention:,} in scores and sums, where H · d_k = d_model for every H."
    )


def stage_rows(found: MistakeSeen) -> list[tuple[str, str]]:
    """Return each stage, then each gradient, with its distance from the right one."""
    stages = {stage: found.stages[stage] for stage in STAGES}
    gradients = {name: found.parity.differences[name] for name in GRADIENTS}
    return _distances(stages | gradients)


def sums_sentence(row_sums: Tensor) -> str:
    """Say between which numbers the row sums of one map lie.

    Args:
        row_sums: Of one head, (T,).
    """
    none, whole = row_sums.abs() < _ROUNDING, (row_sums - 1).abs() < _ROUNDING
    if whole.all():
        return "every row sums to 1"
    if (none | whole).all():
        return captions.sums_sentence(none)
    return f"rows sum to {float(row_sums.min()):.2f} up to {float(row_sums.max()):.2f}"


def mistake_sentence(found: MistakeSeen, seen: HeadsSeen, head: int) -> str:
    """Say what a mistake does to the rows of a head, to the weights and the output.

    Args:
        found: The mistake at work.
        seen: The right layer at work.
        head: Number of the head whose map is drawn, from 1.
    """
    sums = sums_sentence(found.row_sums[head - 1])
    leaks = _leaks_sentence(found.weights[head - 1], seen.mask)
    return f"Head {head}: {sums}.{leaks} {effect_sentence(found)}"


def effect_sentence(found: MistakeSeen) -> str:
    """Say what a mistake does to the weights, the output and the gradients."""
    off, allowed = found.parity.differences, found.parity.tolerance
    if found.parity.agrees:
        if found.stages[STAGES[0]] <= allowed:
            return "Here this mistake changes nothing."
        return (
            "The scores differ, the weights and the output do not: each row has one "
            "key or equal keys."
        )
    if off[WEIGHTS] <= allowed and off[OUTPUT] <= allowed:
        most = captions.distance(found.parity.largest)
        return f"Against PyTorch only the gradients differ, by up to {most}."
    weights, output = (
        f"{verb} off by up to {captions.distance(off[name])}"
        if off[name] > allowed
        else agrees
        for name, verb, agrees in ((WEIGHTS, "are", "agree"), (OUTPUT, "is", "agrees"))
    )
    return f"Against PyTorch the weights {weights}, the output {output}."


def _leaks_sentence(weights: Tensor, mask: Tensor | None) -> str:
    """Say how many framed cells hold weight on a key that should be hidden."""
    if mask is None:
        return ""
    leaked = weights[~mask]
    leaked = leaked[leaked != 0]
    if not len(leaked):
        return ""
    most = captions.figure(float(leaked.max()))
    return f" Framed: {len(leaked)} keys that should be hidden get up to {most}."


def found_sentence(found: MistakeSeen, seen: HeadsSeen) -> str:
    """Say which stages are right and by how much the others are off.

    Args:
        found: The mistake at work.
        seen: The right layer at work.
    """
    first = first_wrong_stage(found, seen)
    if first is None:
        return effect_sentence(found)
    place = STAGES.index(first)
    off = ", ".join(
        f"{stage} by up to {captions.distance(found.stages[stage])}"
        for stage in STAGES[place:]
    )
    right = ", ".join(STAGES[:place])
    return f"Right: {right}. Off: {off}." if right else f"Off: {off}."


def first_wrong_stage(found: MistakeSeen, seen: HeadsSeen) -> str | None:
    """Return the first stage that lies apart from the right layer's; None: none does.

    The scores of a wrong scale differ here even where a softmax over one key hides it.
    """
    allowed = tolerance_of(seen.embeddings.dtype)
    return next((s for s in STAGES if found.stages[s] > allowed), None)


def _distances(apart: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(name, captions.distance(size)) for name, size in apart.items()]


def _as_one(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"always {numbers[0]:,}"
    return f"{numbers[0]:,} to {numbers[-1]:,}"


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _learned(part: nn.Module) -> int:
    return sum(parameter.numel() for parameter in part.parameters())
