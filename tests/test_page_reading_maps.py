"""The page on attention maps: whose maps, what they give the marker, what moves."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from core import ablation, influence, influence_story, reading, reading_story, trained
from pages._ui import catalogue, live_run, map_view, reading_off, reading_view
from tests.test_page_marker_task import PAGE as MARKER
from tests.test_page_marker_task import SMALL, press, text, wait_for
from tests.test_pages import assert_sound, open_page

(PAGE,) = (info for info in catalogue.list_pages() if info.name == "reading_maps")


def open_reading(view: str = reading_view.ROWS, **query: str) -> AppTest:
    app = open_page(PAGE, reading_view=view, **query)
    assert_sound(app)
    return app


def shipped():
    return trained.build(trained.read_shipped())


def titles(app: AppTest) -> list[str]:
    return [
        json.loads(chart.proto.spec)["title"]["text"]
        for chart in app.get("vega_lite_chart")
    ]


def test_the_page_opens_on_the_shipped_model_and_says_what_the_marker_gets():
    shown = text(open_reading())
    model = trained.read_shipped()
    assert "Shipped run" in shown
    assert f"{model.steps:,} training steps" in shown
    seen = reading.read_sequence(shipped(), sequence=0)
    for sentence in reading_story.row_sentences(seen, model.config):
        assert sentence in shown


def test_layer_1_peaks_at_cls_and_layer_2_at_the_marker():
    shown = text(open_reading())
    assert "Layer 1, mean of 4 heads: CLS reads most from CLS" in shown
    assert "Layer 2, mean of 4 heads: CLS reads most from the marker" in shown


def test_every_map_says_whether_it_is_one_head_or_the_mean():
    for head, name in (("0", "Layer 1, mean of 4 heads"), ("3", "Layer 1, head 3")):
        app = open_reading(reading_view.MAPS, reading_layer="1", reading_head=head)
        assert titles(app) == [name]
        assert f"{name}, the largest weight of the map" in text(app)


def test_the_cells_of_a_map_are_saved_under_the_names_of_the_page(monkeypatch):
    saved = []

    def button(label, data, **_):
        saved.append((label, data))

    monkeypatch.setattr(map_view.st, "download_button", button)
    open_reading(reading_view.MAPS)
    (cells,) = (data() for label, data in saved if label == "Cells as CSV")
    names = [line.split(",")[:2] for line in cells.splitlines()]
    assert names[:3] == [["query", "key"], ["CLS", "CLS"], ["CLS", "0"]]
    assert names[-1] == ["59", "59"]


def test_the_rows_of_the_chosen_head_are_told_and_not_their_mean():
    shown = text(open_reading(reading_layer="1", reading_head="4"))
    assert "Layer 1, head 4: CLS reads" in shown
    assert "mean of 4 heads: CLS reads" not in shown


def test_next_steps_through_heads_and_layers_and_goes_on_from_the_end():
    app = open_reading(reading_view.MAPS, reading_layer="1", reading_head="4")
    assert titles(press(app, "Next")) == ["Layer 2, head 1"]
    assert titles(press(app, "Back")) == ["Layer 1, head 4"]
    app = open_reading(reading_view.MAPS, reading_layer="2", reading_head="4")
    assert titles(press(app, "Next")) == ["Layer 1, head 1"]
    app = open_reading(reading_view.MAPS, reading_layer="2", reading_head="mean")
    assert titles(press(app, "Next")) == ["Layer 2, head 1"]  # before it their mean


def test_a_film_that_stops_leaves_the_controls_at_the_map_it_showed():
    app = open_reading(reading_view.MAPS, reading_layer="2", reading_head="2")
    press(app, "Play")
    assert titles(app) == []  # pictures take the place of the chart
    assert "the largest weight of the map" not in text(app)  # of the map at rest
    assert "Each map is named above it" in text(app)
    assert app.select_slider(key="reading_layer").disabled
    assert app.select_slider(key="reading_head").disabled
    press(app, "Pause")
    assert titles(app) == ["Layer 2, head 2"]
    assert "Layer 2, head 2, the largest weight of the map" in text(app)
    assert not app.select_slider(key="reading_layer").disabled


def test_the_experiment_shows_a_head_whose_largest_weight_is_not_what_moves_most():
    app = open_reading()
    (button,) = (b for b in app.button if b.label.startswith("Weight and influence"))
    button.click().run()
    assert_sound(app)
    case = influence.disagreement()
    model = trained.build(case.trained)
    seen = reading.read_sequence(model, sequence=case.sequence)
    found = influence.influences(
        model,
        seen.inputs[:, None],
        layer=case.layer,
        head=case.head,
        draws=8,
        seed=0,
    )
    assert influence_story.fate_of_largest(found) is not influence_story.Largest.FIRST
    name = reading_story.map_name(case.layer + 1, case.head + 1, 4)
    assert influence_story.influence_sentence(found, name) in text(app)
    assert "The answer is flat here" in text(app)
    assert influence_story.cls_sentence(seen, case.layer + 1, case.head + 1) in text(
        app
    )
    assert len(titles(app)) == 4


def test_another_head_is_read_without_a_second_occlusion(monkeypatch):
    asked, occlusion = [], influence.occlusion

    def counted(*arguments, **options):
        asked.append(1)
        return occlusion(*arguments, **options)

    monkeypatch.setattr(influence, "occlusion", counted)
    app = open_reading(reading_view.INFLUENCE, reading_sequence="77")
    first = text(app)
    app.select_slider(key="reading_head").set_value(2).run()
    assert_sound(app)
    assert text(app) != first
    assert len(asked) == 1


@pytest.mark.parametrize("answer", [0, 1, 2])
def test_the_prediction_is_judged_by_the_occlusion_of_this_sequence(answer):
    app = open_reading(reading_layer="1", reading_head="3")
    model = shipped()
    seen = reading.read_sequence(model, sequence=0)
    found = influence.influences(
        model, seen.inputs[:, None], layer=0, head=2, draws=8, seed=0
    )
    right = influence_story.fate_of_largest(found)
    app.radio(key="reading_predict_picked").set_value(
        app.radio(key="reading_predict_picked").options[answer]
    )
    press(app, "Commit")
    assert bool(app.success) == (answer == right)
    assert bool(app.warning) == (answer != right)


def test_switching_off_a_layer_shows_the_accuracy_without_it():
    app = open_reading(reading_view.OFF)
    assert app.select_slider(key="reading_layer").disabled  # nothing here is of one map
    assert app.select_slider(key="reading_head").disabled
    assert "Nothing is off: 100 %" in text(app)
    app.multiselect(key="reading_off").set_value(["layer 2"]).run()
    assert_sound(app)
    model = shipped()
    off = influence_story.off_choices(model.config)["layer 2"]
    count = reading_off.num_tested(model.config)
    after = ablation.accuracy_without(model, off, count=count)
    assert app.metric[0].value == "100 %"
    assert app.metric[1].value == reading_story.percent(after)
    assert after < 0.95


def test_two_things_off_that_do_better_than_one_of_them_are_said_to():
    app = open_reading(reading_view.OFF)
    picked = ["layer 2", "layer 1, head 4"]
    app.multiselect(key="reading_off").set_value(picked).run()
    assert_sound(app)
    assert "More off is not always worse: layer 2 alone off leaves" in text(app)


def test_a_run_that_answers_no_numbers_is_refused_in_one_sentence(monkeypatch):
    lost = trained.read_shipped()
    weights = {name: values * float("nan") for name, values in lost.weights.items()}
    lost = lost._replace(weights=weights, accuracy=0.532)
    own = live_run.Own(lost, "")
    monkeypatch.setattr(live_run, "own_weights", lambda *_: own)
    app = open_page(PAGE, reading_source="yours", reading_view=reading_view.OFF)
    (refusal,) = app.error
    assert "no longer made of numbers" in refusal.value
    assert not app.info
    assert not app.metric
    assert "53.2" not in text(app)
    assert "Your run · 756 training steps · no test accuracy" in text(app)
    press(app, "Switch off the attention of layer 1: what is left?")
    assert_sound(app)
    assert "Shipped run" in text(app)


def test_a_model_of_many_heads_is_switched_off_one_choice_at_a_time(monkeypatch):
    app = open_reading(reading_view.OFF)
    assert "one head off, or one layer" in text(app)
    monkeypatch.setattr(reading_off, "_SECONDS", 0.01)
    monkeypatch.setattr(reading_story, "_LONGEST", 0.03)  # for two tests, not for ten
    app.multiselect(key="reading_off").set_value(["layer 2"]).run()
    (refusal,) = app.error
    assert "2 layers, 4 heads and length 60 would take" in refusal.value
    assert len(app.metric) == 2
    assert "Off: layer 2." in text(app)


def test_several_sequences_show_their_mean_and_spread_at_the_marker():
    app = open_reading(reading_view.SEVERAL, reading_count="20", reading_head="1")
    many = reading.read_many(shipped(), count=20)
    assert reading_story.many_sentence(many, 2, 1) in text(app)
    assert titles(app) == [
        "Layer 2, head 1: mean",
        "Layer 2, head 1: standard deviation",
    ]


def test_a_marker_that_moves_is_followed_in_one_sequence_and_in_several():
    model, config = shipped(), trained.read_shipped().config
    moved = reading.read_sequence(model, sequence=0, position=30)
    still = reading.read_sequence(model, sequence=0)
    said = reading_story.row_sentences(moved, config)
    assert said != reading_story.row_sentences(still, config)
    shown = text(open_reading(reading_position="30"))
    assert all(sentence in shown for sentence in said)
    app = open_reading(reading_view.SEVERAL, reading_count="5", reading_position="30")
    many = reading.read_many(model, count=5, position=30)
    assert reading_story.many_sentence(many, 2, 0) in text(app)


def test_a_run_of_the_visitor_is_read_after_it_has_trained():
    app = press(open_page(MARKER, **SMALL), "Step 10")
    wait_for(app, "Step 10 / 63")
    app.run()
    app.switch_page(f"pages/{PAGE.path.name}").run()
    app.button_group(key="reading_source").set_value("yours").run()
    shown = text(app)
    assert "Your run · 10 training steps" in shown
    assert "length 10 · 2 layers · 2 heads" in shown
    assert "has not learned the task" in shown


def test_a_readout_that_may_read_no_input_is_said_to_be_such():
    blind = SMALL | {"marker_causal": "true", "marker_readout": "cls"}
    app = press(open_page(MARKER, **blind), "Step 1")
    wait_for(app, "Step 1 / 63")
    app.run()
    app.switch_page(f"pages/{PAGE.path.name}").run()
    app.button_group(key="reading_source").set_value("yours").run()
    assert_sound(app)
    assert "causal mask" in text(app)
    assert "no input reaches it" in text(app)
    assert "has the largest weight" not in text(app)
    app.session_state["reading_view"] = reading_view.INFLUENCE
    app.run()
    assert_sound(app)
    assert "no input has a weight, and none moves the logit" in text(app)


def test_without_a_run_of_the_visitor_the_shipped_one_is_shown_and_said_to_be():
    shown = text(open_reading(reading_source="yours"))
    assert "The shipped run is shown: no run of yours has trained here" in shown
    assert "Shipped run" in shown


@pytest.mark.parametrize(
    "query",
    [
        {"reading_sequence": "-1", "reading_layer": "99", "reading_head": "-3"},
        {"reading_sequence": "1e9", "reading_position": "60", "reading_head": "x"},
        {"reading_sequence": "<script>", "reading_source": "<b>", "reading_limit": "0"},
        {"reading_view": "Switch off", "reading_off": "layer 9"},
        {"reading_view": "Several sequences", "reading_count": "999999999"},
        {"reading_view": "Weight against influence", "reading_draws": "0"},
    ],
)
def test_a_hostile_address_falls_back_to_the_preset(query):
    app = open_page(PAGE, **query)
    assert_sound(app)
    assert "Shipped run" in text(app)
