"""The lease of a live run: closing, reloading and leaving a page lose nothing."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from pages._ui import leases


class FakeRun:
    def __init__(self):
        self.parked = False
        self.closed = False
        self.generation = 0
        self.step_count = 0
        self.asked = []

    def park(self):
        self.parked = True

    def unpark(self):
        self.parked = False

    def close(self):
        self.closed = True

    def ask(self, question):
        self.asked.append(Future())
        return self.asked[-1]


class Session:
    """What Streamlit gives one tab: its state, its cookie, its session cache."""

    def __init__(self, monkeypatch, cookie):
        self.monkeypatch = monkeypatch
        self.state = {}
        self.cookies = {} if cookie is None else {"_streamlit_xsrf": cookie}
        self.leases = {}

    def hold(self, config="preset", page="page"):
        self._enter()
        return leases.hold(page, config, lambda _: FakeRun())

    def turn_to(self, page):
        self._enter()
        leases.turn_to(page)

    def _enter(self):
        context = SimpleNamespace(cookies=self.cookies)
        fake = SimpleNamespace(session_state=self.state, context=context)
        self.monkeypatch.setattr(leases, "st", fake)
        self.monkeypatch.setattr(leases, "_lease", self._lease)

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


def test_a_link_to_other_settings_opened_at_once_leaves_a_parked_run_alone(session):
    tab = session(ANNA)
    held = tab.hold("old settings")
    tab.disconnect()
    assert session(ANNA).hold("other settings") is not held
    assert session(ANNA).hold("old settings") is held


def test_a_reload_finds_a_run_whose_settings_were_changed_in_mid_run(session):
    tab = session(ANNA)
    held = tab.hold("first settings")
    assert tab.hold("changed settings") is held
    tab.disconnect()
    assert session(ANNA).hold("first settings") is not held
    new = session(ANNA)
    assert new.hold("changed settings") is held
    assert held.config == "first settings"


def test_a_reload_finds_a_run_beside_settings_that_are_refused(session):
    tab = session(ANNA)
    held = tab.hold("preset")
    tab.hold(None)
    tab.disconnect()
    assert session(ANNA).hold(None) is held


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


def test_a_script_that_outlives_its_tab_leaves_the_run_parked(session):
    tab = session()
    held = tab.hold()
    lease = tab.leases["page"]
    tab.disconnect()
    tab.leases["page"] = lease  # what the old script thread still has in its hands
    assert tab.hold() is held
    assert held.run.parked
    tab.leases.clear()
    assert tab.hold() is held  # the tab is back, with a lease of its own
    assert not held.run.parked


def test_a_script_of_the_page_left_does_not_wake_its_run(session):
    tab = session()
    held = tab.hold()
    tab.turn_to("other")
    assert held.run.parked
    assert tab.hold() is held  # the old script thread comes by once more
    assert held.run.parked
    tab.turn_to("page")
    assert tab.hold() is held
    assert not held.run.parked


def test_turning_to_a_page_parks_the_runs_of_the_others_alone(session):
    tab = session()
    one, two = tab.hold(), tab.hold(page="two")
    tab.turn_to("two")
    assert (one.run.parked, two.run.parked) == (True, False)


def test_a_run_parked_for_half_an_hour_is_closed_and_forgotten(session):
    tab, young = session(ANNA), session(BERT)
    held, fresh = tab.hold(), young.hold()
    tab.disconnect()
    young.disconnect()
    held.parked_at -= 1801
    fresh.parked_at -= 1799
    session(None).turn_to("home")  # any page view of anybody
    assert (held.run.closed, fresh.run.closed) == (True, False)
    assert leases._parked == [fresh]
    assert tab.hold() is not held


def test_an_answer_is_kept_and_a_refused_one_is_asked_again(session):
    held = session().hold()
    answer = held.ask("accuracy", print)
    assert held.ask("accuracy", print) is answer
    assert held.waits
    answer.set_exception(RuntimeError("gone"))
    assert not held.waits
    second = held.ask("accuracy", print)
    assert second is not answer
    second.set_result(0.5)
    assert held.ask("accuracy", print) is second
    held.run.generation += 1
    assert held.ask("accuracy", print) is not second


def test_a_new_run_in_its_place_knows_no_answer_of_the_old_one(session):
    held = session().hold()
    old, answer = held.run, held.ask("accuracy", print)
    held.replace("other", lambda _: FakeRun())
    assert old.closed
    assert held.config == "other"
    assert held.ask("accuracy", print) is not answer


def test_only_the_newest_answers_are_kept(session, monkeypatch):
    monkeypatch.setattr(leases, "_MOST_ANSWERS", 2)
    held = session().hold()
    for number in range(5):
        held.ask(number, print)
    assert [key for _, key in held.answers] == [3, 4]


def test_another_page_finds_the_run_of_this_session_and_leaves_it_there(session):
    tab = session()
    held = tab.hold(page="marker")
    tab.turn_to("reading")
    assert held.run.parked
    assert leases.find("marker") is held
    assert leases.find("elsewhere") is None
    assert held.run.parked
    assert held.holder is not None


def test_another_page_finds_what_this_browser_parked_and_no_other(session):
    first = session()
    held = first.hold(page="marker")
    first.disconnect()
    session(ANNA_MASKED).turn_to("reading")
    assert leases.find("marker") is held
    assert leases._parked == [held]
    for cookie in (BERT, None):
        session(cookie).turn_to("reading")
        assert leases.find("marker") is None


def test_another_page_finds_a_run_that_has_trained_before_one_that_has_not(session):
    first = session()
    behind = first.hold("old settings")
    behind.run.step_count = 3
    first.disconnect()
    tab = session(ANNA_MASKED)
    fresh = tab.hold("preset")
    assert leases.find("page") is behind
    fresh.run.step_count = 1
    assert leases.find("page") is fresh


def test_what_was_left_behind_is_offered_and_taken_up_with_all_it_is(session):
    first = session()
    behind = first.hold("old settings")
    first.disconnect()
    tab = session(ANNA_MASKED)
    fresh = tab.hold("preset")
    assert leases.left_behind("page") is None  # it has not trained
    behind.run.step_count = 3
    assert leases.left_behind("page") is behind
    assert not leases.is_held_here(behind)
    leases.take_up(behind)
    assert fresh.run.closed
    assert tab.hold("preset") is behind
    assert leases.is_held_here(behind)
    assert not behind.run.parked
    assert behind.config == "old settings"
    assert leases.left_behind("page") is None


def test_what_another_tab_took_up_first_stays_there(session):
    first = session()
    behind = first.hold("old settings")
    behind.run.step_count = 3
    first.disconnect()
    tab, other = session(), session()
    kept = tab.hold("preset")
    assert other.hold("old settings") is behind
    tab.turn_to("page")
    leases.take_up(behind)
    assert tab.hold("preset") is kept
    assert not kept.run.closed


def test_no_other_browser_is_offered_what_was_left_behind(session):
    first = session()
    first.hold("old settings").run.step_count = 3
    first.disconnect()
    for cookie in (BERT, None):
        session(cookie).turn_to("page")
        assert leases.left_behind("page") is None


def test_the_newest_answer_of_a_name_is_one_that_was_had_of_this_run(session):
    held = session().hold()
    assert held.newest_answer("weights") is None
    held.ask("opened", print).set_result(None)
    held.ask(("weights", 10), print).set_result("ten")
    held.ask(("weights", 20), print).set_exception(RuntimeError("gone"))
    held.ask(("weights", 30), print)
    assert held.newest_answer("weights") == "ten"
    held.keep_only(("weights", 30))
    assert [key for _, key in held.answers] == ["opened", ("weights", 30)]
    held.ask(("weights", 30), print).set_result("thirty")
    assert held.newest_answer("weights") == "thirty"
    held.run.generation += 1
    assert held.newest_answer("weights") is None


def test_what_was_pressed_takes_effect_once_and_in_order_at_the_next_hold(session):
    tab, done = session(), []
    held = tab.hold()
    for rank in (2, 0, 1):
        held.press(rank, lambda rank=rank: done.append(rank))
    assert done == []
    tab.hold()
    tab.hold()
    assert done == [0, 1, 2]


def test_a_tab_that_came_back_lost_a_run_only_where_none_is_found(session, monkeypatch):
    first = session()
    parked = first.hold()
    first.disconnect()
    monkeypatch.setattr(leases.returned, "is_noted", lambda: True)
    assert session().hold() is parked
    assert not parked.lost
    other = session(BERT).hold()
    assert other.lost
    other.replace("preset", lambda _: FakeRun())
    assert not other.lost
