"""The arithmetic of a cell: its Python gives the cell, its LaTeX says so rounded."""

import contextlib
import io
import math
import random
import re

import pytest

from core.arithmetic import Cell, cell_arithmetic, shown_number
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


NUMBER = r"(-?\d+(?:\.\d+)?)(?: \\cdot 10\^\{(-?\d+)\})?"


def number(found: tuple[str, str]) -> float:
    """Return what a number of the LaTeX says: its digits, and a power of ten if any."""
    return float(found[0]) * 10.0 ** int(found[1] or 0)


def rounds_to(value: float, shown: float) -> bool:
    """Whether a number is shown with three decimals, or three figures if small."""
    return abs(value - shown) <= max(0.0051 * min(abs(value), 0.1), 1e-300) or (
        abs(value) >= 1e5 and abs(value / shown - 1) < 0.0051
    )


def random_cells(stage: str):
    chance = random.Random(f"latex {stage}")
    for _ in range(120):
        seen = random_lookup(chance, temperature=chance.choice([0.5, 1, 1, 100]))
        cell, vector = random_cell(chance, seen), chance.choice(VECTORS)
        yield seen, cell, vector, cell_arithmetic(seen, stage, cell, vector=vector)


@pytest.mark.parametrize("stage", STAGES)
def test_the_latex_ends_with_the_cell(stage):
    for seen, cell, vector, told in random_cells(stage):
        last = told.latex.splitlines()[-2]
        found = re.findall(NUMBER, last)[-1]
        assert rounds_to(cell_of(seen, stage, cell, vector), number(found)), last


def test_every_exponential_follows_from_the_exponent_that_is_shown():
    for seen, cell, _, told in random_cells("softmax"):
        pairs = re.findall(rf"e\^\{{([^{{}}z]+)\}} \\approx {NUMBER}", told.latex)
        assert len(pairs) == len(seen.key_labels)
        for exponent, *shown in pairs:
            wrong = abs(math.exp(float(exponent)) - number(shown))
            places = len(shown[0].partition(".")[2])
            last = int(shown[1]) - places if shown[1] else -max(places, 3)
            assert wrong <= 0.5 * 10.0**last + 1e-12, told.latex
        fraction = rf"\\frac\{{{NUMBER}\}}\{{{NUMBER}\}}"
        (found,) = re.findall(fraction, told.latex.splitlines()[-2])
        top, below = found[:2], found[2:]
        own = f"e^{{z_{{{cell.query},{cell.key}}}"
        assert told.latex.splitlines()[1].count(own) == 1
        row = seen.scaled[cell.query].exp()
        assert rounds_to(float(row[cell.key]), number(top))
        assert rounds_to(float(row.sum()), number(below))


def test_a_score_is_divided_by_the_root_and_the_temperature():
    for seen, _, _, told in random_cells("scale"):
        d_k = seen.q.shape[1]
        assert rf"{{\sqrt{{{d_k}}}" in told.latex
        below = re.findall(rf"\\frac\{{.*\}}\{{{NUMBER}\}}", told.latex)[-1]
        assert rounds_to(math.sqrt(d_k) * seen.temperature, number(below))


def test_a_projection_names_its_matrix_and_multiplies_its_column():
    for seen, cell, vector, told in random_cells("project"):
        assert rf"(W_{vector})_{{m,{cell.dimension}}}" in told.latex
        row = cell.query if vector == "q" else cell.key
        assert told.latex.splitlines()[1].startswith(f"{vector}_{{{row},")
        x = (seen.x_query if vector == "q" else seen.x_key)[row].tolist()
        column = getattr(seen, f"w_{vector}")[:, cell.dimension].tolist()
        for left, right in zip(x, column, strict=True):
            shown = [f"({n:g})" if n < 0 else f"{n:g}" for n in (left, right)]
            assert rf"{shown[0]} \cdot {shown[1]}" in told.latex


def test_no_line_begins_with_a_comma():
    seen = look_up(list("abcdefghijk"), d_model=4, d_k=3, seed=0)
    latex = cell_arithmetic(seen, "softmax", Cell(0, 1, 2)).latex
    assert r",\;  \\" in latex
    assert not re.search(r"&\\quad (\{\})?,", latex)


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
        shown = f"{math.exp(score):.3f}".rstrip("0").rstrip(".")
        assert rf"}} \approx {shown}" in told.latex
    total = f"{float(row.exp().sum()):.3f}".rstrip("0")
    assert rf"{{{total}}}" in told.latex
    assert told.latex.count("e^{z_{2,5}}") == 1


def test_every_weighted_value_stands_in_the_latex_of_an_output():
    seen = look_up(list("abcdefg"), d_model=4, d_k=3, seed=0)
    told = cell_arithmetic(seen, "sum", Cell(2, 0, 1))
    for number in seen.weighted[2, :, 1].tolist():
        shown = shown_number(number).replace("−", "-")
        assert abs(number) < 0.0005 or shown in told.latex


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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (6.4114, "6.411"), (-1.25, "−1.25"), (0.012345, "0.0123"), (0.05, "0.05"),
        (-0.00098765, "−0.000988"), (0.0, "0"), (-0.0, "0"), (1e-7, "1.00e−07"),
    ],
)  # fmt: skip
def test_a_small_number_keeps_three_figures(value, shown):
    assert shown_number(value) == shown


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
