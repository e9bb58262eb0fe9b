"""The shipped grids: made by one command, whole, had again, and what they show."""

import re
import signal
import subprocess
import sys
import time

import pytest

from core import experiments, grid_story
from core.experiments import command_of, main, make_table
from core.grid_cell import run_cell
from core.grid_presets import PRESETS, Preset
from core.grid_questions import QUESTIONS, right_choice
from core.grid_story import summaries
from core.grid_table import GRID_TABLES, read_grid, read_shipped
from core.threads import one_thread
from tests.tiny_grid import BASE

START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
from core.experiments import main
if __name__ == "__main__":
    raise SystemExit(main())
"""
TOLERANCE = 0.02  # of accuracy: other machines round otherwise
each_preset = pytest.mark.parametrize("name", PRESETS)


def accuracy_by_levels(name: str, measure: str = "accuracy") -> dict[tuple, float]:
    preset = PRESETS[name]
    return {
        tuple(getattr(s.cell, factor) for factor in preset.factors): s.mean(measure)
        for s in summaries(read_shipped(name).results)
    }


# The command


def test_the_command_writes_the_table_and_tells_every_run(
    tmp_path, capsys, monkeypatch
):
    tiny = Preset("tiny", "Tiny", {"readout": ("mean", "last")}, BASE)
    monkeypatch.setitem(experiments.PRESETS, "tiny", tiny)
    path = tmp_path / "tiny.csv"
    given = ["tiny", "--seeds", "1", "--out", str(path), "--processes", "1"]
    assert main(given) == 0
    table = read_grid(path)
    assert table.made_by["command"] == "python -m core.experiments tiny --seeds 1"
    assert [(run.cell, run.seed) for run in table.results] == [
        (cell, 0) for cell in tiny.cells
    ]
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "tiny: 0 of 2"
    assert re.match(r"2/2 readout last, seed 0: [\d.]+ %, about 0 s left", said[2])
    assert main(["tiny", "--seeds", "101", "--out", str(path)]) == 2
    assert "seeds (101) must be between 1 and 100" in capsys.readouterr().err


def test_a_file_that_is_no_table_is_refused_with_a_sentence(tmp_path, capsys):
    path = tmp_path / "grid.csv"
    path.write_text("a,b", encoding="utf-8")
    assert main(["order", "--out", str(path), "--processes", "1"]) == 2
    assert "line 1, column 1" in capsys.readouterr().err
    assert path.read_text("utf-8") == "a,b"


def test_a_process_that_dies_is_told_in_a_sentence(tmp_path, capsys, monkeypatch):
    def dies(*_: object, **__: object) -> None:
        raise RuntimeError("a process ended before its run did")

    monkeypatch.setattr(experiments, "run_grid", dies)
    assert main(["order", "--out", str(tmp_path / "x.csv")]) == 1
    said = capsys.readouterr().err
    assert said == (
        "a process ended before its run did; the runs that ended are in the file\n"
    )


def test_ctrl_c_keeps_the_runs_that_ended_and_leaves_no_traceback(tmp_path):
    path = tmp_path / "heads.csv"
    command = [sys.executable, "-c", START, "heads", "--out", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 120
        while not path.exists() or not read_grid(path).results:
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert said == "stopped; the runs that ended are in the file\n"
    assert read_grid(path).results[0].cell == PRESETS["heads"].cells[0]


def test_one_file_for_all_grids_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["all", "--out", str(tmp_path / "x.csv")])
    assert "not of all" in capsys.readouterr().err


def test_a_preset_takes_its_own_number_of_seeds(tmp_path):
    tiny = Preset("tiny", "Tiny", {"readout": ("mean",)}, BASE, num_seeds=2)
    make_table(tiny, tmp_path / "tiny.csv")
    assert len(read_grid(tmp_path / "tiny.csv").results) == 2


# The shipped tables


@each_preset
def test_a_shipped_table_names_command_seeds_versions_machine_and_date(name):
    made_by = read_shipped(name).made_by
    assert list(made_by) == ["command", "seed", "versions", "machine", "date"]
    preset = PRESETS[name]
    assert made_by["command"] == command_of(preset, preset.num_seeds)
    assert made_by["seed"] == f"0 to {preset.num_seeds - 1}"
    assert re.fullmatch(r"torch [\d.+a-z]+, Python [\d.]+", made_by["versions"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", made_by["date"])


@each_preset
def test_a_shipped_table_holds_every_cell_with_every_seed(name):
    preset, runs = PRESETS[name], read_shipped(name).results
    seeds = range(preset.num_seeds)
    assert [(run.cell, run.seed) for run in runs] == [
        (cell, seed) for cell in preset.cells for seed in seeds
    ]


def test_nothing_else_is_shipped_beside_the_tables():
    assert {path.stem for path in GRID_TABLES.glob("*.csv")} == set(PRESETS)


@pytest.mark.parametrize(("name", "index"), [("pooling", 3), ("positions", 6)])
def test_two_shipped_cells_come_out_again(name, index):
    stated = read_shipped(name).results[index]
    with one_thread():  # as the table was made
        run = run_cell(stated.cell, stated.seed)
    assert run.steps == stated.steps
    assert run.accuracy == pytest.approx(stated.accuracy, abs=TOLERANCE)


# What they show


def test_positions_learn_whatever_the_readout():
    cells = accuracy_by_levels("order")
    with_positions = [v for k, v in cells.items() if k[0] == "sinusoidal"]
    assert len(with_positions) == 6
    assert min(with_positions) > 0.99


def test_without_positions_a_causal_mask_lifts_the_mean():
    cells = accuracy_by_levels("order")
    masked, plain = cells["none", True, "mean"], cells["none", False, "mean"]
    assert masked > 0.95 > plain


def test_in_normal_noise_the_size_of_the_marker_gives_little_away():
    cells = accuracy_by_levels("order_normal")
    with_positions = [v for k, v in cells.items() if k[0] == "sinusoidal"]
    assert min(with_positions) > 0.99
    assert min(v for k, v in cells.items() if k[2] == "first") > 0.99
    for readout in ("mean", "last"):
        assert 0.45 < cells["none", False, readout] < 0.65
    assert cells["none", True, "mean"] > cells["none", False, "mean"] + 0.2
    uniform = accuracy_by_levels("order")
    for readout in ("mean", "last"):
        assert uniform["none", False, readout] > cells["none", False, readout]


def test_what_learned_falls_to_half_when_the_marker_moves_in_normal_noise_too():
    for summary in summaries(read_shipped("order_normal").results):
        if summary.learned:
            assert 0.4 < summary.mean("moved") < 0.6


def test_heads_at_one_width_differ_by_less_than_their_seeds():
    cells = summaries(read_shipped("heads").results)
    means = [cell.mean() for cell in cells]
    ranges = [v for cell in cells for v in [cell.values("accuracy")]]
    assert max(means) - min(means) < max(max(v) - min(v) for v in ranges)


def test_a_readout_at_position_0_hides_the_ablation():
    cells = accuracy_by_levels("order")
    assert min(v for k, v in cells.items() if k[2] == "first") > 0.99


def test_plain_recurrences_stay_near_half_and_a_forget_bias_of_3_does_not():
    cells = accuracy_by_levels("moved")
    for model in ("rnn", "gru", "lstm"):
        assert 0.4 < cells[(model,)] < 0.65
    assert cells[("lstm bias +3",)] > 0.9
    assert cells[("transformer",)] > 0.99


def test_what_learned_with_positions_falls_to_half_when_the_marker_moves():
    moved = accuracy_by_levels("moved", "moved")
    assert 0.4 < moved[("transformer",)] < 0.6
    assert 0.4 < moved[("lstm bias +3",)] < 0.65
    order = accuracy_by_levels("order", "moved")
    for levels, share in order.items():
        if levels[0] == "sinusoidal":
            assert 0.4 < share < 0.65, levels


def test_the_transformer_holds_its_accuracy_at_length_300():
    cells = accuracy_by_levels("length")
    assert cells["transformer", 300] > 0.99
    assert cells["transformer", 60] > 0.99


# The predictions


@each_preset
def test_a_prediction_has_a_right_answer_and_a_reason_for_every_other(name):
    right = right_choice(PRESETS[name], summaries(read_shipped(name).results))
    choices = QUESTIONS[name].choices
    assert 0 <= right < len(choices)
    for place, (text, misconception) in enumerate(choices):
        assert text
        assert misconception or place == right


@each_preset
def test_every_preset_has_a_question_and_sentences_on_its_runs(name):
    cells = summaries(read_shipped(name).results)
    reach, moved, spread = grid_story.sentences(cells, PRESETS[name].factors)
    assert re.match(r"The means of the cells differ by up to [\d.]+ points, ", spread)
    assert f" of {len(PRESETS[name].cells)} cells reach 95 % or more" in reach
    assert moved.startswith(("With the marker at position", "No cell learned"))
