"""How far two computations of the same thing lie apart: measured, never asserted."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from core.checks import RefusedError

TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-12}


class Parity(NamedTuple):
    """The largest differences between our results and a reference's.

    Attributes:
        differences: What was compared to its largest absolute difference; nan where
            one of the two holds a nan, which equals nothing.
        tolerance: The largest difference that still counts as equal.
    """

    differences: dict[str, float]
    tolerance: float

    @property
    def largest(self) -> float:
        """The largest difference of all; nan where any of them is."""
        values = list(self.differences.values())
        return math.nan if any(map(math.isnan, values)) else max(values)

    @property
    def agrees(self) -> bool:
        """Whether every difference is a number within the tolerance."""
        return self.largest <= self.tolerance  # never true of nan


def compare(
    ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], *, tolerance: float
) -> Parity:
    """Return the largest absolute difference of each pair of results.

    Args:
        ours: Name of each result to what this project computes.
        theirs: The same names, from the reference.
        tolerance: The largest difference that still counts as equal.

    Raises:
        ValueError: If there is nothing to compare, or names or shapes differ: unlike
            shapes would broadcast and compare something else.
    """
    if not ours or ours.keys() != theirs.keys():
        raise RefusedError(
            f"both sides need the same results, got {sorted(ours)} and {sorted(theirs)}"
        )
    for name, found in ours.items():
        if found.shape != theirs[name].shape or not found.numel():
            raise RefusedError(
                f"{name} {tuple(found.shape)} and {tuple(theirs[name].shape)} must "
                "have one shape, with at least one number"
            )
    differences = {
        name: float((found - theirs[name]).abs().max()) for name, found in ours.items()
    }
    return Parity(differences, tolerance)


def tolerance_of(dtype: torch.dtype) -> float:
    """Return how far equal results may lie apart in a precision.

    Args:
        dtype: ``torch.float32`` or ``torch.float64``.

    Raises:
        ValueError: If it is another one.
    """
    if dtype not in TOLERANCES:
        raise RefusedError(f"dtype must be float32 or float64, got {dtype}")
    return TOLERANCES[dtype]
