"""What the page on the bottleneck teaches, seen through the page."""

import time
from functools import partial

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core import bottleneck, bottleneck_story
from core.charts.by_length import HERE
from pages._ui import bottleneck_runs, bottleneck_view, catalogue
from tests.test_pages import assert_sound, open_page

PAGE = next(info for info in catalogue.list_pages() if info.name == "bottleneck")
NETWORKS, LENGTH, ALIGNMENT, CHANGE, CONTEXT = bottleneck_view.VIEWS


def open_bottleneck(**settings):
    query = {f"bottleneck_{name}": str(value) for name, value in settings.items()}
    return open_page(PAGE, **query)


def rows_of(app):
    (chart,) = app.get("vega_lite_chart")
    (data,) = chart.proto.datasets or [chart.proto]
    return convert_arrow_bytes_to_pandas_df(data.data.data)


def text_of(app) -> str:
    blocks = [*app.markdown, *app.caption]
    return "\n".join(block.value for block in blocks).replace("\\", "")


def commit(app, choice):
    app.radio("bottleneck_reach_picked").set_value(choice)
    button = next(b for b in app.button if b.label == "Commit")
    return button.click().run()


def test_opens_on_two_networks_with_one_vector_between_them():
    app = open_bottleneck()
    assert_sound(app)
    rows = rows_of(app)
    boxes = rows[rows["role"] == "node"]
    assert "context: 64 numbers" in set(boxes["label"])
    assert (boxes["kind"] == "memory").sum() == len("encoderdecoder")
    assert "Nothing else passes: the decoder starts from these 64 numbers" in (
        text_of(app)
    )


def test_with_attention_a_line_leads_from_every_encoder_state_to_the_context():
    names = ("none", "dot product")
    plain, attending = (open_bottleneck(attention=a, source="sea") for a in names)
    lines = [rows_of(app).query("role == 'line'")["path"].nunique() for app in
             (plain, attending)]  # fmt: skip
    # A line for each other state, one from what asks, one from the last state.
    assert lines[1] - lines[0] == len("sea") - 1 + 2
    assert "3 vectors stand ready here" in text_of(attending)
    assert 'Step 0: query "' in text_of(attending)


def test_the_sliders_of_a_step_and_of_a_state_end_with_the_source():
    app = open_bottleneck(attention="dot product", source="sea", step=3)
    assert app.select_slider("bottleneck_step").options == list("0123")
    assert 'Step 3: query "' in text_of(app)
    app = open_bottleneck(view=CHANGE, source="sea", position=2)
    assert app.select_slider("bottleneck_position").options == list("012")
    for none in ("", "s" * 900):
        app.text_input("bottleneck_source").set_value(none).run()
        assert not app.exception


def test_letters_left_out_at_the_end_are_not_read():
    said = text_of(open_bottleneck(source="seashore", cut=5))
    assert 'From "sea" the model writes' in said
    assert "16" in open_bottleneck(source="s" * 40, cut=15).error[0].value


def test_each_kind_of_attention_says_which_state_asks():
    said = [text_of(open_bottleneck(attention=a)) for a in ("additive", "dot product")]
    assert "The state before the step asks" in said[0]
    assert "The state of the step asks" in said[1]


def test_wrong_letters_are_framed_and_the_right_answer_is_told():
    app = open_bottleneck(source="abcdefghijklmnop")
    assert (rows_of(app)["kind"] == "mark").any()
    said = text_of(app)
    assert 'right is "ponmlkjihgfedcba"' in said
    assert "Framed letters are wrong." in said
    short = open_bottleneck(source="sea")
    assert not (rows_of(short)["kind"] == "mark").any()
    assert 'writes "aes": right.' in text_of(short)


