"""The marker page: opens on a picture, trains, keeps, resets, moves the marker."""

import json
import time

import pytest
from streamlit.testing.v1 import AppTest

from pages._ui import catalogue
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
    return [json.loads(c.proto.spec) for c in app.get("vega_lite_chart")]


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
    app.slider(key="marker_layers").set_value(3).run()
    shown = text(app)
    assert "Step 10 / 63" in shown
    assert "This run keeps its own settings" in shown
    press(app, "Reset")
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


def test_the_largest_learning_rate_stops_the_run_says_so_and_keeps_the_curve():
    app = press(open_marker(**SMALL | {"marker_rate": "1e+06"}), "Run")
    shown = wait_for(app, "Training stopped")
    assert "learning rate (1e+06) is likely too large" in shown
    assert "no longer finite" in shown
    assert not app.exception
    frame = app.get("vega_lite_chart")[0].proto
    assert frame.data.data or frame.datasets


def test_moving_the_marker_tests_the_trained_model_there():
    app = press(open_marker(**SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")
    app.slider(key="marker_moved").set_value(5).run()
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


def test_the_prediction_is_measured_on_the_run_and_shows_nothing_before():
    app = open_marker(**SMALL)
    (question,) = app.radio
    assert question.value is None
    question.set_value("It falls to about half")
    press(app, "Commit")
    assert "train it first" in text(app)
