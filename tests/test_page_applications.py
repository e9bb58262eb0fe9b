"""What the page on applications teaches, seen through the page."""

import json

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from core.templates import TEMPLATES
from pages._ui import catalogue, templates_view
from tests.test_pages import assert_sound, open_page

PAGE = next(info for info in catalogue.list_pages() if info.name == "applications")


def open_apps(**settings):
    return open_page(PAGE, **{f"apps_{k}": str(v) for k, v in settings.items()})


def open_lengths(source, target):
    lengths = {"translation_source_len": source, "translation_target_len": target}
    return open_apps(**lengths)


def turn_to(app, name):
    (menu,) = (box for box in app.selectbox if box.label == "Template")
    menu.set_value(name).run()
    assert_sound(app)


def chart_of(app):
    (chart,) = app.get("vega_lite_chart")
    return chart.proto


def rows_of(app):
    chart = chart_of(app)
    (data,) = chart.datasets or [chart]
    return convert_arrow_bytes_to_pandas_df(data.data.data)


def said(app):
    return " ".join(block.value.replace("\\", "") for block in app.markdown)


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_template_says_what_is_source_memory_and_target(name):
    app = open_apps(template=name)
    assert_sound(app)
    template, rows = TEMPLATES[name], rows_of(app)
    labels, details = rows["label"].tolist(), rows["detail"].tolist()
    assert f"Encoder reads the source: {template.source}" in labels
    assert f"Decoder writes the target: {template.target}" in labels
    assert f"Memory: {template.memory}." in details
    assert "are random" in said(app)
    assert ("224 ÷ 16 = 14" in said(app)) == template.has_image


def test_the_lengths_reach_the_shapes_and_the_spec_stays():
    one, other = open_lengths(7, 4), open_apps(norm="post-norm")
    details = rows_of(one)["detail"].tolist()
    assert "(5, 64) · map (4, 5, 7)" in details
    assert "5 × 7 = 35 weights" in said(one)
    assert json.loads(chart_of(one).spec) == json.loads(chart_of(other).spec)
    assert "last LayerNorm" in rows_of(one)["label"].tolist()
    assert "last LayerNorm" not in rows_of(other)["label"].tolist()


@pytest.mark.parametrize("index", [None, *range(len(templates_view.LONGER))])
def test_the_prediction_is_judged_by_two_runs(index):
    app = open_apps()
    (radio,) = app.radio
    if index is not None:
        radio.set_value(radio.options[index])
    commit = next(b for b in app.button if b.label == "Commit")
    commit.click().run()
    assert_sound(app)
    if index is None:
        assert "Choose an answer first" in app.info[-1].value
    elif index == 2:
        assert "(4, 13, 13) to (4, 14, 14)" in app.success[0].value
    else:
        assert templates_view.LONGER[index].misconception in app.warning[0].value


@pytest.mark.parametrize("text", templates_view.EXPERIMENTS)
def test_an_experiment_sets_what_it_says(text):
    app = open_apps()
    for name in templates_view.EXPERIMENTS.values():
        turn_to(app, name["template"])
        for slider in app.select_slider:
            if slider.key.endswith(("_len", "_patch")):
                slider.set_value(slider.options[1]).run()
    next(b for b in app.button if b.label == text).click().run()
    assert_sound(app)
    wanted = templates_view.EXPERIMENTS[text]
    for name, value in wanted.items():
        assert app.session_state[f"apps_{name}"] == value
    template = TEMPLATES[wanted["template"]]
    whole = {"source": template.source_tokens, "target": template.target_tokens}
    for side, tokens in whole.items():
        assert wanted[f"{template.key}_{side}_len"] in (1, len(tokens))
    expected = {"Image and question": "49 of 32 × 32", "Chat": "reads 2 tokens",
                "Translation": "The source, 1 token,"}  # fmt: skip
    assert expected[wanted["template"]] in said(app)


def test_every_template_opens_whole_whatever_was_open_before():
    app = open_apps(translation_source_len=4)
    for name in [*TEMPLATES, *TEMPLATES]:
        turn_to(app, name)
        template = TEMPLATES[name]
        words = (
            template.source_text if name != "Translation" else "Der alte Hund schlief"
        )
        assert f"“{words}” → “{template.target_text}”" in said(app)


HOSTILE = ["<script>alert(1)</script>", "", "9" * 400, "-3", "NaN", "𝕏\u202e", "[](x)"]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_address_opens_the_preset(value):
    names = ("template", "translation_source_len", "translation_target_len", "patch",
             "d_model", "heads", "layers", "norm")  # fmt: skip
    app = open_apps(**dict.fromkeys(names, value))
    assert_sound(app)
    assert "(11, 64) · map (4, 11, 13)" in rows_of(app)["detail"].tolist()
