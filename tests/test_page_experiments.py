"""What the bench teaches, seen through the page."""

import json
import re
import time

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core import grid_cell, grid_presets, grid_story, order_grid
from core.grid_presets import PRESETS
from core.grid_questions import QUESTIONS, right_choice
from core.grid_table import grid_text, read_shipped
from pages._ui import bench_view, catalogue
from tests.test_pages import assert_sound, open_page
from tests.tiny_grid import BASE

PAGE = next(info for info in catalogue.list_pages() if info.name == "experiments")


def open_bench(*, reveal: bool = True, **settings):
    query = {f"bench_{name}": str(value) for name, value in settings.items()}
    app = open_page(PAGE, **query)
    if reveal:
        press(app, "Show without predicting")
    return app


def press(app, label: str):
    (button,) = (b for b in app.button if b.label == label)
    button.click().run()
    assert_sound(app)
    return app


def commit(app, place: int):
    radio = app.radio[0]
    radio.set_value(radio.options[place])
    return press(app, "Commit")


def text_of(app) -> str:
    blocks = [*app.markdown, *app.caption, *app.success, *app.warning, *app.info]
    text = "\n".join(block.value for block in blocks)
    return re.sub(r"[\\\u2060]", "", text)


def charts_of(app) -> list:
    return [chart.proto for chart in app.get("vega_lite_chart")]


def rows_of(chart):
    (data,) = chart.datasets or [chart]
    return convert_arrow_bytes_to_pandas_df(data.data.data)


def first_words(rows) -> set[str]:
    """The levels of the colour: the first words on a place."""
    return {place.split(",")[0] for place in rows["place"]}


def test_the_presets_of_the_page_are_those_of_the_command():
    named = {preset.name: preset.title for preset in PRESETS.values()}
    own = {"own": "A grid of your own"}
    assert named | own == bench_view.GRIDS


@pytest.mark.parametrize("name", PRESETS)
def test_nothing_of_the_runs_is_shown_before_a_prediction(name):
    app = open_bench(reveal=False, grid=PRESETS[name].title)
    assert_sound(app)
    assert not charts_of(app)
    assert app.radio[0].value is None
    assert list(app.radio[0].options) == [c[0] for c in QUESTIONS[name].choices]
    assert "%" not in text_of(app)
    press(app, "Commit")  # without a choice
    assert "Choose an answer first" in text_of(app)
    assert not charts_of(app)


@pytest.mark.parametrize("name", ["order", "moved"])
def test_a_prediction_is_judged_by_the_runs_and_can_be_tried_again(name):
    preset = PRESETS[name]
    cells = grid_story.summaries(read_shipped(name).results)
    right = right_choice(preset, cells)
    wrong = (right + 1) % 4
    app = commit(open_bench(reveal=False, grid=preset.title), wrong)
    assert f"Not this one. {QUESTIONS[name].choices[wrong][1]}" in text_of(app)
    assert charts_of(app)
    commit(app, right)
    reach, _, spread = grid_story.sentences(cells, preset.factors)
    assert f"Right. {reach} {spread}" in text_of(app)


def test_the_two_noises_are_compared_once_both_grids_are_shown():
    app = open_bench()
    assert "The grid with normal noise tests that." in text_of(app)
    assert order_grid.noise_sentence() not in text_of(app)
    app.selectbox(key="bench_grid").set_value("order_normal").run()
    assert order_grid.noise_sentence() not in text_of(app)
    press(app, "Show without predicting")
    assert order_grid.noise_sentence() in text_of(app)


def test_norm_colours_the_grid_of_depth_from_the_start():
    app = open_bench(grid=PRESETS["depth"].title)
    assert app.selectbox(key="bench_colour").value == "norm"
    assert first_words(rows_of(charts_of(app)[0])) == {"pre-norm", "post-norm"}


def test_a_reload_keeps_what_was_shown():
    app = open_bench()
    assert app.query_params["bench_shown"] in ("order", ["order"])
    again = open_page(PAGE, bench_shown="moved.order.<b>")
    assert_sound(again)
    assert charts_of(again)
    assert not charts_of(open_page(PAGE, bench_shown="moved.<b>"))


def test_what_was_shown_stays_when_the_page_was_left_after_a_reload():
    app = open_page(PAGE, bench_shown="order")
    del app.query_params["bench_shown"]  # as another page in between does
    app.run()
    assert_sound(app)
    assert charts_of(app)
    assert app.query_params["bench_shown"] in ("order", ["order"])


