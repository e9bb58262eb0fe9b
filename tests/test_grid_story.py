"""What a grid of the bench says: worked by hand from made-up runs."""

from dataclasses import replace

import pytest

from core.grid_cell import Cell, GridStep, Result
from core.grid_presets import PRESETS
from core.grid_questions import right_choice
from core.grid_story import (
    budget_sentence,
    duration,
    left_sentence,
    missing_runs,
    now_sentence,
    num_steps,
    points,
    results_of,
    runs_of,
    sentences,
    settings_sentence,
    summaries,
    table_rows,
    watch_runs,
)
from tests.tiny_grid import BASE

MEAN, LAST = Cell(readout="mean"), Cell(readout="last")
RNN = Cell(model="rnn")


def run(cell: Cell, accuracy: float, moved: float = 0.5, seed: int = 0) -> Result:
    return Result(cell, seed, 9, 0.25, accuracy, moved)


def test_seeds_of_a_cell_are_put_together_with_mean_and_range():
    runs = [run(MEAN, 0.5), run(LAST, 1.0), run(MEAN, 0.75, moved=0.25, seed=1)]
    first, second = summaries(runs)
    assert (first.cell, second.cell) == (MEAN, LAST)
    assert (first.mean(), first.mean("moved")) == (0.625, 0.375)
    (row, other) = table_rows([first, second], ("readout", "model"))
    assert row == (
        "mean", "transformer", "62.5 %", "50.0 to 75.0 %", "37.5 %", "0.250", "2",
    )  # fmt: skip
    assert other[3] == "100.0 %"


def test_one_weak_seed_is_enough_not_to_have_learned():
    weak, strong = summaries([run(MEAN, 0.94), run(LAST, 0.95)])
    assert (weak.learned, strong.learned) == (False, True)
    near = summaries([run(MEAN, 0.6), run(MEAN, 0.61, seed=1), run(LAST, 0.4)])
    assert [cell.near_half for cell in near] == [False, True]


def test_the_sentences_count_what_learned_and_what_a_moved_marker_leaves():
    cells = summaries([run(MEAN, 0.5), run(LAST, 1.0, moved=0.52), run(RNN, 0.8)])
    reach, moved, _ = sentences(cells, ("model", "readout"))
    assert reach == (
        "1 of 3 cells reach 95 % or more with every seed; 1 stays near half (40 to "
        "60 %): transformer, readout mean."
    )
    assert moved == (
        "With the marker at position 30 instead of 0, that one reaches 52.0 %."
    )


def test_a_cell_that_keeps_its_accuracy_is_told_apart():
    cells = summaries([run(MEAN, 0.99, moved=0.98), run(LAST, 1.0, moved=0.5)])
    moved = sentences(cells, ("readout",))[1]
    assert moved.endswith("reach 50.0 to 98.0 %. 1 of them keep what they had.")
    (none,) = sentences(summaries([run(MEAN, 0.5)]), ("readout",))[1:]
    assert none.startswith("No cell learned")


def test_how_far_cells_differ_stands_beside_how_far_their_seeds_do():
    runs = [
        run(MEAN, 0.5),
        run(MEAN, 0.7, seed=1),
        run(LAST, 0.9),
        run(LAST, 0.9, 0.5, 1),
    ]
    said = sentences(summaries(runs), ("readout",))[2]
    assert said == (
        "The means of the cells differ by up to 30.0 points, the seeds of one cell by "
        "up to 20.0 (readout mean)."
    )
    said = sentences(summaries(runs[::2]), ("readout",))[2]
    assert said.endswith(
        "up to 40.0 points; one seed each cannot tell that from chance."
    )
    alike = [run(MEAN, 1.0), run(MEAN, 1.0, seed=1), run(LAST, 1.0)]
    assert sentences(summaries(alike), ("readout",))[2].endswith("by up to 0.0.")


def test_the_budget_is_cells_times_seeds_times_their_seconds():
    said = budget_sentence([MEAN, LAST], 3)
    seconds = 3 * (MEAN.seconds + LAST.seconds)
    assert said.startswith("2 cells × 3 seeds = 6 runs: about ")
    assert duration(seconds) in said
    assert (duration(0.2), duration(89), duration(150)) == ("1 s", "89 s", "2 min")


def test_runs_that_are_done_are_not_trained_again_and_cost_nothing():
    done = [run(MEAN, 0.5, seed=1), run(RNN, 0.5)]
    assert missing_runs([MEAN, LAST], 2, done) == [(MEAN, 0), (LAST, 0), (LAST, 1)]
    said = budget_sentence([MEAN, LAST], 2, done)
    assert said.startswith("2 cells × 2 seeds = 4 runs, 1 of them in your table: about")
    assert duration(MEAN.seconds + 2 * LAST.seconds) in said
    assert budget_sentence([LAST], 1).startswith("1 cell × 1 seed = 1 run: about")


def test_the_time_left_is_that_of_the_steps_to_come():
    assert left_sentence(25, 100, 10.0, "Now.") == "Now. About 30 s of computing left."