@pytest.mark.parametrize("measure", bottleneck_runs.MEASURES)
def test_length_shows_the_shipped_medians_and_says_them(measure):
    app = open_bottleneck(view=LENGTH, measure=bottleneck_runs.MEASURES[measure])
    assert_sound(app)
    runs = bottleneck.read_shipped().by_attention()
    curves = bottleneck_story.seed_curves(runs, measure)
    medians = bottleneck_story.median_curves(curves)
    rows = rows_of(app)
    assert len(rows.query("role == 'seed'")) == 9 * len(bottleneck.LENGTHS)
    for name in medians:
        drawn = rows[(rows["role"] == "median") & (rows["series"] == name)]
        assert drawn["share"].tolist() == [share for _, share in medians[name]]
    assert bottleneck_story.length_sentence(runs, measure) in text_of(app)


def test_a_smaller_context_breaks_at_shorter_strings():
    app = open_bottleneck(view=CONTEXT)
    assert_sound(app)
    medians = rows_of(app).query("role == 'median'")
    at_six = medians[medians["length"] == 6].set_index("series")["share"]
    assert at_six["4 numbers"] < at_six["64 numbers"]
    assert "Context vector" not in text_of(app)
    assert "of the lengths tested (2, 4, … 16): at least half" in text_of(app)
    assert "additive" not in text_of(app)


def test_the_sizes_offered_are_those_that_core_trains_with_one_below():
    sizes = [*bottleneck.CONTEXTS, bottleneck.HIDDEN_SIZE]
    assert [2, *sizes] == bottleneck_runs.CONTEXTS
    assert set(bottleneck_view.ATTENTIONS) == set(bottleneck.ATTENTIONS)


def test_the_map_keeps_repeated_letters_apart_and_states_entropy_and_mass():
    app = open_bottleneck(view=ALIGNMENT, source="seventeen")
    assert_sound(app)
    rows = rows_of(app)
    assert {"e·1", "e·3", "e·6", "e·7"} <= set(rows["key"])
    sums = rows.groupby("query")["weight"].sum()
    assert sums.tolist() == pytest.approx([1.0] * len(sums), abs=1e-5)
    said = text_of(app)
    assert "Entropy of a row, that of the end counted in:" in said
    assert "have their largest weight" in said
    assert "aligns" not in said


def test_without_attention_a_changed_state_moves_nothing_but_for_the_last():
    first, last = (
        open_bottleneck(view=CHANGE, changed="none", position=at) for at in (0, 13)
    )
    assert (rows_of(first)["moved"] == 0).all()
    assert "all distances are exactly 0" in text_of(first)
    assert (rows_of(last)["moved"] > 0).any()


def test_a_changed_state_is_named_by_its_number_and_letter_in_words_and_title():
    app = open_bottleneck(view=CHANGE, source="encoder", position=1)
    spec = app.get("vega_lite_chart")[0].proto.spec
    assert "How far each output moves: state 1 (n) set to zeros" in spec
    assert '"title": "output"' in spec
    assert "State 1 (n) set to zeros: output" in text_of(app)
    assert "of its weight on that state." in text_of(app)


def test_one_letter_is_told_in_the_singular_and_by_necessity():
    said = text_of(open_bottleneck(view=ALIGNMENT, source="a"))
    assert "by necessity" in said
    assert "1 outputs" not in said


def legend_of(app):
    return app.get("vega_lite_chart")[0].proto.spec.count(HERE)


def notes_of(app) -> str:
    return " ".join(note.value for note in app.info).replace("\\", "")


def trained_for(monkeypatch, max_steps: int):
    """Return the page on lengths with a run of so many steps begun on it."""
    short = partial(bottleneck.BottleneckConfig, max_steps=max_steps)
    monkeypatch.setattr(bottleneck, "BottleneckConfig", short)
    app = open_bottleneck(view=LENGTH)
    assert legend_of(app) == 0, "a run that nobody began has no line"
    return button_of(app).click().run()


def button_of(app):
    return app.button(key="bottleneck/length_measure")


def chosen(app, attention: str):
    return app.selectbox("bottleneck_trained").set_value(attention).run()


