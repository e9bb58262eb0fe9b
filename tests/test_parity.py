import math

import pytest
import torch

from core.parity import Parity, compare, tolerance_of


def test_the_largest_absolute_difference_of_each_result_is_given():
    ours = {"output": torch.tensor([1.0, 2.0]), "weights": torch.tensor([[0.5]])}
    theirs = {"output": torch.tensor([1.5, 1.75]), "weights": torch.tensor([[0.5]])}
    found = compare(ours, theirs, tolerance=0.1)
    assert found.differences == {"output": 0.5, "weights": 0.0}
    assert found.largest == 0.5
    assert not found.agrees
    assert compare(ours, theirs, tolerance=0.5).agrees


def test_a_nan_equals_nothing_not_even_a_nan():
    row = torch.tensor([1.0, math.nan])
    found = compare({"a": row, "b": row[:1]}, {"a": row, "b": row[:1]}, tolerance=1.0)
    assert math.isnan(found.differences["a"])
    assert math.isnan(found.largest)
    assert not found.agrees


def test_a_nan_is_not_lost_behind_a_larger_number():
    for differences in ({"a": 9.0, "b": math.nan}, {"a": math.nan, "b": 9.0}):
        assert math.isnan(Parity(differences, 10.0).largest)


def test_an_infinite_difference_is_no_agreement():
    one, huge = torch.ones(2), torch.tensor([1.0, math.inf])
    assert not compare({"a": one}, {"a": huge}, tolerance=1e30).agrees


@pytest.mark.parametrize(
    ("ours", "theirs"), [((3,), (2, 3)), ((2, 3), (3, 2)), ((1,), (5,)), ((0,), (0,))]
)
def test_unlike_shapes_and_nothing_at_all_are_refused(ours, theirs):
    with pytest.raises(ValueError, match="must have one shape, with at least one"):
        compare({"a": torch.zeros(ours)}, {"a": torch.zeros(theirs)}, tolerance=1.0)


def test_both_sides_need_the_same_results():
    one = torch.ones(1)
    with pytest.raises(ValueError, match=r"same results, got \['a'\] and \['b'\]"):
        compare({"a": one}, {"b": one}, tolerance=1.0)
    with pytest.raises(ValueError, match=r"got \[\] and \[\]"):
        compare({}, {}, tolerance=1.0)


def test_the_tolerance_follows_the_precision():
    assert tolerance_of(torch.float32) == 1e-6
    assert tolerance_of(torch.float64) == 1e-12
    with pytest.raises(ValueError, match=r"float32 or float64, got torch\.float16"):
        tolerance_of(torch.float16)
