"""Many tabs on one server: answers in time, the same curve in each, nobody's state."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.live_server import ROOT, Server, Tab, open_tab, serve

SHORT = (
    "marker_length=10&marker_width=8&marker_heads=2&marker_samples=250"
    "&marker_batch=16&marker_steps=63"
)
LONG = "marker_steps=10000"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("tabs") / "log.txt"
    with serve(ROOT / "app.py", log) as running:
        with open_tab(running, "marker_task") as tab:
            tab.run()
        yield running
        assert "Traceback" not in running.log_text()


def open_tabs(stack: ExitStack, server: Server, page: str, queries) -> list[Tab]:
    return [stack.enter_context(open_tab(server, page, query)) for query in queries]


def wait_for(tab: Tab, words: str, seconds: float = 60) -> str:
    deadline = time.monotonic() + seconds
    while words not in tab.text():
        assert time.monotonic() < deadline, tab.text()
        time.sleep(0.1)
        tab.run()
    return tab.text()


def steps_done(tab: Tab) -> int:
    return int(re.search(r"Step ([\d,]+) / ", tab.text())[1].replace(",", ""))


def test_pause_step_and_reset_answer_in_half_a_second_beside_ten_runs(server):
    with ExitStack() as stack:
        (mine,) = open_tabs(stack, server, "marker_task", [LONG])
        mine.press("Run")  # the first, so it is one of those that train
        others = open_tabs(stack, server, "marker_task", [LONG] * 10)
        for tab in others:
            tab.press("Run")
        wait_for_a_step(mine)
        assert mine.press("Pause") < 0.5
        before = steps_done(mine)
        start = time.monotonic()
        mine.press("Step 1")
        while steps_done(mine) == before and time.monotonic() - start < 5:
            mine.run()
        assert time.monotonic() - start < 0.5
        assert mine.press("Reset") < 0.5
        assert steps_done(mine) == 0
        assert "in the queue" in "\n".join(wait_text(tab) for tab in others)


def wait_for_a_step(tab: Tab, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not steps_done(tab):
        assert time.monotonic() < deadline, "the run does not get on"
        tab.run()


def wait_text(tab: Tab) -> str:
    tab.run()
    alerts = [alert.body for alert in tab.elements("alert")]
    return "\n".join([tab.text(), *alerts])


def test_a_slider_elsewhere_answers_while_ten_runs_train(server):
    with ExitStack() as stack:
        for tab in open_tabs(stack, server, "marker_task", [LONG] * 10):
            tab.press("Run")
        (other,) = open_tabs(stack, server, "scaling", [""])
        waits = []
        for turn in range(6):
            other.move(other.elements("slider")[0], turn % 2)
            waits.append(other.run())
        assert sorted(waits)[3] < 0.5


def test_runs_of_one_seed_are_equal_beside_each_other_and_alone(server):
    with ExitStack() as stack:
        tabs = open_tabs(stack, server, "marker_task", [SHORT] * 4)
        for tab in tabs:
            tab.press("Run")
        ends = {end_of_run(tab) for tab in tabs}
        (alone,) = open_tabs(stack, server, "marker_task", [SHORT])
        alone.press("Run")
        assert ends == {end_of_run(alone)}
        (other_seed,) = open_tabs(
            stack, server, "marker_task", [f"{SHORT}&marker_seed=1"]
        )
        other_seed.press("Run")
        assert end_of_run(other_seed) not in ends


def end_of_run(tab: Tab) -> str:
    shown = wait_for(tab, "the cap of 63 steps is reached")
    return next(line for line in shown.splitlines() if line.startswith("Step 63: "))


def test_forty_tabs_see_their_own_seed_and_no_exception(server):
    def visit(seed: int) -> tuple[int, str]:
        query = f"scaling_seed={seed}&scaling_d_k=256"
        with open_tab(server, "scaling", query) as tab:
            assert not tab.elements("exception")
            slider = tab.elements("slider")[1]
            tab.move(slider, 0.5)
            tab.run()
            assert not tab.elements("exception")
            tab.move(slider, 0.25)
            tab.run()
            return seed, next(t for t in tab.text().splitlines() if "median" in t)

    with ThreadPoolExecutor(40) as pool:
        seen = dict(pool.map(visit, [seed % 20 for seed in range(40)]))
        again = dict(pool.map(visit, range(20)))
    assert seen == again
    assert len(set(seen.values())) > 10


WITH_RUNS = [
    ("marker_task", "", "Run"),
    ("recurrence", "recurrence_view=Time", "Measure here"),
]


def tells_of_a_lost_run(tab: Tab) -> bool:
    words = [tab.text(), *(bar.text for bar in tab.elements("progress"))]
    return "a run that stood here is gone" in "\n".join(words)


def session_of(tab: Tab) -> str:
    begun = (
        m.new_session for m in tab.messages if m.WhichOneof("type") == "new_session"
    )
    return next(begun).initialize.session_id


@pytest.mark.parametrize(("page", "query", "button"), WITH_RUNS)
def test_a_tab_is_told_where_the_server_no_longer_knows_it(server, page, query, button):
    with open_tab(server, page, query, "token", "session-of-another-server") as tab:
        assert tells_of_a_lost_run(tab)
        tab.press(button)
        assert not tells_of_a_lost_run(tab)


@pytest.mark.parametrize(("page", "query", "_"), WITH_RUNS)
def test_a_new_tab_and_one_whose_session_goes_on_lost_nothing(server, page, query, _):
    with open_tab(server, "scaling") as tab:
        session = session_of(tab)
    with open_tab(server, page, query, "token", session) as tab:
        assert session_of(tab) == session
        assert not tells_of_a_lost_run(tab)
    with open_tab(server, page, query) as tab:
        assert not tells_of_a_lost_run(tab)
