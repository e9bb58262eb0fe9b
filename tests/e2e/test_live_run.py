"""A live run in a real browser: what closing, leaving, reloading and stopping do."""

import re
import signal
import time

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.tabs import open_page, quiet
from tests.live_server import ROOT, Server, serve

LONG = "marker_steps=10000"


@pytest.fixture
def tab(fresh_tab: Page) -> Page:
    return fresh_tab  # a browser finds the runs that its other tabs left


def press(tab: Page, label: str) -> None:
    tab.get_by_role("button", name=label, exact=True).click()


def steps_done(tab: Page) -> int:
    line = tab.get_by_text(re.compile(r"^Step [\d,]+ / ")).first.inner_text()
    return int(re.match(r"Step ([\d,]+)", line).group(1).replace(",", ""))


def train(tab: Page, server: Server, at_least: int = 5, query: str = LONG) -> None:
    open_page(tab, server, "marker_task", query)
    quiet(tab)
    press(tab, "Run")
    wait_for_steps(tab, at_least)


def wait_for_steps(tab: Page, at_least: int, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while steps_done(tab) < at_least:
        assert time.monotonic() < deadline, "the run does not get on"
        time.sleep(0.2)


def cpu_seconds(server: Server) -> float:
    times = psutil.Process(server.process.pid).cpu_times()
    return times.user + times.system


def busy_share(server: Server, seconds: float) -> float:
    before = cpu_seconds(server)
    time.sleep(seconds)
    return (cpu_seconds(server) - before) / seconds


def test_a_paused_run_takes_no_step(server, tab: Page):
    train(tab, server)
    press(tab, "Pause")
    expect(tab.get_by_role("button", name="Run", exact=True)).to_be_visible()
    time.sleep(0.7)
    before = steps_done(tab)
    time.sleep(1.0)
    assert steps_done(tab) == before


def test_a_closed_tab_stops_costing_cpu_within_two_seconds(server, tab: Page):
    train(tab, server)
    assert busy_share(server, 1.0) > 0.5
    tab.close()
    time.sleep(2.0)
    assert busy_share(server, 1.5) < 0.15


def test_a_reload_keeps_run_and_settings(server, tab: Page):
    train(tab, server, query=f"{LONG}&marker_seed=3")
    before = steps_done(tab)
    tab.reload()
    quiet_but_running(tab)
    wait_for_steps(tab, before + 1)
    assert "marker_seed=3" in tab.url
    expect(tab.get_by_role("button", name="Pause", exact=True)).to_be_visible()


def test_leaving_the_page_parks_the_run_and_coming_back_finds_it(server, tab: Page):
    train(tab, server)
    before = steps_done(tab)
    tab.get_by_text("Attention playground").first.click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Attention playground")
    time.sleep(1.0)
    assert busy_share(server, 1.5) < 0.15
    tab.get_by_role("link", name="Marker task", exact=True).first.click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Marker task")
    wait_for_steps(tab, before + 1)


def test_another_browser_sees_nothing_of_the_run(server, tab: Page, browser: Browser):
    train(tab, server)
    other = browser.new_context()
    stranger = other.new_page()
    open_page(stranger, server, "marker_task", LONG)
    quiet(stranger)
    assert steps_done(stranger) == 0
    other.close()


def test_ctrl_c_while_training_ends_the_server_at_once_and_the_next_says_what_is_lost(
    tab: Page, tmp_path
):
    with serve(ROOT / "app.py", tmp_path / "log.txt") as server:
        train(tab, server)
        start = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        server.process.wait(10)
        assert time.monotonic() - start < 3
        assert "Traceback" not in server.log_text()
    lost = tab.get_by_text("a run that stood here is gone")
    with serve(ROOT / "app.py", tmp_path / "second.txt", port=server.port):
        expect(lost).to_be_visible(timeout=60_000)
        quiet(tab)
        assert LONG in tab.url
        assert steps_done(tab) == 0


WATCH = """() => {
    const seen = new Map();
    window.flaws = {frames: 0, flat: 0, replaced: 0};
    const look = () => {
        const charts = document.querySelectorAll("[data-testid=stVegaLiteChart]");
        charts.forEach((chart, i) => {
            const drawn = chart.querySelector("svg, canvas");
            flaws.flat += !drawn || drawn.getBoundingClientRect().height < 1;
            flaws.replaced += seen.has(i) && seen.get(i) !== drawn;
            seen.set(i, drawn);
        });
        flaws.frames += 1;
        requestAnimationFrame(look);
    };
    look();
}"""


def test_a_live_run_moves_its_charts_and_never_builds_them_anew(server, tab: Page):
    train(tab, server)
    expect(tab.get_by_test_id("stVegaLiteChart")).to_have_count(5)
    time.sleep(1.0)
    tab.evaluate(WATCH)
    before = steps_done(tab)
    time.sleep(6.0)
    flaws = tab.evaluate("window.flaws")
    assert steps_done(tab) > before
    assert flaws["frames"] > 30
    assert (flaws["flat"], flaws["replaced"]) == (0, 0)


def drawn_heights(tab: Page) -> list[float]:
    return tab.eval_on_selector_all(
        "[data-testid=stVegaLiteChart] svg, [data-testid=stVegaLiteChart] canvas",
        "parts => parts.map(part => part.getBoundingClientRect().height)",
    )


@pytest.mark.parametrize("switches", [10])
def test_quick_page_switches_beside_a_live_chart_leave_no_blank(
    server, tab: Page, switches
):
    complaints = []
    tab.on("console", lambda message: complaints.append(message.text))
    train(tab, server)
    for _ in range(switches):
        tab.get_by_text("Attention playground").first.click()
        tab.get_by_role("link", name="Marker task", exact=True).first.click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Marker task")
    deadline = time.monotonic() + 15
    while len(drawn_heights(tab)) < 4 or min(drawn_heights(tab)) == 0:
        assert time.monotonic() < deadline, "the charts are not drawn"
        time.sleep(0.1)
    for _ in range(10):
        time.sleep(0.5)
        heights = drawn_heights(tab)
        assert len(heights) >= 4
        assert min(heights) > 0
    assert not [text for text in complaints if "Unrecognized data set" in text]
    expect(tab.get_by_test_id("stException")).to_have_count(0)


def quiet_but_running(tab: Page) -> None:
    expect(tab.get_by_role("heading", level=1)).to_be_visible(timeout=60_000)
    expect(tab.get_by_text(re.compile(r"^Step [\d,]+ / ")).first).to_be_visible()