def test_the_picture_holds_every_shipped_cell_and_follows_the_axes():
    app = open_bench()
    (chart,) = charts_of(app)
    rows = rows_of(chart)
    assert len(rows) == 12
    assert set(rows["x"]) == {"mean", "last", "first"}
    cells = grid_story.summaries(read_shipped("order").results)
    assert sorted(rows["mean"]) == pytest.approx(sorted(c.mean() for c in cells))
    app.selectbox(key="bench_x").set_value("causal").run()
    app.selectbox(key="bench_colour").set_value("readout").run()
    app.selectbox(key="bench_measure").set_value("moved").run()
    assert_sound(app)
    rows = rows_of(charts_of(app)[0])
    assert set(rows["x"]) == {"no", "yes"}
    assert first_words(rows) == {"readout mean", "readout last", "readout first"}
    moved = sorted(cell.mean("moved") for cell in cells)
    assert sorted(rows["mean"]) == pytest.approx(moved)


def test_the_text_says_what_the_shipped_runs_show_and_what_made_them():
    app = open_bench(grid="Move the marker")
    said, preset = text_of(app), PRESETS["moved"]
    cells = grid_story.summaries(read_shipped("moved").results)
    for sentence in grid_story.sentences(cells, preset.factors):
        assert sentence in said
        assert sentence in charts_of(app)[0].alt
    assert "Shipped table. Made by python -m core.experiments moved" in said
    assert "cannot" not in said


def test_the_shipped_runs_can_be_downloaded():
    app = open_bench()
    (download,) = app.get("download_button")
    assert "CSV" in download.proto.label


def test_a_grid_run_here_states_its_budget_and_stands_apart(monkeypatch):
    tiny = grid_presets.Preset(
        "order", PRESETS["order"].title, PRESETS["order"].levels, BASE
    )
    monkeypatch.setitem(grid_presets.PRESETS, "order", tiny)
    app = open_bench()
    bars = [bar.proto.text for bar in app.get("progress")]
    budget = grid_story.budget_sentence(tiny.cells, 1)
    assert [re.sub(r"[\\\u2060]", "", text) for text in bars] == [budget]
    press(app, "Run here")
    end = time.monotonic() + 100
    while "Run here again" not in {b.label for b in app.button}:
        assert time.monotonic() < end
        time.sleep(0.1)
        app.run()
    shipped, here = charts_of(app)
    assert json.loads(here.spec)["title"]["text"].startswith("Runs made here")
    assert json.loads(shipped.spec)["title"]["text"].startswith("Shipped runs")
    first = grid_cell.run_cell(tiny.cells[0], 0)
    rows = rows_of(here)
    assert len(rows) == 12
    assert rows["mean"][0] == pytest.approx(first.accuracy, abs=0.02)
    assert len(app.get("download_button")) == 2
    own = [grid_cell.run_cell(cell, 0) for cell in tiny.cells]
    for sentence in grid_story.sentences(grid_story.summaries(own), tiny.factors):
        assert sentence in text_of(app)
    assert not re.search(r"step \d+ of \d+", text_of(app))
    (bar,) = app.get("progress")
    assert re.match(r"732 of 732 training steps and measurements", bar.proto.text)


@pytest.mark.parametrize("grid", ["<script>", "", "9" * 400, "\u202e"])
def test_a_grid_that_an_address_makes_up_is_the_first(grid):
    app = open_bench(reveal=False, grid=grid)
    assert_sound(app)
    assert app.radio[0].options[0] == QUESTIONS["order"].choices[0][0]


@pytest.mark.parametrize("number", range(3))
def test_each_experiment_sets_the_controls_it_names(number):
    app = open_bench(reveal=False)
    app.button(key=f"bench_try_{number}").click().run()
    assert_sound(app)
    wanted = (
        ("order", "readout", "positional", "accuracy"),
        ("moved", "model", "nothing", "moved"),
        ("depth", "warmup_steps", "norm", "loss"),
    )[number]
    reveal_all = [b for b in app.button if b.label == "Show without predicting"]
    if reveal_all:
        press(app, "Show without predicting")
    names = ("grid", "x", "colour", "measure")
    held = tuple(app.selectbox(key=f"bench_{name}").value for name in names)
    assert held == wanted


# One's own table and grid


def upload(app, text: str):
    app.file_uploader[0].set_value(("own.csv", text.encode(), "text/csv")).run()
    assert not app.exception
    return app


