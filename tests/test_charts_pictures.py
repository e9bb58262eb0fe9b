"""What is seen in the finished picture, read from the SVG that Vega draws."""

import html
import json
import math
import re

import pandas as pd
import pytest
import torch

from core.charts import (
    bars,
    cached_spec,
    comparison,
    curves,
    digits,
    grid,
    heatmap,
    live_curves,
    marks,
    movement,
    palette,
    readout_rows,
    sequence,
    sweep,
)
from core.charts.digits import marked_heatmap
from core.charts.palette import DARK_INK, LIGHT_INK
from core.charts.records import grid_frame, live_frame
from core.charts.tidy import (
    bars_frame,
    comparison_frame,
    curves_frame,
    digits_frame,
    matrix_frame,
    movement_frame,
    readout_frame,
    sweep_frame,
)
from core.order_grid import CELLS, CellResult

vl_convert = pytest.importorskip("vl_convert")
CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()


def filled(chart, frame: pd.DataFrame, *, width: int = 600, **options) -> str:
    """Return a kept spec with the rows of ``frame`` as JSON, as a page shows it."""
    rows = json.loads(frame.to_json(orient="records"))
    spec = cached_spec(chart, frame, **options)
    return json.dumps(spec | {"width": width, "data": {"values": rows}})


def draw(chart, frame: pd.DataFrame, **options) -> str:
    """Return the SVG of a chart."""
    return vl_convert.vegalite_to_svg(filled(chart, frame, **options))


def texts(svg: str) -> list[str]:
    """Return all words of a picture."""
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)<", svg)]


def evaluated(expression: str, rows: list[dict]) -> list[str]:
    """Return what a Vega expression says of each row."""
    text = {"update": {"text": {"signal": expression}}}
    mark = {"type": "text", "from": {"data": "rows"}, "encode": text}
    spec = {"data": [{"name": "rows", "values": rows}], "marks": [mark]}
    return texts(vl_convert.vega_to_svg(json.dumps(spec)))


def said_of(chart, frame: pd.DataFrame, **options) -> list[str]:
    """Return the tooltips of the last mark with one, for the rows of the mean."""
    spec = cached_spec(chart, frame, **options)
    words = [layer["mark"]["tooltip"]["expr"] for layer in spec["layer"]
             if "tooltip" in layer["mark"]]  # fmt: skip
    rows = json.loads(frame[frame["head"] == "mean"].to_json(orient="records"))
    return evaluated(words[-1], rows)


def inks(svg: str, pattern: str) -> list[str]:
    """Return the fill of each text that matches ``pattern``."""
    found = re.findall(r"<text([^>]*)>([^<]*)<", svg)
    return [
        re.search(r'fill="([^"]+)"', look)[1]
        for look, text in found
        if re.fullmatch(pattern, html.unescape(text))
    ]


def cells(svg: str) -> list[str]:
    """Return the fill of each cell of a heat map, in reading order."""
    return re.findall(r'aria-roledescription="rect mark"[^>]*fill="([^"]+)"', svg)


def labels(svg: str, role: str) -> list[str]:
    """Return the words of the axis whose description starts with ``role``."""
    axis = re.search(rf'aria-label="{role}-axis titled.*?role-axis-title', svg, re.S)
    return [text for text in texts(axis[0]) if text]


@pytest.mark.parametrize("dark", [False, True])
def test_masked_cells_are_grey_with_a_cross_and_the_rest_carry_numbers(dark):
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    frame = matrix_frame(scores.masked_fill(~CAUSAL, -math.inf), kind="score")
    svg = draw(heatmap, frame, kind="score", limit=3.0, show_values=True, dark=dark)
    grey = [fill == palette(dark).masked for fill in cells(svg)]
    assert grey == (~CAUSAL).flatten().tolist()
    assert texts(svg).count("×") == 10
    assert len(inks(svg, r"−?\d\.\d\d")) == 15
    assert "NaN" not in svg
    assert "Infinity" not in svg


