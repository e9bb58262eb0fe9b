"""What the page on masks teaches, seen through the page."""

import json

import pytest
import torch
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core import masking, precision
from core.tokens import MAX_TOKENS
from pages._ui import catalogue, masks_view, nan_lab_view, parts
from tests.test_pages import assert_sound, open_page

PAGE = next(info for info in catalogue.list_pages() if info.name == "masks")
WEIGHTS, CHANGE, CONVENTIONS, NAN_LAB = masks_view.TABS


def open_masks(**settings):
    return open_page(PAGE, **{f"masks_{k}": str(v) for k, v in settings.items()})


def open_positions(seq_len, **settings):
    return open_masks(source="positions", seq_len=seq_len, **settings)


def charts_by_title(app):
    """Return {title: (spec, rows)} of the charts that are drawn."""
    found = {}
    for chart in app.get("vega_lite_chart"):
        spec = json.loads(chart.proto.spec)
        (data,) = chart.proto.datasets or [chart.proto]
        rows = convert_arrow_bytes_to_pandas_df(data.data.data)
        found[spec["title"]["text"]] = (spec, rows)
    return found


def rows_of(app, title):
    return charts_by_title(app)[title][1]


def digits(app):
    """Return the drawn mask as text, one word a query."""
    drawn = rows_of(app, "What is allowed").groupby("query", sort=False)["status"]
    return ["".join("01"[cell == "allowed"] for cell in row) for _, row in drawn]


def text_of(app):
    blocks = [*app.markdown, *app.caption, *app.warning, *app.error]
    return "\n".join(block.value.replace("\\", "") for block in blocks)


def press(app, key):
    next(button for button in app.button if button.key == key).click()
    return app.run()


def commit(app):
    next(button for button in app.button if button.label == "Commit").click()
    return app.run()


def test_opens_on_the_map_without_the_mask_beside_the_causal_map():
    app = open_masks()
    assert_sound(app)
    before, after = (
        rows_of(app, f"Weights {which} the mask").pivot(index="query", columns="key")
        for which in ("without", "with")
    )
    assert before["weight"].shape == after["weight"].shape == (6, 6)
    assert (before["weight"].sum(axis=1) - 1).abs().max() < 1e-6
    assert (after["weight"].sum(axis=1) - 1).abs().max() < 1e-6
    assert set(before["status"].to_numpy().ravel()) == {"allowed"}
    drawn = rows_of(app, "Weights with the mask")
    position = {label: place for place, label in enumerate(drawn["query"].unique())}
    late = drawn["key"].map(position) > drawn["query"].map(position)
    assert (drawn["status"] == "masked").equals(late)
    assert digits(app) == ["100000", "110000", "111000", "111100", "111110", "111111"]


def test_the_maps_show_the_numbers_that_core_computes():
    app = open_masks(text="a b a", kind="causal + padding", length=2, d_k=8, seed=5)
    seen = masking.masked_attention(
        ["a", "b", "a"], "causal + padding", length=2, window=3, d_k=8, seed=5
    )
    drawn = rows_of(app, "Scores, before the mask")["score"]
    assert drawn.tolist() == pytest.approx(seen.scores.flatten().tolist())
    weights = rows_of(app, "Weights with the mask")["weight"].fillna(0)
    assert weights.tolist() == pytest.approx(seen.weights_after.flatten().tolist())


def test_rows_are_queries_columns_are_keys_and_masked_cells_are_grey_and_named():
    for spec, _ in charts_by_title(open_masks()).values():
        text = json.dumps(spec, ensure_ascii=False)
        assert "query (reads)" in text
        assert "key (is read)" in text
        assert "masked: query" in text
        assert "#d9d9d9" in text


def test_weights_share_one_scale_and_scores_diverge_about_zero():
    charts = charts_by_title(open_positions(12))
    domains = {
        title: spec["layer"][0]["encoding"]["color"]
        for title, (spec, _) in charts.items()
    }
    for title in ("Weights without the mask", "Weights with the mask"):
        assert '"domain": [0.0, 1.0]' in json.dumps(domains[title])
    low, high = json.loads(
        json.dumps(domains["Scores, before the mask"])
        .split('"domain": ')[1]
        .split("]")[0]
        + "]"
    )
    assert low == -high < 0


