"""The grid of what carries the order: its table, its runs, and what it says."""

from dataclasses import replace

import pytest

from core.grid_cell import Result
from core.grid_table import read_shipped
from core.order_grid import (
    CELLS,
    PRESET,
    RECIPE,
    Cell,
    CellResult,
    cell_results,
    grid_sentences,
    noise_sentence,
    read_order,
    recipe_sentence,
)
from core.threads import one_thread
from core.training import Trainer

PLAIN_MEAN = Cell("none", False, "mean")
MASKED_MEAN = Cell("none", True, "mean")
PLAIN_LAST = Cell("none", False, "last")
MASKED_LAST = Cell("none", True, "last")
PLAIN_FIRST = Cell("none", False, "first")
BLIND = ("none", False)
TOLERANCE = 0.05  # other machines round otherwise, and a run may end elsewhere


def made_up() -> dict[Cell, tuple[float, ...]]:
    """Return a table in which every cell has learned, with every seed."""
    return dict.fromkeys(CELLS, (1.0, 1.0))


def said(table: dict[Cell, tuple[float, ...]]) -> list[str]:
    return grid_sentences([CellResult(*entry) for entry in table.items()])


# The table


def test_the_grid_has_twelve_cells_that_differ_from_the_recipe_in_nothing_else():
    assert len(set(CELLS)) == 12
    for cell in CELLS:
        config = cell.config(7)
        assert (config.positional, config.causal, config.readout) == cell
        same = {name: getattr(RECIPE, name) for name in Cell._fields}
        same["eval_every"] = RECIPE.config(7).eval_every
        assert replace(config, **same) == RECIPE.config(7)


def test_the_marker_page_reads_the_table_of_the_bench():
    shown = read_order()
    runs = [(run.cell, run.seed) for run in shown.results]
    seeds = range(PRESET.num_seeds)
    assert runs == [(cell, seed) for cell in PRESET.cells for seed in seeds]
    assert {run.steps for run in shown.results} == {RECIPE.max_steps} == {400}
    assert shown.origin.startswith("Made by python -m core.experiments order --seeds 3")
    assert [result.cell for result in cell_results(shown.results)] == list(CELLS)


def test_a_cell_without_order_comes_out_alike_wherever_the_marker_stands():
    (stated,) = (
        run
        for run in read_order().results
        if (Cell.of(run.cell), run.seed) == (PLAIN_LAST, 0)
    )
    assert stated.accuracy < 0.95
    assert stated.moved == pytest.approx(stated.accuracy, abs=0.01)
    trainer = Trainer(PLAIN_LAST.config(0))
    with one_thread():  # as the table was made
        while not trainer.finished:
            trainer.step()
    assert trainer.evaluate() == pytest.approx(stated.accuracy, abs=TOLERANCE)


# What it says


def run_of(cell: Cell, seed: int, accuracy: float) -> Result:
    made = replace(RECIPE, **cell._asdict())
    return Result(made, seed, 9, 0.5, accuracy, 0.5)


def test_the_seeds_of_a_cell_are_put_together():
    runs = [run_of(PLAIN_MEAN, 0, 0.5), run_of(PLAIN_LAST, 0, 0.9)]
    runs.append(run_of(PLAIN_MEAN, 1, 0.75))
    first, second = cell_results(runs)
    assert first == CellResult(PLAIN_MEAN, (0.5, 0.75))
    assert first.mean == 0.625
    assert second.cell == PLAIN_LAST


def test_one_weak_seed_is_enough_not_to_have_learned():
    assert CellResult(PLAIN_MEAN, (1.0, 0.95)).learns
    assert not CellResult(PLAIN_MEAN, (1.0, 0.94)).learns
    assert CellResult(PLAIN_MEAN, (0.4, 0.6)).stays_near_half
    assert not CellResult(PLAIN_MEAN, (0.5, 0.61)).stays_near_half


def test_the_shipped_grid_says_what_its_numbers_show():
    reach, leak, hiding, size = grid_sentences(cell_results(read_order().results))
    assert reach == (
        "9 of 12 cells reach 95 % or more with every seed; none stays near half (40 to "
        "60 %)."
    )
    assert leak == (
        "Without positions a causal mask leaks order to the mean: 66.9 % without the "
        "mask, 97.8 % with it; the last position, which sees every token either way, "
        "stays at 88.9 %."
    )
    assert hiding.endswith("hides the ablation: 100.0 % in every row.")
    assert "yet mean 66.9 % and last 88.9 %: the marker is -1 or +1" in size


def test_the_two_noises_are_compared_by_the_numbers_of_their_tables():
    found = {}
    for name in ("order", "order_normal"):
        cells = cell_results(read_shipped(name).results)
        found[name] = {r.cell.readout: r.mean for r in cells if r.cell[:2] == BLIND}
    uniform, normal = found["order"], found["order_normal"]
    assert noise_sentence() == (
        "Without positions and mask only the marker's size can tell: in uniform noise, "
        f"which lies between -1 and +1, mean {100 * uniform['mean']:.1f} % and last "
        f"{100 * uniform['last']:.1f} %; in normal noise, which reaches beyond, mean "
        f"{100 * normal['mean']:.1f} % and last {100 * normal['last']:.1f} %."
    )


def test_cells_near_half_are_named():
    table = made_up() | {PLAIN_MEAN: (0.5, 0.55), MASKED_LAST: (0.45, 0.5)}
    assert said(table)[0] == (
        "10 of 12 cells reach 95 % or more with every seed; 2 stay near half (40 to 60 "
        "%): no positions, no mask, mean; no positions, causal mask, last."
    )


def test_where_a_mask_lifts_nothing_no_leak_is_claimed():
    for plain, masked in (((0.9, 0.7), (0.8, 0.95)), ((1.0, 1.0), (1.0, 1.0))):
        leak = said(made_up() | {PLAIN_MEAN: plain, MASKED_MEAN: masked})[1]
        assert "these seeds show no leak of order" in leak
        assert "leaks order" not in leak
    lifted = said(made_up() | {PLAIN_MEAN: (0.5, 0.52), MASKED_MEAN: (0.53, 0.9)})[1]
    assert "a causal mask leaks order to the mean: 51.0 % without" in lifted


def test_a_last_position_that_the_mask_changes_gets_both_its_numbers():
    leak = said(made_up() | {PLAIN_LAST: (0.5, 0.5), MASKED_LAST: (0.75, 0.5)})[1]
    assert leak.endswith("last: 50.0 % without it, 62.5 % with it.")


def test_where_position_0_fails_nothing_is_called_hidden():
    hiding = said(made_up() | {PLAIN_FIRST: (1.0, 0.5)})[2]
    assert "hides" not in hiding
    assert "no positions, no mask 75.0 %" in hiding
    least = said(made_up() | {PLAIN_FIRST: (1.0, 0.96)})[2]
    assert least.endswith("hides the ablation: at least 98.0 % in every row.")


def test_the_size_of_the_marker_is_named_only_where_a_blind_cell_beats_half():
    near_half = {PLAIN_MEAN: (0.5, 0.6), PLAIN_LAST: (0.48, 0.52)}
    assert len(said(made_up() | near_half)) == 3
    (size,) = said(made_up() | near_half | {PLAIN_LAST: (0.8, 0.9)})[3:]
    assert "yet last 85.0 %:" in size


def test_the_recipe_is_told_with_its_numbers():
    assert recipe_sentence().startswith(
        "All cells: one layer of width 32, 400 steps, batch 64, learning rate 0.003, "
        "dropout 0; 3 seeds."
    )
