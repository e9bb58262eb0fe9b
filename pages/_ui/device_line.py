"""The device line: what models compute on, why, and a choice among what is present."""

import streamlit as st

from pages._ui import warm_up

_KEY = "device"


def chosen() -> str:
    """Return the visitor's preference: a kind of device, or "auto"."""
    return st.session_state.get(_KEY, "auto")


def draw(*, wait: bool) -> None:
    """Draw the line, below the controls of a page or at the end of the home page.

    Args:
        wait: Whether torch may be loaded for it. The home page does not wait: while
            torch is not there, the line says so.
    """
    if not wait and not warm_up.ready.is_set():
        broken = warm_up.failed.is_set()
        state = "torch could not be loaded" if broken else "torch is loading"
        st.caption(f":material/memory: Device: {state}")
        return
    from core.device import explain_device, present_devices

    present = present_devices()
    if len(present) > 1:
        st.selectbox("Device", ["auto", *present], key=_KEY, persist_state="session")
    st.caption(f":material/memory: Device {explain_device(chosen()).sentence}")
