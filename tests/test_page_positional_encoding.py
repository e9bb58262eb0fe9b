"""What the page of positional encodings teaches, seen through the page."""

import json
from unittest.mock import patch

import pytest
import torch
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core import positional
from core.charts.image_grid import pixel_frame
from core.charts.tidy import matrix_frame, to_array
from pages._ui import catalogue, map_view, positional_view
from tests.test_pages import CONTROLS, assert_sound, ends, open_page

PAGE = next(i for i in catalogue.list_pages() if i.name == "positional_encoding")


def open_positional(view="Matrix", **settings):
    query = {f"positional_{k}": v for k, v in {"view": view, **settings}.items()}
    as_text = {k: v if isinstance(v, list) else str(v) for k, v in query.items()}
    return open_page(PAGE, **as_text)


def rows_of(app, title):
    """Return the rows behind the chart with this title."""
    for chart in app.get("vega_lite_chart"):
        if json.loads(chart.proto.spec)["title"]["text"].startswith(title):
            (data,) = chart.proto.datasets or [chart.proto]
            return convert_arrow_bytes_to_pandas_df(data.data.data)
    raise AssertionError(f"no chart is called {title}")


def matrix_of(app, title, row, column, value):
    drawn = rows_of(app, title)
    shape = drawn[row].nunique(), drawn[column].nunique()
    return torch.tensor(drawn[value].to_numpy()).reshape(shape)


def cells_of_button(matrix):
    """Return what the button under a map has to download, without a browser."""
    with patch.object(map_view.st, "download_button") as button:
        map_view.offer_cells(matrix, "key", kind="encoding")
    return button.call_args.args[1]() if button.called else None


def captions_of(app):
    return " ".join(block.value.replace("\\", "") for block in app.markdown)


def chosen(app, name):
    return next(s.value for s in app.select_slider if s.key == f"positional_{name}")


def move(app, name, value):
    next(s for s in app.select_slider if s.key == f"positional_{name}").set_value(value)
    return app.run()


def press(app, label):
    next(b for b in app.button if b.label == label).click()
    return app.run()


def answer(app, number):
    radio = app.radio[0]
    radio.set_value(radio.options[number])
    return press(app, "Commit")


def test_opens_on_the_matrix_of_the_course_lab():
    app = open_positional()
    assert_sound(app)
    expected = positional.sinusoidal_encoding(100, 64)
    picture = pixel_frame(to_array(expected), kind="encoding")["picture"][0]
    assert rows_of(app, "Sinusoids")["picture"][0] == picture
    (button,) = app.get("download_button")
    assert button.proto.label == "Cells as CSV"
    cells = matrix_frame(expected, kind="encoding")
    assert cells_of_button(expected) == cells.to_csv(index=False)


def test_a_small_matrix_is_drawn_cell_by_cell():
    app = open_positional(length=20, d_model=16)
    drawn = matrix_of(app, "Sinusoids", "position", "dimension", "value")
    expected = positional.sinusoidal_encoding(20, 16, dtype=torch.float64)
    torch.testing.assert_close(drawn, expected, atol=1e-6, rtol=0)
    assert not app.get("download_button")


def test_moving_the_row_of_a_dense_map_changes_neither_spec_nor_picture():
    app = open_positional("Similarity", position=3)
    first = rows_of(app, "PE")
    before = [(c.proto.spec, c.proto.alt) for c in app.get("vega_lite_chart")]
    move(app, "position", 70)
    assert [(c.proto.spec, c.proto.alt) for c in app.get("vega_lite_chart")] == before
    second = rows_of(app, "PE")
    assert second["picture"][0] == first["picture"][0]
    assert [int(rows["marked"].idxmax()) for rows in (first, second)] == [3, 70]
    assert second["marked"].sum() == 1


def test_the_caption_gives_the_known_values_of_position_one():
    app = open_positional(d_model=4)
    assert "Position 1 is 0.84147 0.54030 0.0099998 0.99995" in captions_of(app)


@pytest.mark.parametrize("view", positional_view.TABS)
@pytest.mark.parametrize("d_model", [1, 3])
def test_odd_widths_work_in_every_view(view, d_model):
    app = open_positional(view, d_model=d_model, tokens=3)
    assert_sound(app)
    assert app.get("vega_lite_chart")


@pytest.mark.parametrize("view", positional_view.TABS)
def test_every_view_answers_at_both_ends_of_its_controls(view):
    app = open_positional(view)
    for kind in CONTROLS:
        for index in range(len(app.get(kind))):
            for end in ends(app.get(kind)[index]):
                app.get(kind)[index].set_value(end).run()
                assert not app.exception, (kind, index, end)


@pytest.mark.parametrize("view", positional_view.TABS)
def test_only_the_open_view_is_drawn(view):
    drawn = len(open_positional(view).get("vega_lite_chart"))
    assert drawn == (
        2 if view in {"Similarity", "Learned table", "Binary counter"} else 1
    )


