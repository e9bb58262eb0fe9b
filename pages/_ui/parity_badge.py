"""The badge that says how far our numbers lie from a reference's."""

from typing import Any

import streamlit as st

from pages._ui import parts


def badge(parity: Any, what: str) -> None:
    """Draw the largest difference, green where it is within the tolerance, else red.

    Args:
        parity: A ``core.parity.Parity``.
        what: What was compared, such as "nn.MultiheadAttention".
    """
    from core.captions import distance

    colour, icon, word = (
        ("green", "check_circle", "equal")
        if parity.agrees
        else ("red", "cancel", "different")
    )
    numbers = (
        f"largest difference {distance(parity.largest)}, allowed {parity.tolerance:.0e}"
    )
    st.markdown(
        f":{colour}-badge[:material/{icon}: {word}] {parts.plain(what)}: {numbers}"
    )