def test_row_zero_of_a_causal_map_is_on_key_zero_by_necessity_and_the_page_says_so():
    app = open_positions(3)
    first = rows_of(app, "Weights with the mask").query("query == '0'")
    assert first["weight"].fillna(0).tolist() == [1.0, 0.0, 0.0]
    assert 'query "0" puts all its weight on key "0" by necessity' in text_of(app)
    assert "by necessity" not in text_of(open_positions(3, kind="none"))


def test_the_causal_diagonal_is_open_and_the_page_says_why():
    app = open_positions(3)
    assert digits(app) == ["100", "110", "111"]
    assert "targets are shifted by one" in text_of(app)
    assert "targets are shifted" not in text_of(open_positions(3, kind="none"))


def test_padding_hides_key_columns_alone():
    app = open_positions(5, kind="causal + padding", length=3)
    assert digits(app) == ["10000", "11000", "11100", "11100", "11100"]
    assert "the loss drops it" in text_of(app)


def test_a_sequence_of_padding_is_drawn_as_nothing_and_named():
    app = open_positions(4, kind="padding", length=0)
    assert_sound(app)
    drawn = rows_of(app, "Weights with the mask")
    assert set(drawn["status"]) == {"nothing"}
    assert drawn["weight"].isna().all()
    assert "the sequence is all padding" in app.warning[0].value
    assert "4 of 4 rows sum to 0" in text_of(app)


def test_a_window_that_blocks_a_query_names_it():
    app = open_positions(6, kind="sliding window + padding", length=3, window=2)
    drawn = rows_of(app, "Weights with the mask")
    assert set(drawn[drawn["status"] == "nothing"]["query"]) == {"4", "5"}
    assert 'queries "4", "5" have nothing to attend to' in text_of(app)
    assert "2 of 6 rows sum to 0, the others to 1" in text_of(app)
    assert 'alone: "3", padded, reads on' in text_of(app)


def test_padded_queries_are_said_to_read_on_only_where_they_do():
    for settings in (
        {"kind": "padding", "length": 0},
        {"kind": "padding", "length": 6},
        {"kind": "sliding window + padding", "length": 5, "window": 1},
        {"kind": "causal"},
    ):
        assert "reads on" not in text_of(open_positions(6, **settings))


def test_no_warning_where_every_query_has_a_key():
    assert not open_masks().warning


@pytest.mark.parametrize(("kind", "still"), [("causal", 2), ("none", 0)])
def test_a_changed_token_leaves_what_may_not_read_it_exactly_where_it_was(kind, still):
    app = open_masks(view=CHANGE, kind=kind, changed=2)
    assert_sound(app)
    moved = rows_of(app, "How far each output moved")["moved"].tolist()
    assert moved[:still] == [0.0] * still
    assert all(distance > 0 for distance in moved[still:])
    expected = '"the·0", "cat"' if still else "none"
    assert f"Exactly 0: {expected}." in text_of(app)


def test_only_the_column_of_the_changed_token_is_drawn_and_blocked_queries_say_so():
    app = open_positions(
        5, view=CHANGE, kind="sliding window + padding", length=2, window=2, changed=1
    )
    column = rows_of(app, "Its column: who may read it")
    assert column["key"].tolist() == ["1"] * 5
    assert column["status"].tolist() == ["allowed"] * 3 + ["nothing"] * 2


def test_both_conventions_are_shown_and_the_shown_program_runs():
    app = open_positions(3, view=CONVENTIONS)
    function_mask, layer_mask, program = (block.value for block in app.code)
    assert function_mask == "1 0 0\n1 1 0\n1 1 1"
    assert layer_mask == "0 1 1\n0 0 1\n0 0 0"
    assert "1 = may attend" in text_of(app)
    assert "1 = may NOT attend" in text_of(app)
    state, names = torch.get_rng_state(), {}
    try:
        exec(program, names)
    finally:
        torch.set_rng_state(state)
    torch.testing.assert_close(names["from_function"], names["from_layer"])