def test_the_chosen_dimensions_are_drawn_as_curves():
    app = open_positional("Curves", length=30)
    drawn = rows_of(app, "Columns")
    assert drawn["series"].unique().tolist() == [
        "0 (sine)",
        "4 (sine)",
        "12 (sine)",
        "30 (sine)",
    ]
    table = positional.sinusoidal_encoding(30, 64)
    curve = drawn[drawn["series"] == "12 (sine)"]["value"].to_numpy()
    torch.testing.assert_close(torch.tensor(curve).float(), table[:, 12])
    waves = positional.wavelengths(64)
    assert f"dimension 12 every {waves[12]:.3g}" in captions_of(app)


def test_the_curves_follow_a_width_that_shrinks_under_them():
    app = move(open_positional("Curves"), "d_model", 6)
    assert_sound(app)
    assert rows_of(app, "Columns")["series"].unique().tolist() == [
        "0 (sine)",
        "4 (sine)",
    ]


def test_no_chosen_dimension_is_a_sentence():
    app = open_positional("Curves")
    app.multiselect[0].set_value([]).run()
    assert_sound(app)
    assert "at least one dimension" in app.info[0].value
    assert not app.get("vega_lite_chart")


@pytest.mark.parametrize(
    "hostile", ["<script>", "", "999", "-1", "0,4", ["1", "1", "é"], ["9"] * 40]
)
def test_hostile_dimensions_in_the_address_are_refused_quietly(hostile):
    assert_sound(open_positional("Curves", dimensions=hostile))


@pytest.mark.parametrize(
    "hostile", ["<script>", "", "1e99", "-5", "Ω", "٣", ["1", "2"]]
)
@pytest.mark.parametrize(
    "name",
    ["d_model", "base", "length", "position", "offset", "tokens", "view", "seed"],
)
def test_a_hostile_address_never_breaks_the_page(name, hostile):
    view = {"position": "Similarity", "offset": "Shift", "seed": "Learned table"}
    settings = {"view": view.get(name, "Matrix"), name: hostile}
    app = open_positional(**settings)
    assert not app.exception


def test_similarity_depends_on_the_distance_alone():
    app = open_positional("Similarity", length=20, d_model=10, position=4)
    drawn = matrix_of(app, "PE", "position", "other", "similarity")
    torch.testing.assert_close(drawn.diag(), torch.full((20,), 5.0).double())
    for distance in (1, 7):
        band = drawn.diagonal(distance)
        torch.testing.assert_close(band, band[:1].expand_as(band), atol=1e-5, rtol=0)
    row = torch.tensor(rows_of(app, "One row")["value"].to_numpy())
    torch.testing.assert_close(row, drawn[4])


def test_the_row_looked_at_stays_inside_a_length_that_shrinks():
    app = open_positional("Similarity", position=90)
    for length in (60, 2, 1, 128):
        assert_sound(move(app, "length", length))
    assert chosen(app, "position") <= 127


def test_one_matrix_shifts_every_position_and_the_miss_is_rounding():
    app = open_positional("Shift", offset=-9, d_model=8)
    drawn = matrix_of(app, "The matrix", "to", "source", "factor")
    table = positional.sinusoidal_encoding(40, 8, dtype=torch.float64)
    torch.testing.assert_close(table[9:] @ drawn.T, table[:-9], atol=1e-6, rtol=0)
    missed = next(m.value for m in app.metric if m.label.startswith("Miss, sine"))
    assert 0 < float(missed) < 1e-5
    assert "moves all 100 positions back by 9" in captions_of(app)


def test_the_lone_sine_of_an_odd_width_is_named_with_its_miss():
    app = open_positional("Shift", offset=5, d_model=7, base=10)
    numbers = {metric.label: float(metric.value.split()[0]) for metric in app.metric}
    assert numbers["Miss, sine-cosine pairs"] < 1e-5
    assert numbers["Miss, lone sine"] > 0.1
    assert "dimension 6: a sine without its cosine" in captions_of(app)


