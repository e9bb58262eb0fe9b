"""What the race teaches, seen through the page."""

import json
import re
import time

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core import fair_fight, fight_config, fight_story
from core.charts import marks
from core.charts.race import _ENDS as AXES
from core.charts.race import ruler_frame
from core.fight_questions import QUESTIONS
from core.fight_results import rulers, seed_curves, standings
from pages._ui import catalogue, fight_view
from tests.test_pages import assert_sound, open_page

PAGE = next(info for info in catalogue.list_pages() if info.name == "fair_fight")


def open_fight(**settings):
    return open_page(PAGE, **{f"fight_{k}": str(v) for k, v in settings.items()})


def text_of(app) -> str:
    blocks = [*app.markdown, *app.caption, *app.success, *app.warning, *app.info]
    text = "\n".join(block.value for block in blocks)
    return re.sub(r"[\\\u2060]", "", text)


def charts_of(app) -> dict:
    """Return the charts by the first word of their title."""
    charts = [chart.proto for chart in app.get("vega_lite_chart")]
    titles = [json.loads(chart.spec)["title"]["text"] for chart in charts]
    return {t.partition(":")[0]: c for t, c in zip(titles, charts, strict=True)}


def rows_of(chart):
    (data,) = chart.datasets or [chart]
    return convert_arrow_bytes_to_pandas_df(data.data.data)


def press(app, label: str):
    (button,) = (b for b in app.button if b.label == label)
    button.click().run()
    assert_sound(app)
    return app


def test_the_names_of_the_controls_are_the_contenders_in_their_order():
    names = [who.name for who in fight_config.contenders()]
    assert fight_view._NAMES[:-1] == names[:-1]
    assert names[-1] == "LSTM +3"


def test_the_page_opens_on_the_shipped_race_and_says_what_it_shows():
    app = open_fight()
    assert_sound(app)
    shipped = fair_fight.read_fights()[60, False]
    rows = rows_of(charts_of(app)["Shipped"])
    assert set(rows["series"]) == {who.name for who in fight_config.contenders()}
    assert set(rows["seed"]) == {"seed 0", "seed 1", "seed 2", "median"}
    said = text_of(app)
    for sentence in fight_story.sentences(shipped.steps, "steps"):
        assert sentence in said
    assert "hard, not impossible" in said
    assert "cannot" not in said
    assert shipped.origin in said


def test_the_answer_by_the_clock_is_not_on_view_before_it_is_asked():
    question = QUESTIONS["clock"]
    app = open_fight()
    assert app.radio[0].label == question.text
    assert not re.search(r"\d s\b", text_of(app))
    timed = text_of(open_fight(against="seconds"))
    assert re.search(r"\d s\b", timed)
    assert "Seconds are measured here" not in timed  # nothing ran here


def test_every_shipped_point_lies_within_the_axes():
    for shipped in fair_fight.read_fights().values():
        for kind in ("accuracy", "loss"):
            low, high = AXES[kind]
            for points in seed_curves(shipped.steps, kind).values():
                assert all(low <= point.value <= high for point in points)


def test_the_ruler_after_training_draws_the_last_look():
    app = open_fight(view="Gradient ruler", moment="after training")
    rows = rows_of(charts_of(app)["Shipped"]).query("series == 'LSTM +3'")
    last = rulers(fair_fight.read_fights()[60, False].steps, "after")["LSTM +3"]
    assert rows["value"].tolist() == pytest.approx(list(last))
    assert "Read after 300 steps; median over 3 seeds." in text_of(app)


@pytest.mark.parametrize("view", ["Curves", "Gradient ruler"])
def test_shipped_medians_are_dashed_and_those_run_here_are_not(view):
    dashes = {}
    for name, chart in charts_of(open_fight(view=view)).items():
        layers = [layer["mark"] for layer in json.loads(chart.spec)["layer"]]
        (thick,) = (mark for mark in layers if mark.get("strokeWidth") == 2.5)
        dashes[name] = thick["strokeDash"]
    assert dashes == {"Shipped": marks.DASHES, "Run here": marks.SOLID}


def test_what_lies_below_the_floor_of_a_ruler_has_no_point():
    values = ruler_frame({"RNN": (1e-20, 0.25)}, floor=1e-16)["value"]
    assert values.isna().tolist() == [True, False]


def test_a_legend_that_names_more_than_ran_says_who_is_missing():
    said = text_of(open_fight(length="300"))
    assert "Not in this race: RNN, LSTM and GRU." in said
    assert "Not in this race" not in text_of(open_fight())


