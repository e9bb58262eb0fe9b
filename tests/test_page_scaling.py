"""What the page on scaling teaches, seen through the page."""

import json

import pytest
import torch
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core import captions, scaling
from pages._ui import catalogue
from tests.test_pages import assert_sound, open_page

PAGE = next(info for info in catalogue.list_pages() if info.name == "scaling")


def open_scaling(**settings):
    query = {f"scaling_{name}": str(value) for name, value in settings.items()}
    return open_page(PAGE, **query)


def charts_of(app):
    return [chart.proto for chart in app.get("vega_lite_chart")]


def rows_of(chart):
    (data,) = chart.datasets or [chart]
    return convert_arrow_bytes_to_pandas_df(data.data.data)


def middles_of(chart):
    """Return {series: {d_k: median or mean}} of what a sweep draws."""
    rows = rows_of(chart)
    rows = rows[rows["role"] != "chosen"]
    return {
        name: dict(zip(part["d_k"], part.iloc[:, 4], strict=True))
        for name, part in rows.groupby("series")
    }


def caption_of(app):
    sentences = (block.value.replace("\\", "") for block in app.markdown)
    return [text for text in sentences if text.startswith("With ")][-1]


def test_opens_on_raw_scores_that_saturate_beside_scaled_ones_that_do_not():
    app = open_scaling()
    assert_sound(app)
    (chart,) = charts_of(app)
    medians = middles_of(chart)
    raw, scaled = medians["raw"], medians["÷ √d_k"]
    assert set(raw) == {2.0**exponent for exponent in range(13)}
    assert raw[1] == scaled[1]
    assert raw[4096] > 0.99
    assert all(0.2 < scaled[d_k] < 0.45 for d_k in scaled)


def test_the_picture_shows_the_numbers_that_core_computes():
    app = open_scaling(keys=5, trials=50, seed=3, spread=1.5)
    drawn = rows_of(charts_of(app)[0]).query("series == 'raw' and d_k == 32").iloc[0]
    sweep = scaling.saturation_sweep(
        num_keys=5,
        num_trials=50,
        generator=torch.Generator().manual_seed(3),
        spread=1.5,
    )
    band = scaling.trial_band(sweep["nothing"].largest_weight[5].double())
    assert drawn["low"] == pytest.approx(float(band.low), abs=1e-6)
    assert drawn["median"] == pytest.approx(float(band.median), abs=1e-6)
    assert drawn["high"] == pytest.approx(float(band.high), abs=1e-6)


@pytest.mark.parametrize(
    ("divisor", "solid", "dashed"),
    [
        ("√d_k", {"raw", "÷ √d_k"}, {"÷ d_k"}),
        ("d_k", {"raw", "÷ d_k"}, {"÷ √d_k"}),
        ("nothing", {"raw"}, {"÷ √d_k", "÷ d_k"}),
    ],
)
def test_the_chosen_divisor_stands_beside_raw(divisor, solid, dashed):
    app = open_scaling(divisor=divisor)
    rows = rows_of(charts_of(app)[0])
    assert set(rows[rows["role"] == "series"]["series"]) == solid
    assert set(rows[rows["role"] == "reference"]["series"]) == dashed
    assert all(f"({name})" in caption_of(app) for name in solid)


def test_moving_d_k_moves_the_rule_and_nothing_else():
    before = charts_of(open_scaling(d_k=64))[0]
    after = charts_of(open_scaling(d_k=4096))[0]
    assert json.loads(before.spec) == json.loads(after.spec)
    assert middles_of(before) == middles_of(after)
    chosen = [
        rows_of(c).query("role == 'chosen'")["d_k"].item() for c in (before, after)
    ]
    assert chosen == [64, 4096]


def test_entropy_falls_to_one_key_and_the_gradient_vanishes():
    entropy = middles_of(charts_of(open_scaling(view="Entropy"))[0])
    assert entropy["raw"][4096] < 0.01
    assert all(2.3 < bits <= 3 for bits in entropy["÷ √d_k"].values())
    gradient = middles_of(charts_of(open_scaling(view="Gradient"))[0])
    assert gradient["raw"][4096] < 0.001
    assert all(norm > 0.3 for norm in gradient["÷ √d_k"].values())


