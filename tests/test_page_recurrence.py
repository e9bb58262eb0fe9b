"""What the page on recurrence teaches, seen through the page."""

import json
import time
from types import SimpleNamespace

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core import path_length, timing
from core.charts.growth_frames import reach_frame
from core.scaling import trial_band
from pages._ui import catalogue, recurrence_view, timing_view
from tests.test_pages import assert_sound, open_page

PAGE = next(info for info in catalogue.list_pages() if info.name == "recurrence")
VIEWS = recurrence_view.VIEWS


def open_recurrence(**settings):
    query = {f"recurrence_{name}": str(value) for name, value in settings.items()}
    return open_page(PAGE, **query)


def chart_of(app):
    (chart,) = app.get("vega_lite_chart")
    return chart.proto


def rows_of(app):
    chart = chart_of(app)
    (data,) = chart.datasets or [chart]
    return convert_arrow_bytes_to_pandas_df(data.data.data)


def text_of(app) -> str:
    blocks = [*app.markdown, *app.caption]
    return "\n".join(block.value for block in blocks).replace("\\", "")


def at(rows, series: str, distance: int) -> float:
    row = rows.query("series == @series and distance == @distance")
    return float(row["median"].iloc[0])


def test_opens_on_norms_that_fade_in_a_recurrence_and_not_in_attention():
    app = open_recurrence()
    assert_sound(app)
    rows = rows_of(app)
    assert at(rows, "RNN", 50) < 1e-12
    assert at(rows, "GRU", 59) < 1e-9
    assert at(rows, "LSTM, PyTorch's start", 59) < 1e-9
    assert at(rows, "LSTM", 59) > 1e-3  # the bias of 3 that the page opens on
    assert 0.2 < at(rows, "attention", 59) / at(rows, "attention", 1) < 5


def test_the_picture_shows_the_numbers_that_core_computes():
    app = open_recurrence(length=20, width=8, seed=5, forget_bias=1)
    norms = path_length.jacobian_norms(
        "lstm", seq_len=20, width=8, forget_bias=1, seed=5
    )
    band = trial_band(norms.mT)
    drawn = rows_of(app).query("series == 'LSTM' and role == 'series'")
    for name in ("median", "high"):
        expected = getattr(band, name).tolist()
        assert drawn[name].tolist() == pytest.approx(expected, rel=1e-9)


def test_the_forget_bias_moves_the_lstm_and_nothing_else():
    before, after = (open_recurrence(forget_bias=bias) for bias in (0, 5))
    assert json.loads(chart_of(before).spec) == json.loads(chart_of(after).spec)
    ours, theirs = (rows_of(app) for app in (before, after))
    for name in ("RNN", "GRU", "attention", "LSTM, PyTorch's start"):
        kept = (part[part["series"] == name] for part in (ours, theirs))
        assert next(kept).equals(next(kept))
    assert at(ours, "LSTM", 59) < 1e-9 < 1e-3 < at(theirs, "LSTM", 59)


def test_norms_below_the_axis_are_named_and_never_drawn():
    app = open_recurrence(width=4)
    rows = rows_of(app).query("series == 'RNN'")
    hidden = rows["median"].isna()
    assert hidden.any()
    assert (rows["median"][~hidden] >= 1e-20).all()
    start = int(rows["distance"][hidden].min())
    assert "Below 1e-20, the end of the axis: RNN from distance" in text_of(app)
    assert f"RNN from distance {start} on" in text_of(app)


def test_the_lower_edge_of_a_band_stops_at_the_axis():
    norms = path_length.jacobian_norms("rnn", seq_len=60, width=16)
    frame = reach_frame({"RNN": norms}, floor=1e-5)
    assert frame["low"].min() >= 1e-5


def test_the_lstm_on_60_steps_is_called_hard_from_the_default_start():
    said = text_of(open_recurrence())
    assert "hard from the default start, not out of reach" in said
    assert "100 % with bias +3" in said
    assert "cannot" not in said


@pytest.mark.parametrize("what", timing_view.WHATS)
def test_time_opens_on_the_shipped_table_with_its_fits_and_their_range(what):
    app = open_recurrence(view="Time", timed_width=32, what=timing_view.WHATS[what])
    assert_sound(app)
    shipped = timing.read_timings().curves[32, what]
    rows = rows_of(app)
    drawn = rows.query("series == 'attention' and role == 'measured'")
    assert tuple(drawn["value"]) == shipped["attention"].values
    assert set(rows["role"]) >= {"measured", "fit"}
    assert "earlier" not in set(rows["role"])
    said = text_of(app)
    assert "Solid: the shipped table" in said
    assert "Time grows as n¹˙" in said or "Time grows as n⁰˙" in said
    assert f"d = 32, {timing_view.WHATS[what]}" in said
    assert f"d = 32, {timing_view.WHATS[what]}" in chart_of(app).spec
    assert "does not hold" in said
    left = timing.left_out(shipped)
    for at in left.values():
        assert f"from n = {at:,} on" in said
    assert "attention takes longer than" in said


def test_the_crossing_that_is_said_stands_in_the_picture():
    app = open_recurrence(view="Time", timed_width=16, what="forward")
    rules = rows_of(app).query("role == 'chosen'")
    assert "attention passes RNN" in set(rules["series"])
    n = rules.set_index("series")["length"]["attention passes RNN"]
    assert f"the RNN at n ≈ {float(f'{n:.2g}'):,.0f}" in text_of(app)


