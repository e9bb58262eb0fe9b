"""The NaN lab: a fully masked row under each fill value and number type."""

import math
import re

import pytest
import torch

from core.precision import (
    CORE,
    DTYPES,
    FILLS,
    METHODS,
    core_outcome,
    fill_outcome,
    fully_masked_rows,
    padded_batch_sentence,
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_minus_infinity_turns_the_row_and_its_gradient_to_nan(
    dtype: str, method: str
) -> None:
    row = fill_outcome("-inf", dtype, method)
    assert row.kind == "nan"
    assert all(math.isnan(weight) for weight in row.attn_weights)
    assert all(math.isnan(slope) for slope in row.gradient)
    assert math.isnan(row.output)


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [
        ("finfo.min", "float32"),
        ("finfo.min", "float16"),
        ("finfo.min", "bfloat16"),
        ("-1e9", "float32"),
        ("-1e9", "bfloat16"),
        ("-1e4", "float32"),
        ("-1e4", "float16"),
        ("-1e4", "bfloat16"),
    ],
)
def test_a_finite_fill_gives_a_silent_uniform_row(fill: str, dtype: str) -> None:
    row = fill_outcome(fill, dtype)
    assert row.kind == "uniform"
    assert row.attn_weights == (0.25, 0.25, 0.25, 0.25)
    assert row.output == 2.5  # the mean of the values 1, 2, 3, 4
    # p_j (v_j - output), by hand
    assert row.gradient == (-0.375, -0.125, 0.125, 0.375)
    assert "weight 0.25 and the output is 2.5" in row.verdict


@pytest.mark.parametrize("method", METHODS)
def test_minus_one_billion_overflows_float16(method: str) -> None:
    row = fill_outcome("-1e9", "float16", method)
    assert row.kind == "overflow"
    assert row.stored == -math.inf
    assert math.isnan(row.output)
    assert "The lowest number of float16 is -65504" in row.verdict


def test_masked_fill_refuses_what_float16_cannot_hold_as_the_verdict_says() -> None:
    scores = torch.zeros(4, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="without overflow"):
        scores.masked_fill(scores == 0, -1e9)
    assert "masked_fill refuses -1e9" in fill_outcome("-1e9", "float16").verdict


def test_adding_ten_thousand_in_float32_leaves_the_masked_scores_in_force() -> None:
    row = fill_outcome("-1e4", "float32", "added")
    assert row.kind == "leak"
    unmasked = torch.tensor([1.0, 0.5, -0.5, 2.0]).softmax(0)
    torch.testing.assert_close(
        torch.tensor(row.attn_weights), unmasked, atol=1e-3, rtol=0
    )
    assert "0.05 to 0.60" in row.verdict


@pytest.mark.parametrize("fill", ["finfo.min", "-1e9"])
def test_adding_a_huge_number_swallows_the_scores_in_float32(fill: str) -> None:
    assert fill_outcome(fill, "float32", "added").kind == "uniform"


@pytest.mark.parametrize("dtype", DTYPES)
def test_core_gives_zeros_and_gradient_zero_in_every_type(dtype: str) -> None:
    row = core_outcome(dtype)
    assert row.kind == "zeros"
    assert row.attn_weights == (0, 0, 0, 0)
    assert row.output == 0
    assert row.gradient == (0, 0, 0, 0)
    assert row.stored is None
    assert "gradient 0: there is nothing to attend to" in row.verdict


@pytest.mark.parametrize("method", METHODS)
def test_every_fill_stands_beside_core_in_every_type(method: str) -> None:
    rows = fully_masked_rows(method)
    pairs = [(row.fill, row.dtype) for row in rows]
    assert pairs == [(fill, dtype) for dtype in DTYPES for fill in [*FILLS, CORE]]
    assert [row.kind == "zeros" for row in rows] == [row.fill == CORE for row in rows]
    for row in rows:
        assert row.verdict.endswith(".")
        assert len(row.gradient) == len(row.attn_weights) == 4


def test_unknown_names_are_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match=r"fill must be one of '-inf', 'finfo\.min'"):
        fill_outcome("-5", "float32")
    with pytest.raises(ValueError, match="dtype must be one of 'float32'"):
        fill_outcome("-inf", "float64")
    with pytest.raises(ValueError, match="dtype must be one of 'float32'"):
        core_outcome("int8")
    with pytest.raises(
        ValueError, match="method must be one of 'overwritten', 'added'"
    ):
        fully_masked_rows("multiplied")


def test_a_padded_batch_names_the_sequence_without_a_token():
    said = padded_batch_sentence([4, 0, 2])
    assert "4, 0, 2 real tokens, padded to 4." in said
    assert "Sequence 1 is all padding: its queries have nothing to attend to." in said
    assert said.count("all padding") == 1
    assert "nan" not in said.lower()


def test_the_other_sequences_of_a_padded_batch_give_what_they_give_alone():
    for seed in range(3):
        said = padded_batch_sentence([5, 0, 3, 1], seed=seed)
        rounding = re.search(r"give alone, to (\S+)\.$", said)
        assert rounding is None or float(rounding[1]) < 1e-6
        assert said.endswith("give alone.") or rounding


def test_a_batch_without_any_token_is_refused():
    with pytest.raises(ValueError, match=r"lengths \[0, 0\] must have one of at least"):
        padded_batch_sentence([0, 0])
    with pytest.raises(ValueError, match=r"lengths\[1\] \(-1\)"):
        padded_batch_sentence([1, -1])
