import math
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest
import torch

from core.charts.records import live_frame, record_points, thin
from core.charts.tidy import (
    bars_frame,
    comparison_frame,
    curves_frame,
    digits_frame,
    matrix_frame,
    movement_frame,
    readout_frame,
    sweep_frame,
    temperature_frame,
    to_array,
)

Record = namedtuple("Record", "step loss accuracy")


def test_a_tensor_on_the_tape_in_half_precision_becomes_plain_numbers():
    tensor = torch.tensor([0.5, 0.25], dtype=torch.float16, requires_grad=True)
    assert to_array(tensor).dtype == np.float64
    assert to_array(tensor).tolist() == [0.5, 0.25]


def test_a_matrix_is_told_row_by_row():
    matrix = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    frame = matrix_frame(
        matrix, row_labels=["it", "was"], column_labels=["a", "b", "c"]
    )
    assert list(frame.columns) == ["query", "key", "weight", "status"]
    assert frame["query"].tolist() == ["it"] * 3 + ["was"] * 3
    assert frame["key"].tolist() == ["a", "b", "c"] * 2
    assert frame["weight"].tolist() == pytest.approx([0.1, 0.2, 0.7, 0.3, 0.3, 0.4])
    assert set(frame["status"]) == {"allowed"}


def test_masked_cells_have_no_number():
    mask = torch.tensor([[True, False], [True, True]])
    frame = matrix_frame(torch.tensor([[1.0, 0.0], [0.4, 0.6]]), mask=mask)
    assert frame["status"].tolist() == ["allowed", "masked", "allowed", "allowed"]
    assert frame["weight"].isna().tolist() == [False, True, False, False]


def test_a_score_of_minus_infinity_is_masked_and_a_nan_is_missing():
    scores = torch.tensor([[1.5, -math.inf], [math.nan, math.inf]])
    frame = matrix_frame(scores, kind="score")
    assert frame["status"].tolist() == ["allowed", "masked", "missing", "missing"]
    assert frame["score"].isna().tolist() == [False, True, True, True]
    assert not np.isinf(frame["score"]).any()


def test_a_query_that_may_read_no_key_has_nothing():
    mask = torch.tensor([[False, False], [True, False]])
    frame = matrix_frame(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), mask=mask)
    assert frame["status"].tolist() == ["nothing", "nothing", "allowed", "masked"]


def test_a_row_of_zero_weights_has_nothing_even_without_a_mask():
    frame = matrix_frame(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
    assert frame["status"].tolist() == ["nothing", "nothing", "allowed", "allowed"]


def test_a_row_of_zero_scores_is_an_ordinary_row():
    frame = matrix_frame(torch.zeros(2, 3), kind="score")
    assert set(frame["status"]) == {"allowed"}
    assert frame["score"].tolist() == [0.0] * 6


def test_a_mask_itself_can_be_shown():
    frame = matrix_frame(torch.ones(3, 3, dtype=torch.bool).tril(), kind="allowed")
    assert frame["status"].tolist() == [
        *("allowed", "masked", "masked"),
        *("allowed", "allowed", "masked"),
        *("allowed", "allowed", "allowed"),
    ]


def test_a_padding_row_of_the_mask_is_spread_over_the_queries():
    frame = matrix_frame(torch.full((2, 3), 1 / 3), mask=torch.tensor([1, 1, 0]).bool())
    assert frame["status"].tolist() == ["allowed", "allowed", "masked"] * 2


def test_an_encoding_is_told_by_position_and_dimension():
    frame = matrix_frame(torch.arange(6.0).view(3, 2), kind="encoding")
    assert list(frame.columns) == ["position", "dimension", "value", "status"]
    assert frame["position"].tolist() == [0, 0, 1, 1, 2, 2]
    assert frame["dimension"].tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1)])
def test_a_matrix_of_any_size_gives_a_frame_of_that_size(shape):
    assert len(matrix_frame(torch.ones(shape))) == shape[0] * shape[1]


def test_a_matrix_frame_refuses_what_is_no_matrix_or_does_not_fit():
    with pytest.raises(ValueError, match="matrix must have 2 dimensions, got 3"):
        matrix_frame(torch.ones(2, 3, 3))
    with pytest.raises(ValueError, match=r"row_labels \(1\) must name all 2"):
        matrix_frame(torch.ones(2, 3), row_labels=["a"])
    with pytest.raises(ValueError, match=r"column_labels \(4\) must name all 3"):
        matrix_frame(torch.ones(2, 3), column_labels=list("abcd"))
    with pytest.raises(ValueError, match="kind must be one of"):
        matrix_frame(torch.ones(2, 3), kind="wieght")


