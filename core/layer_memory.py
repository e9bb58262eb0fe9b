"""What a layer has to keep: all scores of attention, all states of a recurrence."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.attention import MultiHeadAttention
from core.checks import RefusedError, require_int
from core.growth import Curve
from core.initial import generator_from
from core.recurrent import initial_weights, torch_layer

MAX_BYTES = 2**29  # of scores that are really made
_FLOAT_BYTES = 4


class LayerBytes(NamedTuple):
    """Bytes of one sequence against its length.

    Attributes:
        scores: Of the scores of an attention layer, all heads.
        states: Of the hidden states of a recurrent layer.
    """

    scores: Curve
    states: Curve


def score_bytes(seq_len: int, num_heads: int) -> int:
    """Return the bytes of the scores of one sequence, ``heads · n² · 4``."""
    return num_heads * seq_len**2 * _FLOAT_BYTES


def state_bytes(seq_len: int, width: int) -> int:
    """Return the bytes of all hidden states of one sequence, ``n · d · 4``."""
    return seq_len * width * _FLOAT_BYTES


def worked_bytes(lengths: Sequence[int], *, num_heads: int, width: int) -> LayerBytes:
    """Return what the formulas give at several lengths.

    Args:
        lengths: Numbers of tokens n.
        num_heads: Number of heads.
        width: Width d of the hidden states.
    """
    return LayerBytes(
        Curve(tuple(lengths), tuple(float(score_bytes(n, num_heads)) for n in lengths)),
        Curve(tuple(lengths), tuple(float(state_bytes(n, width)) for n in lengths)),
    )


def real_bytes(lengths: Sequence[int], *, num_heads: int, width: int) -> LayerBytes:
    """Return what layers really make at several lengths, read off their tensors.

    The scores are those of the explained path, ``MultiHeadAttention.attend``; the
    states those of a plain recurrent layer.

    Args:
        lengths: Numbers of tokens n, each at least 1.
        num_heads: Number of heads; must divide the width.
        width: Width d of both layers.

    Raises:
        ValueError: If scores would need more than 512 MiB.
    """
    for seq_len in lengths:
        _check_size(seq_len, num_heads)
    source = generator_from(0)
    layer = MultiHeadAttention(width, num_heads, generator=source)
    weights = initial_weights(
        "rnn", input_size=width, hidden_size=width, generator=source
    )
    recurrent = torch_layer("rnn", weights)
    scores, states = [], []
    with torch.inference_mode():
        for seq_len in lengths:
            x = torch.randn(1, seq_len, width, generator=source)
            scores.append(_bytes_of(layer.attend(x, x, x).scores))
            states.append(_bytes_of(recurrent(x)[0]))
    return LayerBytes(
        Curve(tuple(lengths), tuple(scores)), Curve(tuple(lengths), tuple(states))
    )


def _bytes_of(tensor: Tensor) -> float:
    return float(tensor.numel() * tensor.element_size())


def _check_size(seq_len: int, num_heads: int) -> None:
    require_int("seq_len", seq_len, 1)
    needed = score_bytes(seq_len, num_heads)
    if needed > MAX_BYTES:
        raise RefusedError(
            f"seq_len ({seq_len}) and num_heads ({num_heads}) make {needed:,} bytes of "
            f"scores; at most {MAX_BYTES:,} are made"
        )
