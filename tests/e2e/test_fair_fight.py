"""The race in a real browser: run here, stopped, left and found again."""

import re
import time

from playwright.sync_api import Page, expect

from tests.e2e.tabs import heading, open_page, quiet

QUERY = "fight_length=10&fight_steps=600&fight_seeds=10"


def results(tab: Page) -> int:
    line = tab.get_by_text(
        re.compile(r"^[\d,]+ of [\d,]+ steps and looks · ")
    ).first.inner_text()
    return int(line.partition(" of ")[0].replace(",", ""))


def press(tab: Page, label: str) -> None:
    tab.get_by_role("button", name=label, exact=True).click()


def wait_for_results(tab: Page, at_least: int) -> None:
    deadline = time.monotonic() + 60
    while results(tab) < at_least:
        assert time.monotonic() < deadline, "the race does not get on"
        time.sleep(0.2)


def test_a_race_is_run_here_stopped_left_and_found_again(server, tab: Page):
    open_page(tab, server, "fair_fight", QUERY)
    quiet(tab)
    press(tab, "Run it here")
    expect(tab.get_by_role("button", name="Stop", exact=True).last).to_be_visible()
    wait_for_results(tab, 30)
    tab.get_by_text("Attention playground").first.click()
    expect(heading(tab)).to_have_text("Attention playground")
    tab.get_by_role("link", name="Fair fight", exact=True).first.click()
    expect(heading(tab)).to_have_text("Fair fight")
    wait_for_results(tab, 60)
    tab.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).click()
    expect(tab.get_by_role("button", name="Go on", exact=True)).to_be_visible()
    time.sleep(0.7)
    before = results(tab)
    time.sleep(1.0)
    assert results(tab) == before
    expect(tab.get_by_test_id("stVegaLiteChart")).to_have_count(1)
    expect(tab.get_by_test_id("stException")).to_have_count(0)
