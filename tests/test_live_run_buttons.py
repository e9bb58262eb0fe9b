"""The buttons of a live run: pressed at once, and beside a run that moves on."""

from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from pages._ui import live_run


class QuickRun:
    """A run whose steps take no time."""

    def __init__(self, state: str = "new", step_count: int = 0) -> None:
        self.state, self.step_count, self.let_go = state, step_count, False

    def status(self):
        return SimpleNamespace(**vars(self))

    def look(self):
        return self.status(), [], []

    def touch(self):
        pass

    def start(self):
        self.state = "running"

    def pause(self):
        self.state = "paused" if self.step_count else "new"

    def step(self, count):
        self.state, self.step_count = "paused", self.step_count + count


def page() -> None:
    """Draw the buttons of a quick run and what moves, as a page does."""
    import streamlit as st

    from pages._ui import live_run
    from pages._ui.leases import HeldRun
    from tests.test_live_run_buttons import QuickRun

    state = st.session_state
    if "held" not in state:
        state.held = HeldRun("page", None, "settings", QuickRun(*state.begin))

    state.held.take_effect()

    def reset() -> None:
        state.held.run = QuickRun()

    live_run.buttons(state.held, reset, str)
    if state.pop("ends_meanwhile", False):
        state.held.run.state = "finished"
    live_run.moving_view(state.held, lambda look: None)


def open_page(**begin) -> AppTest:
    app = AppTest.from_function(page)
    for key, value in begin.items():
        app.session_state[key] = value
    return app.run()


def press_at_once(app: AppTest, *names: str) -> AppTest:
    """Press buttons in one run; Streamlit calls back in the order of the page."""
    for name in names:
        app.button(key=f"page_{name}").click()
    return app.run()


def state_of(app: AppTest) -> tuple[str, int]:
    run = app.session_state["held"].run
    return run.state, run.step_count


@pytest.mark.parametrize("begin", [("new", 0), ("paused", 7)])
def test_reset_and_run_at_once_start_a_new_run(begin):
    app = press_at_once(open_page(begin=begin), "reset", "run")
    assert state_of(app) == ("running", 0)
    assert app.button(key="page_run").label == "Pause"


def test_reset_and_pause_at_once_leave_a_new_run_at_rest():
    app = press_at_once(open_page(begin=("running", 7)), "reset", "run")
    assert state_of(app) == ("new", 0)
    assert app.button(key="page_run").label == "Run"


def test_reset_and_a_step_at_once_take_the_step_of_the_new_run():
    app = press_at_once(open_page(begin=("paused", 7)), "reset", "step_1", "step_10")
    assert state_of(app) == ("paused", 11)


def test_a_curve_kept_together_with_a_reset_is_the_one_that_was(monkeypatch):
    steps = []
    monkeypatch.setattr(
        live_run, "keep", lambda held, _: steps.append(held.run.step_count)
    )
    press_at_once(open_page(begin=("paused", 7)), "reset", "keep_curve")
    assert steps == [7]


@pytest.mark.parametrize("name", ["run", "step_1", "reset"])
def test_one_button_acts_once(name):
    app = press_at_once(open_page(begin=("paused", 7)), name)
    after = {"run": ("running", 7), "step_1": ("paused", 8), "reset": ("new", 0)}
    assert state_of(app) == after[name]


def test_the_buttons_are_drawn_again_where_the_run_ended_meanwhile():
    app = open_page(begin=("running", 7), ends_meanwhile=True)
    assert app.button(key="page_run").label == "Run"
    assert app.button(key="page_run").disabled
