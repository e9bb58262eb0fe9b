"""The arithmetic of a cell: its Python gives the cell, its LaTeX says so rounded."""

import contextlib
import io
import random
import re

import pytest
import torch

from core.arithmetic import Cell, cell_arithmetic
from core.lookup import STAGES, VECTORS, Edit, look_up

POOL = [
    "the",
    "dog",
    "wet",
    "<b>",
    "$x$",
    "a\\b",
    "#",
    '"""',
    "naïve",
    "\u202ex",
    "\x00",
]


def run(program: str) -> float:
    """Run a program on its own; return the number it prints, which it also keeps."""
    names: dict = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, names)
    assert float(printed.getvalue()) == names["cell"]
    return names["cell"]


def cell_of(seen, stage, cell, vector):
    query, key, dimension = cell
    return float(
        {
            "project": getattr(seen, vector)[
                query if vector == "q" else key, dimension
            ],
            "score": seen.scores[query, key],
            "scale": seen.scaled[query, key],
            "softmax": seen.attn_weights[query, key],
            "weigh": seen.weighted[query, key, dimension],
            "sum": seen.output[query, dimension],
        }[stage]
    )


def random_lookup(chance: random.Random, **options):
    words = [chance.choice(POOL) for _ in range(chance.randint(1, 16))]
    readers = [chance.choice(POOL) for _ in range(chance.randint(1, 16))]
    return look_up(
        words,
        queries=chance.choice([None, readers]),
        d_model=chance.randint(1, 8),
        d_k=chance.randint(1, 8),
        seed=chance.randint(0, 10_000),
        **options,
    )


def random_cell(chance: random.Random, seen) -> Cell:
    return Cell(*(chance.randrange(size) for size in seen.weighted.shape))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("vector", VECTORS)
def test_the_python_of_any_cell_of_any_lookup_gives_the_cell(stage, vector):
    chance = random.Random(f"{stage} {vector}")
    for _ in range(40):
        seen = random_lookup(chance, temperature=chance.choice([0.01, 0.5, 1, 1, 100]))
        cell = random_cell(chance, seen)
        told = cell_arithmetic(seen, stage, cell, vector=vector)
        expected = cell_of(seen, stage, cell, vector)
        assert run(told.python) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert told.value == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("stage", STAGES[1:])
def test_the_arithmetic_follows_an_edit(stage):
    for which in VECTORS:
        edit = Edit(which, 0, 1, -2.5)
        seen = look_up(["a", "b"], d_model=3, d_k=2, seed=5, edit=edit)
        cell = Cell(0, 0, 1)
        told = cell_arithmetic(seen, stage, cell)
        expected = cell_of(seen, stage, cell, "q")
        assert run(told.python) == pytest.approx(expected, abs=1e-12)


def test_scores_too_large_for_an_exponential_are_shifted_and_still_right():
    seen = look_up(
        ["a", "b"], d_model=3, d_k=2, seed=0, temperature=0.01,
        edit=Edit("q", 0, 0, 1000.0),
    )  # fmt: skip
    assert seen.scaled.abs().max() > 1000  # exp of it is no float
    for key in (0, 1):
        told = cell_arithmetic(seen, "softmax", Cell(0, key, 0))
        assert run(told.python) == pytest.approx(float(seen.attn_weights[0, key]))
        assert r"- \max z" in told.latex


def test_every_product_of_a_score_stands_in_its_latex():
    seen = look_up(["dog", "street"], d_model=4, d_k=3, seed=0)
    told = cell_arithmetic(seen, "score", Cell(0, 1, 0))
    for left, right in zip(seen.q[0].tolist(), seen.k[1].tolist(), strict=True):
        shown = [f"({x:g})" if x < 0 else f"{x:g}" for x in (left, right)]
        assert rf"{shown[0]} \cdot {shown[1]}" in told.latex
    assert f"{float(seen.scores[0, 1]):.3f}".rstrip("0") in told.latex


def test_every_exponential_and_the_row_sum_stand_in_the_latex_of_a_weight():
    seen = look_up(list("abcdefg"), d_model=4, d_k=3, seed=0)
    told = cell_arithmetic(seen, "softmax", Cell(2, 5, 0))
    row = seen.scaled[2]
    for score in row.tolist():
        shown = [
            f"{x:.3f}".rstrip("0").rstrip(".")
            for x in (score, torch.tensor(score).exp())
        ]
        assert rf"e^{{{shown[0]}}} \approx {shown[1]}" in told.latex
    total = f"{float(row.exp().sum()):.3f}".rstrip("0")
    assert rf"{{{total}}}" in told.latex
    assert told.latex.count("e^{z_{2,5}}") == 1


