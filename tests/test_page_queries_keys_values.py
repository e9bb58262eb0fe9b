"""What the page on queries, keys and values teaches, seen through the page."""

import json

import pytest

from core import lookup
from core.lookup_story import MOVED
from pages._ui import catalogue, lookup_view
from tests.test_page_masks import charts_by_title, commit, press, rows_of, text_of
from tests.test_pages import assert_sound, open_page

PAGE = next(p for p in catalogue.list_pages() if p.name == "queries_keys_values")
WORDS = lookup_view.WORDS.split()
STEPS, EDIT, HARD = lookup_view.VIEWS
STAGES = list(lookup_view.STAGES)


def open_lookup(stage=None, **settings):
    if stage:
        settings["stage"] = lookup_view.STAGES.get(stage, stage)
    return open_page(PAGE, **{f"qkv_{k}": str(v) for k, v in settings.items()})


def numbers_of(app, title, column):
    return rows_of(app, title)[column].tolist()


def control(app, name):
    kinds = ("selectbox", "button_group", "select_slider", "text_input")
    found = [part for kind in kinds for part in app.get(kind)]
    return next(part for part in found if part.key == f"qkv_{name}")


def run_offered(app):
    """Run the offered Python; return the number it ends with."""
    names: dict = {}
    exec(app.code[1].value.replace("print(cell)", ""), names)
    return names["cell"]


def test_opens_on_the_sentence_projected_to_queries_with_shapes_and_numbers():
    app = open_lookup()
    assert_sound(app)
    seen = lookup.look_up(WORDS, d_model=4, d_k=3, seed=0)
    charts = charts_by_title(app)
    assert list(charts) == ["x (9, 4)", "W_q (4, 3)", "q (9, 3)"]
    assert numbers_of(app, "x (9, 4)", "value") == seen.x_query.flatten().tolist()
    assert numbers_of(app, "W_q (4, 3)", "factor") == seen.w_q.flatten().tolist()
    assert numbers_of(app, "q (9, 3)", "value") == seen.q.flatten().tolist()
    assert "Embeddings and projections (to one decimal) are random" in text_of(app)
    assert any("(9, 3) = " in block.value for block in app.markdown)


@pytest.mark.parametrize("stage", STAGES)
def test_the_offered_python_gives_the_framed_number_of_every_stage(stage):
    app = open_lookup(stage, query="was", key="dog", dim=1, seed=3)
    assert_sound(app)
    below = ("Weights (1, 9), one head", "Output moves with a key hidden (1, 9)")
    stages = [
        found for title, found in charts_by_title(app).items() if title not in below
    ]
    last = stages[-1][1]
    framed = last[last["marked"]]
    (shown,) = framed[framed.columns[2]].tolist()
    assert run_offered(app) == pytest.approx(shown, abs=1e-6)
    assert app.latex[-1].value.strip().strip("$").strip() == app.code[0].value


@pytest.mark.parametrize("vector", ["query", "key", "value"])
def test_every_projection_has_its_arithmetic(vector):
    app = open_lookup("project", vector=vector, dim=2)
    assert_sound(app)
    token = {"query": "it", "key": "street", "value": "street"}[vector]
    name = vector[0] if vector != "query" else "q"
    rows = rows_of(app, f"{name} (9, 3)")
    (shown,) = rows.query("token == @token and dimension == '2'")["value"]
    assert run_offered(app) == pytest.approx(shown, abs=1e-6)
    assert f'{vector.title()} of "{token}", dimension 2: 4 products' in text_of(app)


def test_next_and_back_walk_through_the_six_stages():
    app = open_lookup()
    walked = []
    for _ in STAGES:
        walked.append(control(app, "stage").value)
        buttons = {button.key: button for button in app.button}
        if not buttons["qkv_next"].disabled:
            app = press(app, "qkv_next")
            assert_sound(app)
    assert walked == STAGES
    assert {b.key: b.disabled for b in app.button}["qkv_next"]
    assert not {b.key: b.disabled for b in app.button}["qkv_back"]
    app = press(app, "qkv_back")
    assert control(app, "stage").value == STAGES[-2]


def test_one_query_over_two_keys_is_one_row_that_sums_to_1_and_columns_need_not():
    app = open_lookup(
        "softmax", text="dog street", source=lookup_view.OTHER, reader="it", d_model=3
    )
    assert_sound(app)
    weights = rows_of(app, "Weights (1, 2), one head")
    assert weights["query"].tolist() == ["it", "it"]
    assert weights["key"].tolist() == ["dog", "street"]
    assert weights["weight"].sum() == pytest.approx(1)
    low, high = (f"{x:.3g}" for x in sorted(weights["weight"]))
    told = f"Every row sums to 1 over the keys; columns need not, here from {low}"
    assert f"{told} to {high}." in text_of(app)


