"""Every page, run by the frame at both ends of every control.

Pages are found in the folder, so a new page is tested here without a line added.
"""

import itertools
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages._ui import catalogue

ROOT = Path(__file__).parent.parent
PAGES = catalogue.list_pages()
CONTROLS = ("slider", "select_slider", "selectbox", "toggle", "number_input")


def open_page(info: catalogue.PageInfo, **query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    app.switch_page(f"pages/{info.path.name}")
    return app.run()


def ends(control) -> list:
    """Both ends of a control's range, whatever kind it is."""
    if control.type == "toggle":
        return [False, True]
    if control.type in {"selectbox", "select_slider"}:
        return [control.options[0], control.options[-1]]
    return [control.min, control.max]


def assert_sound(app: AppTest) -> None:
    assert not app.exception, app.exception[0].message
    assert not app.error, app.error[0].value


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.name)
def test_a_page_opens_on_its_preset_with_title_and_claim(info):
    app = open_page(info)
    assert_sound(app)
    assert app.title[0].value == info.title
    assert any(info.claim in block.value for block in app.markdown)


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.name)
def test_a_page_answers_at_both_ends_of_every_control(info):
    app = open_page(info)
    for kind in CONTROLS:
        for index in itertools.count():
            if index >= len(app.get(kind)):
                break
            for end in ends(app.get(kind)[index]):
                if index < len(app.get(kind)) and not app.get(kind)[index].disabled:
                    app.get(kind)[index].set_value(end).run()
                    assert not app.exception, (kind, index, end)
