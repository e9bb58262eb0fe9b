"""What the page on multi-head attention teaches, seen through the page."""

import subprocess
import sys
from pathlib import Path

import pytest

from core import captions, heads, heads_story, mistakes
from core.head_parity import COMPARED, GRADIENTS, parity_with_torch
from pages._ui import catalogue, heads_view, hunt_view
from tests.test_page_masks import charts_by_title, commit, press, rows_of, text_of
from tests.test_pages import assert_sound, open_page

ROOT = Path(__file__).parent.parent
PAGE = next(info for info in catalogue.list_pages() if info.name == "multi_head")
HEADS, CONCATENATE, PARITY, COST, HUNT, MISTAKES = heads_view.VIEWS
WORDS = ["the", "cat", "sat", "on", "the", "mat"]


def open_heads(**settings):
    return open_page(PAGE, **{f"heads_{k}": str(v) for k, v in settings.items()})


def see(**settings):
    preset = {"d_model": 64, "num_heads": 8, "mask": "causal", "seed": 0}
    return heads.attend_heads(WORDS, **(preset | settings))


def badge_of(app):
    (badge,) = (b.value for b in app.markdown if "largest difference" in b.value
                and "-badge[" in b.value)  # fmt: skip
    return badge.replace("\\", "")


def test_opens_on_the_map_of_every_head_beside_one_large():
    app = open_heads()
    assert_sound(app)
    spec, rows = charts_by_title(app)["Every head, one scale"]
    names = rows["tile"].unique().tolist()
    assert names == [f"head {n}" for n in range(1, 9)] + ["mean of 8 heads"]
    weights = rows.pivot(index=["tile", "query"], columns="key", values="weight")
    assert (weights.sum(axis=1) - 1).abs().max() < 1e-9
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == [0.0, 1.0]
    large = rows_of(app, "Head 1 of 8")
    first = rows[rows["tile"] == "head 1"]
    assert large["weight"].fillna(-1).tolist() == first["weight"].fillna(-1).tolist()
    assert "Weights are random" in text_of(app)


def test_every_map_says_whether_it_is_one_head_or_the_mean():
    mean = rows_of(open_heads(head=0, mask="none"), "Mean of all 8 heads")
    expected = see(mask="none").weights.mean(dim=0).flatten().tolist()
    assert mean["weight"].tolist() == pytest.approx(expected)
    app = open_heads(head=3)
    every = rows_of(app, "Every head, one scale")
    assert set(every[every["chosen"]]["tile"]) == {"head 3"}
    assert "Head 3 of 8" in charts_by_title(app)


def test_how_different_the_heads_are_stands_below_as_a_number():
    found = heads.head_differences(see().weights, see().mask)
    assert f"Two heads place {found.mean * 100:.0f} % of their weight" in text_of(
        open_heads()
    )
    assert "One head: there is no other" in text_of(open_heads(num_heads=1))


def test_two_heads_are_concatenated_and_then_projected_drawn_and_counted():
    app = open_heads(view=CONCATENATE, num_heads=2)
    assert_sound(app)
    charts = charts_by_title(app)
    before, after = (rows for _, rows in charts.values())
    assert before["tile"].unique().tolist() == ["head 1", "head 2"]
    assert set(after["tile"]) == {"all heads"}
    seen = see(num_heads=2)
    ours = before.sort_values(["down", "across"])["value"].tolist()
    assert ours == pytest.approx(seen.concatenated.flatten().tolist())
    assert after["value"].tolist() == pytest.approx(seen.output.flatten().tolist())
    text = text_of(app)
    assert text.index("| concatenate |") < text.index("| project by W_O |")
    assert "| project by W_O | output | `(6, 64)` | 4,160 |" in text
    assert "2 × 32 = 64" in text


@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-6), ("float64", 1e-12)])
def test_the_parity_badge_is_green_with_the_measured_number(precision, most):
    app = open_heads(view=PARITY, precision=precision)
    assert_sound(app)
    seen = see(dtype=precision)
    parity = parity_with_torch(seen.layer, seen.embeddings, seen.mask)
    badge = badge_of(app)
    assert badge.startswith(":green-badge[")
    assert f"{captions.distance(parity.largest)}, allowed {most:.0e}" in badge
    assert all(f"| {name} |" in text_of(app) for name in COMPARED)
    assert "All 6 queries are compared." in text_of(app)


