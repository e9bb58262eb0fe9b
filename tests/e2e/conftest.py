"""A real browser on a real server. Without Chromium these tests skip, save in CI."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.live_server import ROOT, Server, serve

OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        reason = "no Chromium on this machine: the tests in a real browser need one"
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("server") / "log.txt"
    with serve(ROOT / "app.py", log) as running:
        yield running


@contextmanager
def new_tab(browser: Browser) -> Iterator[Page]:
    """Open a tab of 1280×800 in a browser of its own, without cookies."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def _tab_of_module(browser: Browser) -> Iterator[Page]:
    with new_tab(browser) as tab:
        yield tab


@pytest.fixture
def tab(_tab_of_module: Page) -> Iterator[Page]:
    """A tab for one test; the next one goes on in it, where the scripts are loaded."""
    yield _tab_of_module
    _tab_of_module.goto("about:blank")  # its session ends here
    _tab_of_module.emulate_media(color_scheme="light")


@pytest.fixture
def fresh_tab(browser: Browser) -> Iterator[Page]:
    """A tab that no test has used, for what a browser remembers, such as its runs."""
    with new_tab(browser) as tab:
        yield tab
