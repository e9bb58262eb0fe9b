"""The lease of a live run: closing, reloading and leaving a page lose nothing."""

from types import SimpleNamespace

import pytest

from pages._ui import leases


class FakeRun:
    def __init__(self):
        self.parked = False
        self.closed = False

    def park(self):
        self.parked = True

    def unpark(self):
        self.parked = False

    def close(self):
        self.closed = True


class Session:
    """What Streamlit gives one tab: its state, its cookie, its session cache."""

    def __init__(self, monkeypatch, cookie):
        self.monkeypatch = monkeypatch
        self.state = {}
        self.cookies = {} if cookie is None else {"_streamlit_xsrf": cookie}
        self.leases = {}

    def hold(self, config="preset"):
        context = SimpleNamespace(cookies=self.cookies)
        fake = SimpleNamespace(session_state=self.state, context=context)
        self.monkeypatch.setattr(leases, "st", fake)
        self.monkeypatch.setattr(leases, "_lease", self._lease)
        return leases.hold("page", config, lambda _: FakeRun())

    def _lease(self, page):
        return self.leases.setdefault(page, leases._Lease())

    def disconnect(self):
        for lease in self.leases.values():
            lease.release()
        self.leases.clear()


ANNA = "2|00000000|0102030405060708|1"
ANNA_MASKED = "2|ffffffff|fefdfcfbfaf9f8f7|1"
BERT = "2|00000000|1102030405060708|1"


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(leases, "_parked", [])
    return lambda cookie=ANNA: Session(monkeypatch, cookie)


def test_a_tab_finds_its_own_run_at_every_rerun(session):
    tab = session()
    assert tab.hold() is tab.hold()


def test_a_closed_tab_parks_its_run(session):
    tab = session()
    held = tab.hold()
    tab.disconnect()
    assert held.run.parked


def test_a_blink_of_the_network_gives_the_same_run_back(session):
    tab = session()
    held = tab.hold()
    tab.disconnect()
    assert tab.hold() is held
    assert not held.run.parked


def test_a_reload_finds_the_run_though_the_mask_of_the_cookie_changed(session):
    first = session(ANNA)
    held = first.hold()
    first.disconnect()
    assert session(ANNA_MASKED).hold() is held


def test_another_browser_never_gets_the_run(session):
    tab = session(ANNA)
    held = tab.hold()
    tab.disconnect()
    assert session(BERT).hold() is not held
    assert session(None).hold() is not held


def test_a_second_tab_of_a_browser_gets_a_run_of_its_own(session):
    assert session(ANNA).hold() is not session(ANNA).hold()


def test_a_tab_that_blinks_does_not_take_back_a_run_claimed_meanwhile(session):
    old = session(ANNA)
    held = old.hold()
    old.disconnect()
    new = session(ANNA)
    assert new.hold() is held
    assert old.hold() is not held
    assert held.holder is not None


def test_an_old_parked_run_of_other_settings_is_left_alone(session, monkeypatch):
    tab = session(ANNA)
    held = tab.hold("old settings")
    tab.disconnect()
    held.parked_at -= 60
    assert session(ANNA).hold("other settings") is not held


def test_refused_settings_make_no_run_but_keep_the_one_that_is(session):
    tab = session()
    assert tab.hold(None) is None
    held = tab.hold("preset")
    assert tab.hold(None) is held


def test_many_parked_runs_are_bounded_and_the_oldest_is_closed(session, monkeypatch):
    monkeypatch.setattr(leases, "_MOST_PARKED", 2)
    tabs = [session(ANNA) for _ in range(3)]
    runs = [tab.hold(number) for number, tab in enumerate(tabs)]
    for tab in tabs:
        tab.disconnect()
    assert [held.run.closed for held in runs] == [True, False, False]


@pytest.mark.parametrize("cookie", ["", "2|zz|zz|1", "nonsense", "1|2|3|4|5", "2||ab|"])
def test_a_strange_cookie_names_no_browser(session, cookie):
    tab = session(cookie)
    tab.hold()
    assert tab.state["_held_page"].browser is None
