"""What is measured here on demand: started, stopped, measured again, never mixed up."""

import time
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.measuring import Measurement


def results(config):
    """Square numbers, one every few hundredths of a second."""
    for number in range(config[0]):
        time.sleep(config[1])
        yield number**2


def page() -> None:
    """Measure squares, as a page does."""
    import streamlit as st

    from core.measuring import Measurement
    from pages._ui.measured_run import measured
    from tests.test_measured_run import results

    config = st.session_state.get("config", (4, 0.0))
    measured(
        "squares/part",
        config,
        lambda c: Measurement(results(c), c[0]),
        total=lambda c: c[0],
        label="Measure here",
        ahead="Four squares, at once.",
        draw=lambda look: st.markdown(f"got {look.records}"),
        **st.session_state.get("options", {}),
    )


def open_page(**state) -> AppTest:
    app = AppTest.from_function(page, default_timeout=60)
    for name, value in state.items():
        app.session_state[name] = value
    return app.run()


def shown(app: AppTest) -> str:
    return " ".join(part.value for part in (*app.markdown, *app.info))


def press(app: AppTest) -> AppTest:
    return app.button(key="squares/part_measure").click().run()


def wait_for(app: AppTest, words: str) -> AppTest:
    for _ in range(200):
        if words in shown(app) or app.button[0].label == words:
            return app
        time.sleep(0.02)
        app.run()
    raise AssertionError(f"{words!r} never came, but {shown(app)!r}")


def test_nothing_is_measured_before_the_button_is_pressed():
    app = open_page()
    assert app.button[0].label == "Measure here"
    assert "got []" in shown(app)


def test_the_button_measures_all_and_then_offers_to_measure_again():
    app = wait_for(press(open_page()), "got [0, 1, 4, 9]")
    assert wait_for(app, "Measure here again")
    assert not app.exception


def test_a_measurement_stops_and_goes_on_where_it_was():
    app = press(open_page(config=(400, 0.01)))
    assert app.button[0].label == "Stop"
    wait_for(app, "got [0, 1")
    app = press(app)
    assert app.button[0].label == "Go on"
    time.sleep(0.1)  # the step under way still comes
    before = shown(app.run())
    time.sleep(0.2)
    assert shown(app.run()) == before
    assert press(app).button[0].label == "Stop"


def test_other_settings_are_measured_only_when_asked_and_told_apart():
    app = wait_for(press(open_page()), "got [0, 1, 4, 9]")
    app.session_state["config"] = (2, 0.0)
    app.run()
    assert app.button[0].label == "Measure here, with these settings"
    assert "was measured with other settings" in shown(app)
    app = wait_for(press(app), "got [0, 1]")
    assert "other settings" not in shown(app)


def test_what_was_stopped_is_said_to_go_on_with_its_own_settings():
    app = wait_for(press(open_page(config=(400, 0.01))), "got [0, 1")
    assert "It is stopped" not in shown(app)
    app = press(app)
    assert "It is stopped" not in shown(app), "its settings are those chosen"
    app.session_state["config"] = (2, 0.0)
    app.run()
    assert "set its own settings again to go on with it" in shown(app)
    assert app.button[0].label == "Measure here, with these settings"
    app.session_state["config"] = (400, 0.01)
    assert app.run().button[0].label == "Go on"
    assert "It is stopped" not in shown(app)


def test_what_moves_or_is_over_is_not_called_stopped():
    app = wait_for(press(open_page(config=(400, 0.01))), "got [0, 1")
    app.session_state["config"] = (4, 0.0)
    app.run()
    assert app.button[0].label == "Stop"
    assert "was measured with other settings" in shown(app)
    assert "It is stopped" not in shown(app)
    app = press(app)
    assert "It is stopped" in shown(app)
    app = wait_for(press(app), "got [0, 1, 4, 9]")
    app.session_state["config"] = (3, 0.0)
    app = wait_for(app.run(), "Measure here, with these settings")
    assert "It is stopped" not in shown(app)


def test_words_on_other_settings_know_what_was_measured_so_far():
    words = {"elsewhere": lambda look: f"{len(look.records)} of {look.config[0]}"}
    app = wait_for(press(open_page(options=words)), "got [0, 1, 4, 9]")
    app.session_state["config"] = (2, 0.0)
    assert "4 of 4" in shown(app.run())


def test_refused_settings_leave_what_was_measured():
    app = wait_for(press(open_page()), "got [0, 1, 4, 9]")
    app.session_state["config"] = None
    assert "got [0, 1, 4, 9]" in shown(app.run())


def test_refused_settings_measure_nothing():
    app = open_page(config=None)
    assert not app.button
    assert not app.exception


@pytest.mark.parametrize("page_shown", ["squares", "other"])
def test_a_part_is_parked_with_its_page_alone(monkeypatch, page_shown):
    from pages._ui import leases

    parked = []
    run = SimpleNamespace(park=lambda: parked.append(True))
    held = leases.HeldRun("squares/part", None, None, run)
    state = {"_held_squares/part": held}
    monkeypatch.setattr(leases, "st", SimpleNamespace(session_state=state))
    leases.turn_to(page_shown)
    assert bool(parked) == (page_shown == "other")


def test_the_measurement_of_the_page_is_the_one_of_core():
    assert [*results((3, 0.0))] == [0, 1, 4]
    assert Measurement(results((3, 0.0)), 3).step() == 0