def test_a_button_measures_here_beside_the_shipped_table():
    app = open_recurrence(view="Time", timed_width=16)
    (button,) = (b for b in app.button if b.label == "Measure here")
    button.click().run()
    assert_sound(app)
    labels = {b.label for b in app.button}
    assert labels & {"Stop", "Measure here again"}
    end = time.monotonic() + 100
    while "Measure here again" not in {b.label for b in app.button}:
        assert time.monotonic() < end
        time.sleep(0.5)
        app.run()
    assert "Solid: measured here. Dotted: the shipped table" in text_of(app)
    assert {"measured", "earlier", "fit"} <= set(rows_of(app)["role"])
    app.segmented_control(key="recurrence_what").set_value("train").run()
    assert_sound(app)
    rows = rows_of(app).query("series == 'attention' and role == 'measured'")
    shipped = timing.read_timings().curves[16, "train"]["attention"]
    assert tuple(rows["value"]) == shipped.values  # the controls act on the picture
    assert "Solid: the shipped table" in text_of(app)
    (told,) = (box.value for box in app.info if "Measured here" in box.value)
    assert "d = 16, forward" in told.replace("\\", "")
    app.segmented_control(key="recurrence_what").set_value("forward").run()
    assert "Solid: measured here" in text_of(app)


def test_no_fit_lies_across_points_that_still_come_in(monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        timing_view.parts,
        "bare_chart",
        lambda _, frame, **options: drawn.update(f=frame),
    )
    config = timing.TimingConfig(16, "forward")
    records = [timing.Timing("rnn", n, "forward", n / 1e5, 1) for n in (16, 32, 64)]
    status = SimpleNamespace(max_steps=config.total)
    look = SimpleNamespace(config=config, records=records, status=status)
    timing_view._draw_look(look, 16, "forward")
    assert set(drawn["f"]["role"]) == {"measured", "earlier"}


def test_memory_is_worked_out_and_read_off_real_tensors():
    app = open_recurrence(view="Memory", tokens=4096, heads=8, state_width=16)
    assert_sound(app)
    assert "8 · 4,096² · 4 bytes = 536,870,912 bytes (512 MiB)" in text_of(app)
    rows = rows_of(app)
    for name in rows.query("role == 'measured'")["series"].unique():
        own = rows[rows["series"] == name]
        real = own.query("role == 'measured'")["value"].tolist()
        assert real == own.query("role == 'fit'")["value"].tolist()[: len(real)]


def test_the_table_sets_measured_exponents_beside_the_theory():
    app = open_recurrence(view=VIEWS[3])
    assert_sound(app)
    (table,) = (b.value.replace("\\", "") for b in app.markdown if "| ---" in b.value)
    rnn, lstm, attention = table.splitlines()[2:]
    assert "O(n)" in rnn
    assert "O(n)" in lstm
    assert "O(1)" in attention
    assert "4 → 4" in attention
    assert all("˙" in row and " for n = " in row for row in (rnn, lstm, attention))
    assert "Measured time: the shipped table, d = 64, forward." in text_of(app)


def answer(app, text: str):
    app.radio(key="recurrence_predict_picked").set_value(text)
    (commit,) = (b for b in app.button if b.label == "Commit")
    return commit.click().run()


def test_the_prediction_is_worked_out_and_each_wrong_choice_has_its_reason():
    right = "It falls to about a quarter"
    app = answer(open_recurrence(), right)
    left = path_length.fade_with_length(20, 80, distance=10, width=16)
    assert f"Right. Measured: {left:.2f} of it is left" in app.success[0].value
    for choice in recurrence_view.ANSWERS.values():
        if choice.text != right:
            app = answer(app, choice.text)
            assert choice.misconception in app.warning[0].value


def test_nothing_is_chosen_before_and_a_commit_without_a_choice_says_so():
    app = open_recurrence()
    assert app.radio(key="recurrence_predict_picked").value is None
    (commit,) = (b for b in app.button if b.label == "Commit")
    app = commit.click().run()
    assert "Choose an answer first" in app.info[0].value


def test_the_experiments_show_what_they_say():
    app = open_recurrence()
    closed, opened, wide = (b for b in app.button if b.key.startswith("recurrence_try"))
    app = closed.click().run()
    rows = rows_of(app)
    assert at(rows, "LSTM", 20) < at(rows, "RNN", 20)
    (opened,) = (b for b in app.button if b.key == "recurrence_try_1")
    app = opened.click().run()
    assert at(rows_of(app), "LSTM", 59) > 1e-2
    (wide,) = (b for b in app.button if b.key == "recurrence_try_2")
    app = wide.click().run()
    far = rows_of(app).query("role == 'chosen'").set_index("series")["length"]
    near = rows_of(open_recurrence(view="Time", timed_width=16))
    near = near.query("role == 'chosen'").set_index("series")["length"]
    assert far["attention passes LSTM"] > 2 * near["attention passes LSTM"]


@pytest.mark.parametrize("value", ["<script>", "", "1e999", "-7", "💥", "1&x=2"])
@pytest.mark.parametrize("name", ["view", "length", "forget_bias", "what", "heads"])
def test_hostile_values_fall_back(name, value):
    app = open_recurrence(**{name: value})
    assert not app.exception
    assert app.title[0].value == PAGE.title
