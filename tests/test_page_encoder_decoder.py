"""The encoder-decoder page: its four views, their numbers, and what it refuses."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from core import shipped_seq2seq, translation_run, translation_story
from core.charts import stack_diagram
from core.decoding_walk import position_loss, walk_decoding
from core.text_tasks import TASKS
from pages._ui import catalogue, s2s_stack, s2s_view
from tests.test_page_marker_task import press, text, wait_for
from tests.test_pages import assert_sound, open_page

(PAGE,) = (info for info in catalogue.list_pages() if info.name == "encoder_decoder")
SMALL = {
    "s2s_task": "numbers",
    "s2s_steps": "50",
    "s2s_batch": "16",
    "s2s_width": "16",
    "s2s_layers": "1",
}


def open_s2s(view: str = s2s_view.STACK, **query: str) -> AppTest:
    app = open_page(PAGE, s2s_view=view, **query)
    assert_sound(app)
    return app


def turn_to(app: AppTest, view: str) -> None:
    app.query_params["s2s_view"] = view
    app.run()


def titles(app: AppTest) -> list[str]:
    charts = app.get("vega_lite_chart")
    return [json.loads(chart.proto.spec)["title"]["text"] for chart in charts]


def shipped_walk(name: str, typed: str, *, forced: bool):
    task = TASKS[name]
    tokens = task.read(typed)
    return walk_decoding(
        shipped_seq2seq.build(shipped_seq2seq.read_shipped(name)),
        task.source.encode(tokens),
        task.target.encode(task.answer_to(tokens)),
        forced=forced,
        max_len=task.max_target,
    )


def test_the_page_opens_on_a_shipped_model_and_its_cross_attention():
    app = open_s2s()
    trained = shipped_seq2seq.read_shipped("reverse")
    shown = text(app)
    assert translation_run.run_words(trained, own=False) in shown
    seen = shipped_walk("reverse", TASKS["reverse"].example, forced=False)
    weights = translation_story.of_head(seen.explained.cross_maps, 2, 0)
    largest = float(weights.double().max(dim=-1).values.mean())
    assert f"largest weight is {translation_story.percent(largest)}" in shown
    assert titles(app)[1] == "Layer 2, mean of 4 heads: cross-attention"


@pytest.mark.parametrize("name", s2s_view.TASKS)
def test_the_shipped_model_of_a_task_answers_its_example(name):
    seen = shipped_walk(name, TASKS[name].example, forced=False)
    assert seen.right, seen.chosen


def test_the_parts_of_the_stack_are_walked_one_by_one():
    app = press(open_s2s(), "Part after")
    wanted = (
        "Target: cross-attention + shortcut, decoder layer 2",
        "Target: LayerNorm of feed-forward, decoder layer 2",
        "Target: feed-forward, decoder layer 2",
        "Target: after decoder layer 2",
        "Target: last LayerNorm",
        "Linear layer: logits",
        "Softmax: the next token",
    )
    for title in wanted:
        assert titles(app)[1] == title
        if title != wanted[-1]:
            app = press(app, "Part after")
    assert next(b for b in app.button if b.label == "Part after").disabled


@pytest.mark.parametrize(
    ("part", "title"),
    [
        ("Encoder: after the layer", "Source: after encoder layer 2"),
        ("Encoder: feed-forward", "Source: feed-forward, encoder layer 2"),
        ("Source: tokens", "Source: rows of the embedding table"),
        (
            "Decoder: feed-forward + shortcut",
            "Layer 2, mean of 4 heads: cross-attention",
        ),
    ],
)
def test_an_address_opens_its_part_where_the_model_has_it(part, title):
    app = open_s2s(s2s_part=part)  # the last sum leaves the layer under pre-norm
    assert titles(app)[1] == title


def test_every_place_of_the_diagram_has_its_name_in_the_menu():
    both = {*stack_diagram.places(True), *stack_diagram.places(False)}
    assert set(s2s_stack.PARTS) == both
    assert len(set(s2s_stack.PARTS.values())) == len(both)


def test_decoding_steps_from_token_to_token():
    app = open_s2s(s2s_view.DECODE, s2s_task="numbers")
    assert "Step 1 of 4: after '<s>' the model gives" in text(app)
    assert "'3'" in text(app)
    app = press(app, "Next token")
    assert_sound(app)
    assert "Step 2 of 4: after '3'" in text(app)


def test_the_experiment_with_one_letter_twice_shows_a_wrong_answer():
    app = press(open_s2s(), "Sort, the word aa: where does the shipped model go wrong?")
    assert_sound(app)
    assert "which is wrong: first at step 2" in text(app)
    assert "Right would be 'a'" in text(app)


def test_the_experiment_on_the_beam_shows_a_likelier_answer_that_is_right():
    words = "Sort, six times g: greedy decoding writes one too many; what does a beam"
    app = press(open_s2s(), f"{words} find?")
    assert_sound(app)
    shown = text(app)
    assert "it answers 'ggggggg', which is wrong: first at step 7" in shown
    assert "The beam ends with 'gggggg', which is right" in shown
    assert "What a beam of 4 holds after step 7 of its" in shown
    assert "| gggggg\u00a0</s> |" in shown


def test_the_hint_of_dates_says_how_slashed_ones_were_trained():
    app = open_s2s(s2s_view.DECODE, s2s_task="dates")
    hint = app.text_input(key="s2s_dates_text").help
    assert "04/03/1998 (the day first; trained with two digits each)" in hint
    drawn = TASKS["dates"].pairs(400, seed=1)
    slashed = [
        source for source in map("".join, (p.source for p in drawn)) if "/" in source
    ]
    assert slashed
    assert all(source[2] == source[5] == "/" for source in slashed)


def test_teacher_forcing_feeds_the_true_tokens():
    app = open_s2s(s2s_view.DECODE, s2s_task="numbers", s2s_forced="true")
    said = "Fed the true tokens it chooses, step by step, '3 1 2 </s>': right at every"
    assert said in text(app)
    assert "Beam and greedy decoding are always fed their own tokens" in text(app)
    app.toggle(key="s2s_forced").set_value(False).run()
    assert "Fed its own tokens it answers '3 1 2'" in text(app)
    assert "always fed their own tokens" not in text(app)


def test_the_loss_shown_is_the_cross_entropy_of_the_position():
    app = open_s2s(s2s_view.LOSS, s2s_task="numbers", s2s_smoothed="0.1")
    seen = shipped_walk("numbers", TASKS["numbers"].example, forced=True)
    step = seen.steps[seen.least_sure]
    loss = position_loss(step.logits, step.true, 0.1)
    said = translation_story.loss_sentence(loss, step.true, TASKS["numbers"].target)
    assert said in text(app)


def test_the_question_is_answered_by_the_logits_that_move():
    app = open_s2s()
    press(app, "Commit")
    assert "Choose an answer first" in text(app)
    app.radio[0].set_value(app.radio[0].options[2])
    press(app, "Commit")
    assert "Earlier positions may not read a later token" in text(app)
    app.radio[0].set_value(app.radio[0].options[0])
    press(app, "Commit")
    assert "logits before it move by at most 0, from there on by up to" in text(app)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "between 1 and 12"),
        ("abcdefghijklmnop", "between 1 and 12"),
        ("ab<script>", "must be one of"),
        ("**ü**", "must be one of"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused_in_one_sentence(typed, words):
    app = open_s2s()
    app.text_input(key="s2s_reverse_text").set_value(typed).run()
    assert not app.exception
    assert len(app.error) == 1
    assert words in app.error[0].value.replace("\\", "")


def test_a_hostile_address_falls_back_to_what_can_be_shown():
    for view in s2s_view.VIEWS:
        app = open_s2s(
            view,
            s2s_task="<script>",
            s2s_part="1e999",
            s2s_layer="-3",
            s2s_step="999999999",
            s2s_place="nan",
            s2s_beam="0",
            s2s_smoothed="∞",
            s2s_rate="1e400",
        )
        assert app.selectbox(key="s2s_task").value == "reverse"


def test_the_view_train_opens_on_the_shipped_curve_and_the_schedules():
    app = open_s2s(s2s_view.TRAIN, s2s_task="numbers")
    shown = text(app)
    assert "Grey: the shipped run" in shown
    assert "Schedule: warm-up then" in shown
    assert "Grey: dotted, warm-up then constant; dash-dotted, warm-up then" in shown
    assert "Learning rate" in titles(app)


def test_a_run_trains_stays_while_other_views_are_open_and_lends_its_weights():
    app = press(open_s2s(s2s_view.TRAIN, **SMALL), "Run")
    wait_for(app, "the cap of 50 steps is reached", seconds=90)
    app.run()
    shown = text(app)
    assert "of 256 held-out sources answered right in full" in shown
    assert "After step 50:" in shown
    assert "Grey: the shipped run, " in shown  # it stays, to be compared with
    (loss,) = (c for c in app.get("vega_lite_chart") if "Training loss" in c.proto.spec)
    assert '"domain": [0, 500]' in loss.proto.spec  # the steps of the shipped run
    (drawn,) = (c.proto for c in app.get("vega_lite_chart") if "Rows:" in c.proto.alt)
    rows = drawn.alt.partition("Rows: ")[2].partition(". Columns")[0].split()
    assert rows[-1] == "</s>"  # other words build the map anew, in their own order
    turn_to(app, s2s_view.DECODE)
    app.segmented_control(key="s2s_source").set_value("yours").run()
    assert "Your run · 50 training steps" in text(app)
    app.switch_page("pages/03_masks.py").run()
    app.switch_page(f"pages/{PAGE.path.name}").run()
    turn_to(app, s2s_view.TRAIN)
    wait_for(app, "Step 50 / 50")


def test_without_a_run_of_the_task_the_shipped_one_is_shown_and_said_so():
    app = open_s2s(s2s_source="yours")
    assert "The shipped run is shown: no run of yours" in text(app)