def test_a_query_without_a_key_is_left_out_of_the_parity_and_the_page_says_so():
    app = open_heads(view=PARITY, mask="left padding")
    assert badge_of(app).startswith(":green-badge[")
    assert "5 of 6 queries are compared" in text_of(app)
    refused = open_heads(view=PARITY, mask="left padding", text="a")
    assert [e.value for e in refused.error] == [
        r"no query has a key to attend to\: nothing to compare"
    ]


def test_the_program_on_the_page_runs_and_prints_the_number_of_the_badge():
    app = open_heads(view=PARITY, d_model=24, num_heads=3, seed=5)
    program = app.code[0].value
    assert len(app.get("download_button")) == 1
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = done.stdout.splitlines()[-1]
    assert printed.startswith("largest difference ")
    assert printed in badge_of(app)


def test_parameters_and_operations_are_equal_for_1_to_16_heads():
    app = open_heads(view=COST)
    assert_sound(app)
    (table,) = (b.value for b in app.markdown if b.value.startswith("| heads |"))
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == ["1", "2", "4", "8", "16"]
    assert {row[2] for row in rows} == {"**16,640**"}
    assert {row[3] for row in rows} == {"**205,824**"}
    assert [row[4] for row in rows] == ["36", "72", "144", "288", "576"]
    assert [slider.key for slider in app.select_slider] == ["heads_d_model"]


@pytest.mark.parametrize("name", hunt_view.MISTAKES)
def test_each_mistake_turns_the_badge_red_with_its_size(name):
    app = open_heads(view=MISTAKES, mistake=name)
    assert_sound(app)
    found = mistakes.see_mistake(see(dtype="float32"), name)
    assert badge_of(app).startswith(":red-badge[")
    assert f"largest difference {found.parity.largest:.3g}" in badge_of(app)
    rows = rows_of(app, "Head 1: weights and row sums")
    sums = rows[rows["status"] == "sum"]["weight"].tolist()
    assert sums == pytest.approx(found.row_sums[0].tolist(), abs=1e-5)
    compared = [*mistakes.STAGES, *GRADIENTS]
    assert all(f"| {stage} |" in text_of(app) for stage in compared)


def test_the_row_sums_are_those_of_the_head_that_is_chosen():
    name = hunt_view.MISTAKES[0]
    app = open_heads(view=MISTAKES, mistake=name, broken_head=3)
    seen = see(dtype="float32")
    found = mistakes.see_mistake(seen, name)
    rows = rows_of(app, "Head 3: weights and row sums")
    sums = rows[rows["status"] == "sum"]["weight"].tolist()
    assert sums == pytest.approx(found.row_sums[2].tolist(), abs=1e-5)
    assert sums != pytest.approx(found.row_sums[0].tolist(), abs=1e-2)
    assert heads_story.mistake_sentence(found, seen, 3) in text_of(app)


def test_a_mistake_in_the_gradients_alone_is_red_and_called_so():
    settings = {"text": "a a a", "mask": "none"}
    name = hunt_view.MISTAKES[0]
    app = open_heads(view=MISTAKES, mistake=name, **settings)
    assert badge_of(app).startswith(":red-badge[")
    assert "only the gradients differ, by up to" in text_of(app)
    hunt = open_heads(view=HUNT, **settings)
    hunt.radio[0].set_value(f"{name[:1].upper()}{name[1:]}")
    commit(hunt)
    said = [box.value for box in (*hunt.warning, *hunt.success)]
    assert said
    assert not any("its badge would be green" in text for text in said)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("heads merged without the transpose", {"num_heads": 1}),
        ("scaled by √d_model", {"num_heads": 1}),
        ("mask inverted", {"mask": "none"}),
    ],
)
def test_a_mistake_that_changes_nothing_here_is_green_and_said_so(name, settings):
    app = open_heads(view=MISTAKES, mistake=name, **settings)
    assert_sound(app)
    assert badge_of(app).startswith(":green-badge[")
    assert "Here this mistake changes nothing." in text_of(app)


