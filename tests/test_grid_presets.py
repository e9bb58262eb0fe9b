"""The grids of the bench: their cells, the words on them, what is refused."""

import pytest

from core.grid_cell import Cell
from core.grid_presets import (
    FACTORS,
    MAX_CELLS,
    PRESETS,
    cell_words,
    cells_of,
    check_size,
    short_words,
)
from tests.tiny_grid import BASE


def test_the_first_grid_has_the_twelve_cells_of_what_carries_position():
    cells = PRESETS["order"].cells
    assert len(set(cells)) == 12
    assert {cell.positional for cell in cells} == {"sinusoidal", "none"}
    assert [cell.readout for cell in cells[:3]] == ["mean", "last", "first"]


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_a_preset_varies_its_factors_and_nothing_else(preset):
    cells = preset.cells
    assert 5 <= len(cells) <= MAX_CELLS
    for name in Cell.__dataclass_fields__:
        values = {getattr(cell, name) for cell in cells}
        if name in preset.factors:
            assert values == set(preset.levels[name])
        else:
            assert values == {getattr(preset.base, name)}
    names = [cell_words(cell, preset.factors) for cell in cells]
    assert len(set(names)) == len(names)
    assert set(preset.factors) <= set(FACTORS)


def test_the_cells_of_a_preset_are_made_once():
    assert PRESETS["order"].cells is PRESETS["order"].cells


def test_cells_that_differ_in_what_their_model_has_not_are_one():
    levels = {"model": ("transformer", "rnn"), "causal": (False, True)}
    cells = cells_of(BASE, levels)
    assert [(cell.model, cell.causal) for cell in cells] == [
        ("transformer", False),
        ("transformer", True),
        ("rnn", False),
    ]
    assert cell_words(cells[2], tuple(levels)) == "rnn"
    assert short_words(cells[2], "causal") == "–"


def test_a_level_is_told_in_words_that_stand_alone():
    cell = Cell(positional="none", causal=True, readout="last", norm="post")
    assert (
        cell_words(cell, ("positional", "causal", "readout", "norm", "num_heads"))
        == "no positions, causal mask, readout last, post-norm, heads 4"
    )
    assert short_words(Cell(dropout=0.5), "dropout") == "0.5"


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"colour": (1,)}, "factor must be one of 'model'"),
        ({"num_heads": ()}, "heads needs at least one level"),
        ({"num_heads": (4, 5)}, r"d_model \(8\) must be divisible by num_heads \(5\)"),
    ],
)
def test_a_grid_that_cannot_be_run_is_refused(levels, words):
    with pytest.raises(ValueError, match=words):
        cells_of(BASE, levels)


def test_a_grid_too_large_is_refused_with_its_numbers():
    levels = {"num_heads": range(5), "readout": range(4)}
    with pytest.raises(ValueError, match="5 × 4 levels make 20 cells; at most 16"):
        check_size(levels, 1)
    with pytest.raises(ValueError, match="12 cells with 6 seeds make 72 runs; at most"):
        check_size({"num_heads": range(12)}, 6)
    with pytest.raises(ValueError, match="seeds must be a whole number"):
        check_size({}, 1.5)
    check_size({"num_heads": range(4), "readout": range(4)}, 4)
