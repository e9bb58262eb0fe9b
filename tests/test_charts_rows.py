"""Rows of a readout as panels: where each bar stands and how high it is."""

import numpy as np
import pytest

from core.charts.palette import palette
from core.charts.rows import panels_frame, row_panels

KEYS = ["CLS", "position 0", "position 1"]
LOW, HIGH = np.array([0.04, 0.03, 0.02]), np.array([0.1, 0.7, 0.2])


def test_a_layer_is_a_line_of_panels_on_its_own_scale():
    laid = panels_frame(
        [[("a", LOW), ("b", LOW)], [("c", HIGH), ("d", HIGH)]], KEYS, marker=1
    )
    frame = laid.frame
    assert laid.down == 2
    assert frame.groupby("panel")["limit"].first().to_dict() == {
        "a": 0.05, "b": 0.05, "c": 1.0, "d": 1.0,
    }  # fmt: skip
    floors = frame.groupby("panel")["floor"].first()
    assert floors["a"] == floors["b"] > floors["c"] == floors["d"]
    lefts = frame.groupby("panel")["left"].agg(["min", "max"])
    assert lefts.loc["a", "max"] + 1 < lefts.loc["b", "min"]
    assert lefts["max"].max() + 1 <= laid.across


def test_only_the_marker_has_its_role_and_only_the_chosen_panel_its_arrow():
    frame = panels_frame(
        [[("a", LOW)], [("b", HIGH)]], KEYS, marker=1, chosen="b"
    ).frame
    assert set(frame[frame["role"] == "marker"]["key"]) == {"position 0"}
    assert set(frame[frame["chosen"]]["panel"]) == {"b"}
    assert list(frame["weight"]) == [*LOW, *HIGH]


def test_many_heads_take_several_lines():
    laid = panels_frame([[(f"head {n}", LOW) for n in range(17)]] * 2, KEYS, marker=0)
    assert laid.down == 4
    assert laid.frame["floor"].nunique() == 4


def test_names_are_short_where_many_panels_stand_in_a_line():
    few = [(f"Layer 1, head {n}", LOW) for n in range(5)]
    many = [*few, ("Layer 1, head 5", LOW), ("Layer 1, mean of 6 heads", LOW)]
    frame = panels_frame([few], KEYS, marker=0).frame
    assert (frame["caption"] == frame["panel"]).all()
    frame = panels_frame([many], KEYS, marker=0).frame
    assert set(frame["caption"]) == {*(f"L1, head {n}" for n in range(6)), "L1, mean"}
    assert set(frame["panel"]) == {name for name, _ in many}  # whole in the tooltip


def test_the_dashed_line_is_one_share_of_the_keys_on_the_scale_of_its_layer():
    laid = panels_frame([[("a", HIGH)]], KEYS, marker=1)
    drawn = row_panels(laid.frame, across=laid.across, down=1, num_keys=3).to_dict()
    (even,) = (
        step["calculate"]
        for layer in drawn["layer"]
        for step in layer.get("transform", [])
        if step.get("as") == "even"
    )
    assert even == "datum.floor + 0.333333 / datum.limit"


def test_marker_and_keys_have_the_colours_of_the_theme():
    laid = panels_frame([[("a", LOW)]], KEYS, marker=1)
    drawn = row_panels(
        laid.frame, across=laid.across, down=1, num_keys=3, dark=True
    ).to_dict()
    curve, stems = drawn["layer"][:2]
    scale = stems["encoding"]["color"]["scale"]
    shown = palette(True)
    assert curve["mark"]["type"] == "line"
    assert curve["mark"]["color"] == shown.query
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
        "key": shown.query,
        "marker": shown.key,
    }


def test_a_row_that_does_not_fit_the_keys_is_refused():
    with pytest.raises(ValueError, match="one weight for each of 3 keys"):
        panels_frame([[("a", LOW[:2])]], KEYS, marker=0)