def test_the_wrong_convention_reads_the_future_and_numbers_are_refused():
    app = open_positions(3, view=CONVENTIONS)
    assert not app.exception
    opposite = rows_of(app, "nn.MultiheadAttention given mask: the opposite")
    assert opposite["status"].tolist() == (
        ["masked", "allowed", "allowed"]
        + ["masked", "masked", "allowed"]
        + ["missing"] * 3
    )
    assert "the others put up to 100 % of their weight" in text_of(app)
    assert "The opposite: 1 of 3 rows are NaN" in text_of(app)
    assert "on the 3 rows that have a key" in text_of(app)
    (refusal,) = app.error
    assert "mask must be boolean, True = may attend" in refusal.value


@pytest.mark.parametrize(
    ("settings", "title", "said"),
    [
        ({"kind": "padding", "length": 0}, "~mask: NaN", "3 of 3 rows have no key"),
        (
            {"kind": "sliding window + padding", "length": 1, "window": 2},
            "~mask: NaN or right",
            "1 of 3 rows have no key",
        ),
        ({"kind": "padding", "length": 1}, "~mask: right", "on the 3 rows that have"),
    ],
)
def test_the_layer_is_called_right_only_where_it_gives_numbers(settings, title, said):
    app = open_positions(3, view=CONVENTIONS, **settings)
    drawn = rows_of(app, f"nn.MultiheadAttention given {title}")
    assert said in text_of(app)
    assert ("missing" in set(drawn["status"])) == ("NaN" in title)
    assert ("differ from core" in text_of(app)) == ("right" in title)


def test_the_nan_lab_offers_no_control_without_effect_and_keeps_the_others():
    app = open_masks(kind="padding", length=3, text="a b c d", seed=7)
    app.session_state["masks_view"] = NAN_LAB
    app.run()
    assert not [*app.selectbox, *app.select_slider, *app.number_input]
    assert not app.text_input
    assert "Predict first" not in [block.value for block in app.subheader]
    app.session_state["masks_view"] = WEIGHTS
    app.run()
    assert_sound(app)
    assert app.selectbox[0].value == "padding"
    assert app.select_slider[0].value == 3
    assert app.text_input[0].value == "a b c d"
    assert app.number_input[0].value == 7


def test_the_prediction_stands_beside_the_weights_alone():
    for tab in (CHANGE, CONVENTIONS, NAN_LAB):
        assert not open_masks(view=tab).radio


def test_the_nan_lab_shows_every_fill_in_every_precision_beside_core():
    app = open_masks(view=NAN_LAB)
    assert_sound(app)
    table = next(
        b.value for b in app.markdown if b.value.startswith("| fill | float32")
    )
    lines = {line.split("`")[1]: line for line in table.splitlines()[2:]}
    assert list(lines) == [*precision.FILLS, precision.CORE]
    assert lines["-inf"].count("NaN") == 3
    assert lines["-1e4"].count("0.25 each") == 3
    assert lines["-1e9"].count("0.25 each") == 2
    assert lines["-1e9"].count("too low: NaN") == 1
    assert lines[precision.CORE].count("check: 0]") == 3


@pytest.mark.parametrize("number_type", nan_lab_view.PRECISIONS)
@pytest.mark.parametrize("method", nan_lab_view.METHODS)
def test_the_nan_lab_shows_forward_and_gradient(number_type, method):
    app = open_masks(view=NAN_LAB, precision=number_type, method=method)
    table = next(b.value for b in app.markdown if "| gradient |" in b.value)
    assert "| NaN, NaN, NaN, NaN | NaN | NaN, NaN, NaN, NaN |" in table.replace(
        "\u2002", " "
    )
    core_line = next(line for line in table.splitlines() if precision.CORE in line)
    assert core_line.replace("\u2002", " ").endswith(
        "| – | 0, 0, 0, 0 | 0 | 0, 0, 0, 0 |"
    )


