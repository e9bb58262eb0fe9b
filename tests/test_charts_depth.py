"""Pictures of deep stacks and of amounts: their rows and what tells runs apart."""

import pytest
import torch

from core.charts import amounts, outcomes, run_lines
from core.charts.amounts import amounts_frame
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
    assert spec_of("loss")["layer"][0]["encoding"]["y"]["scale"]["type"] == "linear"


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind must be one of 'tokens', 'gradient'"):
        spec_of("tokenz")


def test_every_run_has_a_place_of_its_own_at_its_depth():
    frame = outcomes_frame([("pre-norm", ", seed 1", 2, 0.1, 1.0)])
    runs = (", seed 0", ", seed 1")
    spec = outcomes(frame, series=SERIES, runs=runs).to_dict()
    offset = spec["layer"][0]["encoding"]["xOffset"]
    assert offset["scale"]["domain"] == [
        "pre-norm, seed 0", "pre-norm, seed 1", "post-norm, seed 0",
        "post-norm, seed 1",
    ]  # fmt: skip


def test_shares_are_of_the_sum_of_all_amounts():
    frame = amounts_frame({"W_O": ("attention", 3), "head": ("ends", 1)})
    assert frame["share"].tolist() == [0.75, 0.25]
    assert frame["amount"].tolist() == [3, 1]
    spec = amounts(frame, limit=5.0).to_dict()
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 5]
    with pytest.raises(ValueError, match=r"limit \(0\) must be at least"):
        amounts(frame, limit=0.0)