def test_of_a_wide_shift_the_first_eight_dimensions_are_drawn():
    app = open_positional("Shift")
    title = "The matrix that shifts every position, its first 8 of 64 dimensions"
    drawn = matrix_of(app, title, "to", "source", "factor")
    expected = positional.shift_matrix(7, 64, dtype=torch.float64)[:8, :8]
    torch.testing.assert_close(drawn, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("view", ["Similarity", "Binary counter"])
def test_the_chosen_position_is_marked_in_every_map(view):
    app = open_positional(view, position=11, counted=11)
    titles = {
        "Similarity": ["PE"],
        "Binary counter": ["Counting in binary", "Sinusoids"],
    }[view]
    for title in titles:
        rows = rows_of(app, title)
        assert set(rows[rows["marked"]]["position"]) == {11}


def test_a_learned_table_ends_where_sinusoids_go_on():
    app = open_positional("Learned table", max_len=8, tokens=9)
    assert not app.exception
    assert not app.error
    assert app.warning[0].value.startswith("A table of 8 positions, 9 tokens")
    learned = rows_of(app, "Learned table")
    missing = learned[learned["status"] == "missing"]
    assert set(missing["position"]) == {8}
    assert learned[learned["status"] == "allowed"]["position"].nunique() == 8
    assert rows_of(app, "Sinusoids")["status"].eq("allowed").all()


def test_a_learned_table_that_is_long_enough_refuses_nothing():
    app = open_positional("Learned table", max_len=9, tokens=9)
    assert_sound(app)
    assert any("vectors are random" in block.value for block in app.markdown)
    values = rows_of(app, "Learned table")["value"]
    again = rows_of(open_positional("Learned table", max_len=9), "Learned table")
    other = rows_of(
        open_positional("Learned table", max_len=9, seed=1), "Learned table"
    )
    assert values.equals(again["value"])
    assert not values.equals(other["value"])


@pytest.mark.parametrize("order", ["swap", "reverse", "shuffle"])
def test_without_positions_outputs_follow_their_tokens_and_only_the_mean_stays(order):
    app = open_positional("Permute", text="one two three four five", order=order)
    assert_sound(app)
    drawn = rows_of(app, "How far").set_index(["series", "label"])["value"]
    plain, placed = drawn["no positions"], drawn["sinusoids added"]
    assert plain["output of the same token"] < 1e-6
    assert plain["mean of all outputs"] < 1e-6
    assert plain["output at the same place"] > 0.1
    assert placed["output of the same token"] > 0.05
    assert placed["mean of all outputs"] > 1e-3
    assert any("weights are random" in block.value for block in app.markdown)


def test_too_many_words_are_refused_in_one_sentence():
    app = open_positional("Permute", text=" ".join(["word"] * 17))
    assert not app.exception
    assert "17 words" in app.error[0].value.replace("\\", "")


def test_words_that_look_like_markup_are_shown_as_typed():
    app = open_positional("Permute", text="<b>x</b> `y` $z$ **w**")
    assert_sound(app)
    assert any(r"\<b\>x" in block.value for block in app.markdown)
    assert any(r"\*\*w" in block.value for block in app.markdown)


def test_a_causal_mask_leaks_order_and_the_page_says_so_after_the_commit():
    app = open_positional("Permute")
    assert app.radio[0].value is None
    assert not app.success
    assert "leaks order" in answer(app, 0).warning[0].value
    assert "Under the mask" in answer(app, 1).success[0].value


def test_the_swap_is_judged_from_the_layer():
    app = open_positional()
    assert app.radio[0].value is None
    assert "Choose an answer first" in press(app, "Commit").info[0].value
    assert "The mean over" in answer(app, 1).warning[0].value
    assert "no place stands" in answer(app, 2).warning[0].value
    assert app.success.len == 0
    assert "Right" in answer(app, 0).success[0].value


def test_digits_of_the_counter_stand_beside_the_values_of_one_position():
    app = open_positional("Binary counter", counted=6)
    digits = rows_of(app, "Counting")
    assert digits[digits["position"] == 6]["digit"].tolist() == [0, 1, 1, 0]
    assert "Position 6 is 0 1 1 0 in binary" in captions_of(app)
    sine = positional.sinusoidal_encoding(7, 64)[6, 0]
    assert f"its first sines are −{-sine:.2f}" in captions_of(app)


@pytest.mark.parametrize("number", range(len(positional_view.EXPERIMENTS)))
def test_an_experiment_sets_its_controls_and_shows_what_it_says(number):
    text, settings = list(positional_view.EXPERIMENTS.items())[number]
    app = press(open_positional(), text)
    assert not app.exception
    assert app.session_state["positional_view"] == settings["view"]
    expected = [
        lambda: "8 positions, 9 tokens" in app.warning[0].value,
        lambda: "a sine without its cosine" in captions_of(app),
        lambda: (
            "2.00 with itself" in captions_of(app)
            and "1.95 with position 19" in captions_of(app)
        ),
    ]
    assert expected[number]()


def test_the_limits_claim_no_extrapolation():
    said = " ".join(block.value for block in open_positional().markdown)
    assert "Defined past any trained length" in said
    assert "not *works past it*" in said


def test_look_inside_shows_the_source_with_live_shapes():
    app = open_positional("Similarity", length=11)
    app.session_state["positional_similarity_inside"] = True
    app.run()
    assert any("(11, 11)" in block.value for block in app.markdown)
    assert any("def position_similarity" in block.value for block in app.code)