@pytest.mark.parametrize("case", [1, 2, 3, 4, 5, 6])
def test_the_hunt_asks_before_it_tells_and_explains_each_answer(case):
    app = open_heads(view=HUNT, case=case)
    assert_sound(app)
    right = mistakes.mistake_of_case(case, list(mistakes.MISTAKES))
    assert badge_of(app).startswith(":red-badge[")
    assert app.radio[0].value is None
    shown = text_of(app).lower()
    assert not any(name in shown for name in hunt_view.MISTAKES)
    assert not any(name in chart.lower() for chart in charts_by_title(app)
                   for name in hunt_view.MISTAKES)  # fmt: skip
    assert not [menu for menu in app.selectbox if menu.key == "heads_mistake"]
    for option, name in zip(app.radio[0].options, hunt_view.MISTAKES, strict=True):
        app.radio[0].set_value(option)
        commit(app)
        if name == right:
            assert "Off: " in app.success[0].value
            assert hunt_view.REASONS[name] in app.success[0].value
            assert not app.warning
        else:
            assert hunt_view.HINTS[name] in app.warning[0].value
            assert not app.success


def test_the_stages_of_a_hunt_are_shown_only_on_request_and_for_that_case():
    app = open_heads(view=HUNT, case=2)
    assert "| stage |" not in text_of(app)
    app.session_state["heads_stages_2"] = True
    app.run()
    assert "| stage |" in text_of(app)
    app.select_slider(key="heads_case").set_value(3).run()
    assert "| stage |" not in text_of(app)


def test_the_mean_is_kept_while_the_hunt_is_visited():
    app = open_heads(head=0)
    for view in (HUNT, HEADS):
        app.session_state["heads_view"] = view
        app.run()
        assert_sound(app)
    assert "Mean of all 8 heads" in charts_by_title(app)


def test_the_hunt_hides_only_mistakes_that_show():
    silent = {"heads merged without the transpose", "scaled by √d_model"}
    for case in range(1, 5):
        app = open_heads(view=HUNT, num_heads=1, case=case)
        assert badge_of(app).startswith(":red-badge[")
    for option, name in zip(app.radio[0].options, hunt_view.MISTAKES, strict=True):
        if name in silent:
            app.radio[0].set_value(option)
            commit(app)
            assert "this mistake changes nothing" in app.warning[0].value


def test_where_no_mistake_can_show_the_hunt_says_so():
    app = open_heads(view=HUNT, mask="left padding", text="a")
    assert not app.exception
    assert ["no query has a key" in e.value for e in app.error] == [True]


def test_a_hunt_without_a_choice_shows_no_answer():
    app = commit(open_heads(view=HUNT))
    assert app.info[0].value == "Choose an answer first."
    assert not app.success


def test_the_prediction_is_counted_and_each_wrong_answer_has_its_reason():
    app = open_heads()
    assert app.radio[0].value is None
    assert "Counted on both layers" not in text_of(app)
    for factor, choice in heads_view.GROWTH.items():
        app.radio[0].set_value(choice.text)
        commit(app)
        if factor == 1.0:
            assert "1 times as many. 8 heads of 8" in app.success[0].value
        else:
            assert choice.misconception in app.warning[0].value
            assert not app.success


def test_the_prediction_is_not_asked_where_its_answer_stands():
    assert not open_heads(view=COST).radio
    assert not open_heads(view=CONCATENATE).radio
    assert not open_heads(view=PARITY).radio


def test_three_heads_of_ten_are_refused_in_one_sentence_with_both_numbers():
    app = open_heads(d_model=10, num_heads=3)
    assert not app.exception
    assert [e.value for e in app.error] == [
        r"d\_model \(10\) must be divisible by num\_heads \(3\)"
    ]
    assert "Head 1 of 2" in charts_by_title(app)
    app.text_input[0].set_value("a b").run()
    assert_sound(app)


def test_a_refused_address_is_told_with_the_numbers_that_it_has():
    (both,) = open_heads(d_model=7, num_heads=3).error
    assert both.value == r"d\_model \(7\) must be divisible by num\_heads \(3\)"
    (long,) = open_heads(num_heads="9" * 11).error
    assert long.value == rf"num\_heads \({'9' * 11}\) must be between 1 and 16"
    (longer,) = open_heads(num_heads="1" * 40).error
    assert longer.value.endswith("between 1 and 16, got a number of 40 digits")


