"""The frame in a real browser: deep links, themes, hostile addresses, a clean log."""

import re

import pytest
from playwright.sync_api import Page, expect

from pages._ui import catalogue
from tests.e2e.tabs import heading, open_page, quiet
from tests.live_server import ROOT, serve

PAGES = [info for info in catalogue.list_pages() if info.section != "Home"]
NOISE = re.compile(r"ERR_NAME_NOT_RESOLVED|404 \(Not Found\)|ERR_INTERNET")


def test_the_first_request_after_a_start_may_be_a_deep_link(fresh_tab, tmp_path):
    tab = fresh_tab
    with serve(ROOT / "app.py", tmp_path / "log.txt") as server:
        tab.goto(f"{server.url}/scaling?scaling_d_k=1024&scaling_view=nonsense")
        expect(heading(tab)).to_have_text("Scaling by √d_k", timeout=60_000)
        expect(tab.get_by_test_id("stTopNavSection").first).to_be_visible()
        expect(tab.get_by_test_id("stSidebar")).to_contain_text("1024")
        expect(tab.get_by_role("dialog")).to_have_count(0)
        expect(tab).to_have_url(f"{server.url}/scaling?scaling_d_k=1024")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("info", catalogue.list_pages(), ids=lambda info: info.name)
def test_a_page_draws_in_both_themes_within_a_laptop_screen_and_nothing_complains(
    server, tab: Page, info, scheme
):
    complaints = []

    def note(message):
        if message.type == "error":
            complaints.append(message.text)

    tab.on("console", note)
    tab.emulate_media(color_scheme=scheme)
    open_page(tab, server, "" if info.section == "Home" else info.name)
    quiet(tab)
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    expect(tab.get_by_test_id("stAlertContentError")).to_have_count(0)
    assert not [text for text in complaints if not NOISE.search(text)]
    tab.remove_listener("console", note)
    assert_fits(tab)
    assert not re.search(r"(?i)warning|error|traceback", server.log_text())


def assert_fits(tab: Page) -> None:
    for chart in tab.get_by_test_id("stVegaLiteChart").all():
        box = chart.bounding_box()
        assert box is None or box["x"] + box["width"] <= 1281
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1280


def test_try_it_sets_the_controls_and_the_address(server, tab: Page):
    open_page(tab, server, "scaling")
    quiet(tab)
    before = tab.url
    tab.locator("[class*=st-key-scaling_try_0] button").click()
    expect(tab).not_to_have_url(before)
    copied = tab.url
    tab.goto(copied)
    quiet(tab)
    assert tab.url == copied


def to_home(tab: Page) -> None:
    tab.get_by_text("Attention playground").first.click()
    expect(heading(tab)).to_have_text("Attention playground")
    quiet(tab)


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.name)
def test_back_and_forward_open_a_page_as_it_was_left(server, tab: Page, info):
    open_page(tab, server, info.name)
    quiet(tab)
    slider = tab.get_by_test_id("stSidebar").get_by_role("slider").first
    at_the_end = slider.input_value() == slider.get_attribute("max")
    slider.press("ArrowLeft" if at_the_end else "ArrowRight")
    expect(tab).to_have_url(re.compile(rf"/{info.name}\?\w+=\w+$"))
    quiet(tab)
    left = tab.url
    to_home(tab)
    tab.go_back()
    expect(heading(tab)).to_have_text(info.title)
    expect(tab).to_have_url(left)
    quiet(tab)
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    tab.go_forward()
    expect(heading(tab)).to_have_text("Attention playground")
    quiet(tab)
    tab.go_back()
    expect(heading(tab)).to_have_text(info.title)
    expect(tab).to_have_url(left)


def test_back_shows_all_settings_of_a_link_in_the_controls_too(server, tab: Page):
    open_page(tab, server, "scaling", "scaling_d_k=256&scaling_seed=3")
    quiet(tab)
    to_home(tab)
    tab.go_back()
    expect(tab).to_have_url(re.compile("scaling_d_k=256&scaling_seed=3$"))
    quiet(tab)
    sidebar = tab.get_by_test_id("stSidebar")
    expect(sidebar.get_by_test_id("stSliderThumbValue").first).to_have_text("256")
    expect(sidebar.get_by_role("spinbutton")).to_have_value("3")


def test_back_after_an_experiment_undoes_it(server, tab: Page):
    open_page(tab, server, "scaling")
    quiet(tab)
    before = tab.url
    tab.locator("[class*=st-key-scaling_try_2] button").click()
    expect(tab).to_have_url(re.compile("scaling_keys=64"))
    quiet(tab)
    for _ in range(8):
        if tab.url == before:
            break
        tab.go_back()
        quiet(tab)
    assert tab.url == before
    sliders = tab.get_by_test_id("stSidebar").get_by_test_id("stSliderThumbValue")
    expect(sliders.first).to_have_text("64")
    expect(sliders.nth(1)).to_have_text("8")