def test_a_run_that_is_not_tested_yet_has_no_dashed_line(monkeypatch):
    app = trained_for(monkeypatch, 5_000)
    assert legend_of(app) > 0, "the picture stays the same while a run is live"
    for _ in range(100):
        app = chosen(app, "dot product")
        if notes_of(app):
            break
        time.sleep(0.05)
    assert "Training here: no attention, 64 numbers in the context, seed 0" in (
        notes_of(app)
    )
    assert "not tested yet" in notes_of(app)
    assert "dashed" not in notes_of(app)
    app = button_of(app).click().run()
    assert "set its own settings again to go on with it" in notes_of(app)
    assert button_of(chosen(app, "none")).label == "Go on"


def test_a_finished_run_is_told_without_so_far(monkeypatch):
    app = trained_for(monkeypatch, 8)
    for _ in range(200):
        if button_of(app).label == "Train one here again":
            break
        time.sleep(0.1)
        app.run()
    assert "Run here, whole strings right: " in text_of(app)
    assert "so far" not in text_of(app)
    app = chosen(app, "dot product")
    assert "The dashed line is that run." in notes_of(app)
    assert "is stopped" not in notes_of(app)


def test_with_attention_a_changed_state_moves_outputs():
    for how in bottleneck_view.CHANGES.values():
        app = open_bottleneck(view=CHANGE, how=how)
        assert_sound(app)
        assert (rows_of(app)["moved"] > 0).any(), how


def test_the_prediction_is_answered_from_the_shipped_runs():
    runs = bottleneck.read_shipped().by_attention()
    right = bottleneck_story.right_band(runs)
    texts = [choice.text for choice in bottleneck_runs.CHOICES]
    app = commit(open_bottleneck(), texts[right])
    assert app.success[0].value.startswith("Right.")
    wrong = (right + 1) % len(texts)
    app = commit(open_bottleneck(), texts[wrong])
    assert bottleneck_runs.CHOICES[wrong].misconception in app.warning[0].value
    app = open_bottleneck()
    app = next(b for b in app.button if b.label == "Commit").click().run()
    assert app.info[0].value == "Choose an answer first."


@pytest.mark.parametrize(
    ("source", "refusal"),
    [
        ("", "has 0"),
        ("abcdefghijklmnopq", "between 1 and 16"),
        ("<script>", "<"),
        ("häuser", "ä"),
    ],
)
def test_a_source_that_is_none_is_refused_with_a_sentence(source, refusal):
    app = open_bottleneck()
    app.text_input("bottleneck_source").set_value(source).run()
    assert not app.exception
    assert refusal in app.error[0].value.replace("\\", "")


@pytest.mark.parametrize("view", bottleneck_view.VIEWS)
def test_a_hostile_address_never_gives_an_exception(view):
    hostile = dict.fromkeys(
        ("attention", "step", "score", "changed", "position", "how", "measure",
         "trained", "context", "seed"),
        "<script>alert(1)</script>",
    )  # fmt: skip
    app = open_bottleneck(view=view, **hostile)
    assert_sound(app)
    app = open_bottleneck(view=view, step="1e999", position="-5", context="", seed=-1)
    assert not app.exception


def test_an_experiment_shows_the_same_whatever_was_set_before():
    odd = {
        "source": "zebra", "cut": 2, "attention": "dot product", "score": "dot product",
        "changed": "dot product", "position": 3, "how": "scaled", "factor": -2.0,
        "step": 3,
    }  # fmt: skip
    for number, settings in enumerate(bottleneck_view.EXPERIMENTS.values()):
        shown = []
        for before in ({}, odd):
            app = open_bottleneck(view=settings["view"], **before)
            app.button(f"bottleneck_try_{number}").click().run()
            shown.append(text_of(app))
        assert shown[0] == shown[1]


def test_every_experiment_sets_the_controls_and_shows_a_sound_page():
    for number in range(len(bottleneck_view.EXPERIMENTS)):
        app = open_bottleneck()
        app.button(f"bottleneck_try_{number}").click().run()
        assert_sound(app)
