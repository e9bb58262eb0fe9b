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
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import streamlit as st

from pages._ui import returned

_PARKED_SECONDS = 1800.0  # a run parked longer is closed, with all its page kept
_MOST_PARKED = 64
_MOST_ANSWERS = 8
WEIGHTS = "weights"  # first part of the key of what a run has learned
_HELD = "_held_"  # session key of the run that a page holds
_SHOWN = "_page_shown"  # session key of the page that the tab is on

_parked: list["HeldRun"] = []
_lock = threading.Lock()  # around what is parked, and who holds what
_numbers = itertools.count()


class Kept(NamedTuple):
    """A curve kept for comparison.

    Attributes:
        name: Its name, unlike that of any other kept curve.
        curves: Kind, such as "loss", to its thinned (step, value) pairs.
        num_steps: Steps of its run.
    """

    name: str
    curves: dict[str, Any]
    num_steps: int


class Look(NamedTuple):
    """A held run at one moment: what a page draws belongs together."""

    config: Any
    kept: tuple[Kept, ...]
    lost: bool
    status: Any
    records: list[Any]
    snapshots: list[Any]


@dataclass(eq=False)
class HeldRun:
    """A live run with what its page keeps beside it.

    Attributes:
        page: Name of the page that the run belongs to, or ``page/part``.
        browser: The browser's own token; None where it sent no cookie.
        config: The settings the run was started with.
        run: The scheduler's run.
        shown: The settings its page showed last; None where core refused them.
        drawn: What the buttons of the page show; None before they are drawn.
        kept: Runs kept as grey curves.
        lost: Whether it stands where a run may have been that the server has lost.
        pressed: Effects of the buttons pressed since the page was drawn, with ranks.
        answers: What was asked of the run's trainer, by what the answer depends on.
        holder: Number of the lease that holds it; None while it is parked.
        parked_at: When it was parked, on the monotonic clock.
        lock: Held while run, settings and answers are read together or changed.
    """

    page: str
    browser: str | None
    config: Any
    run: Any
    shown: Any = None
    drawn: Any = None
    kept: tuple[Kept, ...] = ()
    lost: bool = False
    pressed: list[tuple[int, Callable[[], Any]]] = field(default_factory=list)
    answers: dict[Any, Future[Any]] = field(default_factory=dict)
    holder: int | None = None
    parked_at: float = 0.0
    lock: Any = field(default_factory=threading.Lock)

    def look(self) -> Look:
        """Return settings, kept curves, numbers, records and snapshots of one run."""
        with self.lock:
            return Look(self.config, self.kept, self.lost, *self.run.look())

    def replace(self, config: Any, make_run: Callable[[Any], Any]) -> None:
        """Put a new run of the settings ``config`` in the place of this one."""
        with self.lock:
            self.run.close()
            self.answers.clear()
            self.config, self.run, self.lost = config, make_run(config), False

    def press(self, rank: int, effect: Callable[[], Any]) -> None:
        """Note a pressed button; it takes effect where the page next holds the run.

        It asks nothing of Streamlit, which could end it there for a newer click.
        """
        self.pressed.append((rank, effect))

    def take_effect(self) -> None:
        """Let the pressed buttons take effect, the lowest rank first.

        Clicks that reach a busy server together are called back newest first: a Run
        after a Reset would be reset.
        """
        due = [self.pressed.pop(0) for _ in range(len(self.pressed))]
        for _, effect in sorted(due, key=lambda press: press[0]):
            effect()

    def ask(self, key: Any, question: Callable[[Any], Any]) -> Future[Any]:
        """Return the answer to a question; asked again only where it was refused.

        Args:
            key: What the answer depends on besides the run.
            question: Called with the trainer in the scheduler's thread.
        """
        with self.lock:
            key = (self.run.generation, key)
            answer = self.answers.get(key)
            if answer is None or (answer.done() and answer.exception()):
                answer = self.answers[key] = self.run.ask(question)
                for oldest in list(self.answers)[:-_MOST_ANSWERS]:
                    del self.answers[oldest]
            return answer

    def newest_answer(self, name: str) -> Any | None:
        """Return the last answer under a key that begins with ``name``; None without.

        Nothing is asked, so it is there for a parked run, too.
        """
        with self.lock:
            current = self.run.generation
            for (generation, key), answer in reversed(self.answers.items()):
                named = generation == current and key[0] == name
                if named and answer.done() and not answer.exception():
                    return answer.result()
        return None

    def keep_only(self, key: Any) -> None:
        """Drop the answers whose key begins as ``key`` does and is another."""
        with self.lock:
            current = (self.run.generation, key)
            for asked in list(self.answers):
                if asked[1][0] == key[0] and asked != current:
                    del self.answers[asked]

    @property
    def waits(self) -> bool:
        """Whether an answer is still due."""
        with self.lock:
            return any(not answer.done() for answer in self.answers.values())