def test_a_cross_stands_on_masked_cells_without_numbers_too():
    svg = draw(heatmap, matrix_frame(CAUSAL / 5, mask=CAUSAL))
    assert texts(svg).count("×") == 10
    assert not inks(svg, r"\d\.\d\d")


@pytest.mark.parametrize("show_values", [True, False])
def test_a_cell_that_is_not_a_number_is_grey_and_says_so(show_values):
    frame = matrix_frame(torch.tensor([[0.5, math.nan]]))
    svg = draw(heatmap, frame, show_values=show_values)
    assert cells(svg)[1] == palette(False).masked
    assert "×" not in texts(svg)
    assert texts(svg).count("0.50") == show_values
    assert texts(svg).count("NaN") == 1


def test_a_query_without_keys_is_said_to_have_nothing_to_attend_to():
    mask = CAUSAL.clone()
    mask[3] = False
    svg = draw(heatmap, matrix_frame(mask / 5, mask=mask), show_values=True)
    assert texts(svg).count("nothing to attend to") == 1
    assert texts(svg).count("×") == 10 - 1


def test_tooltips_speak_in_words():
    mask = torch.tensor([[True, False], [False, False]])
    frame = matrix_frame(
        torch.tensor([[1.0, 0.0], [0.0, 0.0]]), row_labels=["it's", "x"],
        column_labels=["a", "b"], mask=mask,
    )  # fmt: skip
    vega = vl_convert.vegalite_to_vega(filled(heatmap, frame))
    tooltip = vega["marks"][0]["encode"]["update"]["tooltip"]
    probe = {
        "data": [
            {"name": "rows", "values": json.loads(frame.to_json(orient="records"))}
        ],
        "marks": [
            {
                "type": "text",
                "from": {"data": "rows"},
                "encode": {"update": {"text": tooltip}},
            }
        ],
    }
    assert texts(vl_convert.vega_to_svg(json.dumps(probe))) == [
        "query 'it's' gives 100.0 % to key 'a'",
        "masked: query 'it's' may not read key 'b'",
        "query 'x' has nothing to attend to",
        "query 'x' has nothing to attend to",
    ]


def test_labels_keep_the_order_of_the_rows():
    words = ["zebra", "the", "apple", "the"]
    frame = matrix_frame(torch.eye(4), row_labels=words, column_labels=words)
    svg = draw(heatmap, frame, height=400)
    expected = ["zebra", "the·1", "apple", "the·3"]
    assert labels(svg, "X") == expected
    assert labels(svg, "Y") == expected


