"""The marker page: opens on a picture, trains, keeps, resets, moves the marker."""

import json
import threading
import time
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core import marker_story, order_grid
from pages._ui import catalogue, marker_view
from tests.test_pages import assert_sound, open_page

(PAGE,) = (info for info in catalogue.list_pages() if info.name == "marker_task")
SMALL = {
    "marker_length": "10",
    "marker_width": "8",
    "marker_heads": "2",
    "marker_samples": "250",
    "marker_steps": "63",
    "marker_batch": "16",
}


def open_marker(**query: str) -> AppTest:
    return open_page(PAGE, **query)


def press(app: AppTest, label: str) -> AppTest:
    (button,) = (b for b in app.button if b.label == label)
    return button.click().run()


def text(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.info, *app.success, *app.warning]
    return "\n".join(part.value.replace("\\", "") for part in parts)


def wait_for(app: AppTest, words: str, seconds: float = 30) -> str:
    deadline = time.monotonic() + seconds
    while words not in text(app) and time.monotonic() < deadline:
        time.sleep(0.1)
        app.run()
    assert words in text(app), text(app)
    return text(app)


def charts(app: AppTest) -> list[dict]:
    """Return the specs of the run's charts; the last of the page is the grid."""
    *live, _ = app.get("vega_lite_chart")
    return [json.loads(c.proto.spec) for c in live]


def test_the_page_opens_on_the_shipped_run_of_the_labs_preset():
    app = open_marker()
    assert_sound(app)
    shown = wait_for(app, "Grey: a shipped run of the preset")
    assert "Step 0 / 756" in shown
    assert len(charts(app)) >= 2