def test_bars_stand_in_the_order_of_keys_within_a_series():
    frame = bars_frame(
        {"raw": torch.tensor([0.9, 0.1]), "scaled": torch.tensor([0.6, 0.4])},
        ["a", "a"],
    )
    assert list(frame.columns) == ["key", "series", "weight"]
    assert frame["key"].tolist() == ["a·0", "a·1", "a·0", "a·1"]
    assert frame["series"].tolist() == ["raw", "raw", "scaled", "scaled"]
    assert frame["weight"].tolist() == pytest.approx([0.9, 0.1, 0.6, 0.4])


def test_bars_refuse_a_row_of_another_length():
    with pytest.raises(ValueError, match=r"raw \(2,\) must be one number for each"):
        bars_frame({"raw": torch.ones(2)}, ["a", "b", "c"])


def test_a_sweep_has_median_and_the_middle_eighty_percent():
    trials = torch.stack([torch.arange(11.0), 10 * torch.arange(11.0)])
    frame = sweep_frame([4, 16], {"raw": trials})
    assert list(frame.columns) == ["d_k", "series", "role", "low", "median", "high"]
    assert frame.iloc[0].tolist() == [4.0, "raw", "series", 1.0, 5.0, 9.0]
    assert frame.iloc[1].tolist() == [16.0, "raw", "series", 10.0, 50.0, 90.0]


def test_a_sweep_may_have_the_mean_in_the_middle():
    trials = torch.tensor([[0.0, 0.0, 9.0]])
    frame = sweep_frame([4], {"raw": trials}, centre="mean")
    assert list(frame.columns) == ["d_k", "series", "role", "low", "mean", "high"]
    assert frame["mean"].tolist() == [3.0]
    with pytest.raises(ValueError, match="centre must be one of 'median', 'mean'"):
        sweep_frame([4], {"raw": trials}, centre="mode")


def test_a_sweep_carries_references_and_the_chosen_point_in_rows_of_their_own():
    frame = sweep_frame(
        [4, 16],
        {"raw": torch.ones(2, 3)},
        references={"d_k": torch.tensor([4.0, 16.0])},
        chosen=16,
    )
    assert frame["role"].tolist() == ["series"] * 2 + ["reference"] * 2 + ["chosen"]
    assert frame["median"].tolist()[2:4] == [4.0, 16.0]
    assert frame.iloc[-1]["d_k"] == 16
    assert math.isnan(frame.iloc[-1]["median"])


def test_a_sweep_refuses_another_number_of_points():
    with pytest.raises(ValueError, match=r"raw \(3, 5\) must have 2 points"):
        sweep_frame([4, 16], {"raw": torch.ones(3, 5)})


def test_curves_of_different_lengths_share_a_frame():
    frame = curves_frame({"a": torch.ones(3), "b": torch.zeros(2)})
    assert list(frame.columns) == ["position", "series", "value"]
    assert frame["position"].tolist() == [0, 1, 2, 0, 1]
    assert frame["series"].tolist() == ["a", "a", "a", "b", "b"]


def test_curves_refuse_what_is_no_vector():
    with pytest.raises(ValueError, match=r"a \(3, 2\) must be one number for each"):
        curves_frame({"a": torch.ones(3, 2)})


def test_no_curves_give_a_frame_without_rows():
    assert list(curves_frame({}).columns) == ["position", "series", "value"]
    assert len(curves_frame({})) == 0


def test_movement_keeps_an_exact_zero():
    frame = movement_frame(torch.tensor([0.0, 1e-9]), ["a", "b"])
    assert list(frame.columns) == ["position", "moved"]
    assert frame["moved"].tolist() == [0.0, pytest.approx(1e-9)]


def test_movement_refuses_labels_that_do_not_fit():
    with pytest.raises(ValueError, match=r"moved \(2,\) must be one number for each"):
        movement_frame(torch.zeros(2), ["a"])


def test_readout_rows_name_layers_heads_and_their_mean():
    rows = [torch.tensor([[0.2, 0.8], [0.6, 0.4]]), torch.tensor([[1.0, 0.0]] * 2)]
    frame = readout_frame(rows)
    assert list(frame.columns) == ["layer", "head", "position", "weight"]
    assert len(frame) == 2 * 3 * 2
    assert frame.index.is_unique
    mean = frame[(frame["layer"] == "layer 1") & (frame["head"] == "mean")]
    assert mean["position"].tolist() == [0, 1]
    assert mean["weight"].tolist() == pytest.approx([0.4, 0.6])
    second = frame[(frame["layer"] == "layer 1") & (frame["head"] == "2")]
    assert second["weight"].tolist() == pytest.approx([0.6, 0.4])


def test_digits_are_told_bit_by_bit():
    frame = digits_frame(torch.tensor([[0, 0], [1, 0], [0, 1]]))
    assert list(frame.columns) == ["position", "bit", "digit"]
    assert frame["position"].tolist() == [0, 0, 1, 1, 2, 2]
    assert frame["bit"].tolist() == [0, 1, 0, 1, 0, 1]
    assert frame["digit"].tolist() == [0, 0, 1, 0, 0, 1]