@pytest.mark.parametrize("keys", [2, 8, 64])
def test_score_variance_follows_d_k_and_not_the_number_of_keys(keys):
    app = open_scaling(view="Score variance", keys=keys, d_k=256, trials=500)
    medians = middles_of(charts_of(app)[0])
    line = medians["expected: d_k"]
    assert all(variance == d_k for d_k, variance in line.items())
    assert medians["raw"][256] == pytest.approx(256, rel=0.2)
    said = f"the mean score variance is {captions.figure(medians['raw'][256])} (raw)"
    assert said in caption_of(app)
    assert "Raw is expected to have 256" in caption_of(app)
    growth = medians["raw"][4096] / medians["raw"][256]
    assert growth == pytest.approx(16, rel=0.35)


def test_the_curve_beside_the_expected_mean_is_a_mean():
    app = open_scaling(view="Score variance", keys=2, d_k=64, trials=50)
    (chart,) = charts_of(app)
    assert "mean and 10–90 % of trials" in json.loads(chart.spec)["title"]["text"]
    sweep = scaling.saturation_sweep(
        num_keys=2, num_trials=50, generator=torch.Generator().manual_seed(7)
    )
    raw = sweep["nothing"].score_variance[6].double()
    assert middles_of(chart)["raw"][64] == pytest.approx(float(raw.mean()), rel=1e-5)
    assert float(raw.median()) < 0.7 * float(raw.mean())  # so the two tell apart


def test_spread_enters_the_expected_variance_to_the_fourth_power():
    app = open_scaling(view="Score variance", spread=2.0, d_k=64)
    line = middles_of(charts_of(app)[0])["expected: d_k · spread⁴"]
    assert line[64] == 64 * 16
    assert "expected to have 1024" in caption_of(app)