@pytest.mark.parametrize(
    ("settings", "right"),
    [
        ({"kind": "causal"}, 1),
        ({"kind": "none"}, 3),
        ({"kind": "sliding window", "window": 2}, 2),
        ({"kind": "causal + padding", "length": 1}, 0),
    ],
)
def test_the_prediction_is_answered_from_the_mask_of_the_page(settings, right):
    app = open_masks(**settings)
    assert app.radio[0].value is None
    assert "Measured" not in text_of(app)
    answers = app.radio[0].options
    for number, answer in enumerate(answers):
        app.radio[0].set_value(answer)
        commit(app)
        if number == right:
            assert "Measured" in app.success[-1].value
        else:
            hint = app.warning[-1].value
            assert ("it is open throughout" in hint) == (right == 3)
            assert ("no other query" in hint) == (right == 1 and number > right)
            assert ("No query may read it" in hint) == (right == 0)
            assert not app.success


def test_every_wrong_answer_has_a_hint_that_knows_the_right_one():
    kinds = list(masks_view.ANSWERS)
    wrong = {
        (right, picked > kinds.index(right))
        for right in kinds
        for picked in range(len(kinds))
        if picked != kinds.index(right)
    }
    assert wrong == set(masks_view.HINTS)
    assert kinds == list(masking.Reach)


def test_a_prediction_without_a_choice_shows_no_answer():
    app = commit(open_masks())
    assert app.info[0].value == "Choose an answer first."
    assert not app.success
    assert not app.warning


def test_one_token_asks_no_question_since_its_own_output_is_every_output():
    app = open_positions(1)
    assert_sound(app)
    assert not app.radio


@pytest.mark.parametrize(
    ("number", "shows"),
    [
        (0, "10000 11000 11100 11100 11100"),
        (1, "110000 110000 010000 000000 000000 000000"),
        (2, " ".join(["000000"] * 6)),
    ],
)
def test_an_experiment_shows_what_its_text_says(number, shows):
    app = press(open_masks(text="a"), f"masks_try_{number}")
    assert_sound(app)
    assert " ".join(digits(app)) == shows


def test_the_experiment_without_a_mask_moves_every_output():
    app = press(open_masks(text="a"), "masks_try_3")
    assert (rows_of(app, "How far each output moved")["moved"] > 0).all()


@pytest.mark.parametrize(
    ("tab", "function"),
    [
        (WEIGHTS, "def causal_mask"),
        (CHANGE, "def change_one_token"),
        (CONVENTIONS, "def to_torch_mha_mask"),
        (NAN_LAB, "def fill_outcome"),
    ],
)
def test_look_inside_shows_the_source_of_what_ran(tab, function):
    app = open_masks(view=tab)
    app.session_state["masks_inside"] = True
    app.run()
    assert any(function in block.value for block in app.code)


def test_weights_are_called_random():
    for tab in (WEIGHTS, CHANGE):
        assert "Weights are random" in text_of(open_masks(view=tab))


def test_a_word_that_repeats_is_kept_apart_by_its_position():
    labels = rows_of(open_masks(), "What is allowed")["key"].unique().tolist()
    assert labels == ["the·0", "cat", "sat", "on", "the·4", "mat"]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script> <b>x</b>",
        "**x** _y_ `z` [l](http://a.b) $x$ | # ~~s~~",
        ":material/x: :red[x] :smile: www.a.com a@b.cd ->",
        "ünïcödé 日本語 🎉 e\u0301 \u202eabc",
        "\x00\x07\x1b \u200b\ufeff",
        "x" * 190,
    ],
)
def test_hostile_words_become_plain_labels(text):
    blocked = {"kind": "sliding window + padding", "length": 1, "window": 1}
    app = open_masks(text=text, **blocked)  # it names the first query and the blocked
    assert_sound(app)
    seen = masking.masked_attention(
        masking.read_tokens(text, 1), "causal", length=0, window=1, d_k=16, seed=0
    )
    drawn = rows_of(app, "What is allowed")["query"].unique().tolist()
    assert drawn == seen.labels
    shown = [*app.markdown, *app.caption, *app.warning]
    for label in seen.labels:
        assert any(parts.plain(label) in block.value for block in shown)
    for block in shown:
        assert not getattr(block.proto, "allow_html", False)
        assert ":material/x:" not in block.value
        assert "www." not in block.value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("   ", "text has 0 words and must have between 1 and 16"),
        ("a " * 17, "text has 17 words and must have between 1 and 16"),
    ],
)
def test_text_that_core_refuses_is_one_sentence_and_the_page_stays(text, sentence):
    app = open_masks(text=text)
    assert not app.exception
    assert [error.value for error in app.error] == [sentence]
    app.text_input[0].set_value("a b").run()
    assert_sound(app)