def test_queries_run_down_and_keys_across():
    frame = matrix_frame(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    svg = draw(heatmap, frame)
    assert "query (reads)" in texts(svg)
    assert "key (is read)" in texts(svg)
    full = [fill == "#fde725" or fill == "rgb(253, 231, 37)" for fill in cells(svg)]
    assert full == [True, False, False, False, True, False]


def test_numbers_are_left_out_where_cells_are_too_small():
    frame = matrix_frame(torch.full((13, 13), 1 / 13))
    assert "0.08" not in texts(draw(heatmap, frame, show_values=True, width=300))
    assert texts(draw(heatmap, frame, show_values=True)).count("0.08") == 13 * 13


def test_the_ink_of_a_number_fits_its_cell():
    svg = draw(heatmap, matrix_frame(torch.tensor([[0.1, 0.9]])), show_values=True)
    assert inks(svg, "0.10") == [LIGHT_INK]
    assert inks(svg, "0.90") == [DARK_INK]


def test_a_mask_is_drawn_in_ones_and_crosses():
    frame = matrix_frame(torch.ones(3, 3).tril().bool(), kind="allowed")
    svg = draw(heatmap, frame, kind="allowed", show_values=True)
    numbers = [text for text in texts(svg) if text in ("1", "×")]
    inside = numbers[:-2]  # without the position 1 on both axes
    assert sorted(inside) == ["1"] * 6 + ["×"] * 3
    blue, grey = palette(False).right, palette(False).masked
    assert cells(svg) == [blue, grey, grey, blue, blue, grey, blue, blue, blue]


def test_the_coin_flip_is_drawn_once_however_many_rows_there_are():
    points = [(step, 0.7) for step in range(300)]
    svg = draw(live_curves, live_frame({"now": points}), max_steps=300)
    assert len(re.findall(r'<line[^>]*stroke-dasharray="6,4"', svg)) == 1
    # Twice the words: once for the rim that keeps them legible.
    assert texts(svg).count("always p = 1/2: ln 2 = 0.693") == 2


def test_the_coin_flip_is_there_before_the_first_step():
    svg = draw(live_curves, live_frame({"now": []}), kind="accuracy")
    assert "coin flip: 50 %" in texts(svg)


def test_live_axes_are_the_same_for_any_rows():
    few = draw(live_curves, live_frame({"now": [(1, 0.69)]}), max_steps=756)
    wild = live_frame({"now": [(1, 0.69), (700, 55.0)]}, kept={"old": [(1, 3.0)]})
    many = draw(live_curves, wild, max_steps=756)
    for role in ("X", "Y"):
        assert labels(few, role) == labels(many, role)


def test_the_scrubbed_step_is_a_second_rule():
    frame = live_frame({"now": [(1, 0.7), (2, 0.6)]}, chosen=2)
    svg = draw(live_curves, frame)
    assert len(re.findall(r'<line[^>]*stroke-dasharray="6,4"', svg)) == 2


def test_kept_runs_are_named_and_dashed_each_in_its_own_way():
    kept = {"a run": [(1, 0.9), (2, 0.8)], "shipped": [(1, 0.5), (2, 0.4)]}
    svg = draw(live_curves, live_frame({"now": [(1, 0.7), (2, 0.6)]}, kept=kept))
    assert set(kept) <= set(texts(svg))
    lines = re.findall(r'<path[^>]*roledescription="line mark"[^>]*>', svg)
    assert len({tuple(re.findall(r'dasharray="([^"]*)"', x)) for x in lines[:2]}) == 2


def test_a_step_that_could_not_be_taken_carries_a_cross():
    for failed in (2, None):
        frame = live_frame({"now": [(1, 0.7), (2, float("nan"))]}, failed=failed)
        assert ("✕" in texts(draw(live_curves, frame))) is bool(failed)


def test_the_marker_of_a_sequence_is_named_and_stands_out():
    frame = curves_frame({"sequence": torch.tensor([0.5, -1.0, 0.25])})
    svg = draw(sequence, frame, num_positions=3, marker=1)
    assert "marker" in texts(svg)
    assert len(re.findall(palette(False).key + '"[^>]*stroke-width="4"', svg)) == 1


def test_kept_runs_are_grey_and_the_current_one_is_not():
    frame = live_frame(
        {"now": [(1, 0.7), (2, 0.6)]},
        kept={"a": [(1, 0.9), (2, 0.8)], "b": [(1, 0.5), (2, 0.4)]},
    )
    strokes = re.findall(r'roledescription="line mark"[^>]*stroke="([^"]+)"',
                         draw(live_curves, frame))  # fmt: skip
    colours = palette(False)
    assert strokes == [colours.kept, colours.kept, colours.right]


def test_an_exact_zero_is_told_from_a_tiny_movement():
    frame = movement_frame(torch.tensor([0.0, 1e-7, 0.5, 0.9995]), [*"abcd"])
    shown = texts(draw(movement, frame))
    assert "0" in shown
    assert "<.001" in shown
    assert not any("e-" in text or "e−" in text for text in shown)
    assert "0.5" in shown
    assert ">.99" in shown
    assert "1" not in shown


def test_the_axis_of_a_movement_names_what_moved():
    frame = movement_frame(torch.tensor([0.5]), ["a"])
    assert "position" in texts(draw(movement, frame))
    named = texts(draw(movement, frame, x_title="output"))
    assert "output" in named
    assert "position" not in named


def test_bars_of_a_row_stand_side_by_side_with_their_numbers():
    row = {"raw": torch.tensor([0.9, 0.1]), "÷ √d_k": torch.tensor([0.6, 0.4])}
    svg = draw(bars, bars_frame(row, ["a", "b"]))
    fills = re.findall(r'roledescription="bar"[^>]*fill="([^"]+)"', svg)
    colours = palette(False)
    assert fills == [colours.wrong] * 2 + [colours.right] * 2
    assert {"0.90", "0.10", "0.60", "0.40"} <= set(texts(svg))
    assert labels(svg, "X") == ["a", "b"]


def draw_sweep(frame, **options):
    return draw(sweep, frame, x_domain=(4, 64), y_domain=(0.0, 1.0), **options)


def test_the_sweep_shows_the_chosen_width_and_dashes_its_references():
    frame = sweep_frame(
        [4, 16, 64], {"raw": torch.rand(3, 9), "÷ √d_k": torch.rand(3, 9)},
        references={"d_k": torch.tensor([4.0, 16.0, 64.0])}, chosen=16,
    )  # fmt: skip
    svg = draw_sweep(frame, references=("d_k",), chosen_label="d_k = 16")
    assert texts(svg).count("d_k = 16") == 2
    assert labels(svg, "X") == ["4", "8", "16", "32", "64"]
    lines = re.findall(r'<path[^>]*roledescription="line mark"[^>]*>', svg)
    dashed = [line for line in lines if 'stroke-dasharray="2,3"' in line]
    assert len(lines) == 3
    assert len(dashed) == 1
    assert palette(False).reference in dashed[0]
    areas = re.findall(r'<path[^>]*roledescription="area mark"[^>]*>', svg)
    assert len(areas) == 2
    assert all('opacity="0.15"' in area for area in areas)


def test_a_sweep_without_a_choice_has_no_rule():
    svg = draw_sweep(sweep_frame([4, 64], {"raw": torch.rand(2, 9)}))
    assert "chosen" not in texts(svg)


def test_a_label_at_the_right_end_stays_inside_the_picture():
    sides = [
        re.search(r'text-anchor="(\w+)"[^>]*>chosen<', svg)[1]
        for svg in (
            draw_sweep(sweep_frame([4, 64], {"raw": torch.rand(2, 9)}, chosen=at))
            for at in (4, 64)
        )
    ]
    assert sides == ["start", "end"]


def test_the_readout_has_a_bar_and_a_point_for_each_position_and_layer():
    rows = [torch.softmax(torch.randn(3, 11), -1) for _ in range(2)]
    svg = draw(readout_rows, readout_frame(rows), marker=4)
    bars = re.findall(r'<line[^>]*stroke-width="2.5"', svg)
    points = re.findall(r'roledescription="point"', svg)
    assert (len(bars), len(points)) == (2 * 11, 2 * 11 * (3 + 1))
    assert "line mark" not in svg
    assert "marker" in texts(svg)
    assert "key position" in texts(svg)


@pytest.mark.parametrize("num_columns", [8, 61])
def test_a_readout_counts_positions_from_0_and_calls_the_column_before_them_cls(
    num_columns,
):
    rows = readout_frame([torch.eye(num_columns)[6:7]])  # all weight on column 6
    options = {"num_layers": 1, "x_domain": (0, num_columns - 1), "marker": 1}
    svg = draw(readout_rows, rows, **options)
    assert "CLS" in texts(svg)
    assert "0" in texts(svg)
    assert str(num_columns - 1) not in texts(svg)  # the last position is one less
    assert said_of(readout_rows, rows, **options)[6].endswith("1.000 to position 5")
    assert said_of(readout_rows, rows, **options)[0].endswith("0.000 to CLS")
    options["readout"] = "last"
    assert "CLS" not in texts(draw(readout_rows, rows, **options))
    assert said_of(readout_rows, rows, **options)[6].endswith("1.000 to position 6")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"), (1.0, "1.00"), (0.5, "0.50"), (0.0049, "<.01"),
        (0.005, "0.01"), (0.994, "0.99"), (0.9951, ">.99"), (1 - 1e-12, ">.99"),
        (-0.0049, ">−.01"), (-0.006, "−0.01"), (1e-300, "<.01"),
    ],
)  # fmt: skip
def test_a_share_never_rounds_to_0_or_1(value, text):
    assert evaluated(marks.number_text("datum.x", 2), [{"x": value}]) == [text]


