"""The home page: every page has its time in a class, and a stop opens what it says."""

import pytest

from pages._ui import catalogue, course
from tests.test_pages import assert_sound, open_page

PAGES = {info.name: info for info in catalogue.list_pages() if info.section != "Home"}
STOPS = [pair for path in course.CLASSES.values() for pair in path.items()]


def test_every_page_has_its_time_in_one_class_of_fifty_minutes():
    names = [name for name, _ in STOPS]
    assert sorted(names) == sorted(PAGES)
    for title, path in course.CLASSES.items():
        assert sum(stop.minutes for stop in path.values()) == 50, title


@pytest.mark.parametrize(("name", "stop"), STOPS, ids=[name for name, _ in STOPS])
def test_a_stop_opens_its_page_elsewhere_than_where_it_opens_by_itself(name, stop):
    app, usual = open_page(PAGES[name], **stop.opens), open_page(PAGES[name])
    assert_sound(app)
    for key in stop.opens:
        assert app.session_state[key] != usual.session_state[key]


def test_the_home_page_links_every_class_in_order():
    app = open_page(next(i for i in catalogue.list_pages() if i.section == "Home"))
    assert_sound(app)
    heads = [block.value for block in app.subheader]
    assert heads[: len(course.CLASSES)] == list(course.CLASSES)
    links = [link.proto.label for link in app.get("page_link")]
    assert any(label.startswith("0–15 min · **Reading") for label in links)