def test_text_of_ten_thousand_characters_is_cut_or_refused():
    for text in ("x" * 10_000, "x " * 5_000):
        assert not open_masks(text=text).exception


@pytest.mark.parametrize(
    "value",
    ["<script>", "", "9" * 5_000, "-1", "1e999", "inf", "nan", "ü", "\x00", "2.5"],
)
@pytest.mark.parametrize(
    ("name", "shown_with"),
    [
        ("kind", {}),
        ("d_k", {}),
        ("seed", {}),
        ("source", {}),
        ("view", {}),
        ("seq_len", {"source": "positions"}),
        ("length", {"kind": "padding"}),
        ("window", {"kind": "sliding window"}),
        ("changed", {"view": CHANGE}),
        ("precision", {"view": NAN_LAB}),
        ("method", {"view": NAN_LAB}),
    ],
)
def test_a_hostile_address_falls_back_to_the_preset(name, shown_with, value):
    assert_sound(open_masks(**(shown_with | {name: value})))


def test_a_shorter_text_takes_the_sliders_with_it():
    app = open_masks(kind="sliding window + padding", length=6, window=6)
    app.text_input[0].set_value("a b").run()
    assert_sound(app)
    values = {slider.key: slider.value for slider in app.select_slider}
    assert (values["masks_length"], values["masks_window"]) == (2, 2)
    app.text_input[0].set_value("a").run()
    assert_sound(app)


def test_the_page_and_core_name_the_same_choices():
    assert list(masking.MASKS) == masks_view.KINDS
    assert list(precision.DTYPES) == nan_lab_view.PRECISIONS
    assert list(precision.METHODS) == nan_lab_view.METHODS
    assert masks_view.MOST_TOKENS == MAX_TOKENS


@pytest.mark.parametrize(
    "text", [":material/x:", ":smile:", "http://a.b", "WWW.a.b", "a@b.cd", "->", "<="]
)
def test_text_made_plain_holds_no_address_icon_or_arrow_once_unescaped(text):
    unescaped = parts.plain(text).replace("\\", "")
    assert text not in unescaped
    assert unescaped.replace("\u2060", "") == text


def test_ordinary_text_made_plain_holds_no_unseen_sign():
    for text in ("a: b", "1.2e-07", "x - y", "a = b > c", "query (reads)"):
        assert parts.plain(text).replace("\\", "") == text


@pytest.mark.parametrize("view", [WEIGHTS, CHANGE, CONVENTIONS])
def test_every_map_has_a_sentence_with_its_numbers_in_place_of_the_picture(view):
    app = open_masks(view=view)
    said = [chart.proto.alt for chart in app.get("vega_lite_chart")]
    assert len(said) > 1
    assert all(any(sign.isdigit() for sign in alt) for alt in said), said


def test_rows_that_are_nan_are_not_taken_for_weights_in_a_sentence():
    app = open_masks(view=CONVENTIONS, kind="none")
    (alt,) = (
        chart.proto.alt
        for chart in app.get("vega_lite_chart")
        if "the opposite" in chart.proto.alt
    )
    assert alt.endswith(
        "no query of the map has anything to attend to; 6 of 6 rows NaN"
    )


def test_only_a_refusal_is_explained_and_a_fault_is_not_hidden():
    with pytest.raises(ValueError, match="is not in list"), parts.explained():
        [].index(3)


def test_the_nan_lab_names_the_sequence_of_a_batch_that_is_all_padding():
    said = text_of(open_masks(view=NAN_LAB)).replace("\\", "")
    assert "Sequence 2 is all padding: its queries have nothing to attend to" in said
    assert "The others give what they give alone" in said
