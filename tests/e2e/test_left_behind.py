"""A run whose address is gone: offered again after a reload, and taken up whole."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.tabs import open_page, quiet

SMALL = "s2s_view=Train&s2s_task=numbers&s2s_width=16&s2s_layers=1&s2s_batch=16"
STEPS = re.compile(r"^Step [\d,]+ / ")


def test_a_run_is_taken_up_after_a_reload_of_another_view(server, fresh_tab: Page):
    tab = fresh_tab
    open_page(tab, server, "encoder_decoder", SMALL)
    quiet(tab)
    tab.get_by_role("button", name="Step 10", exact=True).click()
    expect(tab.get_by_text(re.compile(r"^Step 10 / "))).to_be_visible(timeout=30_000)
    quiet(tab)
    tab.get_by_role("tab", name="Loss").click()
    tab.get_by_role("radio", name="yours").or_(
        tab.get_by_role("button", name="yours")
    ).first.click()
    expect(tab.get_by_text("Your run")).to_be_visible(timeout=20_000)
    tab.reload()
    expect(tab.get_by_text("Your run")).to_be_visible(timeout=30_000)
    quiet(tab)
    tab.get_by_role("tab", name="Train").click()
    take_up = tab.get_by_role("button", name="Take up the run left behind")
    expect(take_up).to_be_visible(timeout=20_000)
    expect(
        tab.get_by_text(re.compile(r"at 10 of 500: numbers, width 16"))
    ).to_be_visible()
    take_up.click()
    expect(tab.get_by_text(re.compile(r"^Step 10 / "))).to_be_visible(timeout=20_000)
    expect(take_up).to_have_count(0)
    expect(tab.get_by_text("the sidebar has others")).to_be_visible()
    expect(tab.get_by_test_id("stException")).to_have_count(0)


def test_a_measurement_is_taken_up_at_an_address_without_its_settings(
    server, fresh_tab: Page
):
    tab = fresh_tab
    open_page(tab, server, "bottleneck", "bottleneck_view=Length&bottleneck_seed=3")
    quiet(tab)
    tab.get_by_role("button", name="Train one here", exact=True).click()
    expect(tab.get_by_text(re.compile(r"^[1-9]\d* of [\d,]+ "))).to_be_visible(
        timeout=60_000
    )
    tab.get_by_role("button", name="Stop", exact=True).last.click()
    expect(tab.get_by_role("button", name="Go on", exact=True)).to_be_visible()
    open_page(tab, server, "bottleneck", "bottleneck_view=Length")
    tab.get_by_role("button", name="Take up the run left behind").click()
    seed = tab.get_by_label("Seed", exact=True)
    expect(tab.get_by_text("seed 3")).to_be_visible(timeout=20_000)
    expect(seed).to_have_value("0")
    seed.fill("3")
    seed.press("Enter")
    expect(tab.get_by_role("button", name="Go on", exact=True)).to_be_visible()
