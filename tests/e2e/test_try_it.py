"""After an experiment the address holds what is shown, from whatever view it began."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.tabs import open_page, quiet

FAR = [  # page, the view the tab stands on, and an experiment of another view
    ("queries_keys_values", "qkv_view=Edit+one+vector", 0),
    ("queries_keys_values", "", 1),
    ("queries_keys_values", "", 2),
    ("scaling", "scaling_view=Score+variance", 0),
    ("masks", "", 3),
    ("multi_head", "", 2),
    ("positional_encoding", "", 2),
    ("encoder_block", "", 1),
    ("recurrence", "", 2),
]
_SHOWN = """() => JSON.stringify([...document.querySelectorAll(
    "[aria-checked=true], [role=tab][aria-selected=true], [role=slider], input"
)].filter(one => one.checkVisibility()).map(
    one => one.value || one.getAttribute("aria-valuetext") || one.innerText))"""


@pytest.mark.parametrize(("page", "query", "number"), FAR)
def test_a_reload_shows_what_an_experiment_set(server, tab: Page, page, query, number):
    open_page(tab, server, page, query)
    quiet(tab)
    before = tab.url
    tab.locator(f"[class*=_try_{number}] button").click()
    expect(tab).not_to_have_url(before)
    quiet(tab)
    tab.wait_for_timeout(500)
    shown = tab.evaluate(_SHOWN)
    tab.reload()
    tab.wait_for_function(f"shown => ({_SHOWN})() === shown", arg=shown)
