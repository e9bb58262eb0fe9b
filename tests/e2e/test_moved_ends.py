"""The address of a slider whose ends move with another control."""

from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.tabs import open_page, press, quiet


class Moved(NamedTuple):
    page: str
    query: str
    mover: str  # the slider that is moved one to the left
    follower: str  # the slider that ends where the other allows
    name: str  # of the follower in the address
    held: str  # what it holds before
    after: str  # and afterwards; never its preset


TOKENS = "Number of positions, T"
POSITIONS = "masks_source=positions&masks_seq_len=8"
WINDOW = "Window w: keys with |t - s| < w"
MOVED = [
    Moved("masks", f"{POSITIONS}&masks_kind=sliding+window", TOKENS,
          WINDOW, "masks_window", "8", "7"),
    Moved("masks", f"{POSITIONS}&masks_view=Change+one+token", TOKENS,
          "Token to change", "masks_changed", "7", "6"),
    Moved("positional_encoding", "positional_view=Similarity&positional_length=61",
          "Positions", "Position of the row", "positional_position", "60", "59"),
    Moved("marker_task", "marker_length=20", "Sequence length",
          "Marker position at test time", "marker_moved", "19", "9"),
]  # fmt: skip


def shows(tab: Page, label: str, value: str) -> None:
    slider = tab.get_by_test_id("stSlider").filter(has_text=label)
    expect(slider.get_by_test_id("stSliderThumbValue")).to_have_text(value)


def in_address(tab: Page, name: str) -> str | None:
    return parse_qs(urlsplit(tab.url).query).get(name, [None])[0]


@pytest.mark.parametrize("moved", MOVED, ids=lambda m: f"{m.name}={m.held}")
def test_a_slider_whose_end_moves_keeps_its_value_and_its_address(server, tab, moved):
    open_page(tab, server, moved.page, f"{moved.query}&{moved.name}={moved.held}")
    quiet(tab)
    shows(tab, moved.follower, moved.held)
    press(tab, moved.mover, "ArrowLeft")
    shows(tab, moved.follower, moved.after)
    assert in_address(tab, moved.name) == moved.after
    tab.reload()
    quiet(tab)
    shows(tab, moved.follower, moved.after)


def test_a_slider_chosen_after_its_end_moved_is_in_the_address(server, tab: Page):
    query = f"{POSITIONS}&masks_kind=sliding+window&masks_window=8"
    open_page(tab, server, "masks", query)
    quiet(tab)
    press(tab, TOKENS, "ArrowLeft", "ArrowLeft")
    press(tab, WINDOW, "ArrowLeft")
    shows(tab, WINDOW, "5")
    press(tab, TOKENS, "ArrowRight")
    shows(tab, WINDOW, "5")
    assert in_address(tab, "masks_window") == "5"