def test_a_table_of_ones_own_is_drawn_and_its_runs_are_not_run_again():
    cells = PRESETS["heads"].cells
    runs = [grid_cell.Result(cell, 0, 200, 0.5, 0.75, 0.5) for cell in cells[:2]]
    other = grid_cell.Result(BASE, 0, 60, 0.5, 0.75, 0.5)
    app = open_bench(grid=PRESETS["heads"].title)
    upload(app, grid_text({}, [*runs, other]))
    assert_sound(app)
    said = text_of(app)
    assert "Your table: 2 of its 3 runs are of this grid; 1 are of other" in said
    (rows,) = (rows_of(c) for c in charts_of(app) if "Your runs" in c.spec)
    assert rows["mean"].tolist() == [0.75, 0.75]
    bars = [re.sub(r"[\\\u2060]", "", b.proto.text) for b in app.get("progress")]
    assert bars == [grid_story.budget_sentence(cells, 1, runs)]


def test_a_damaged_table_gets_a_sentence_and_what_was_shown_stays():
    cell = PRESETS["heads"].cells[0]
    good = grid_text({}, [grid_cell.Result(cell, 0, 200, 0.5, 0.75, 0.5)])
    app = upload(open_bench(grid=PRESETS["heads"].title), good)
    upload(app, good.replace("0.7500", "<b>much</b>"))
    (refusal,) = (re.sub(r"[\\\u2060]", "", e.value) for e in app.error)
    assert refusal.startswith("line 2, column accuracy: it must be a number, got")
    assert len(charts_of(app)) == 2
    assert "Your table: 1 of its 1 run" in text_of(app)
    assert "What stands below is of your earlier table, own.csv." in text_of(app)


def test_a_table_without_a_run_is_refused_and_the_earlier_one_stays():
    cell = PRESETS["heads"].cells[0]
    good = grid_text({}, [grid_cell.Result(cell, 0, 200, 0.5, 0.75, 0.5)])
    app = upload(open_bench(grid=PRESETS["heads"].title), grid_text({}, []))
    assert "the table holds no run" in app.error[0].value
    assert "earlier table" not in text_of(app)
    upload(app, good)
    assert not app.error
    upload(app, grid_text({}, []))
    assert "the table holds no run" in app.error[0].value
    assert "earlier table, own.csv." in text_of(app)
    assert len(charts_of(app)) == 2


def test_each_place_beside_another_has_a_shape_of_its_own_and_its_level_colour():
    app = open_bench()
    point = json.loads(charts_of(app)[0].spec)["layer"][-1]["encoding"]
    shape, colour = point["shape"], point["color"]
    assert shape["field"] == colour["field"] == point["xOffset"]["field"] == "place"
    assert len(set(shape["scale"]["range"])) == 4
    one, two, three, four = colour["scale"]["range"]
    assert one == two != three == four
    assert shape["scale"]["domain"] == point["xOffset"]["scale"]["domain"]


def test_a_table_that_is_taken_out_stays_until_it_is_forgotten():
    cell = PRESETS["heads"].cells[0]
    good = grid_text({}, [grid_cell.Result(cell, 0, 200, 0.5, 0.75, 0.5)])
    app = upload(open_bench(grid=PRESETS["heads"].title), good)
    assert len(charts_of(app)) == 2
    assert "Forget your table" not in {button.label for button in app.button}
    app.file_uploader[0].set_value([]).run()
    assert_sound(app)
    assert len(charts_of(app)) == 2
    press(app, "Forget your table")
    assert len(charts_of(app)) == 1
    assert "Your table" not in text_of(app)


def test_a_table_that_holds_the_whole_grid_leaves_nothing_to_run():
    runs = [grid_cell.Result(c, 0, 200, 0.5, 0.75, 0.5) for c in PRESETS["heads"].cells]
    app = upload(open_bench(grid=PRESETS["heads"].title), grid_text({}, runs))
    assert "Your table holds every run of this grid" in text_of(app)
    assert "Run here" not in {b.label for b in app.button}


def test_a_grid_of_ones_own_states_its_cells_and_runs():
    app = open_bench(reveal=False, grid="A grid of your own")
    assert_sound(app)
    (bar,) = app.get("progress")
    assert bar.proto.text.startswith("4 cells × 1 seed = 4 runs")
    kinds = [element.type for element in app.main]
    assert kinds.index("progress") < kinds.index("file_uploader")
    app.multiselect(key="bench_num_heads").set_value(["heads 4", "heads 8"]).run()
    assert_sound(app)
    assert app.get("progress")[0].proto.text.startswith("8 cells")


def test_a_grid_too_large_or_empty_is_refused_with_its_numbers():
    app = open_bench(reveal=False, grid="A grid of your own")
    heads = [f"heads {n}" for n in (1, 2, 4, 8, 16)]
    app.multiselect(key="bench_num_heads").set_value(heads).run()
    assert not app.exception
    assert "make 20 cells; at most 16 are allowed" in app.error[0].value
    app.multiselect(key="bench_num_heads").set_value([]).run()
    assert not app.exception
    assert "Heads needs at least one level" in app.error[0].value
