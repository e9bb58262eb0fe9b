"""What the page on the encoder block teaches, seen through the page."""

import json

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core import block_story, depth, layer_norm
from pages._ui import block_view, catalogue
from tests.test_pages import assert_sound, open_page

PAGE = next(info for info in catalogue.list_pages() if info.name == "encoder_block")


def open_block(view="Block", **settings):
    query = {f"block_{name}": str(value) for name, value in settings.items()}
    return open_page(PAGE, block_view=view, **query)


def charts_of(app):
    return [chart.proto for chart in app.get("vega_lite_chart")]


def rows_of(chart):
    (data,) = chart.datasets or [chart]
    return convert_arrow_bytes_to_pandas_df(data.data.data)


def said(app):
    return " ".join(block.value.replace("\\", "") for block in app.markdown)


def test_opens_on_both_orders_named_with_shapes_and_sizes():
    app = open_block()
    assert_sound(app)
    (chart,) = charts_of(app)
    rows = rows_of(chart)
    labels = rows["label"].tolist()
    assert "Post-norm (Vaswani et al., 2017)" in labels
    assert "Pre-norm (GPT-2; Xiong et al., 2020)" in labels
    assert labels.count("last LayerNorm") == 1
    assert (rows["detail"].str.contains(r"\(6, 32\) · RMS")).sum() == 15
    assert (rows["detail"].str.contains(r"\(6, 128\) · RMS")).sum() == 2
    assert "are random" in said(app)


def test_without_shortcuts_no_sum_is_drawn():
    with_them, without = (
        rows_of(charts_of(open_block(residual=flag))[0]) for flag in ("true", "false")
    )
    assert (with_them["kind"] == "sum").sum() == 4
    assert (without["kind"] == "sum").sum() == 0
    assert not without["label"].str.contains("Vaswani").any()
    assert "Post-norm order, shortcuts cut" in without["label"].tolist()


@pytest.mark.parametrize(("flag", "added"), [("true", True), ("false", False)])
def test_the_formula_follows_the_switch(flag, added):
    (formula,) = open_block(residual=flag).latex
    assert ("x + f" in formula.value) == added


def test_moving_the_block_changes_no_spec():
    one, other = (charts_of(open_block(number=number))[0] for number in (1, 24))
    assert json.loads(one.spec) == json.loads(other.spec)


def test_at_the_start_the_tokens_grow_under_pre_norm_alone():
    app = open_block("Depth", depth=24, seed=0)
    assert_sound(app)
    tokens, gradients = (rows_of(chart) for chart in charts_of(app))
    ends = tokens[tokens["at"] == 24].set_index("series")["value"]
    assert list(ends.index) == [
        "pre-norm", "post-norm", "pre-norm, no shortcuts", "post-norm, no shortcuts",
    ]  # fmt: skip
    assert ends["pre-norm"] > 2
    assert ends["post-norm"] == pytest.approx(1, abs=1e-3)
    assert sorted(set(gradients["at"])) == list(range(1, 25))


@pytest.mark.parametrize("rate", depth.RATES)
def test_the_training_view_shows_every_shipped_run_as_a_point(rate):
    app = open_block("Training", trained=12, rate=f"{rate:g}")
    assert_sound(app)
    outcomes = rows_of(charts_of(app)[0])
    shipped = [
        run
        for run in depth.read_depth().runs
        if run.variant.residual and run.rate == rate
    ]
    assert len(outcomes) == len(shipped) == 24
    found = sorted(outcomes["loss"].round(6))
    assert found == sorted(round(run.loss, 6) for run in shipped)
    assert set(outcomes["depth"][outcomes["chosen"]]) == {12}
    assert "may stall; no law says it must" in said(app)
    assert "Made by python -m core.depth" in app.caption[0].value.replace("\\", "")
    trained = rows_of(charts_of(app)[1])
    assert set(trained["run"]) == {", seed 0", ", seed 1", ", seed 2"}
    assert trained["at"].max() == 12


