"""Leases: which tab holds which live run, and what happens when the tab goes.

A tab holds its run through a session-scoped resource. Streamlit releases that within
0.2 s of a closed tab, a reload or a blink of the network; the run is then parked: it
costs no CPU. The same tab takes it up again when it reconnects; a reloaded page, which
is a new session of the same browser, finds it by the browser's own cookie.
"""

import binascii
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages._ui.frame import HELD_PREFIX

_RELOAD_SECONDS = 10.0  # a reload claims its run within this, whatever its settings
_MOST_PARKED = 64

_parked: list["HeldRun"] = []
_parked_lock = threading.Lock()
_numbers = itertools.count()


@dataclass(eq=False)
class HeldRun:
    """A live run with what its page keeps beside it.

    Attributes:
        page: Name of the page that the run belongs to.
        browser: The browser's own token; None where it sent no cookie.
        config: The settings the run was started with.
        run: The scheduler's run.
        kept: Name and records of runs kept as grey curves.
        answers: What was asked of the run's trainer, by what the answer depends on.
        holder: Number of the lease that holds it; None while it is parked.
        parked_at: When it was parked, on the monotonic clock.
    """

    page: str
    browser: str | None
    config: Any
    run: Any
    kept: list[Any] = field(default_factory=list)
    answers: dict[Any, Any] = field(default_factory=dict)
    holder: int | None = None
    parked_at: float = 0.0


class _Lease:
    """One session's hold on the run of one page."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.held: HeldRun | None = None

    def release(self) -> None:
        held, self.held = self.held, None
        if held is not None and held.holder == self.number:
            _park(held)


@st.cache_resource(
    scope="session", on_release=lambda lease: lease.release(), show_spinner=False
)
def _lease(page: str) -> _Lease:
    return _Lease()


def hold(page: str, config: Any, make_run: Callable[[Any], Any]) -> HeldRun | None:
    """Return the run that this session holds on ``page``, taking or making one.

    In this order: the run of this session; a parked run of this browser with the same
    settings, or one parked by a reload just now; a new one, not yet started.

    Args:
        page: Name of the page.
        config: The settings shown on the page; None where core refused them, and then
            no new run is made.
        make_run: Makes a new run of given settings.
    """
    lease = _lease(page)
    if lease.held is None:
        held = _claim_own(page) or _claim_parked(page, config)
        if held is None and config is not None:
            held = HeldRun(page, _browser(), config, make_run(config))
        if held is None:
            return None
        held.holder, lease.held = lease.number, held
        st.session_state[HELD_PREFIX + page] = held
    lease.held.run.unpark()
    return lease.held


def replace(held: HeldRun, config: Any, make_run: Callable[[Any], Any]) -> None:
    """Put a new run of the settings ``config`` in the place of the held one."""
    held.run.close()
    held.answers.clear()
    held.config, held.run = config, make_run(config)


def _claim_own(page: str) -> HeldRun | None:
    held = st.session_state.get(HELD_PREFIX + page)
    with _parked_lock:
        if held in _parked:
            _parked.remove(held)
            return held
    return None


def _claim_parked(page: str, config: Any) -> HeldRun | None:
    browser, now = _browser(), time.monotonic()
    if browser is None:
        return None
    with _parked_lock:
        mine = [h for h in _parked if h.page == page and h.browser == browser]
        fitting = [h for h in mine if h.config == config] or [
            h for h in mine if now - h.parked_at < _RELOAD_SECONDS
        ]
        if fitting:
            _parked.remove(fitting[-1])
            return fitting[-1]
    return None


def _park(held: HeldRun) -> None:
    held.run.park()
    held.holder, held.parked_at = None, time.monotonic()
    with _parked_lock:
        _parked.append(held)
        dropped = _parked[:-_MOST_PARKED]
        del _parked[:-_MOST_PARKED]
    for old in dropped:
        old.run.close()


def _browser() -> str | None:
    """Return the token behind the cookie of Streamlit's cross-site protection.

    The cookie reads ``2|mask|masked token|time`` in hexadecimal and its mask changes
    with each answer, the token does not. It never leaves the server from here.
    """
    cookie = st.context.cookies.get("_streamlit_xsrf")
    try:
        _, mask, masked, _ = (cookie or "").strip("\"'").split("|")
        pattern = itertools.cycle(binascii.unhexlify(mask))
        token = zip(binascii.unhexlify(masked), pattern, strict=False)
        return bytes(byte ^ key for byte, key in token).hex() or None
    except ValueError:
        return None
