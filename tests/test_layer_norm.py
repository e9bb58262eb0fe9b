"""Layer normalisation by hand, against PyTorch, and where other readings end up."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from core.layer_norm import layer_norm_by_hand, misread_layer_norms, norm_a_row

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def normal(*shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_a_row_worked_by_hand():
    row = torch.tensor([1.0, 3.0, 5.0, 7.0]).double()
    steps = layer_norm_by_hand(row, torch.full((4,), 2.0), torch.full((4,), 1.0), 4.0)
    assert steps.mean == 4
    assert steps.variance == 5  # (9 + 1 + 1 + 9) / 4, not / 3
    assert steps.root == 3  # √(5 + 4): eps inside the root
    assert_close(steps.normalised, torch.tensor([-1, -1 / 3, 1 / 3, 1]).double())
    assert_close(steps.output, torch.tensor([-1, 1 / 3, 5 / 3, 3]).double())


@pytest.mark.parametrize("d_model", [1, 2, 7, 32])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_it_equals_the_layer_norm_of_pytorch(d_model, eps):
    row, weight, bias = normal(3, d_model)
    layer = nn.LayerNorm(d_model, eps=eps, dtype=torch.float64)
    layer.load_state_dict({"weight": weight, "bias": bias})
    found = layer_norm_by_hand(row, weight, bias, eps).output
    assert_close(found, layer(row).detach(), **EXACT)


def test_the_normalised_row_has_mean_0_and_a_variance_just_below_1():
    found = norm_a_row(8, 0.1, 0)
    normalised, variance = found.steps.normalised, float(found.steps.variance)
    assert float(normalised.mean()) == pytest.approx(0, abs=1e-12)
    assert float(normalised.var(correction=0)) == pytest.approx(
        variance / (variance + 0.1)
    )


def test_misreadings_miss_by_the_factor_that_the_formula_says():
    row, weight, bias = normal(3, 5)
    eps, right = 0.1, layer_norm_by_hand(row, weight, bias, 0.1)
    unbiased, outside = misread_layer_norms(row, weight, bias, eps).values()
    variance = float(right.variance)
    for found, divisor in (
        (unbiased, math.sqrt(variance * 5 / 4 + eps)),
        (outside, math.sqrt(variance) + eps),
    ):
        factor = float(right.root) / divisor
        assert_close(found - bias, (right.output - bias) * factor, **EXACT)


def test_the_shown_row_agrees_with_pytorch_and_its_misreadings_do_not():
    found = norm_a_row(8, 1e-5, 0)
    assert found.parity.agrees
    assert found.parity.tolerance == 1e-12
    assert min(found.misreadings.values()) > 1e-7
    source = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(3, 8, generator=source, dtype=torch.float64)[1:]
    right = F.layer_norm(found.row, (8,), weight, bias, 1e-5)
    others = misread_layer_norms(found.row, weight, bias, 1e-5)
    assert found.misreadings == {
        name: pytest.approx(float((other - right).abs().max()), rel=1e-9)
        for name, other in others.items()
    }
    before = torch.get_rng_state()
    assert torch.equal(norm_a_row(8, 1e-5, 0).row, found.row)
    assert torch.equal(torch.get_rng_state(), before)


def test_without_eps_its_place_plays_no_part():
    unbiased, outside = norm_a_row(8, 0.0, 0).misreadings.values()
    assert unbiased > 1e-3
    assert outside < 1e-12


def test_the_table_holds_the_row_after_each_step():
    found = norm_a_row(4, 1e-5, 2)
    labels, numbers = found.table
    assert labels == ["x", "x − mean", "÷ root", "· weight + bias"]
    assert torch.equal(numbers[0], found.row)
    assert_close(numbers[1].sum(), torch.tensor(0.0).double(), **EXACT)
    assert torch.equal(numbers[3], found.steps.output)


@pytest.mark.parametrize(
    ("shapes", "eps", "rule"),
    [
        (((3,), (4,), (3,)), 0.1, r"row \(3,\), weight \(4,\) and bias \(3,\) must be"),
        (((2, 3),) * 3, 0.1, "must be vectors of one length"),
        (((0,),) * 3, 0.1, "of at least 1"),
        (((3,),) * 3, -1.0, r"eps \(-1\) must be between 0 and 10"),
    ],
)
def test_rows_that_do_not_fit_are_refused(shapes, eps, rule):
    with pytest.raises(ValueError, match=rule):
        layer_norm_by_hand(*(torch.zeros(shape) for shape in shapes), eps)


def test_a_row_of_one_number_has_no_unbiased_variance():
    one = torch.ones(1)
    with pytest.raises(ValueError, match=r"d_model \(1\) must be at least 2"):
        misread_layer_norms(one, one, one)
