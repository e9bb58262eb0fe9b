"""The home page: the course map, a path for one class, what this is and is not."""

import streamlit as st

from pages._ui import catalogue, parts
from pages._ui.catalogue import PageInfo

# Minutes of a 50-minute class, and what the class does in them.
_CLASS_PATH = {
    "scaling": (10, "Predict the largest weight at d_k = 1024, then look."),
    "masks": (12, "Change one token; find the outputs that do not move."),
    "positional_encoding": (10, "Permute the tokens without and with positions."),
    "marker_task": (18, "Start the run, keep the curve, break it with one setting."),
}

_IS = """
- One tested `core` in PyTorch behind every page; the page shows its source.
- Numbers come from the tensors on the page, or from a shipped table that names its
  command and seed. Same settings and seed, same picture.
- The address bar holds the settings: copy it and the class sees what you see.
"""

_IS_NOT = """
- No pretrained model and no claim about language: toys small enough to check by hand.
- Random weights are called random; attention weight is not called a cause.
- No ranking of architectures: a result holds for the settings that stand beside it.
"""


def draw(page: PageInfo) -> None:
    """Draw the home page from what the page files say of themselves."""
    st.title(page.title, anchor=False)
    st.markdown(page.claim)
    pages = [info for info in catalogue.list_pages() if info.section != "Home"]
    with st.grid(4, min_column_width=240):
        for info in pages:
            with st.container(border=True, height="stretch"):
                _card(info)
    path, about = st.columns([1, 1], gap="large")
    with path:
        _class_path({info.name: info for info in pages})
    with about:
        st.subheader("What it is", anchor=False)
        st.markdown(_IS)
        st.subheader("What it is not", anchor=False)
        st.markdown(_IS_NOT)


def _card(info: PageInfo) -> None:
    image = info.image(dark=parts.is_dark())
    if image is not None:
        st.image(image, width="stretch", alt=f"Picture of the page {info.title}")
    st.page_link(info.path, label=f"**{info.title}**", icon=info.icon)
    st.caption(info.claim)


def _class_path(pages: dict[str, PageInfo]) -> None:
    st.subheader("A 50-minute class", anchor=False)
    start = 0
    for name, (minutes, task) in _CLASS_PATH.items():
        if name in pages:
            st.page_link(
                pages[name].path,
                label=f"{start}–{start + minutes} min · **{pages[name].title}** {task}",
                icon=pages[name].icon,
            )
            start += minutes
