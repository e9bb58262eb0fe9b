"""Whether a tab has come back to a server that does not know it, as after a restart.

A tab that lost its server names the session it had when it connects again. A server
that still has that session goes on with it; another begins a new one, and what ran in
the old one is gone.
"""

import streamlit as st

_RETURNED = "_tab_returned"  # session key, written by the first run of a session


def note() -> None:
    """Note it before anything else of a session. Called by the frame."""
    if _RETURNED not in st.session_state:
        asked = st.context.headers.get("Sec-WebSocket-Protocol") or ""
        st.session_state[_RETURNED] = asked.count(",") == 2  # a third: the session


def is_noted() -> bool:
    """Return whether this session is that of a tab that had another one before."""
    return st.session_state.get(_RETURNED, False)
