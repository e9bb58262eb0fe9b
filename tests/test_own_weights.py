"""Whose weights the views of a page show: the visitor's own, or why they are not."""

import pytest

from pages._ui import s2s_view
from tests.test_page_encoder_decoder import (
    SMALL,
    open_s2s,
    press,
    text,
    turn_to,
    wait_for,
)
from tests.test_pages import assert_sound


def look(app, view):
    turn_to(app, view)
    app.segmented_control(key="s2s_source").set_value("yours").run()
    assert_sound(app)
    return text(app)


def test_a_run_that_ends_while_another_view_is_open_is_shown_there():
    app = press(open_s2s(s2s_view.TRAIN, **SMALL), "Run")
    said = look(app, s2s_view.LOSS)
    assert "shown: your run still trains; pause it" in said or "Your run" in said
    wait_for(app, "Your run · 50 training steps", seconds=90)


def test_a_run_without_steps_is_told_from_one_that_trained_another_task():
    app = open_s2s(s2s_view.TRAIN, **SMALL)
    assert "shown: no run of yours has trained here" in look(app, s2s_view.LOSS)
    turn_to(app, s2s_view.TRAIN)
    press(app, "Step 1")
    wait_for(app, "Step 1 / 50")
    assert "Your run · 1 training step" in look(app, s2s_view.LOSS)
    app.selectbox(key="s2s_task").set_value("copy").run()
    assert "shown: your run trained another task, numbers" in text(app)


@pytest.mark.parametrize("view", [s2s_view.DECODE, s2s_view.LOSS])
def test_a_run_that_diverged_is_not_looked_into(view):
    wild = SMALL | {
        "s2s_rate": "1e+06", "s2s_warmup": "0", "s2s_schedule": "warm-up then constant",
    }  # fmt: skip
    app = press(open_s2s(s2s_view.TRAIN, **wild), "Run")
    wait_for(app, "is no finite number", seconds=90)
    said = look(app, view)
    assert "shown: your run diverged: it answers in no finite numbers" in said
    assert "nan" not in said
    assert "Shipped run" in said


def test_a_run_too_large_to_be_kept_is_told_with_both_numbers():
    large = SMALL | {"s2s_width": "128", "s2s_layers": "4", "s2s_batch": "16"}
    app = press(open_s2s(s2s_view.TRAIN, **large), "Step 1")
    wait_for(app, "Step 1 / 50", seconds=90)
    said = look(app, s2s_view.LOSS)
    assert "your run has 1,8" in said
    assert "at most 1,500,000 are kept" in said