def test_every_weighted_value_stands_in_the_latex_of_an_output():
    seen = look_up(list("abcdefg"), d_model=4, d_k=3, seed=0)
    told = cell_arithmetic(seen, "sum", Cell(2, 0, 1))
    for number in seen.weighted[2, :, 1].tolist():
        if abs(number) >= 0.0005:
            assert f"{number:.3f}".rstrip("0") in told.latex


def test_equality_is_claimed_only_where_the_shown_numbers_are_exact():
    seen = look_up(["dog", "street"], d_model=4, d_k=3, seed=0)
    projected = cell_arithmetic(seen, "project", Cell(0, 0, 0)).latex
    assert r"\approx" not in projected  # one decimal times one decimal
    weighed = cell_arithmetic(seen, "weigh", Cell(0, 0, 0)).latex
    assert weighed.count(r"\approx") == 2


@pytest.mark.parametrize("stage", STAGES)
def test_long_sums_are_broken_and_environments_and_brackets_are_closed(stage):
    chance = random.Random(stage)
    for _ in range(40):
        seen = random_lookup(chance, temperature=chance.choice([0.01, 1, 100]))
        latex = cell_arithmetic(seen, stage, random_cell(chance, seen)).latex
        assert latex.startswith("\\begin{aligned}")
        assert latex.endswith("\\end{aligned}")
        assert latex.count("{") == latex.count("}")
        for line in latex.splitlines()[1:-1]:
            assert line.count("&") == 1
            assert line.count(r"\cdot") <= 15
            assert not re.search(r"nan|inf|\de[+-]?\d", line)


def test_no_word_of_the_reader_gets_into_the_latex():
    seen = look_up(["\\end{aligned}", "$"], d_model=3, d_k=2, seed=0)
    for stage in STAGES:
        told = cell_arithmetic(seen, stage, Cell(0, 1, 0))
        assert "$" not in told.latex
        assert told.latex.count("\\end{aligned}") == 1


def test_negative_factors_stand_in_brackets_and_tiny_numbers_never_read_0():
    seen = look_up(["a", "b"], d_model=3, d_k=2, seed=0, edit=Edit("v", 0, 0, -1e-7))
    latex = cell_arithmetic(seen, "weigh", Cell(0, 0, 0)).latex
    assert r"(-1.00 \cdot 10^{-7})" in latex
    assert not re.search(r"\\cdot -", latex)


def test_each_stage_says_its_step_in_words():
    seen = look_up(["dog", "street"], d_model=4, d_k=3, seed=0)
    said = {
        stage: cell_arithmetic(seen, stage, Cell(0, 1, 2)).sentence for stage in STAGES
    }
    assert said["project"].startswith('query of "dog", dimension 2: 4 products give ')
    assert 'query "dog" and key "street": 3 products give the score' in said["score"]
    assert "divided by √3 is" in said["scale"]
    assert "of a row sum of" in said["softmax"]
    assert 'the value of "street" in dimension 2' in said["weigh"]
    assert "2 weighted values sum to" in said["sum"]
    warm = look_up(["dog", "street"], d_model=4, d_k=3, seed=0, temperature=2)
    scaled = cell_arithmetic(warm, "scale", Cell(0, 1, 2))
    assert "divided by √3 and by the temperature 2 is" in scaled.sentence
    assert r"\sqrt{3} \cdot 2" in scaled.latex


def test_a_cell_that_does_not_exist_is_refused():
    seen = look_up(["a", "b"], queries=["c"], d_model=3, d_k=2, seed=0)
    for cell, sentence in [
        (Cell(1, 0, 0), r"query \(1\) must be between 0 and 0"),
        (Cell(0, 2, 0), r"key \(2\) must be between 0 and 1"),
        (Cell(0, 0, 2), r"dimension \(2\) must be between 0 and 1"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            cell_arithmetic(seen, "score", cell)
    with pytest.raises(ValueError, match="stage must be one of 'project', 'score'"):
        cell_arithmetic(seen, "guess", Cell(0, 0, 0))
    with pytest.raises(ValueError, match="vector must be one of 'q', 'k', 'v'"):
        cell_arithmetic(seen, "project", Cell(0, 0, 0), vector="x")