def test_a_percentage_never_rounds_to_0_or_100():
    rows = [{"x": x} for x in (0.0, 0.0004, 0.9996, 1.0)]
    said = evaluated(marks.number_text("(100 * datum.x)", 1, whole=100), rows)
    assert said == ["0.0", "<0.1", ">99.9", "100.0"]


def test_bars_and_cells_write_a_weight_of_almost_all_in_the_same_words():
    row = torch.tensor([0.996, 0.003, 0.001, 0.0], dtype=torch.float64)
    drawn = [
        draw(bars, bars_frame({"raw": row}, "abcd"), series=("raw",)),
        draw(heatmap, matrix_frame(row[None]), show_values=True),
    ]
    for svg in drawn:
        assert texts(svg).count(">.99") == 1
        assert texts(svg).count("<.01") == 2
        assert texts(svg).count("0.00") == 1
        assert "1.00" not in texts(svg)


def test_curves_carry_point_shapes_at_every_eighth_position():
    curve = {"a": torch.linspace(-1, 1, 17), "b": torch.linspace(1, -1, 17)}
    svg = draw(curves, curves_frame(curve), series=("a", "b"), x_domain=(0, 16))
    assert {"a", "b"} <= set(texts(svg))
    points = re.findall(r'"position: (\d+)[^"]*"[^>]*roledescription="point"', svg)
    assert sorted(set(points)) == ["0", "16", "8"]


