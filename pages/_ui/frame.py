"""The frame around every page: configuration, navigation, guard, warm-up."""

import sys

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages._ui import catalogue, device_line, parts, returned, warm_up
from pages._ui.catalogue import PageInfo

_FRAMED = "_frame_has_run"
_OPEN = "_page_open"  # session key of the page that the tab showed last


def run() -> None:
    """Draw the frame and the page that the address names. Called by ``app.py``."""
    st.set_page_config(
        page_title="Attention playground", page_icon=":material/grid_on:", layout="wide"
    )
    st.session_state[_FRAMED] = True
    returned.note()
    page = _navigation()
    _take_up(page)
    _park_runs_of_other_pages(page.url_path)
    page.run()
    at_home = page.url_path == ""
    with st.container() if at_home else st.sidebar:
        device_line.draw(wait=not at_home)
    warm_up.begin()


def guard(file: str) -> PageInfo:
    """Make sure that the frame stands around a page; the first line of each page.

    The first deep link after a server start makes Streamlit run the page file alone,
    without ``app.py``. Then the navigation is built here once, which tells Streamlit
    of the frame, and the run starts again.

    Args:
        file: The page's ``__file__``.

    Returns:
        What the page's docstring says of it.
    """
    if not st.session_state.get(_FRAMED):
        st.session_state[_FRAMED] = True
        _navigation()
        st.rerun()
    parts.free_keys()
    return catalogue.page_of(file)


def _take_up(page: st.Page) -> None:
    """Open a page that Back or Forward leads to as the tab left it.

    Leaving a page adds its bare address to the history of the browser, where Back
    leads. Streamlit takes that for a wish for the presets. Turning to the page anew
    takes up what the session keeps, as the menu does, and the address shows it again.
    """
    before = st.session_state.get(_OPEN)
    st.session_state[_OPEN] = page.url_path
    came = before is not None and before != page.url_path
    if came and _by_history() and not st.query_params:
        st.switch_page(page)


def _by_history() -> bool:
    # Streamlit has no public word for it; where it falls away, Back shows the presets.
    return getattr(get_script_run_ctx(), "is_history_navigation", False)


def _park_runs_of_other_pages(page: str) -> None:
    if "pages._ui.leases" in sys.modules:  # otherwise no page ever held a run
        from pages._ui import leases

        leases.turn_to(page)


def _navigation() -> st.Page:
    sections: dict[str, list[st.Page]] = {}
    for info in catalogue.list_pages():
        page = st.Page(
            info.path,
            title=info.title,
            icon=info.icon,
            help=info.claim or None,
            default=info.name == "home",
        )
        sections.setdefault(info.section, []).append(page)
    unnamed = {"": sections.pop("Home", [])}
    return st.navigation(unnamed | sections, position="top")