def test_loss_and_seconds_draw_other_numbers_of_the_same_runs():
    app = open_fight(kind="loss", against="seconds")
    assert_sound(app)
    rows = rows_of(charts_of(app)["Shipped"])
    stuck = rows[(rows["series"] == "LSTM") & (rows["role"] == "median")]
    assert 0.6 < stuck["value"].iloc[-1] < 0.75
    steps = fair_fight.read_fights()[60, False].steps
    longest = max(step.seconds for step in steps)
    assert rows["x"].max() == pytest.approx(longest)


def test_the_ruler_shows_whose_gradient_reaches_the_marker():
    app = open_fight(view="Gradient ruler")
    assert_sound(app)
    rows = rows_of(charts_of(app)["Shipped"])
    at_marker = rows[rows["position"] == 0].set_index("series")["value"]
    assert at_marker["Transformer"] > 1e-5
    assert at_marker["LSTM +3"] > 1e-5
    assert not at_marker["RNN"] > 1e-10  # or below the floor
    said = text_of(app)
    assert "Read before training; median over 3 seeds." in said
    assert "Thin:" not in said  # no such lines in this picture
    assert "Seconds are measured here" not in said


def test_equal_parameters_are_counted_and_drawn_apart():
    app = open_fight(view="Parameters", equal="true")
    assert_sound(app)
    said = text_of(app)
    assert "| RNN | hidden 112 | 12,993 | 1.007 |" in said
    assert "1.4 % apart" in said


def test_a_length_without_shipped_runs_says_so():
    app = open_fight(length="120")
    assert_sound(app)
    assert "No runs of 120 tokens" in text_of(app)
    assert set(charts_of(app)) == {"Run here"}


def test_a_race_run_here_stands_beside_the_shipped_one(monkeypatch):
    monkeypatch.setattr(fight_view, "_STEPS", [20, 300])
    app = open_fight(steps=20, length=10, bias=1, against="seconds")
    assert "5 runs of 20 steps" in app.get("progress")[0].proto.text
    press(app, "Run it here")
    end = time.monotonic() + 100
    while "Run it here again" not in {b.label for b in app.button}:
        assert time.monotonic() < end
        time.sleep(0.1)
        app.run()
    rows = rows_of(charts_of(app)["Run here"])
    assert set(rows["series"]) == {"Transformer", "RNN", "LSTM", "GRU", "LSTM +1"}
    assert "After 20 steps, 1 seed." in text_of(app)
    done = app.get("progress")[0].proto.text
    assert done.startswith("110 of 110 steps and looks")  # 5 models, 20 + 2 each
    assert "Seconds are measured here" in text_of(app)


def commit(app, place: int):
    app.radio[0].set_value(app.radio[0].options[place])
    return press(app, "Commit")


@pytest.mark.parametrize(
    ("name", "settings"), [("clock", {}), ("long", {"against": "seconds"})]
)
def test_a_prediction_asks_for_what_is_not_on_view_and_is_judged(name, settings):
    question = QUESTIONS[name]
    found = standings(fair_fight.read_fights()[question.race].steps)
    right = question.answer(found)
    app = open_fight(**settings)
    assert app.radio[0].label == question.text
    assert app.radio[0].value is None
    press(app, "Commit")
    assert "Choose an answer first" in text_of(app)
    wrong = (right + 1) % len(question.choices)
    assert question.choices[wrong][1] in text_of(commit(app, wrong))
    assert f"Right. {fight_story.reveal(found)}" in text_of(commit(app, right))


def test_a_race_that_takes_too_long_is_refused_and_the_shipped_one_stays():
    app = open_fight(length=300, seeds=10, steps=600, equal="true")
    assert not app.exception
    assert "it must be at most 30 min" in app.error[0].value
    body = app.tabs[0]
    assert "it must be at most 30 min" in body.error[0].value  # beside what is refused
    assert "Shipped" in charts_of(open_fight(seeds=10, steps=600))


def test_no_model_is_refused_in_a_sentence():
    app = open_fight()
    app.multiselect(key="fight_models").set_value([]).run()
    assert not app.exception
    assert app.error[0].value == r"Models needs at least one\."
    assert "Shipped" in charts_of(app)


@pytest.mark.parametrize("value", ["<script>", "", "9" * 400, "-1", "\u202e"])
def test_values_that_an_address_makes_up_fall_back(value):
    names = ("length", "equal", "models", "bias", "steps", "seeds", "kind", "view")
    app = open_fight(**dict.fromkeys(names, value))
    assert not app.exception


@pytest.mark.parametrize("number", range(len(fight_view.EXPERIMENTS)))
def test_each_experiment_opens_a_picture_of_shipped_runs(number):
    app = open_fight(view="Parameters")
    app.button(key=f"fight_try_{number}").click().run()
    assert_sound(app)
    assert "Shipped" in charts_of(app)
