"""Hostile addresses, on every control of every page, against a real server.

The controls are read from the page itself, so those of a new page are tried too.
"""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from pages._ui import catalogue
from tests.live_server import ROOT, Server, Tab, open_tab, serve

HOSTILE = [
    "",
    "-1",
    "0.5",
    "1e999",
    "nan",
    "9" * 400,
    "<script>alert(1)</script>",
    "٣",
    "\u202e\x00\n💥",
    "[1,2]",
]
PAGES = [info for info in catalogue.list_pages() if info.section != "Home"]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("addresses") / "log.txt"
    with serve(ROOT / "app.py", log) as running:
        with open_tab(running, PAGES[0].name):
            pass
        yield running


def controls_of(tab: Tab) -> set[str]:
    elements = (m.delta.new_element for m in tab.messages)
    kinds = ((e, e.WhichOneof("type")) for e in elements)
    parts = (getattr(e, kind) for e, kind in kinds if kind)
    return {part.query_param_key for part in parts if hasattr(part, "query_param_key")}


def complaints(tab: Tab) -> list[str]:
    return [exception.message for exception in tab.elements("exception")]


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.name)
def test_no_hostile_value_of_any_control_breaks_the_page(server, info):
    with open_tab(server, info.name) as tab:
        keys = controls_of(tab) - {""}
    assert len(keys) >= 3, "the controls of the page were not found"
    for key in sorted(keys):
        for value in HOSTILE:
            with open_tab(server, info.name, f"{key}={quote(value)}") as tab:
                assert not complaints(tab), (key, value)
                assert tab.elements("heading"), (key, value)


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.name)
def test_repeated_and_unknown_keys_break_no_page(server, info):
    with open_tab(server, info.name) as tab:
        keys = sorted(controls_of(tab) - {""})
    query = "&".join(f"{key}=1&{key}=2" for key in keys) + "&unknown=1&=&&&"
    with open_tab(server, info.name, query) as tab:
        assert not complaints(tab)


def test_the_server_wrote_no_traceback(server):
    assert "Traceback" not in server.log_text()
