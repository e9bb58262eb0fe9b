"""The small pictures of the home page: one a page and theme, drawn from core."""

from io import BytesIO

import pytest
from PIL import Image

from core.gallery import PICTURES, draw_positional_encoding
from pages._ui import catalogue

PAGES = [info for info in catalogue.list_pages() if info.section != "Home"]


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.name)
@pytest.mark.parametrize("dark", [False, True])
def test_every_page_of_the_course_has_a_picture_of_one_size(info, dark):
    assert info.name in PICTURES
    with Image.open(info.image(dark=dark)) as picture:
        assert picture.size == (640, 340)


def test_the_picture_of_the_encoding_is_what_core_draws_today():
    (info,) = (page for page in PAGES if page.name == "positional_encoding")
    drawn = Image.open(BytesIO(draw_positional_encoding(dark=False)))
    shipped = Image.open(info.image(dark=False))
    assert drawn.tobytes() == shipped.tobytes()


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("dark", [False, True])
def test_every_picture_can_be_drawn_by_core_as_it_is_today(name, dark):
    with Image.open(BytesIO(PICTURES[name](dark))) as drawn:
        assert drawn.size == (640, 340)
        assert len(drawn.convert("RGB").getcolors(maxcolors=2**20)) > 10