def test_digits_refuse_what_is_no_table():
    with pytest.raises(ValueError, match="digits must have 2 dimensions, got 1"):
        digits_frame(torch.zeros(3))


def test_a_comparison_has_a_row_for_each_number():
    frame = comparison_frame({"none": {"a": 1, "b": math.inf}, "sinusoids": {"a": 2.0}})
    assert list(frame.columns) == ["label", "series", "value"]
    assert frame["label"].tolist() == ["none", "none", "sinusoids"]
    assert frame["value"].isna().tolist() == [False, True, False]


def test_records_without_an_accuracy_are_left_out_and_the_rest_are_percent():
    records = [Record(1, 0.7, None), Record(2, 0.6, 0.475), Record(3, 0.5, None)]
    assert record_points(records, "accuracy") == [(2, 47.5)]
    assert record_points(records) == [(1, 0.7), (2, 0.6), (3, 0.5)]
    with pytest.raises(ValueError, match="kind must be one of"):
        record_points(records, "loss_")


def test_a_live_frame_keeps_runs_apart_by_their_role():
    frame = live_frame(
        {"now": [(1, 0.7), (2, 0.6)]}, kept={"seed 1": [(1, 0.8)]}, chosen=2
    )
    assert list(frame.columns) == ["run", "role", "step", "value"]
    assert frame["role"].tolist() == ["kept", "current", "current", "chosen"]
    assert frame["run"].tolist() == ["seed 1", "now", "now", "chosen"]
    assert frame["step"].tolist() == [1, 1, 2, 2]
    assert frame["value"].isna().tolist() == [False, False, False, True]


@pytest.mark.parametrize("current", [{}, {"now": []}, {"now": [(1, math.nan)]}])
def test_a_live_frame_without_points_has_one_row_without_a_value(current):
    frame = live_frame(current)
    assert len(frame) == 1
    assert frame["role"].item() == "current"
    assert math.isnan(frame["value"].item())
    assert list(frame.dtypes.astype(str))[2:] == ["int64", "float64"]


def test_a_short_curve_is_not_thinned():
    points = [(step, step / 7) for step in range(600)]
    assert thin(points, 600) == points


def test_a_thinned_curve_keeps_first_last_and_extremes():
    generator = torch.Generator().manual_seed(3)
    values = torch.rand(19_997, generator=generator, dtype=torch.float64).tolist()
    values[7_001], values[12_345] = 9.0, -9.0
    points = list(enumerate(values))
    thinned = thin(points, 101)
    assert 60 <= len(thinned) <= 101
    assert thinned[0] == points[0]
    assert thinned[-1] == points[-1]
    assert {(7_001, 9.0), (12_345, -9.0)} <= set(thinned)
    assert thinned == sorted(set(thinned) & set(points))


def test_a_steady_curve_is_thinned_evenly():
    thinned = thin([(step, step) for step in range(10_000)], 102)
    steps = np.array([step for step, _ in thinned])
    assert np.diff(steps).max() <= 10_000 / 50


def test_thinning_leaves_out_what_is_not_finite():
    points = [(1, 0.7), (2, math.inf), (3, math.nan), (4, 0.5)]
    assert thin(points) == [(1, 0.7), (4, 0.5)]
    assert thin([]) == []


def test_thinning_refuses_too_few_points():
    with pytest.raises(ValueError, match=r"max_points \(3\) must be at least 4"):
        thin([(1, 0.7)], 3)


def test_frames_can_be_sent_as_arrow_with_nulls_in_place_of_nan():
    pyarrow = pytest.importorskip("pyarrow")
    scores = torch.tensor([[1.5, -math.inf], [0.5, 2.0]])
    table = pyarrow.Table.from_pandas(matrix_frame(scores, kind="score"))
    assert table.column("score").to_pylist() == [1.5, None, 0.5, 2.0]
    assert isinstance(matrix_frame(scores, kind="score"), pd.DataFrame)


def test_marked_cells_are_told_only_where_some_are_asked_for():
    matrix = torch.tensor([[0.1, 0.9], [0.4, 0.6]])
    frame = matrix_frame(matrix, marked=matrix > 0.5)
    assert frame["marked"].tolist() == [False, True, False, True]
    assert "marked" not in matrix_frame(matrix)


def test_a_temperature_frame_holds_the_sweep_and_the_chosen_one():
    frame = temperature_frame(
        torch.tensor([0.5, 1.0]), torch.tensor([0.25, 0.75]), chosen=1.0
    )
    assert frame["role"].tolist() == ["sweep", "sweep", "chosen"]
    assert frame["temperature"].tolist() == [0.5, 1.0, 1.0]
    assert frame["value"].tolist()[:2] == [0.25, 0.75]
    with pytest.raises(ValueError, match="must be one number for each of 1 labels"):
        temperature_frame(torch.ones(1), torch.ones(2), chosen=1.0)
