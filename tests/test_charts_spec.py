import json
import re
import subprocess
import sys
import timeit
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
import torch

import core.charts
from core.charts import (
    amounts,
    bars,
    by_length,
    cached_spec,
    comparison,
    curves,
    diagram,
    digits,
    experiments,
    gradient_ruler,
    grid,
    growth,
    heatmap,
    live_curves,
    movement,
    multiples,
    next_token,
    outcomes,
    palette,
    race,
    reach,
    readout_rows,
    row_panels,
    run_lines,
    schedule,
    sequence,
    sweep,
    temperature_curve,
)
from core.charts.amounts import amounts_frame
from core.charts.by_length import by_length_frame
from core.charts.depth import outcomes_frame, runs_frame
from core.charts.diagram import Edge, Node, diagram_frame
from core.charts.experiments import experiments_frame
from core.charts.growth_frames import growth_frame, reach_frame
from core.charts.heatmap import MATRIX_KINDS
from core.charts.image_grid import pixel_frame, pixel_map
from core.charts.next_token import next_token_frame
from core.charts.race import race_frame, ruler_frame
from core.charts.records import grid_frame, live_frame
from core.charts.rows import panels_frame
from core.charts.schedule import schedule_frame
from core.charts.sums_frame import summed_frame
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
)
from core.charts.tiles import maps_of_heads, multiples_frame, side_by_side
from core.growth import Curve
from core.order_grid import CELLS, CellResult

RAW, SCALED = torch.tensor([0.9, 0.1, 0.0]), torch.tensor([0.5, 0.3, 0.2])
TRIALS = torch.arange(10.0).view(2, 5) + 1
ROWS = [RAW.expand(2, 3), SCALED.expand(2, 3)]
MAP = torch.stack([RAW, SCALED])

