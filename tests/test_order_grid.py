"""The grid of what carries the order: its table, its runs, and what it says."""

import sys
from dataclasses import replace

import pytest

from core import order_grid, shipped
from core.order_grid import (
    CELLS,
    RECIPE,
    SEEDS,
    Cell,
    CellResult,
    CellRun,
    cell_results,
    grid_sentences,
    recipe_sentence,
    run_cell,
)
from core.shipped import ORDER_GRID, read_grid, read_run, write_grid
from core.training import Trainer

PLAIN_MEAN = Cell("none", False, "mean")
MASKED_MEAN = Cell("none", True, "mean")
PLAIN_LAST = Cell("none", False, "last")
MASKED_LAST = Cell("none", True, "last")
PLAIN_FIRST = Cell("none", False, "first")
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
        same = {name: getattr(RECIPE, name) for name in (*Cell._fields, "seed")}
        assert replace(config, **same) == RECIPE


def test_the_shipped_grid_names_command_seed_versions_and_machine():
    shown = read_grid(ORDER_GRID)
    assert list(shown.made_by) == ["command", "seed", "versions", "machine"]
    assert list(shown.made_by) == list(read_run().made_by)
    assert shown.made_by["command"] == "python -m core.shipped order_grid"
    assert shown.made_by["seed"] == "0 to 2"
    assert shown.origin.startswith("Made by python -m core.shipped order_grid, seed 0")


def test_the_shipped_grid_has_every_cell_with_every_seed_at_the_last_step():
    runs = read_grid(ORDER_GRID).runs
    assert [(run.cell, run.seed) for run in runs] == [
        (cell, seed) for cell in CELLS for seed in SEEDS
    ]
    assert {run.steps for run in runs} == {RECIPE.max_steps} == {400}
    assert all(0 <= run.accuracy <= 1 for run in runs)


def test_a_written_grid_reads_back_the_same(tmp_path):
    runs = [CellRun(PLAIN_MEAN, 0, 5, 0.25), CellRun(MASKED_LAST, 2, 7, 0.875)]
    write_grid(tmp_path / "grid.csv", runs)
    assert read_grid(tmp_path / "grid.csv").runs == runs


def test_one_command_writes_the_table_it_is_asked_for(tmp_path, monkeypatch):
    small = replace(RECIPE, seq_len=5, train_samples=64, test_samples=8, max_steps=1)
    monkeypatch.setattr(order_grid, "RECIPE", small)
    command = ["shipped", "order_grid", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    shipped.main()
    assert [path.name for path in tmp_path.iterdir()] == ["order_grid.csv"]
    runs = read_grid(tmp_path / "order_grid.csv").runs
    assert [run.steps for run in runs] == [1] * len(CELLS) * len(SEEDS)


# The runs


def shipped_accuracy(cell: Cell, seed: int) -> float:
    (found,) = (
        run.accuracy
        for run in read_grid(ORDER_GRID).runs
        if (run.cell, run.seed) == (cell, seed)
    )
    return found


def test_a_cell_that_hides_the_ablation_comes_out_again():
    run = run_cell(PLAIN_FIRST, 1)
    assert run.steps == RECIPE.max_steps
    assert run.accuracy == pytest.approx(shipped_accuracy(PLAIN_FIRST, 1), abs=0.01)


def test_a_cell_without_order_comes_out_again_wherever_the_marker_stands():
    trainer = Trainer(PLAIN_LAST.config(0))
    while not trainer.finished:
        trainer.step()
    stated = shipped_accuracy(PLAIN_LAST, 0)
    assert stated < 0.95
    assert trainer.evaluate() == pytest.approx(stated, abs=TOLERANCE)
    assert trainer.evaluate(position=30) == pytest.approx(stated, abs=TOLERANCE)


# What it says


def test_the_seeds_of_a_cell_are_put_together():
    runs = [CellRun(PLAIN_MEAN, 0, 9, 0.5), CellRun(PLAIN_LAST, 0, 9, 0.9)]
    runs.append(CellRun(PLAIN_MEAN, 1, 9, 0.75))
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
    reach, leak, hiding, size = grid_sentences(cell_results(read_grid().runs))
    assert reach == (
        "9 of 12 cells reach 95 % or more with every seed; none stays near half (40 to "
        "60 %)."
    )
    assert leak == (
        "Without positions a causal mask leaks order to the mean: 89.9 % without the "
        "mask, 97.8 % with it; the last position, which sees every token either way, "
        "stays at 90.4 %."
    )
    assert hiding.endswith("hides the ablation: 100.0 % in every row.")
    assert "yet mean 89.9 % and last 90.4 %: the marker is -1 or +1" in size


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