def test_a_map_of_other_words_has_queries_down_keys_across_and_keeps_repeats_apart():
    app = open_lookup(
        "score",
        source=lookup_view.OTHER,
        reader="wet it wet",
        text="the dog the street",
    )
    title = "Scores q·k (3, 4), one head"
    rows = rows_of(app, title)
    assert rows["query"].unique().tolist() == ["wet·0", "it", "wet·2"]
    assert rows["key"].unique().tolist() == ["the·0", "dog", "the·2", "street"]
    spec = json.dumps(charts_by_title(app)[title][0])
    assert "query (reads)" in spec
    assert "key (is read)" in spec


def test_titles_have_the_colours_of_query_key_and_value():
    colours = {}
    for stage in ("score", "weigh"):
        for title, (spec, _) in charts_by_title(open_lookup(stage)).items():
            colours[title] = spec["title"].get("color")
    assert colours["q (9, 3)"] == "#0072b2"
    assert colours["k (9, 3)"] == "#b87400"
    assert colours["v (9, 3)"] == "#005f3b"


@pytest.mark.parametrize(
    ("vector", "rows", "outputs"), [("query", 1, 1), ("key", 9, 9), ("value", 0, 9)]
)
def test_an_edit_shows_what_moves_and_what_is_exactly_0(vector, rows, outputs):
    app = open_lookup(view=EDIT, edited=vector, token="dog", dim=0)
    assert_sound(app)
    weights = rows_of(app, "Δ weights (9, 9), one head")
    output = rows_of(app, "Δ output (9, 3)")
    moved = weights.groupby("query", sort=False)["change"].agg(lambda x: (x != 0).any())
    assert int(moved.sum()) == rows
    moved = output.groupby("query", sort=False)["change"].agg(lambda x: (x != 0).any())
    assert int(moved.sum()) == outputs
    told = text_of(app)
    assert f"{rows} of 9 rows of weights" in told
    assert f"{outputs} of 9 outputs" in told
    assert ("by its weight times the change" in told) == (vector == "value")
    spec = charts_by_title(app)["Δ weights (9, 9), one head"][0]
    small = "abs(datum.change) < 0.005 ? (datum.change > 0 ? '<.01' : '>−.01')"
    words = json.dumps(spec, ensure_ascii=False)
    assert f"datum.change === 0 ? '0' : {small}" in words


@pytest.mark.parametrize(
    ("settings", "asked", "right"),
    [
        ({}, "value", ("none", "every")),
        ({"view": EDIT}, "value", ("none", "every")),
        ({"view": EDIT, "edited": "value"}, "query", ("one", "one")),
        ({"view": EDIT, "edited": "query"}, "key", ("every", "every")),
    ],
)
def test_the_prediction_asks_about_an_edit_that_is_not_shown(settings, asked, right):
    app = open_lookup(**settings)
    (question,) = app.radio
    assert f"One number of the {asked} of" in question.label
    assert question.value is None
    assert not app.success
    assert question.options == list(MOVED.values())
    question.set_value(MOVED[right])
    app = commit(app)
    assert "Right. Measured:" in app.success[0].value
    counts = {"none": "0", "one": "1", "every": "9"}
    weights, outputs = (counts[reach] for reach in right)
    assert f"{weights} of 9 rows of weights and {outputs} outputs" in (
        app.success[0].value.replace("of 9 outputs", "outputs")
    )


def test_a_wrong_choice_names_its_idea_and_no_choice_asks_for_one():
    app = open_lookup()
    assert "Choose an answer first" in commit(app).info[0].value
    for answer, words in MOVED.items():
        if answer == ("none", "every"):
            continue
        app = open_lookup()
        app.radio[0].set_value(words)
        app = commit(app)
        assert lookup_view._HINTS[answer] in app.warning[0].value
        assert not app.success


def test_no_question_is_asked_where_its_answers_would_be_the_same():
    for settings in (
        {"text": "dog"},
        {"source": lookup_view.OTHER, "reader": "it"},
    ):
        app = open_lookup(**settings)
        assert_sound(app)
        assert not app.radio
        assert "No question is asked here" in app.info[-1].value


@pytest.mark.parametrize("view", lookup_view.VIEWS)
@pytest.mark.parametrize("seed", [9, 19, 44, 45, 49])
def test_ordinary_seeds_with_small_widths_still_ask(seed, view):
    app = open_lookup(view=view, d_model=2, d_k=1, seed=seed)
    assert_sound(app)
    assert len(app.radio) == 1


def test_a_projection_and_an_edit_choose_their_vector_apart():
    app = open_lookup(view=EDIT, edited="value")
    app = press(app, "qkv_try_0")
    control(app, "stage").set_value("project").run()
    assert control(app, "vector").value == "q"


def test_a_pick_that_is_gone_leaves_the_address_too():
    app = open_lookup(view=EDIT, text="a b c d", token="d")
    control(app, "text").set_value("x y").run()
    control(app, "text").set_value("a b c d").run()
    assert control(app, "token").value != "d"
    assert "d" not in app.query_params.get("qkv_token", [])


