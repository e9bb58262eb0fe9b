"""What a model still knows with some of its heads switched off."""

import copy
from typing import cast

import torch
from torch import Tensor

from core.blocks import EncoderBlock
from core.checks import RefusedError
from core.models import TransformerClassifier
from core.reading import NUM_SEQUENCES, logits_of, marker_sequences
from core.threads import one_thread


def without_heads(
    model: TransformerClassifier, off: frozenset[tuple[int, int]]
) -> TransformerClassifier:
    """Return a copy of a model in which some heads hand on nothing.

    ``Concat(heads) W_O = Σ_h head_h W_O,h``: the block ``W_O,h`` of a head that is off
    is 0, so what it puts out is multiplied by 0. Its bias, the shortcut and the rest of
    the model stay as they are; nothing is trained again.

    Args:
        model: The model; it is left as it is.
        off: Pairs (layer, head), both from 0.

    Raises:
        ValueError: If the model has no such head.

    Reference:
        Michel, Levy and Neubig, 2019, "Are Sixteen Heads Really Better than One?",
        arXiv:1905.10650.
    """
    changed = copy.deepcopy(model)
    blocks = cast("list[EncoderBlock]", changed.blocks)
    for layer, head in sorted(off):
        _require_head(model, layer, head)
        weight = blocks[layer].attention.out_proj.weight.data
        weight.unflatten(1, (model.config.num_heads, -1))[:, head] = 0
    return changed


@one_thread()
def accuracy_without(
    model: TransformerClassifier,
    off: frozenset[tuple[int, int]],
    *,
    count: int = NUM_SEQUENCES,
) -> float:
    """Return the test accuracy of a model with some heads switched off.

    Args:
        model: A model of the marker task that drops nothing.
        off: Pairs (layer, head), both from 0, as in ``without_heads``.
        count: Test sequences to answer, 1 to ``NUM_SEQUENCES``.

    Returns:
        Share of right answers, in [0, 1].

    Raises:
        ValueError: If the model has no such head, or a number is out of range.
    """
    inputs, targets = marker_sequences(model.config, count)
    right = (logits_of(without_heads(model, off), inputs) > 0) == (targets > 0)
    return right.sum().item() / count


def single_ablations(model: TransformerClassifier, *, count: int) -> Tensor:
    """Return the test accuracy with one head off at a time, (L, H).

    Args:
        model: A model of the marker task that drops nothing.
        count: Test sequences to answer, 1 to ``NUM_SEQUENCES``.

    Raises:
        ValueError: If the number is out of range.
    """
    layers, heads = range(model.config.num_layers), range(model.config.num_heads)
    return torch.tensor(
        [
            [accuracy_without(model, frozenset({(i, h)}), count=count) for h in heads]
            for i in layers
        ]
    )


def layers_off(model: TransformerClassifier, *, count: int) -> Tensor:
    """Return the test accuracy with all heads of one layer off at a time, (L,).

    Takes what ``single_ablations`` takes.

    Raises:
        ValueError: As in ``single_ablations``.
    """
    heads = range(model.config.num_heads)
    return torch.tensor(
        [
            accuracy_without(model, frozenset((i, h) for h in heads), count=count)
            for i in range(model.config.num_layers)
        ]
    )


def _require_head(model: TransformerClassifier, layer: int, head: int) -> None:
    layers, heads = model.config.num_layers, model.config.num_heads
    if not (0 <= layer < layers and 0 <= head < heads):
        raise RefusedError(
            f"off must name layers below num_layers ({layers}) and heads below "
            f"num_heads ({heads}), got layer {layer}, head {head}"
        )