# name -> chart, options, a frame, and another frame with the same columns
EXAMPLES: dict[str, tuple[Any, dict, pd.DataFrame, pd.DataFrame]] = {
    **{
        f"heatmap of {kind}": (
            heatmap,
            {"kind": kind, "show_values": True},
            matrix_frame(MAP, kind=kind),
            matrix_frame(torch.ones(5, 7), kind=kind),
        )
        for kind in MATRIX_KINDS
    },
    "heatmap without numbers": (
        heatmap,
        {"legend": False},
        matrix_frame(MAP),
        matrix_frame(MAP[:1]),
    ),
    "heatmap with framed cells": (
        heatmap,
        {"kind": "vector", "role": "key", "row_title": "key", "framed": True},
        matrix_frame(MAP, kind="vector", marked=MAP > 0.5),
        matrix_frame(MAP[:1], kind="vector", marked=MAP[:1] > 0.5),
    ),
    "temperature": (
        temperature_curve,
        {},
        temperature_frame(torch.tensor([0.1, 1.0]), RAW[:2], chosen=1.0),
        temperature_frame(torch.tensor([0.1]), RAW[:1], chosen=2.0),
    ),
    "by length": (
        by_length,
        {"series": ("a", "b"), "x_domain": (2.0, 16.0)},
        by_length_frame({("a", 0): [(2, 1.0), (4, 0.5)]}, {"a": [(2, 1.0), (4, 0.5)]}),
        by_length_frame({}, {"b": [(2, 0.25)]}, here=[(2, 0.75)]),
    ),
    "bars": (
        bars,
        {},
        bars_frame({"raw": RAW, "÷ √d_k": SCALED}, ["a", "b", "c"]),
        bars_frame({"raw": RAW[:2]}, ["x", "y"]),
    ),
    "bars of a gradient": (
        bars,
        {"kind": "gradient", "limit": 0.25},
        bars_frame({"raw": RAW, "÷ √d_k": -SCALED}, ["a", "b", "c"], value="gradient"),
        bars_frame({}, [], value="gradient"),
    ),
    "movement": (
        movement,
        {"limit": 2.0},
        movement_frame(RAW, ["a", "b", "c"]),
        movement_frame(RAW[:1], ["x"]),
    ),
    "multiples": (
        multiples,
        {"across": 7, "down": 6},
        multiples_frame(maps_of_heads(torch.stack([MAP] * 3), "abc"), "xy").frame,
        multiples_frame(maps_of_heads(MAP[None], "abc"), "xy").frame,
    ),
    "multiples of values": (
        multiples,
        {
            "kind": "encoding",
            "across": 7,
            "down": 3,
            "limit": 2.0,
            "row_labels": True,
        },
        side_by_side({"1": MAP, "2": MAP}, "xy").frame,
        side_by_side({"1": MAP}, "xy").frame,
    ),
    "summed_heatmap": (
        core.charts.summed_heatmap,
        {"show_values": True},
        summed_frame(torch.tensor([[0.5, 0.25], [0.0, 0.0]]), "ab"),
        summed_frame(torch.eye(3), "abc", mask=torch.zeros(3, 3, dtype=torch.bool)),
    ),
    "comparison": (
        comparison,
        {"series": ("same", "swapped"), "domain": (1e-8, 10.0), "log": True},
        comparison_frame({"none": {"same": 0.0, "swapped": 1e-7}}),
        comparison_frame({"a": {"same": 1}, "b": {"same": 2, "swapped": 3}}),
    ),
    "sweep": (
        sweep,
        {
            "references": ("d_k",),
            "log_y": True,
            "x_domain": (1.0, 64.0),
            "y_domain": (0.5, 20.0),
        },
        sweep_frame([4, 16], {"raw": TRIALS}, references={"d_k": RAW[:2]}, chosen=4),
        sweep_frame([4, 16], {"raw": TRIALS, "÷ √d_k": TRIALS}),
    ),
    "sweep of means": (
        sweep,
        {"centre": "mean", "x_domain": (1.0, 64.0), "y_domain": (0.0, 20.0)},
        sweep_frame([4, 16], {"raw": TRIALS}, chosen=4, centre="mean"),
        sweep_frame([4], {"raw": TRIALS[:1]}, centre="mean"),
    ),
    "similarity as a picture": (
        pixel_map,
        {"kind": "similarity"},
        pixel_frame(MAP.numpy(), kind="similarity", marked=1),
        pixel_frame(MAP.numpy()[:1], kind="similarity"),
    ),
    "curves": (
        curves,
        {"series": ("a", "b"), "x_domain": (0, 2)},
        curves_frame({"a": RAW, "b": SCALED}),
        curves_frame({"a": RAW}),
    ),
    "readout rows": (
        readout_rows,
        {"num_layers": 2, "x_domain": (0, 2)},
        readout_frame(ROWS),
        readout_frame(ROWS[:1]),
    ),
    "sequence": (
        sequence,
        {"num_positions": 3},
        curves_frame({"sequence": RAW}),
        curves_frame({"sequence": RAW[:1]}),
    ),
    "change at each position": (
        sequence,
        {"num_positions": 3, "limit": 0.5, "signed": False, "y_title": "change"},
        curves_frame({"occlusion": RAW}),
        curves_frame({"occlusion": RAW[:1]}),
    ),
    "rows of every head": (
        row_panels,
        {"across": 16.0, "down": 2, "num_keys": 3},
        panels_frame(
            [[("a", RAW.numpy())], [("b", RAW.numpy())]], "012", marker=1
        ).frame,
        panels_frame([[("a", SCALED.numpy())]], "xyz", marker=0).frame,
    ),
    "loss": (
        live_curves,
        {"max_steps": 756},
        live_frame({"now": [(1, 0.7), (2, 0.6)]}, kept={"seed 1": [(1, 0.8)]}),
        live_frame({"now": []}),
    ),
    "loss of another task": (
        live_curves,
        {"ends": (0.0, 4.0), "level": (3.4, "all 29 tokens alike")},
        live_frame({"now": [(1, 3.3), (2, 2.6)]}),
        live_frame({"now": []}),
    ),
    "accuracy of another task": (
        live_curves,
        {"kind": "accuracy", "ends": (0.0, 100.0)},
        live_frame({"now": [(1, 5.0)]}),
        live_frame({"now": []}),
    ),
    "next token": (
        next_token,
        {},
        next_token_frame("ab", [0.75, 0.25], ["chosen, wrong", "other"]),
        next_token_frame([], [], []),
    ),
    "schedule": (
        schedule,
        {"series": ("a", "b"), "max_steps": 9, "most": 0.5},
        schedule_frame({"a": [(1, 0.1)], "b": [(1, 0.5)]}, "a", step=1),
        schedule_frame({}, "a"),
    ),
    "accuracy": (
        live_curves,
        {"kind": "accuracy"},
        live_frame({"now": [(1, 50.0)]}, chosen=1),
        live_frame({"now": []}),
    ),
    "norms over distance": (
        reach,
        {"references": ("LSTM, other start",), "x_domain": (0, 4)},
        reach_frame({"RNN": TRIALS.T}, references={"LSTM, other start": TRIALS.T}),
        reach_frame({"attention": TRIALS}),
    ),
    "growth with length": (
        growth,
        {"x_domain": (16, 64), "y_domain": (1e-4, 1.0), "y_title": "s", "unit": "s"},
        growth_frame(
            {"RNN": Curve((16, 32), (0.1, 0.2))},
            earlier={"RNN": Curve((16,), (0.2,))},
            fits={"RNN": Curve((16, 64), (0.1, 0.4))},
            chosen={"here": 32},
        ),
        growth_frame({"LSTM": Curve((16,), (0.5,))}),
    ),
    "amounts": (
        amounts,
        {"limit": 20.0},
        amounts_frame({"W_O": ("attention", 3), "head": ("ends", 1)}),
        amounts_frame({"W_1": ("feed-forward", 5)}),
    ),
    **{
        f"runs: {kind}": (
            run_lines,
            {"kind": kind, "series": ("pre", "post"), "x_domain": (0.0, 2.0)},
            runs_frame({("pre", ", seed 0"): [(0, 1.0), (1, 2.0)]}),
            runs_frame({("post", ", seed 1"): [(2, 0.5)], ("pre", ""): []}),
        )
        for kind in ("tokens", "gradient", "loss")
    },
    "outcomes": (
        outcomes,
        {"series": ("pre", "post"), "runs": ("", ", seed 0")},
        outcomes_frame([("pre", ", seed 0", 2, 0.1, 1.0), ("post", "", 6, 0.7, 0.5)]),
        outcomes_frame([("post", ", seed 1", 12, 0.5, 0.75)]),
    ),
    "diagram": (
        diagram,
        {"x_domain": (0.0, 9.0), "y_domain": (0.0, 9.0)},
        diagram_frame(
            [Node("norm", 3, 5, "LayerNorm", "(2, 3)", "three numbers")],
            [Edge(((3, 4), (3, 1)))],
        ),
        diagram_frame([Node("sum", 3, 5, "+")], []),
    ),
    "digits": (
        digits,
        {},
        digits_frame(torch.tensor([[0, 0], [1, 0]])).assign(
            marked=[True] * 2 + [False] * 2
        ),
        digits_frame(torch.tensor([[1]])).assign(marked=False),
    ),
    **{
        f"experiments: {measure}": (
            experiments,
            {"measure": measure, "series": ("pre", "post"), "places": ("a", "b")},
            experiments_frame([("2", "a", (0.5, 1.0), "c"), ("12", "b", (0.7,), "d")]),
            experiments_frame([("2", "b", (0.25,), "e")]),
        )
        for measure in ("accuracy", "moved", "loss")
    },
    **{
        f"race: {kind} against {against}": (
            race,
            {"kind": kind, "against": against, "series": ("RNN", "GRU")},
            race_frame(
                {("RNN", 0): [(0, 0.0, 0.5)], ("RNN", 1): [(0, 0.0, 0.7)]},
                {"RNN": [(0, 0.0, 0.6), (20, 1.5, 0.9)]},
                against=against,
            ),
            race_frame({}, {}, against=against),
        )
        for kind, against in (("accuracy", "steps"), ("loss", "seconds"))
    },
    "gradient_ruler": (
        gradient_ruler,
        {"series": ("RNN", "GRU"), "seq_len": 3},
        ruler_frame({"RNN": (1e-20, 0.1, 0.2), "GRU": (1e-3, 0.1, 0.3)}),
        ruler_frame({}),
    ),
    "grid": (
        grid,
        {},
        grid_frame([CellResult(cell, (0.5, 0.75)) for cell in CELLS]),
        grid_frame([CellResult(CELLS[0], (1.0,))]),
    ),
}
each_example = pytest.mark.parametrize("name", EXAMPLES)
each_theme = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


