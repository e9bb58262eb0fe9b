"""A model of the bottleneck page trained here, in a real browser."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.tabs import open_page, quiet

QUERY = "bottleneck_view=Length&bottleneck_trained=none"


def test_a_model_is_trained_here_tested_by_length_and_stopped(server, tab: Page):
    open_page(tab, server, "bottleneck", QUERY)
    quiet(tab)
    tab.get_by_role("button", name="Train one here", exact=True).click()
    stop = tab.get_by_role("button", name="Stop", exact=True).last
    expect(stop).to_be_visible()
    so_far = r"Run here, so far, after 400 steps, whole strings right: \d+\s% at "
    expect(tab.get_by_text(re.compile(so_far))).to_be_visible(timeout=90_000)
    stop.click()
    expect(tab.get_by_role("button", name="Go on", exact=True)).to_be_visible()
    expect(tab.get_by_test_id("stVegaLiteChart")).to_have_count(1)
    expect(tab.get_by_test_id("stException")).to_have_count(0)