def test_without_shortcuts_nothing_is_said_of_runs_with_them():
    said_there = said(open_block("Training", residual="false"))
    assert "With shortcuts" not in said_there
    assert "Learned" in said_there


def test_a_row_by_hand_agrees_with_pytorch_and_shows_what_misreadings_cost():
    app = open_block("LayerNorm by hand", width=4, eps="0.1", seed=3)
    assert_sound(app)
    found = layer_norm.norm_a_row(4, 0.1, 3)
    values = rows_of(charts_of(app)[0])["value"].to_numpy()
    assert values == pytest.approx(found.table.numbers.flatten().numpy())
    assert ":material/check_circle: equal" in said(app)
    assert block_story.misreading_sentence(found, 0.1) in said(app)


@pytest.mark.parametrize("norm", ["pre-norm", "post-norm"])
def test_the_shortcut_shows_parity_counts_and_hooks_without_weights(norm):
    app = open_block("The shortcut", norm=norm)
    assert_sound(app)
    assert ":material/check_circle: equal" in said(app)
    assert "Both stacks have 25,408 parameters." in said(app)
    assert "called 2 times in all and handed weights 0 times" in said(app)
    assert f"norm_first={norm == 'pre-norm'}" in app.code[0].value
    assert [b.label for b in app.button if b.label == "Measure the time here"]


def test_parameters_are_drawn_part_by_part():
    app = open_block("Parameters", d_model=64, layers=3)
    assert_sound(app)
    rows = rows_of(charts_of(app)[0]).set_index("part")["amount"]
    assert rows["attention: W_Q, W_K, W_V"] == 3 * (3 * 64 * 64 + 3 * 64)
    assert f"{rows.sum():,} parameters" in said(app)


@pytest.mark.parametrize("picked", range(4))
def test_only_pre_norm_passes_idle_tokens_on(picked):
    app = open_block()
    assert app.radio(key="block_predict_picked").value is None
    choice = block_view.IDLE[picked]
    app.radio(key="block_predict_picked").set_value(choice.text)
    next(button for button in app.button if button.label == "Commit").click().run()
    shown = app.success if picked == 0 else app.warning
    assert len(app.success) + len(app.warning) == 1
    expected = "measured: 0 (pre-norm)" if picked == 0 else choice.misconception
    assert expected in shown[0].value


def test_nothing_is_judged_before_a_choice():
    app = open_block()
    next(button for button in app.button if button.label == "Commit").click().run()
    assert not app.success
    assert not app.warning
    assert "Choose an answer first." in app.info[0].value


@pytest.mark.parametrize("number", range(len(block_view.EXPERIMENTS)))
def test_an_experiment_opens_its_view(number):
    app = open_block()
    settings = list(block_view.EXPERIMENTS.values())[number]
    app.button(key=f"block_try_{number}").click().run()
    assert_sound(app)
    assert app.session_state["block_view"] == settings["view"]
    for name, value in settings.items():
        assert app.session_state[f"block_{name}"] == value


@pytest.mark.parametrize(
    ("view", "query"),
    [
        ("Block", {"number": "<script>", "d_model": "7", "heads": "-1"}),
        ("Depth", {"depth": "9" * 99, "residual": "maybe"}),
        ("Training", {"trained": "5", "rate": "nan"}),
        ("LayerNorm by hand", {"eps": "1e999", "width": ""}),
        ("nowhere", {"seed": "-5"}),
    ],
)
def test_a_hostile_address_falls_back(view, query):
    app = open_block(view, **query)
    assert_sound(app)
    assert charts_of(app)


def test_the_largest_stack_is_timed_on_smaller_batches_and_nothing_is_missing():
    app = open_block("The shortcut", d_model=128, layers=12, heads=8)
    assert_sound(app)
    assert [b.label for b in app.button if b.label == "Measure the time here"]
    assert any("Look inside" in inside.label for inside in app.expander)
