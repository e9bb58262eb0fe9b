"""The home page: the course map, paths for four classes, what this is and is not."""

from typing import NamedTuple

import streamlit as st

from pages._ui import catalogue, parts
from pages._ui.catalogue import PageInfo


class _Stop(NamedTuple):
    """One stop of the path through a class: how long, what to do, which view opens."""

    minutes: int
    task: str
    opens: dict[str, str]


_FIRST = {
    "queries_keys_values": _Stop(
        9,
        "Work one cell by hand, then edit a key.",
        {"qkv_stage": "2 Score"},
    ),
    "scaling": _Stop(
        7,
        "Guess the largest weight, then drag d_k.",
        {"scaling_d_k": "1"},
    ),
    "masks": _Stop(
        8,
        "Change a token: which outputs stay?",
        {"masks_view": "Change one token"},
    ),
    "positional_encoding": _Stop(
        8,
        "Permute the tokens, twice.",
        {"positional_view": "Permute"},
    ),
    "marker_task": _Stop(
        18,
        "Train, keep the curve, change one thing.",
        {"marker_steps": "189"},
    ),
}

_SECOND = {
    "multi_head": _Stop(
        15,
        "Find the mistake in three cases.",
        {"heads_view": "Bug hunt"},
    ),
    "encoder_block": _Stop(
        18,
        "Which depth still learns, and with which norm?",
        {"block_view": "Training"},
    ),
    "recurrence": _Stop(
        17,
        "Open the forget gate, then measure the time.",
        {"recurrence_forget_bias": "0"},
    ),
}

_THIRD = {
    "reading_maps": _Stop(
        15,
        "Does the weight say what moves the answer?",
        {"reading_view": "Weight against influence"},
    ),
    "fair_fight": _Stop(
        17,
        "Predict who is first by the clock, then run it.",
        {},
    ),
    "experiments": _Stop(
        18,
        "Predict the ranking, then run one cell here.",
        {},
    ),
}

_FOURTH = {
    "bottleneck": _Stop(
        16,
        "Up to which length does one vector do?",
        {"bottleneck_view": "Length"},
    ),
    "encoder_decoder": _Stop(
        26,
        "Step through the decoding, then train it.",
        {"s2s_view": "Decode"},
    ),
    "applications": _Stop(
        8,
        "What is source, what is memory, what is target?",
        {"apps_template": "Image and question"},
    ),
}

CLASSES = {
    "A 50-minute class": _FIRST,
    "A second class": _SECOND,
    "A third class": _THIRD,
    "A fourth class": _FOURTH,
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
        by_name = {info.name: info for info in pages}
        for title, stops in CLASSES.items():
            _class_path(title, stops, by_name)
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


def _class_path(
    title: str, stops: dict[str, _Stop], pages: dict[str, PageInfo]
) -> None:
    st.subheader(title, anchor=False)
    start = 0
    for name, stop in stops.items():
        if name in pages:
            end = start + stop.minutes
            st.page_link(
                pages[name].path,
                label=f"{start}–{end} min · **{pages[name].title}** {stop.task}",
                icon=pages[name].icon,
                query_params=stop.opens,
            )
            start = end
