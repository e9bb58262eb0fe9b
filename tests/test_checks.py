"""What core refuses, and how: one kind of error, with a sentence."""

import ast
from pathlib import Path

import pytest
import torch

from core.checks import (
    MAX_SEED,
    RefusedError,
    require_choice,
    require_divisible,
    require_int,
    require_number,
)
from core.initial import generator_from

CORE = Path(__file__).parent.parent / "core"


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: require_int("n", 1.0, 0), r"n must be a whole number, got 1\.0"),
        (lambda: require_int("n", True, 0), "n must be a whole number, got True"),
        (lambda: require_int("n", -1, 0), r"n \(-1\) must be at least 0"),
        (lambda: require_int("n", 9, 0, 8), r"n \(9\) must be between 0 and 8"),
        (lambda: require_number("p", "1", 0), "p must be a number, got '1'"),
        (lambda: require_number("p", float("nan"), 0), "p must be finite, got nan"),
        (lambda: require_number("p", 2, 0, 1), r"p \(2\) must be between 0 and 1"),
        (lambda: require_choice("k", "c", ("a", "b")), "k must be one of 'a', 'b'"),
        (lambda: require_divisible("d", 5, "h", 3), r"d \(5\) must be divisible by h"),
    ],
)
def test_a_broken_rule_is_refused_with_name_rule_and_value(check, sentence) -> None:
    with pytest.raises(RefusedError, match=sentence):
        check()


def test_a_refusal_is_a_value_error() -> None:
    assert issubclass(RefusedError, ValueError)


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: path.stem)
def test_core_raises_no_value_error_that_pages_would_not_explain(path) -> None:
    raised = [
        node.exc.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    ]
    assert "ValueError" not in raised


def test_a_generator_gives_the_numbers_of_its_seed_and_no_others() -> None:
    before = torch.get_rng_state()
    expected = torch.randn(5, generator=torch.Generator().manual_seed(11))
    assert torch.equal(torch.randn(5, generator=generator_from(11)), expected)
    generator_from(MAX_SEED)
    assert torch.equal(torch.get_rng_state(), before)
    for seed in (-1, MAX_SEED + 1):
        with pytest.raises(RefusedError, match=rf"seed \({seed}\) must be between 0"):
            generator_from(seed)


@pytest.mark.parametrize(
    ("value", "high", "said"),
    [
        (1000001.0, 1e6, r"rate \(1000001\) must be between 0 and 1000000"),
        (0.9900001, 0.99, r"rate \(0.9900001\) must be between 0 and 0.99"),
        (10**400, 1.0, r"rate must be between 0 and 1.0, got a number of 401 digits"),
    ],
)
def test_a_number_just_out_of_range_is_not_rounded_into_it(value, high, said):
    with pytest.raises(ValueError, match=said):
        require_number("rate", value, 0, high)


def test_a_huge_whole_number_is_refused_in_a_short_sentence():
    with pytest.raises(ValueError, match=r"n must be at least 1, got a number of 5001"):
        require_int("n", -(10**5000), 1)
