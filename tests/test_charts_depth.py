"""Pictures of deep stacks and of amounts: their rows and what tells runs apart."""

import pytest
import torch

from core.charts import amounts, outcomes, run_lines
from core.charts.amounts import amounts_frame, amounts_limit
from core.charts.depth import norm_points, outcomes_frame, runs_frame
from core.depth import LayerNorms

SERIES = ("pre-norm", "post-norm")
RUNS = {
    ("pre-norm", ", seed 0"): [(0, 1.0), (1, 2.0)],
    ("post-norm", ", seed 0"): [(0, 1.0)],
}


def spec_of(kind, **options):
    drawn = {"series": SERIES, "x_domain": (0.0, 2.0)} | options
    return run_lines(runs_frame(RUNS), kind=kind, **drawn).to_dict()


def test_tokens_start_before_the_first_layer_and_gradients_at_it():
    norms = LayerNorms(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.5, 0.25]))
    run = ("pre-norm", ", seed 0")
    assert norm_points({run: norms}, "tokens") == {run: [(0, 1), (1, 2), (2, 4)]}
    assert norm_points({run: norms}, "gradient") == {run: [(1, 0.5), (2, 0.25)]}


def test_runs_of_one_series_are_lines_of_their_own():
    rows = runs_frame(RUNS)
    assert rows["at"].tolist() == [0, 1, 0]
    line = spec_of("tokens")["layer"][0]["encoding"]
    assert line["detail"]["field"] == "run"
    assert line["color"]["field"] == "series"


@pytest.mark.parametrize(
    ("kind", "apart"), [("tokens", "shape"), ("gradient", "shape"), ("loss", "dash")]
)
def test_series_are_told_apart_without_colour(kind, apart):
    line, point = (layer["encoding"] for layer in spec_of(kind)["layer"][:2])
    assert ("shape" in point) == (apart == "shape")
    assert ("strokeDash" in line) == (apart == "dash")


def test_the_y_axis_is_logarithmic_and_its_ends_can_be_set():
    usual, chosen = (
        spec_of("gradient", **options)["layer"][0]["encoding"]["y"]["scale"]
        for options in ({}, {"y_domain": (1e-9, 1.0)})
    )
    assert usual["type"] == chosen["type"] == "log"
    assert usual["domain"] == [0.01, 100]
    assert chosen["domain"] == [1e-9, 1]
    scale = spec_of("loss")["layer"][0]["encoding"]["y"]["scale"]
    assert scale["type"] == "linear"
    assert scale["domain"] == [0, 1.5]  # first losses lie above 1


def test_of_four_series_the_last_two_repeat_the_colours_dashed():
    series = (*SERIES, "pre-norm, no shortcuts", "post-norm, no shortcuts")
    line, point = spec_of("tokens", series=series)["layer"][:2]
    colours = line["encoding"]["color"]["scale"]["range"]
    assert colours[:2] == colours[2:] != colours[:1] * 2
    dashes = line["encoding"]["strokeDash"]["scale"]["range"]
    assert dashes == [[1, 0], [1, 0], [6, 4], [6, 4]]
    assert len(set(point["encoding"]["shape"]["scale"]["range"])) == 4
    assert "strokeDash" not in spec_of("tokens")["layer"][0]["encoding"]


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind must be one of 'tokens', 'gradient'"):
        spec_of("tokenz")


def test_every_run_has_a_place_of_its_own_at_its_depth():
    frame = outcomes_frame([("pre-norm", ", seed 1", 2, 0.1, 1.0)])
    runs = (", seed 0", ", seed 1")
    spec = outcomes(frame, series=SERIES, runs=runs).to_dict()
    offset = spec["layer"][1]["encoding"]["xOffset"]
    assert offset["scale"]["domain"] == [
        "pre-norm, seed 0", "pre-norm, seed 1", "post-norm, seed 0",
        "post-norm, seed 1",
    ]  # fmt: skip


def test_the_chosen_depth_alone_is_marked():
    runs = [("pre-norm", f", seed {n}", 2 + n % 2, 0.1, 1.0) for n in range(4)]
    assert outcomes_frame(runs, chosen=3)["chosen"].tolist() == [False, True] * 2
    assert not outcomes_frame(runs)["chosen"].any()
    spec = outcomes(outcomes_frame(runs), series=SERIES, runs=(", seed 0",)).to_dict()
    band = spec["layer"][0]
    assert band["mark"]["type"] == "rect"
    assert "datum.chosen" in band["mark"]["opacity"]["expr"]
    assert band["encoding"]["x"]["field"] == "depth"


@pytest.mark.parametrize(("most", "end"), [(8448, 11_000), (3, 3.8), (100, 130)])
def test_the_axis_ends_a_little_beyond_the_longest_bar(most, end):
    limit = amounts_limit({"W_1": ("feed-forward", most), "head": ("ends", 1)})
    assert limit == pytest.approx(end)


def test_shares_are_of_the_sum_of_all_amounts():
    frame = amounts_frame({"W_O": ("attention", 3), "head": ("ends", 1)})
    assert frame["share"].tolist() == [0.75, 0.25]
    assert frame["amount"].tolist() == [3, 1]
    spec = amounts(frame, limit=5.0).to_dict()
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 5]
    with pytest.raises(ValueError, match=r"limit \(0\) must be at least"):
        amounts(frame, limit=0.0)
