"""Layer normalisation of one row of numbers, worked by hand."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from core.checks import RefusedError, require_int, require_number
from core.initial import generator_from
from core.parity import Parity, compare, tolerance_of

MAX_WIDTH = 512
MAX_EPS = 10.0
EPS_OUTSIDE = "eps outside the root"
_SHIFT, _SPREAD = 0.5, 2.0  # of the row that is shown: neither 0 nor 1


class LayerNormSteps(NamedTuple):
    """The steps of one row, in order.

    Attributes:
        mean: Mean of the row, ().
        variance: Mean squared distance from it, divided by d_model: biased, ().
        root: ``√(variance + eps)``, ().
        normalised: ``(x - mean) / root``, (d_model,). Its mean is 0 and its variance
            ``variance / (variance + eps)``, just below 1.
        output: ``normalised · weight + bias``, (d_model,).
    """

    mean: Tensor
    variance: Tensor
    root: Tensor
    normalised: Tensor
    output: Tensor


class StepTable(NamedTuple):
    """The row after each step, one below the other, (steps, d_model), with labels."""

    labels: list[str]
    numbers: Tensor


class NormedRow(NamedTuple):
    """One random row, its steps, and how far other readings of the formula end up.

    Attributes:
        row: The numbers that go in, (d_model,).
        steps: The steps by hand.
        parity: By hand against ``torch.nn.functional.layer_norm``.
        misreadings: Reading -> its largest distance from PyTorch's output.
    """

    row: Tensor
    steps: LayerNormSteps
    parity: Parity
    misreadings: dict[str, float]

    @property
    def table(self) -> StepTable:
        """The row as it comes, centred, normalised, scaled and shifted."""
        steps = self.steps
        by_label = {
            "x": self.row,
            "x − mean": self.row - steps.mean,
            "÷ root": steps.normalised,
            "· weight + bias": steps.output,
        }
        return StepTable(list(by_label), torch.stack(list(by_label.values())))


def layer_norm_by_hand(
    row: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5
) -> LayerNormSteps:
    """Normalise one row, step by step.

    ``LN(x) = (x - mean(x)) / √(var(x) + eps) · weight + bias``, with the biased
    variance ``var(x) = Σ (x_i - mean(x))² / d_model`` and eps inside the root.

    Args:
        row: Numbers of one token, (d_model,).
        weight: Learned scale, (d_model,).
        bias: Learned shift, (d_model,).
        eps: Keeps the root above 0.

    Returns:
        Every step, from the mean to the output.

    Raises:
        ValueError: If the three are not vectors of one length, or eps is out of range.

    Reference:
        Ba, Kiros and Hinton, 2016, "Layer Normalization", arXiv:1607.06450.
    """
    _check(row, weight, bias, eps)
    mean = row.sum() / len(row)
    variance = ((row - mean) ** 2).sum() / len(row)
    root = (variance + eps).sqrt()
    normalised = (row - mean) / root
    return LayerNormSteps(mean, variance, root, normalised, normalised * weight + bias)


def misread_layer_norms(
    row: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5
) -> dict[str, Tensor]:
    """Return the output under two other readings of the formula.

    Args:
        row: Numbers of one token, (d_model,), at least 2: of one number the unbiased
            variance is 0 / 0.
        weight: Learned scale, (d_model,).
        bias: Learned shift, (d_model,).
        eps: Keeps the divisor above 0.

    Raises:
        ValueError: As in ``layer_norm_by_hand``, or if the row has one number.
    """
    steps = layer_norm_by_hand(row, weight, bias, eps)
    require_int("d_model", len(row), 2)
    unbiased = steps.variance * len(row) / (len(row) - 1)
    divisors = {
        "the variance ÷ (d_model − 1)": (unbiased + eps).sqrt(),
        EPS_OUTSIDE: steps.variance.sqrt() + eps,
    }
    return {
        name: (row - steps.mean) / divisor * weight + bias
        for name, divisor in divisors.items()
    }


def norm_a_row(d_model: int, eps: float, seed: int) -> NormedRow:
    """Work one random row by hand and hold it against PyTorch, in float64.

    Weight and bias are drawn too: those of a fresh layer, 1 and 0, would hide whether
    they are used.

    Args:
        d_model: Width of the row, 2 to ``MAX_WIDTH``.
        eps: Keeps the root above 0, at most ``MAX_EPS``.
        seed: Seed of row, weight and bias.

    Raises:
        ValueError: If a number is out of range.
    """
    require_int("d_model", d_model, 2, MAX_WIDTH)
    shape, source = (3, d_model), generator_from(seed)
    drawn = torch.randn(shape, generator=source, dtype=torch.float64)
    row, weight, bias = drawn[0] * _SPREAD + _SHIFT, drawn[1], drawn[2]
    steps = layer_norm_by_hand(row, weight, bias, eps)
    theirs = F.layer_norm(row, (d_model,), weight, bias, eps)
    parity = compare(
        {"output": steps.output},
        {"output": theirs},
        tolerance=tolerance_of(torch.float64),
    )
    misread = misread_layer_norms(row, weight, bias, eps)
    far = {name: float((out - theirs).abs().max()) for name, out in misread.items()}
    return NormedRow(row, steps, parity, far)


def _check(row: Tensor, weight: Tensor, bias: Tensor, eps: float) -> None:
    if row.ndim != 1 or not len(row) or not row.shape == weight.shape == bias.shape:
        raise RefusedError(
            f"row {tuple(row.shape)}, weight {tuple(weight.shape)} and bias "
            f"{tuple(bias.shape)} must be vectors of one length of at least 1"
        )
    require_number("eps", eps, 0, MAX_EPS)
