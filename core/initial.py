"""Initial weights, drawn from a generator that the caller owns."""

import math

import torch
from torch import nn

from core.checks import MAX_SEED, require_int


def generator_from(seed: int) -> torch.Generator:
    """Return a fresh CPU generator of the numbers that belong to ``seed``.

    Raises:
        ValueError: If the seed is not a whole number from 0 to ``MAX_SEED``.
    """
    return torch.Generator().manual_seed(require_int("seed", seed, 0, MAX_SEED))


def seeded(generator: torch.Generator | None) -> torch.Generator:
    """Return ``generator``, or a fresh CPU generator seeded 0 where it is None."""
    return torch.Generator().manual_seed(0) if generator is None else generator


def linear(
    in_features: int,
    out_features: int,
    *,
    bias: bool = True,
    generator: torch.Generator | None = None,
) -> nn.Linear:
    """Return an ``nn.Linear`` with PyTorch's default distribution of weights.

    Weight and bias are uniform on ``±1/√in_features``. Unlike the constructor of
    ``nn.Linear`` this leaves the global generator alone.

    Args:
        in_features: Width of the input.
        out_features: Width of the output.
        bias: Whether to add a learned bias.
        generator: Source of the numbers; None means a fresh one seeded 0.
    """
    layer = nn.Linear(in_features, out_features, bias=bias, device="meta")
    layer = layer.to_empty(device="cpu")
    bound = 1 / math.sqrt(in_features) if in_features else 0.0
    source = seeded(generator)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-bound, bound, generator=source)
    return layer