@pytest.mark.parametrize(("keys", "top"), [(2, 1.1), (8, 3.3), (9, 4.4), (64, 6.6)])
def test_the_entropy_axis_ends_above_the_bits_of_all_keys_alike(keys, top):
    spec = json.loads(charts_of(open_scaling(view="Entropy", keys=keys))[0].spec)
    domain = spec["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert domain == pytest.approx([0, top])


def test_one_row_shows_weights_and_gradient_of_the_same_query():
    app = open_scaling(view="One row", d_k=128, keys=7, divisor="d_k")
    weights, gradient = (rows_of(chart) for chart in charts_of(app))
    for name in ("raw", "÷ d_k"):
        mine = weights[weights["series"] == name]["weight"]
        slopes = gradient[gradient["series"] == name]["gradient"]
        assert len(mine) == 7
        assert mine.sum() == pytest.approx(1, abs=1e-6)
        assert slopes.sum() == pytest.approx(0, abs=1e-6)
        assert slopes.max() == pytest.approx(mine.max() * (1 - mine.max()), abs=1e-6)
    assert caption_of(app).startswith("With 7 keys, at d_k = 128 key ")


def test_the_table_of_the_lab_is_there_digit_for_digit():
    table = open_scaling(view="Lab table", seed=5, keys=3).dataframe[0].value
    assert table.to_numpy().tolist() == [
        [8, 0.6302, 0.1969],
        [64, 0.7270, 0.1527],
        [512, 1.0000, 0.2190],
        [4096, 1.0000, 0.4201],
    ]


def test_the_same_seed_draws_the_same_picture_and_another_one_does_not():
    first, again, other = (
        rows_of(charts_of(open_scaling(seed=seed))[0]) for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)


def test_a_layer_divides_by_the_root_of_one_head_and_not_of_d_model():
    app = open_scaling()
    assert app.radio[0].value is None
    assert not [*app.success, *app.warning]
    app.radio[0].set_value("√8 = 2.83")
    app.button[0].click().run()
    assert "Measured on such a layer: 2.83" in app.success[0].value


@pytest.mark.parametrize(
    ("answer", "misconception"),
    [("√64 = 8.00", "64 is d_model"), ("√100 = 10.00", "100 is the sequence length")],
)
def test_a_wrong_prediction_names_its_misconception(answer, misconception):
    app = open_scaling()
    app.radio[0].set_value(answer)
    app.button[0].click().run()
    assert misconception in app.warning[0].value
    assert not app.success


def test_committing_without_an_answer_gives_nothing_away():
    app = open_scaling()
    app.button[0].click().run()
    assert app.info[0].value == "Choose an answer first."
    assert not [*app.success, *app.warning]


@pytest.mark.parametrize(
    "value", ["<script>alert(1)</script>", "", "-1", "1e99", "√", "5", "NaN", "0" * 500]
)
def test_a_hostile_address_falls_back_to_the_preset(value):
    names = ("d_k", "divisor", "spread", "trials", "view", "seed")
    app = open_scaling(**dict.fromkeys(names, value), keys=f"{value}x")
    assert_sound(app)
    assert charts_of(app)
    assert app.session_state["scaling_d_k"] == 64
    assert app.session_state["scaling_spread"] == 1.0
    assert app.session_state["scaling_keys"] == 8


def try_experiment(words):
    app = open_scaling(d_k=2, keys=3, divisor="d_k", seed=9, view="Gradient")
    next(button for button in app.button if words in button.label).click().run()
    assert_sound(app)
    return app


def test_the_experiment_with_one_row_shows_one_key_that_has_it_all():
    weights = rows_of(charts_of(try_experiment("Open one row"))[0])
    largest = weights.groupby("series")["weight"].max()
    assert largest["raw"] > 0.99
    assert largest["÷ √d_k"] < 0.7


def test_the_experiment_with_the_spread_brings_saturation_back():
    medians = middles_of(charts_of(try_experiment("Double the spread"))[0])
    assert all(medians["÷ √d_k"][d_k] > 0.5 for d_k in (16, 64, 1024, 4096))


@pytest.mark.parametrize("words", ["Double the spread", "Take 64 keys"])
def test_an_experiment_sets_all_that_its_sentence_rests_on(words):
    state = try_experiment(words).session_state
    assert state["scaling_d_k"] == 64
    assert state["scaling_seed"] == 0
    assert state["scaling_trials"] == 200


def test_the_claim_holds_at_the_preset_in_its_soft_words():
    medians = middles_of(charts_of(open_scaling())[0])
    assert 0.95 < medians["raw"][64] < 0.99
    medians = middles_of(charts_of(open_scaling(view="Gradient"))[0])
    assert 0.01 < medians["raw"][64] < 0.1
    assert "ever more weight" in PAGE.claim
    assert "ever less gradient" in PAGE.claim


def test_one_row_opens_where_the_effect_is_visible():
    weights = rows_of(charts_of(open_scaling(view="One row"))[0])
    largest = weights.groupby("series")["weight"].max()
    assert largest["raw"] > 0.99
    assert largest["÷ √d_k"] < 0.5


def test_the_fixed_table_has_no_controls_and_one_row_has_no_trials():
    assert_sound(lab := open_scaling(view="Lab table"))
    for kind in ("slider", "select_slider", "number_input", "button_group"):
        assert not lab.get(kind)
    held = [s.key for s in open_scaling(view="One row").select_slider]
    assert "scaling_d_k" in held
    assert "scaling_trials" not in held


def test_each_divisor_keeps_its_colour_whatever_is_chosen():
    colours = []
    for divisor in ("√d_k", "d_k", "nothing"):
        spec = json.loads(charts_of(open_scaling(divisor=divisor))[0].spec)
        scale = spec["layer"][1]["encoding"]["color"]["scale"]
        colours.append(dict(zip(scale["domain"], scale["range"], strict=True)))
    assert colours[0] == colours[1] == colours[2]
    assert len(set(colours[0].values())) == 3


def test_the_experiment_with_64_keys_leaves_the_variance_where_it_was():
    app = try_experiment("Take 64 keys")
    medians = middles_of(charts_of(app)[0])
    assert "Raw is expected to have 64; with 8 keys it has " in caption_of(app)
    assert medians["raw"][64] == pytest.approx(64, rel=0.15)
    assert medians["÷ √d_k"][64] == pytest.approx(1, rel=0.15)