def test_a_number_below_the_axis_is_drawn_at_its_end_and_tells_its_size():
    frame = comparison_frame({"none": {"same": 0.0, "swapped": 3.2e-7}})
    svg = draw(
        comparison, frame, series=("same", "swapped"), domain=(1e-8, 10.0), log=True
    )
    assert {"0", "3.2e-7", "none"} <= set(texts(svg))
    assert labels(svg, "X")[0] == "0"
    assert "1e-8" not in labels(svg, "X")


def test_digits_are_counted_in_ones_and_zeros():
    table = torch.tensor([[0, 0], [1, 0], [0, 1], [1, 1]])
    svg = draw(digits, digits_frame(table), width=200)
    colours = palette(False)
    expected = [colours.right if digit else colours.masked for digit in table.flatten()]
    assert cells(svg) == expected


def test_a_marked_position_is_framed_once_across_its_row():
    table = torch.tensor([[0, 0], [1, 0], [0, 1], [1, 1]])
    counted = digits_frame(table)
    waves = matrix_frame(torch.rand(4, 3), kind="encoding")
    for chart, frame, options in (
        (digits, counted, {}),
        (marked_heatmap, waves, {"kind": "encoding"}),
    ):
        marked = frame.assign(marked=frame["position"] == 2)
        svg = draw(chart, marked, **options)
        framed = re.findall(rf'stroke="{palette(False).text}" stroke-width="2"', svg)
        assert len(framed) == 1


def test_a_grid_carries_its_means_and_the_range_where_seeds_differ():
    apart, alike = (0.5, 0.75), (0.96, 1.0)
    cells = [CellResult(CELLS[0], apart), CellResult(CELLS[1], alike)]
    shown = texts(draw(grid, grid_frame(cells)))
    assert {"62.5 %", "98.0 %", "50.0 to 75.0 %"} <= set(shown)
    assert "96.0 to 100.0 %" not in shown
    narrow = texts(draw(grid, grid_frame(cells), width=300))
    assert "62.5 %" in narrow
    assert "50.0 to 75.0 %" not in narrow