@cache
def spec_of(name: str, *, dark: bool = False) -> dict:
    """Return the spec of an example as Altair validates and writes it."""
    chart, options, frame, _ = EXAMPLES[name]
    return chart(frame, **options, dark=dark).to_dict()


def without_data(spec: dict) -> dict:
    """Return a spec without its rows and the name they go by."""
    return {part: spec[part] for part in spec if part not in ("data", "datasets")}


def channels_of(spec: dict) -> Iterator[tuple[str, dict]]:
    """Return every encoding channel of every layer."""
    for layer in spec["layer"]:
        yield from layer.get("encoding", {}).items()


def texts_in(part: Any) -> Iterator[str]:
    """Return every string of a spec."""
    if isinstance(part, dict):
        for value in part.values():
            yield from texts_in(value)
    elif isinstance(part, list):
        for value in part:
            yield from texts_in(value)
    elif isinstance(part, str):
        yield part


def keys_in(part: Any, wanted: str) -> Iterator[Any]:
    """Return every value that stands under ``wanted`` at any depth."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == wanted:
                yield value
            yield from keys_in(value, wanted)
    elif isinstance(part, list):
        for value in part:
            yield from keys_in(value, wanted)


def test_every_chart_of_the_package_has_an_example():
    charts = set(core.charts.__all__) - {"cached_spec", "nice_limit", "palette"}
    pictures = {"pixel_map"}  # needs Pillow, so it is imported where it is used
    assert {chart.__name__ for chart, *_ in EXAMPLES.values()} == charts | pictures


@each_theme
@each_example
def test_every_field_is_a_column_of_the_frame_or_computed_in_the_spec(name, dark):
    spec = without_data(spec_of(name, dark=dark))
    used = {field for field in keys_in(spec, "field") if field}
    for text in texts_in(spec):
        used |= set(re.findall(r"datum\.(\w+)", text))
        used |= set(re.findall(r"datum\['(\w+)'\]", text))
    for groups in keys_in(spec, "groupby"):
        used |= set(groups)
    computed = set(keys_in(spec, "as"))
    columns = set(EXAMPLES[name][2].columns)
    # An axis label reads its own tick: datum.value, and the label it would have.
    ticks = {"value", "label"} if list(keys_in(spec, "labelExpr")) else set()
    assert used - computed - ticks <= columns
    # No column travels to the browser for nothing.
    assert columns <= used


@each_example
def test_every_field_has_an_explicit_type(name):
    for channel, encoding in channels_of(spec_of(name)):
        for part in (encoding, *encoding.get("condition", ())):
            if (
                isinstance(part, dict)
                and "field" in part
                and channel not in ("x2", "y2")
            ):
                assert part["type"] in ("quantitative", "nominal"), (channel, part)


@each_example
def test_all_marks_read_the_one_frame(name):
    spec = spec_of(name)
    assert not any("data" in layer for layer in spec["layer"])
    rows = EXAMPLES[name][2]
    assert list(spec["data"]) == ["name"]
    assert len(spec["datasets"][spec["data"]["name"]]) == len(rows)


@each_theme
@each_example
def test_a_chart_has_a_title_and_titled_axes_with_horizontal_labels(name, dark):
    spec = spec_of(name, dark=dark)
    assert spec["title"]["text"]
    assert spec["width"] == "container"
    assert spec["height"] > 100
    if name == "diagram":  # its plane has no unit
        assert not [axis for axis in keys_in(spec["layer"], "axis") if axis]
        return
    for channel in ("x", "y"):
        axes = [part["axis"] for kind, part in channels_of(spec)
                if kind == channel and "axis" in part]  # fmt: skip
        assert axes, channel
        for axis in axes:
            assert axis["labelAngle"] == 0
            assert axis["title"] or name == "comparison"  # labels that are sentences


@each_example
def test_no_two_ticks_of_an_axis_read_alike_however_wide_the_chart_is(name):
    for axis in keys_in(without_data(spec_of(name)), "axis"):
        decimals = re.fullmatch(r"\.(\d)~?f", (axis or {}).get("format", ""))
        if decimals:  # a wide chart has ticks between the ones that can be written
            step = 10.0 ** -int(decimals[1])
            ticks = sorted(axis["values"])
            gaps = (b - a for a, b in pairwise(ticks))
            assert all(gap >= step * 0.999 for gap in gaps)


@each_example
def test_a_saved_picture_has_a_margin_on_every_side(name):
    sides = spec_of(name)["padding"]
    assert set(sides) == {"left", "top", "right", "bottom"}
    assert all(8 <= margin <= 12 for margin in sides.values())
    chart, options, frame, _ = EXAMPLES[name]
    assert cached_spec(chart, frame, **options)["padding"] == sides


@each_example
def test_a_title_and_a_height_can_be_chosen(name):
    chart, options, frame, _ = EXAMPLES[name]
    drawn = chart(frame, **options, title="Another title", height=111)
    assert drawn.title.text == "Another title"
    assert drawn.height == 111


@each_example
def test_scales_state_their_domain_so_that_nothing_jumps(name):
    for channel, encoding in channels_of(spec_of(name)):
        named = channel in ("color", "shape", "strokeDash", "xOffset", "yOffset")
        number = encoding.get("type") == "quantitative" and "axis" in encoding
        parts = [encoding, encoding.get("condition", {})]
        for part in parts:
            if "field" not in part or part["field"] == "run":  # kept ones come and go
                continue
            if named or number:
                assert part["scale"]["domain"], (channel, part)


@each_example
def test_a_tooltip_is_one_sentence_and_not_a_table(name):
    tooltips = list(keys_in(spec_of(name)["layer"], "tooltip"))
    assert tooltips or name == "similarity as a picture"  # no cell of it is a mark
    assert all(set(tooltip) == {"expr"} for tooltip in tooltips)


@each_example
def test_the_spec_does_not_depend_on_the_rows(name):
    chart, options, frame, other = EXAMPLES[name]
    assert list(frame.columns) == list(other.columns)
    assert not frame.equals(other)
    expected = without_data(spec_of(name))
    for rows in (other, frame.iloc[:0]):
        spec = chart(rows, **options).to_dict(validate=False)
        assert without_data(spec) == expected


@each_example
def test_the_themes_differ_in_colour_alone(name):
    light, dark = (without_data(spec_of(name, dark=theme)) for theme in (False, True))
    assert light != dark
    colour = re.compile(r"#[0-9a-f]{6}")
    shape, other = (colour.sub("#", json.dumps(spec)) for spec in (light, dark))
    assert shape == other


@each_example
def test_a_cached_spec_is_the_chart_without_data_and_defaults(name):
    chart, options, frame, other = EXAMPLES[name]
    spec = cached_spec(chart, frame, **options)
    assert not {"data", "datasets", "$schema"} & set(spec)
    assert spec == cached_spec(chart, other, **options)
    full = spec_of(name)
    assert set(full) - set(spec) == {"data", "datasets", "$schema"}
    config = {part: full["config"][part] for part in full["config"] if part != "view"}
    assert spec == {part: full[part] for part in spec} | {"config": config}
    json.dumps(spec)


@each_theme
@each_example
def test_a_chart_leaves_fonts_and_background_to_the_theme_of_the_page(name, dark):
    chart, options, frame, _ = EXAMPLES[name]
    config = cached_spec(chart, frame, **options, dark=dark)["config"]
    assert set(config) == {"axis", "axisBand", "legend", "mark"}
    assert config["axis"]["labelColor"] == palette(dark).text
    assert config["mark"] == {"tooltip": None}  # no table from a mark without words


def test_a_cached_spec_tells_options_and_columns_apart():
    chart, options, frame, _ = EXAMPLES["heatmap of weight"]
    plain = cached_spec(chart, frame, **options)
    assert cached_spec(chart, frame, **options, limit=0.3) != plain
    assert cached_spec(chart, frame, **options, dark=True) != plain
    assert cached_spec(movement, EXAMPLES["movement"][2]) != plain


def test_the_order_of_options_does_not_matter():
    frame = EXAMPLES["movement"][2]
    first = cached_spec(movement, frame, limit=3.0, height=123)
    second = cached_spec(movement, frame, height=123, limit=3.0)
    assert first["layer"] is second["layer"]


def test_adding_a_part_to_a_cached_spec_leaves_the_kept_one_alone():
    frame = EXAMPLES["movement"][2]
    cached_spec(movement, frame)["width"] = 7
    assert cached_spec(movement, frame)["width"] == "container"


def test_an_option_that_cannot_be_a_key_is_an_error():
    with pytest.raises(TypeError, match="unhashable"):
        cached_spec(curves, EXAMPLES["curves"][2], series=["a"])


def test_a_kept_spec_costs_next_to_nothing_beside_a_new_one():
    chart, options, frame, _ = EXAMPLES["heatmap of weight"]
    cached_spec(chart, frame, **options)
    kept = min(
        timeit.repeat(lambda: cached_spec(chart, frame, **options), number=20, repeat=5)
    )
    new = min(
        timeit.repeat(lambda: chart(frame, **options).to_dict(), number=1, repeat=3)
    )
    assert kept / 20 < new / 50


@pytest.mark.parametrize(
    ("kind", "ends"), [("loss", [0.0, 1.0]), ("accuracy", [40.0, 100.0])]
)
def test_live_axes_end_at_the_last_step_and_at_fixed_numbers(kind, ends):
    frame = EXAMPLES["loss"][2]
    spec = cached_spec(live_curves, frame, kind=kind, max_steps=756)
    for channel, encoding in channels_of(spec):
        if "axis" in encoding:
            expected = [0, 756] if channel == "x" else ends
            assert encoding["scale"]["domain"] == expected


def test_a_heat_map_ends_its_colours_where_its_limit_says():
    for kind, ends in (("weight", [0.0, 0.3]), ("score", [-0.3, 0.3])):
        frame = matrix_frame(MAP, kind=kind)
        spec = cached_spec(heatmap, frame, kind=kind, limit=0.3)
        scale = spec["layer"][0]["encoding"]["color"]["scale"]
        assert scale["domain"] == ends
        assert scale["scheme"] == MATRIX_KINDS[kind].scheme


@pytest.mark.parametrize(
    ("options", "ticks"),
    [({}, [0.1, 10, 100]), ({"zero": False}, [0.1, 1, 10, 100])],
)
def test_a_logarithmic_comparison_holds_a_place_of_0_unless_told_not_to(options, ticks):
    frame = EXAMPLES["comparison"][2]
    drawn = {"series": ("a",), "domain": (0.1, 100.0), "log": True} | options
    axis = comparison(frame, **drawn).to_dict()["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == pytest.approx(ticks)
    assert ("'0'" in axis["labelExpr"]) == (len(ticks) == 3)


def test_wrong_options_are_refused_with_a_sentence():
    frame = EXAMPLES["movement"][2]
    with pytest.raises(ValueError, match="kind must be one of 'weight', 'score'"):
        heatmap(frame, kind="wieght")
    with pytest.raises(ValueError, match=r"limit \(0\) must be at least"):
        heatmap(frame, limit=0.0)
    with pytest.raises(ValueError, match="kind must be one of 'loss', 'accuracy'"):
        live_curves(frame, kind="los")
    with pytest.raises(ValueError, match=r"max_steps \(0\) must be at least 1"):
        live_curves(frame, max_steps=0)
    with pytest.raises(ValueError, match=r"num_layers \(0\) must be at least 1"):
        readout_rows(frame, num_layers=0)
    with pytest.raises(ValueError, match=r"domain \(0\) must be at least"):
        comparison(frame, series=("a",), domain=(0.0, 1.0), log=True)
    with pytest.raises(ValueError, match="kind must be one of 'weight', 'gradient'"):
        bars(frame, kind="grad")


def test_charts_alone_need_neither_torch_nor_streamlit_nor_image_grids():
    code = (
        "import sys, core.charts; "
        "extra = {'torch', 'streamlit', 'vl_convert', 'core.charts.image_grid'}; "
        "sys.exit(bool(extra & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
