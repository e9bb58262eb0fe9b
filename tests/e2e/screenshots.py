"""Screenshots of every page, both themes, two sizes; and the picture of the README.

python -m tests.e2e.screenshots FOLDER
python -m tests.e2e.screenshots --readme
"""

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from pages._ui import catalogue
from tests.e2e.conftest import OPTIONS, find_chromium
from tests.e2e.tabs import open_page, quiet
from tests.live_server import ROOT, Server, serve

SIZES = ((1280, 800), (1920, 1080))
README_PICTURE = ROOT / "assets" / "images" / "readme.png"


def take_all(browser: Browser, server: Server, folder: Path) -> None:
    """Save a picture of every page at every size in both themes."""
    folder.mkdir(parents=True, exist_ok=True)
    for width, height in SIZES:
        for scheme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            tab = context.new_page()
            for info in catalogue.list_pages():
                open_page(tab, server, "" if info.section == "Home" else info.name)
                settle(tab)
                tab.screenshot(path=folder / f"{info.name}-{width}-{scheme}.png")
            context.close()


def take_readme(browser: Browser, server: Server) -> None:
    """Train the preset for three epochs and save the page as the README shows it."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    tab = context.new_page()
    open_page(tab, server, "marker_task", "marker_steps=189")
    settle(tab)
    tab.get_by_role("button", name="Run", exact=True).click()
    expect(tab.get_by_text("the cap of 189 steps")).to_be_visible(timeout=120_000)
    settle(tab)
    tab.screenshot(path=README_PICTURE)
    context.close()


def settle(tab: Page) -> None:
    """Wait until the page rests and its charts are drawn."""
    quiet(tab)
    tab.wait_for_timeout(1500)


def main() -> None:
    """Take the pictures that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("screenshots"))
    parser.add_argument("--readme", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as logs,
        serve(ROOT / "app.py", Path(logs) / "log.txt") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=list(OPTIONS)
        )
        if options.readme:
            take_readme(browser, server)
        else:
            take_all(browser, server, options.folder)
        browser.close()


if __name__ == "__main__":
    main()
