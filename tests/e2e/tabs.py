"""What tests do with a tab: open a page, wait until it rests."""

from playwright.sync_api import Locator, Page, expect

from tests.live_server import Server


def heading(tab: Page) -> Locator:
    return tab.get_by_role("heading", level=1)


def open_page(tab: Page, server: Server, page: str, query: str = "") -> None:
    tab.goto(f"{server.url}/{page}{'?' + query if query else ''}")
    expect(heading(tab)).to_be_visible(timeout=60_000)


def quiet(tab: Page) -> None:
    """Wait until the script has finished and no skeleton is left."""
    expect(tab.get_by_test_id("stSkeleton")).to_have_count(0, timeout=60_000)
    expect(
        tab.locator("[data-testid=stApp][data-test-script-state=notRunning]")
    ).to_be_visible(timeout=60_000)


def press(tab: Page, label: str, *keys: str) -> None:
    """Press keys on a slider, each after the page has come to rest."""
    for key in keys:
        tab.get_by_role("slider", name=label).focus()
        tab.keyboard.press(key)
        tab.wait_for_timeout(300)  # a slider tells of a key a moment later
        quiet(tab)