def test_only_numbers_of_heads_that_divide_the_width_are_offered():
    for d_model in heads_view.WIDTHS:
        app = open_heads(d_model=d_model)
        assert_sound(app)
        (slider,) = (s for s in app.select_slider if s.key == "heads_num_heads")
        assert slider.options == [str(h) for h in heads.head_counts(d_model)]


def test_a_narrower_layer_takes_heads_and_head_with_it():
    app = open_heads(num_heads=16, head=16)
    (width,) = (s for s in app.select_slider if s.key == "heads_d_model")
    width.set_value(10).run()
    assert_sound(app)
    assert any(title.endswith("of 2") for title in charts_by_title(app))


@pytest.mark.parametrize("number", range(3))
def test_an_experiment_shows_what_its_text_says(number):
    app = press(open_heads(text="a b c", view=COST), f"heads_try_{number}")
    assert_sound(app)
    text = text_of(app)
    assert [
        "One head: there is no other" in text,
        "Mean of all 16 heads" in charts_by_title(app),
        "1 may attend to no key" in text,
    ][number]


@pytest.mark.parametrize(
    ("view", "function"),
    [
        (HEADS, "def split_heads"),
        (CONCATENATE, "def merge_heads"),
        (PARITY, "def parity_with_torch"),
        (COST, "def head_costs"),
        (HUNT, "def see_mistake"),
        (MISTAKES, "class Recipe"),
    ],
)
def test_look_inside_shows_the_source_of_what_ran(view, function):
    app = open_heads(view=view)
    app.session_state["heads_inside"] = True
    app.run()
    assert any(function in block.value for block in app.code)


@pytest.mark.parametrize("view", [HEADS, CONCATENATE, HUNT, MISTAKES])
def test_weights_are_called_random_and_every_picture_has_a_sentence(view):
    app = open_heads(view=view)
    assert "Weights are random" in text_of(app)
    said = [chart.proto.alt for chart in app.get("vega_lite_chart")]
    assert said
    assert all(any(sign.isdigit() for sign in alt) for alt in said), said


@pytest.mark.parametrize("view", heads_view.VIEWS)
@pytest.mark.parametrize(
    "text", ["<b>x</b> $x$ :red[y] |", "日本 \u202eabc __proto__ {seed}", "x" * 190]
)
def test_hostile_words_become_plain_labels(view, text):
    app = open_heads(view=view, text=text)
    assert_sound(app)
    for block in app.markdown:
        assert not getattr(block.proto, "allow_html", False)
        assert ":red[y]" not in block.value


@pytest.mark.parametrize("view", heads_view.VIEWS)
def test_text_that_core_refuses_is_one_sentence_and_the_page_stays(view):
    app = open_heads(view=view, text="   ")
    assert not app.exception
    assert [error.value for error in app.error] == [
        "text has 0 words and must have between 1 and 16"
    ]
    app.text_input[0].set_value("a b").run()
    assert_sound(app)


@pytest.mark.parametrize(
    "value", ["<script>", "", "9" * 500, "-1", "1e999", "ü", "2.5"]
)
@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("d_model", HEADS),
        ("head", HEADS),
        ("mask", HEADS),
        ("seed", HEADS),
        ("view", HEADS),
        ("precision", PARITY),
        ("case", HUNT),
        ("mistake", MISTAKES),
    ],
)
def test_a_hostile_address_falls_back_to_the_preset(name, view, value):
    assert_sound(open_heads(**({"view": view} | {name: value})))


@pytest.mark.parametrize("value", ["<script>", "", "9" * 500, "-1", "1e999", "٣", "0"])
def test_a_hostile_number_of_heads_is_a_sentence_at_most(value):
    app = open_heads(num_heads=value)
    assert not app.exception
    assert len(app.error) <= 1
    assert "Head 1 of 8" in charts_by_title(app)


def test_the_page_and_core_name_the_same_choices():
    assert list(heads.MASKS) == heads_view.MASKS
    assert list(heads.DTYPES) == heads_view.PRECISIONS
    assert list(mistakes.MISTAKES) == hunt_view.MISTAKES == list(hunt_view.HINTS)
    assert list(hunt_view.REASONS) == hunt_view.MISTAKES
    assert hunt_view.CASES == mistakes.MAX_CASES
    assert max(heads_view.WIDTHS) <= heads.MAX_D_MODEL
