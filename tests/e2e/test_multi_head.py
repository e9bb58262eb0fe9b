"""The address of the multi-head page, where one control moves the range of another."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.tabs import open_page, press, quiet


def shown(tab: Page) -> list[str | None]:
    """Return what every slider of the page shows."""
    sliders = tab.get_by_test_id("stSidebar").get_by_role("slider")
    expect(sliders).to_have_count(3)
    texts = tab.get_by_test_id("stSidebar").get_by_test_id("stSliderThumbValue")
    return texts.all_inner_texts()


def assert_reopens_as_it_is(tab: Page, first: str, second: str) -> None:
    """The address, opened anew, gives the same width, heads and head."""
    before = shown(tab)
    assert before[:2] == [first, second]
    tab.goto(tab.url)
    quiet(tab)
    assert shown(tab) == before
    expect(tab.get_by_test_id("stAlertContentError")).to_have_count(0)


@pytest.mark.parametrize("chosen_here", [False, True])
def test_the_address_follows_heads_that_a_width_takes_away(server, tab, chosen_here):
    heads = "" if chosen_here else "heads_num_heads=16&heads_head=16&"
    open_page(tab, server, "multi_head", f"{heads}heads_d_model=16")
    quiet(tab)
    if chosen_here:
        press(tab, "Heads, H", "ArrowRight")
    press(tab, "Width of a token", "ArrowLeft")
    assert_reopens_as_it_is(tab, "12", "2")
    press(tab, "Width of a token", "ArrowRight", "ArrowRight")
    assert_reopens_as_it_is(tab, "24", "2")


def test_a_preset_that_another_control_moves_is_kept_in_the_address(server, tab):
    open_page(tab, server, "multi_head", "heads_d_model=12")
    quiet(tab)
    press(tab, "Width of a token", "ArrowRight")
    assert_reopens_as_it_is(tab, "16", "2")