def test_ten_steps_by_hand_show_ten_steps():
    app = press(open_marker(**SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")


def test_a_run_trains_to_its_end_and_says_why_it_stopped():
    app = press(open_marker(**SMALL), "Run")
    wait_for(app, "the cap of 63 steps is reached")


def test_reset_and_run_again_give_the_same_curve():
    app = press(open_marker(**SMALL), "Run")
    first = wait_for(app, "the cap of 63 steps is reached")
    press(app, "Reset")
    wait_for(app, "Step 0 / 63")
    press(app, "Run")
    second = wait_for(app, "the cap of 63 steps is reached")
    (line,) = (part for part in first.splitlines() if part.startswith("Step 63:"))
    assert line in second


def test_a_slider_in_mid_training_keeps_curve_and_weights():
    app = press(open_marker(**SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")
    app.select_slider(key="marker_layers").set_value(3).run()
    shown = text(app)
    assert "Step 10 / 63" in shown
    assert "This run keeps its own settings" in shown
    assert "layers 2 here, 3 there" in shown
    press(app, "Reset with these settings")
    wait_for(app, "Step 0 / 63")
    assert "keeps its own settings" not in text(app)


def test_leaving_the_page_and_coming_back_finds_the_run():
    app = press(open_marker(**SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")
    app.switch_page("pages/03_masks.py").run()
    app.switch_page(f"pages/{PAGE.path.name}").run()
    wait_for(app, "Step 10 / 63")


def test_a_kept_curve_stays_beside_the_next_run():
    app = press(open_marker(**SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")
    press(app, "Keep curve")
    press(app, "Reset")
    assert "Forget kept" in [button.label for button in app.button]


def test_run_and_pause_are_one_button():
    app = open_marker(**SMALL | {"marker_steps": "10000"})
    press(app, "Run")
    assert app.button(key="marker_task_run").label == "Pause"
    assert "Run" not in [button.label for button in app.button]
    press(app, "Pause")
    assert app.button(key="marker_task_run").label == "Run"
    assert "Paused after" in text(app)
    assert "steps a second" not in text(app)


def test_going_back_to_a_step_tells_of_that_step():
    app = press(open_marker(**SMALL), "Run")
    wait_for(app, "the cap of 63 steps is reached")
    (back,) = (s for s in app.select_slider if s.label == "Go back to step")
    back.set_value(21).run()
    shown = text(app)
    assert "Step 21: loss" in shown
    assert "after step 21" in shown
    assert "Step 63:" not in shown


def test_the_marker_cannot_be_moved_before_the_model_is_trained():
    app = open_marker(**SMALL)
    assert app.select_slider(key="marker_moved").disabled
    press(app, "Step 10")
    wait_for(app, "Step 10 / 63")
    app.run()
    assert not app.select_slider(key="marker_moved").disabled


def test_the_task_is_shown_and_its_names_are_defined():
    shown = text(open_marker(**SMALL))
    assert "y is 1 where the marker is +1" in shown
    assert "10,000 steps" not in shown
    assert "63 steps: about" in shown


def test_the_largest_learning_rate_stops_the_run_says_so_and_keeps_the_curve():
    app = press(open_marker(**SMALL | {"marker_rate": "1e+06"}), "Run")
    shown = wait_for(app, "Training stopped")
    assert "learning rate (1e+06) is likely too large" in shown
    assert "no longer finite" in shown
    assert "nan" not in shown
    assert not app.exception
    frame = app.get("vega_lite_chart")[0].proto
    assert frame.data.data or frame.datasets


def test_moving_the_marker_tests_the_trained_model_there():
    app = press(open_marker(**SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")
    app.select_slider(key="marker_moved").set_value(5).run()
    wait_for(app, "with the marker at position 5")


def test_sizes_that_multiply_to_too_much_are_refused_with_the_numbers():
    app = open_marker(
        marker_length="300", marker_width="128", marker_layers="6", marker_batch="32"
    )
    assert not app.exception
    (refusal,) = app.error
    said = refusal.value.replace("\\", "")
    assert "batch_size (32)" in said
    assert "num_layers (6)" in said


@pytest.mark.parametrize(
    "value", ["<script>alert(1)</script>", "", "-1", "1e999", "nan", "٣", "9" * 5000]
)
@pytest.mark.parametrize(
    "control", ["length", "width", "heads", "layers", "positions", "causal", "seed"]
)
def test_a_hostile_address_opens_the_page_all_the_same(control, value):
    assert_sound(open_marker(**{f"marker_{control}": value}))


def test_only_heads_that_divide_the_width_are_offered():
    app = open_marker(marker_width="8", marker_heads="16")
    assert_sound(app)
    (heads,) = (s for s in app.select_slider if s.label == "Heads")
    assert list(heads.options) == ["1", "2", "4", "8"]


def commit(app: AppTest, choice: str) -> AppTest:
    (question,) = app.radio
    question.set_value(choice)
    return press(app, "Commit")


def test_the_prediction_shows_nothing_before_the_run_has_trained():
    app = open_marker(**SMALL)
    assert app.radio[0].value is None
    commit(app, "It falls to about half")
    assert "You committed to: It falls to about half" in text(app)
    assert not app.success
    assert not app.warning


def test_a_commitment_waits_for_the_run_and_is_judged_then(monkeypatch):
    moved = SimpleNamespace(position=5, accuracy=0.7, unmoved=1.0, snapshot=None)
    monkeypatch.setattr(marker_story, "move_marker", lambda trainer, position: moved)
    app = commit(open_marker(**SMALL), "It ends somewhere between these")
    press(app, "Run")
    shown = wait_for(app, "Right.")
    assert "70.0 % with the marker at position 5" in shown
    assert "100.0 %" in shown
    assert "You committed to" not in shown
    commit(app, "It falls to about half")
    wait_for(app, "A coin flip is the answer of a model that reads only the old place")
    commit(app, "It stays where it is")
    wait_for(app, "training never asked for it")


def test_a_busy_trainer_loses_no_commitment(monkeypatch):
    gate = threading.Event()

    def slowly(trainer, position):
        gate.wait(20)
        return SimpleNamespace(position=5, accuracy=0.5, unmoved=1.0, snapshot=None)

    monkeypatch.setattr(marker_story, "move_marker", slowly)
    app = press(open_marker(**SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")
    commit(app, "It falls to about half")
    assert "You committed to" in text(app)
    gate.set()
    assert "50.0 % with the marker at position 5" in wait_for(app, "Right.")


def test_a_run_that_has_not_learned_judges_nobody():
    app = press(open_marker(**SMALL), "Step 1")
    wait_for(app, "Step 1 / 63")
    commit(app, "It falls to about half")
    wait_for(app, "has not learned the task yet")


def test_a_model_let_go_is_said_and_its_curve_kept_when_training_begins_again():
    app = press(open_marker(**SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")
    app.select_slider(key="marker_moved").set_value(5).run()
    held = app.session_state["_held_marker_task"]
    with held.run._turns.changed:
        held.run._seat.attempt.drop_trainer()
    app.run()
    assert text(app).count("The model was let go while the page was away") == 1
    assert "Step 10 / 63" in text(app)
    press(app, "Step 1")
    shown = wait_for(app, "Step 1 / 63")
    assert "let go" not in shown
    assert [(kept.name, kept.num_steps) for kept in held.kept] == [
        ("length 10, width 8, heads 2, batch 16, samples 250, seed 0", 10)
    ]
    press(app, "Step 10")
    wait_for(app, "Step 11 / 63")
    wait_for(app, "with the marker at position 5")


def test_a_marker_at_5_is_counted_as_5_everywhere():
    app = press(open_marker(**SMALL, marker_moved="5"), "Run")
    wait_for(app, "the cap of 63 steps is reached")
    wait_for(app, "with the marker at position 5")
    rows = charts(app)[-1]
    assert "marker" in json.dumps(rows)
    assert "'CLS' : datum.label" in json.dumps(rows)
    assert app.subheader[0].value == "The marker at position 5"


def test_without_a_cls_token_no_axis_names_one():
    app = open_marker(**SMALL, marker_readout="mean")
    wait_for(app, "Weights of the mean query")
    shown = json.dumps(charts(app))
    assert "key position" in shown
    assert "CLS" not in shown


def test_nothing_of_a_chart_but_its_rows_changes_while_a_run_is_live():
    app = open_marker(**SMALL)
    wait_for(app, "Weights of CLS")
    before = [(c.proto.spec, c.proto.alt) for c in app.get("vega_lite_chart")]
    press(app, "Step 10")
    wait_for(app, "Step 10 / 63")
    after = [(c.proto.spec, c.proto.alt) for c in app.get("vega_lite_chart")]
    assert len(before) == 5
    assert after == before
    assert all("the sentence below" in alt for _, alt in after[:4])


@pytest.mark.parametrize("number", range(3))
def test_an_experiment_gives_the_same_settings_from_anywhere(number):
    def run_after(**query: str):
        app = open_marker(**SMALL, **query)
        app.button(key=f"marker_try_{number}").click().run()
        return app.session_state["_held_marker_task"].config

    elsewhere = {"marker_positions": "learned", "marker_readout": "last"}
    names = {0: ("positional", "readout", "causal"), 2: ("learning_rate",)}
    names[1] = names[0]
    here, there = run_after(), run_after(**elsewhere, marker_causal="true")
    for name in names[number]:
        assert getattr(here, name) == getattr(there, name)


@pytest.mark.parametrize(("dropout", "explained"), [("0.1", True), ("0.0", False)])
def test_the_code_shown_is_the_code_that_ran(dropout, explained):
    app = open_marker(**SMALL, marker_dropout=dropout)
    held = app.session_state["_held_marker_task"]
    names = [function.__qualname__ for function in marker_view.inside(held)]
    assert ("scaled_dot_product_attention" in names) is explained
    assert not [name for name in names if name.split(".")[-1].startswith("_")]
    shapes = marker_view.shapes(held)
    assert shapes["scores (B, H, T, S)"] == "(16, 2, 11, 11)"
    assert shapes["scores of the last layer"] == "(16, 2, 1, 11)"


def test_a_trained_model_is_tested_at_another_length():
    app = open_marker(**SMALL)
    assert "Sequence length at test time" not in [box.label for box in app.selectbox]
    press(app, "Step 10")
    wait_for(app, "Step 10 / 63")
    app.run()
    app.selectbox(key="marker_test_length").set_value("30").run()
    wait_for(app, "at length 30, on 1,000 sequences")


def test_the_page_shows_the_grid_of_what_carries_the_order():
    app = open_marker()
    assert "What carries the order?" in [part.value for part in app.subheader]
    chart = app.get("vega_lite_chart")[-1].proto
    assert "accuracy" in json.loads(chart.spec)["title"]["text"]
    results = order_grid.cell_results(order_grid.read_order().results)
    shown = text(app)
    for sentence in order_grid.grid_sentences(results):
        assert sentence in shown
        assert sentence in chart.alt
    assert order_grid.recipe_sentence() in shown
    (origin,) = (part.help for part in app.caption if "All cells" in part.value)
    assert "python -m core.experiments order" in origin.replace("\\", "")


def test_a_table_with_other_numbers_gives_another_sentence(monkeypatch):
    shown = order_grid.read_order()
    lost = tuple(run._replace(accuracy=0.5) for run in shown.results)
    table = shown._replace(results=lost)
    monkeypatch.setattr(order_grid, "read_order", lambda: table)
    shown = text(open_marker())
    assert "0 of 12 cells reach 95 %" in shown
    assert "these seeds show no leak of order" in shown
    assert "hides the ablation" not in shown


@pytest.mark.parametrize("index", [0, 5, 6, 9, 11])
def test_the_controls_can_be_set_to_any_cell_from_anywhere(index):
    elsewhere = {"marker_positions": "learned", "marker_target": "95 %"}
    app = open_marker(**SMALL, **elsewhere, marker_seed="7", marker_dropout="0.3")
    cell = order_grid.CELLS[index]
    app.selectbox(key="marker_cell").set_value(cell.name).run()
    app.button(key="marker_set_cell").click().run()
    assert_sound(app)
    config = app.session_state["_held_marker_task"].config
    assert config == cell.config(seed=0)


def test_the_readout_at_position_0_is_offered_and_named():
    app = open_marker(**SMALL, marker_readout="first")
    assert app.session_state["_held_marker_task"].config.readout == "first"
    wait_for(app, "Weights of the first position")
