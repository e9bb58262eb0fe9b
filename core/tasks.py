"""Toy tasks: data whose right answer, and whose difficulty, are known exactly."""

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from core.checks import require_choice, require_int
from core.initial import generator_from


def _uniform(*shape: int, generator: Generator) -> Tensor:
    return torch.rand(*shape, generator=generator) * 2 - 1


NOISES: dict[str, Callable[..., Tensor]] = {"uniform": _uniform, "normal": torch.randn}


def marker_task(
    num_samples: int,
    seq_len: int,
    *,
    seed: int,
    position: int = 0,
    noise: str = "uniform",
) -> tuple[Tensor, Tensor]:
    """Return sequences of noise in which one marker, -1 or +1, decides the class.

    The noise is uniform on [-1, 1), or normal with mean 0 and deviation 1. The marker
    stands at ``position``, and the target is 1 where it is positive. The rest of a
    sequence says nothing about its class, so a model solves the task only by finding
    the one position that counts.

    Args:
        num_samples: Number of sequences N.
        seq_len: Length T of each sequence.
        seed: The same seed gives the same data to the last bit.
        position: Where the marker stands, from 0 to ``seq_len - 1``. Noise and markers
            do not depend on it.
        noise: ``"uniform"`` or ``"normal"``.

    Returns:
        Inputs (N, T, 1) and targets (N, 1), both float32.

    Raises:
        ValueError: If a number is out of range, or the noise is unknown.
    """
    require_int("num_samples", num_samples, 0)
    require_int("seq_len", seq_len, 1)
    require_int("position", position, 0, seq_len - 1)
    require_choice("noise", noise, NOISES)
    generator = generator_from(seed)
    inputs = NOISES[noise](num_samples, seq_len, 1, generator=generator)
    targets = torch.randint(0, 2, (num_samples, 1), generator=generator).float()
    inputs[:, position] = 2 * targets - 1
    return inputs, targets