class _Lease:
    """One session's hold on the run of one page.

    Streamlit releases it in a thread of its own while the page may still be drawn, so
    it remembers that it was released.
    """

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.held: HeldRun | None = None
        self.released = False

    def release(self) -> None:
        with _lock:
            self.released = True
            if self.held is not None and self.held.holder == self.number:
                _park(self.held)
            self.held = None


@st.cache_resource(
    scope="session", on_release=lambda lease: lease.release(), show_spinner=False
)
def _lease(page: str) -> _Lease:
    return _Lease()


def hold(page: str, config: Any, make_run: Callable[[Any], Any]) -> HeldRun | None:
    """Return the run that this session holds on ``page``, taking or making one.

    In this order: the run of this session; a parked run of this browser whose page
    showed the same settings, whatever those of the run are; a new one, not yet started.
    What was pressed on its page has then taken effect.

    Args:
        page: Name of the page, or ``page/part`` where it has more runs than one.
        config: The settings shown on the page; None where core refused them, and then
            no new run is made.
        make_run: Makes a new run of given settings.
    """
    held = _hold(page, config, make_run)
    if held is not None:
        held.take_effect()
    return held


def _hold(page: str, config: Any, make_run: Callable[[Any], Any]) -> HeldRun | None:
    lease = _lease(page)
    with _lock:
        _close_old()
        # Where this script shall stop, Streamlit ends it here, at its session state.
        shown = st.session_state.get(_SHOWN, _page_of(page))
        held = lease.held or _claim_own(page) or _claim_parked(page, config)
        if held is None and config is not None:
            held = HeldRun(page, _browser(), config, make_run(config))
            held.lost = returned.is_noted()
        if held is None:
            return None
        held.holder, lease.held, held.shown = lease.number, held, config
        st.session_state[_HELD + page] = held
        if lease.released:  # the tab went meanwhile
            lease.held = None
            _park(held)
        elif shown == _page_of(page):
            held.run.unpark()
        return held


def find(page: str) -> HeldRun | None:
    """Return the run of another page, left as it is: parked, or held by that page.

    That of this session, else the one that this browser parked last; one that has
    trained goes before one that has not.
    """
    with _lock:
        own = st.session_state.get(_HELD + page)
        if own is not None and own.run.step_count:
            return own
        trained = _trained_and_parked(page)
        if own is not None or trained is not None:
            return trained or own
        parked = _parked_by_browser(page)
        return parked[-1] if parked else None


def is_held_here(held: HeldRun) -> bool:
    """Return whether this session holds the run, so that it answers questions."""
    with _lock:
        own = st.session_state.get(_HELD + held.page)
        return own is held and held.holder is not None


def left_behind(page: str) -> HeldRun | None:
    """Return the newest parked run of this browser on ``page`` that has trained."""
    with _lock:
        return _trained_and_parked(page)


def take_up(held: HeldRun) -> None:
    """Let this session hold a parked run from its next run on, for the one it holds."""
    lease = _lease(held.page)
    with _lock:
        if held not in _parked:  # another tab was faster
            return
        if lease.held is not None:
            lease.held.run.close()
        lease.held = None
        st.session_state[_HELD + held.page] = held


def turn_to(page: str) -> None:
    """Note that the tab is on ``page``, and park the runs of its other pages."""
    with _lock:
        _close_old()
        st.session_state[_SHOWN] = page
        for key, held in st.session_state.items():
            if str(key).startswith(_HELD) and _page_of(held.page) != page:
                held.run.park()


def _page_of(name: str) -> str:
    return name.partition("/")[0]


def _claim_own(page: str) -> HeldRun | None:
    held = st.session_state.get(_HELD + page)
    if held in _parked:
        _parked.remove(held)
        return held
    return None


def _claim_parked(page: str, config: Any) -> HeldRun | None:
    fitting = [held for held in _parked_by_browser(page) if held.shown == config]
    if not fitting:
        return None
    _parked.remove(fitting[-1])
    return fitting[-1]


def _parked_by_browser(page: str) -> list[HeldRun]:
    wanted = (page, _browser())
    fitting = [held for held in _parked if (held.page, held.browser) == wanted]
    return [] if wanted[1] is None else fitting


def _trained_and_parked(page: str) -> HeldRun | None:
    trained = [held for held in _parked_by_browser(page) if held.run.step_count]
    return trained[-1] if trained else None


def _park(held: HeldRun) -> None:
    held.run.park()
    held.holder, held.parked_at = None, time.monotonic()
    _parked.append(held)
    _close_old()


def _close_old() -> None:
    """Close the runs that were parked too long, or are too many."""
    oldest = time.monotonic() - _PARKED_SECONDS
    fresh = [held for held in _parked if held.parked_at > oldest][-_MOST_PARKED:]
    for held in _parked:
        if held not in fresh:
            held.run.close()
    _parked[:] = fresh


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
