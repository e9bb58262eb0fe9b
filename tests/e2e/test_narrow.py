"""A narrow window: no page is scrolled sideways."""

import pytest
from playwright.sync_api import Page

from tests.e2e.tabs import open_page, quiet


@pytest.mark.parametrize("method", ["overwritten", "added"])
def test_the_nan_lab_fits_a_window_of_640_pixels(server, tab: Page, method):
    tab.set_viewport_size({"width": 640, "height": 800})
    open_page(tab, server, "masks", f"masks_view=NaN+lab&masks_method={method}")
    quiet(tab)
    tab.locator("table").nth(1).wait_for()
    main = tab.get_by_test_id("stMain")
    assert main.evaluate("main => main.scrollWidth - main.clientWidth") == 0
