"""Row sums beside a map, and weights that the mask should have hidden."""

import pytest
import torch

from core.charts.sums import summed_heatmap
from core.charts.sums_frame import summed_frame

WEIGHTS = torch.tensor([[0.75, 0.5], [0.0, 0.125]])


def test_every_row_has_its_sum_whatever_the_colours_can_show():
    frame = summed_frame(WEIGHTS, ["a", "b"])
    sums = frame[frame["status"] == "sum"]
    assert sums["query"].tolist() == ["a", "b"]
    assert sums["weight"].tolist() == [1.25, 0.125]
    assert frame[frame["status"] == "allowed"]["weight"].tolist() == [
        0.75, 0.5, 0.0, 0.125,
    ]  # fmt: skip
    assert not frame["marked"].any()


def test_a_weight_on_a_hidden_key_keeps_its_number_and_is_marked():
    causal = torch.tensor([[True, False], [True, True]])
    frame = summed_frame(WEIGHTS, ["a", "b"], mask=causal)
    leak = frame[frame["marked"]]
    assert leak[["query", "key", "weight"]].values.tolist() == [["a", "b", 0.5]]
    right = summed_frame(WEIGHTS * causal, ["a", "b"], mask=causal)
    assert right["status"].tolist()[:4] == ["allowed", "masked", "allowed", "allowed"]
    assert not right["marked"].any()


def test_a_row_without_weight_sums_to_0():
    frame = summed_frame(torch.zeros(1, 1), ["a"])
    assert frame["status"].tolist() == ["nothing", "sum"]
    assert frame["weight"].iloc[1] == 0.0


@pytest.mark.parametrize("show_values", [False, True])
def test_sums_are_printed_and_take_no_part_in_the_map(show_values):
    spec = summed_heatmap(
        summed_frame(WEIGHTS, ["a", "b"]), show_values=show_values
    ).to_dict()
    *drawn, sums = spec["layer"]
    for layer in drawn:
        assert {"filter": "datum.status !== 'sum'"} in layer["transform"]
    assert sums["mark"]["text"]["expr"] == "format(datum.weight, '.2f')"
    assert sums["transform"] == [{"filter": "datum.status === 'sum'"}]