def test_a_cold_lookup_is_the_hard_one_and_a_hot_one_shares_evenly():
    for temperature, share in (("0.01", 1.0), ("100", 1 / 9)):
        app = open_lookup(view=HARD, temperature=temperature)
        assert_sound(app)
        weights = rows_of(app, "Weights of the query, one head")
        hard = weights.query("lookup == 'hard'")["weight"].tolist()
        soft = weights.query("lookup == 'soft'")["weight"].tolist()
        assert sorted(hard) == [0.0] * 8 + [1.0]
        assert soft[hard.index(1.0)] == pytest.approx(share, abs=0.02)
        chosen = rows_of(app, "Largest weight").query("role == 'chosen'")
        assert chosen["temperature"].tolist() == [float(temperature)]
    assert "from 100 % to" in text_of(app)


def test_both_curves_cover_all_temperatures():
    app = open_lookup(view=HARD)
    for title in ("Largest weight", "Distance from the hard lookup"):
        rows = rows_of(app, title).query("role == 'sweep'")
        assert rows["temperature"].tolist() == list(lookup.TEMPERATURES)
    distance = rows_of(app, "Distance from the hard lookup")["value"]
    assert distance[0] == pytest.approx(0, abs=1e-6)


def test_only_controls_that_do_something_are_drawn():
    assert "qkv_temperature" not in {s.key for s in open_lookup().select_slider}
    sliders = {s.key for s in open_lookup("score").select_slider}
    assert sliders == {"qkv_d_model", "qkv_d_k"}
    menus = {s.key for s in open_lookup("sum").selectbox}
    assert menus == {"qkv_query"}


@pytest.mark.parametrize("number", range(4))
def test_every_experiment_shows_what_it_says(number):
    app = press(open_lookup("score", query="wet", key="wet"), f"qkv_try_{number}")
    assert_sound(app)
    charts = charts_by_title(app)
    if number == 0:
        weights = charts["Weights (1, 2), one head"][1]["weight"]
        assert weights.sum() == pytest.approx(1)
        assert abs(weights - 1).min() > 0.05
    if number == 1:
        assert not charts["Δ weights (9, 9), one head"][1]["change"].any()
        moved = charts["Δ output (9, 3)"][1].query("dimension == '0'")["change"]
        assert (moved != 0).tolist() == [True] * 9
    if number == 2:
        weights = charts["Weights of the query, one head"][1]["weight"]
        assert weights.tolist() == pytest.approx([0.5, 0.5, 0, 0.5, 0.5, 0])
        assert "finds a tie" in text_of(app)
    if number == 3:
        weights = charts["Weights (1, 9), one head"][1].set_index("key")["weight"]
        moves = charts["Output moves with a key hidden (1, 9)"][1]
        moves = moves.set_index("key")["distance"]
        assert weights.idxmax() == "dog"
        assert moves.idxmax() == "wet"
        assert "weight is not influence" in text_of(app)


def test_a_pick_that_the_new_words_lack_falls_back_to_one_they_have():
    app = open_lookup("score", query="wet", key="wet")
    control(app, "text").set_value("one two").run()
    assert_sound(app)
    assert control(app, "query").value in ("one", "two")
    assert control(app, "key").value in ("one", "two")


@pytest.mark.parametrize("name", ["text", "reader"])
@pytest.mark.parametrize(
    ("typed", "sentence"),
    [("", "text has 0 words"), ("a " * 17, "text has 17 words")],
)
def test_words_that_cannot_be_read_are_refused_with_one_sentence(name, typed, sentence):
    app = open_lookup(source=lookup_view.OTHER)
    control(app, name).set_value(typed).run()
    assert not app.exception
    (error,) = app.error
    assert sentence in error.value.replace("\\", "")
    assert app.title[0].value == PAGE.title


@pytest.mark.parametrize("stage", STAGES)
def test_hostile_words_stay_words_in_every_stage(stage):
    typed = (
        "$\\frac{1}$ <script>alert(1)</script> **bold** [x](http://x) :red[y] ``` '''"
    )
    app = open_lookup(stage, text=typed, dim=1)
    assert_sound(app)
    sentences = [block.value for block in app.markdown if '"' in block.value]
    assert sentences
    for value in sentences:
        assert "<script>" not in value
        assert "**bold" not in value
        assert ":red[" not in value
    assert isinstance(run_offered(app), float)


@pytest.mark.parametrize(
    "query",
    [
        {"stage": "7 Guess"}, {"stage": ""}, {"view": "<script>"}, {"token": "nobody"},
        {"query": "<script>"}, {"dim": "99"}, {"d_model": "1e999"}, {"value": "nan"},
        {"vector": "w"}, {"temperature": "-1"}, {"source": "💥"}, {"seed": "-1"},
        {"edited": "w"},
    ],
    ids=str,
)  # fmt: skip
def test_a_hostile_address_falls_back_to_the_preset(query):
    for view in lookup_view.VIEWS:
        assert_sound(open_lookup(**({"view": view} | query)))