def test_the_runs_of_a_grid_are_picked_from_all():
    runs = [run(MEAN, 0.5), run(RNN, 0.5), run(LAST, 0.5), run(MEAN, 0.5, seed=1)]
    assert runs_of((LAST, MEAN), runs) == (runs[0], runs[2], runs[3])
    assert runs_of((RNN,), []) == ()


def test_a_watched_grid_takes_the_steps_it_is_said_to_take():
    cells = [replace(BASE, max_steps=2), replace(BASE, max_steps=3, readout="last")]
    runs = missing_runs(cells, 2)
    steps = list(watch_runs(runs))
    assert len(steps) == num_steps(runs) == 2 * (3 + 4)
    ended = [(result.cell, result.seed) for result in results_of(steps)]
    assert ended == [(cell, seed) for cell in cells for seed in (0, 1)]
    said = now_sentence(GridStep(cells[1], 1, 2, None), ("readout",))
    assert said == "readout last, seed 1: step 2 of 3."


def test_the_points_follow_the_axes_that_are_picked():
    grid = PRESETS["order"].cells
    factors = PRESETS["order"].factors
    cells = summaries([run(cell, 0.75) for cell in grid])
    found, series, places = points(
        cells, grid, factors, ("readout", "causal"), "accuracy"
    )
    assert series == ("no mask", "no mask", "causal mask", "causal mask")
    assert places == (
        "no mask, sinusoidal positions",
        "no mask, no positions",
        "causal mask, sinusoidal positions",
        "causal mask, no positions",
    )
    x, place, values, words = found[0]
    assert (x, place) == ("mean", places[0])
    assert values == (0.75,)
    assert words == "sinusoidal positions, no mask, readout mean"
    plain = points(cells, grid, factors, ("readout", None), "accuracy")[1]
    assert set(plain) == {"all cells"}
    mixed = summaries([run(MEAN, 0.75), run(RNN, 0.5)])
    of = ("model", "readout"), ("model", "readout"), "accuracy"
    lacking = points(mixed, [MEAN, RNN], *of)
    assert lacking[1:] == (("readout mean", "has no readout"),) * 2


def test_the_recipe_leaves_out_what_varies():
    said = settings_sentence(Cell(), ("num_heads",))
    assert said.startswith(
        "All cells: length 60, uniform noise, width 32, layers 1, dropout 0; 400"
    )


@pytest.mark.parametrize(
    ("name", "first", "masked", "blind", "right"),
    [
        ("order", 1.0, 0.98, 0.9, 0),
        ("order", 1.0, 1.0, 0.99, 1),
        ("order", 0.5, 0.9, 0.8, 2),
        ("order", 0.9, 0.5, 0.8, 3),
        ("order_normal", 1.0, 0.9, 0.6, 0),
        ("order_normal", 1.0, 0.6, 0.6, 1),
        ("order_normal", 1.0, 0.9, 0.7, 2),
        ("order_normal", 0.5, 0.9, 0.5, 3),
    ],
)
def test_what_ranks_without_positions_is_worked_out_from_the_runs(
    name, first, masked, blind, right
):
    preset = PRESETS[name]
    runs = []
    for cell in preset.cells:
        share = {"first": first, "last": blind, "mean": blind}[cell.readout]
        if cell.causal and cell.readout == "mean":
            share = masked
        runs.append(run(cell, 1.0 if cell.positional != "none" else share))
    assert right_choice(preset, summaries(runs)) == right


@pytest.mark.parametrize(("last", "right"), [(0.7, 0), (0.95, 3)])
def test_the_last_position_under_a_mask_counts_in_the_ranking(last, right):
    runs = []
    for cell in PRESETS["order"].cells:
        share = {"first": 1.0, "last": 0.7, "mean": 0.7}[cell.readout]
        if cell.causal:
            share = {"first": 1.0, "last": last, "mean": 0.9}[cell.readout]
        runs.append(run(cell, share))
    blind = [r for r in runs if r.cell.positional == "none"]
    assert right_choice(PRESETS["order"], summaries(blind)) == right


def test_heads_rank_only_where_they_differ_by_more_than_their_seeds():
    preset = PRESETS["heads"]
    for ends, right in (
        ((0.8, 0.8, 0.8, 0.8, 0.9), 0),
        ((0.4, 0.4, 0.4, 0.4, 0.9), 1),
        ((0.9, 0.4, 0.4, 0.4, 0.4), 2),
        ((0.4, 0.4, 0.9, 0.4, 0.4), 3),
    ):
        runs = [
            run(cell, mean + shift, seed=seed)
            for cell, mean in zip(preset.cells, ends, strict=True)
            for seed, shift in enumerate((-0.1, 0.1))
        ]
        assert right_choice(preset, summaries(runs)) == right


def test_who_learns_is_worked_out_from_the_runs():
    preset = PRESETS["moved"]
    for learned, right in (
        ({"transformer", "lstm bias +3"}, 0),
        ({"transformer"}, 1),
        ({"rnn", "gru", "lstm", "lstm bias +3"}, 2),
        ({"transformer", "gru"}, 3),
    ):
        runs = [run(c, 1.0 if c.model in learned else 0.5) for c in preset.cells]
        assert right_choice(preset, summaries(runs)) == right
