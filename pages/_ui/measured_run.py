"""Something measured here on demand: a button, its progress, and what came so far."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages._ui import leases, live_run, parts
from pages._ui.leases import HeldRun, Look

_ELSEWHERE = "What stands below was measured with other settings."
_STOPPED = (
    "It is stopped: set its own settings again to go on with it; the button starts "
    "another in its place."
)
_ICONS = {"Stop": "stop", "Go on": "play_arrow"}


def measured(
    name: str,
    config: Any,
    make: Callable[[Any], Any],
    *,
    total: Callable[[Any], int],
    label: str,
    ahead: str,
    draw: Callable[[Look], None],
    unit: str = "steps",
    elsewhere: Callable[[Look], str] = lambda _: _ELSEWHERE,
) -> None:
    """Draw a button that measures, a bar of its progress, and what it has brought.

    The measurement is a run of the scheduler: it goes on beside others, stops at once,
    is parked when the page is left and found again on return.

    Args:
        name: ``page/part``, unique in the app.
        config: What is measured, a frozen dataclass or a tuple; None where it was
            refused, and then nothing is measured.
        make: Makes the ``core.measuring.Measurement`` of a config.
        total: Number of results that a config brings.
        label: The button's words, such as "Measure here".
        ahead: A sentence on what it costs, shown before the start.
        draw: Draws the results so far, of ``look.records`` measured for
            ``look.config``; its charts need an alternative text that never changes.
        unit: What the results are, in the plural, as the progress counts them.
        elsewhere: Says, of what was measured so far, that its settings are not the ones
            chosen; ``draw`` decides which it shows.
    """
    make_run = partial(_submit, make, total)
    held = leases.hold(name, config, make_run)
    if held is None:
        return
    status = held.run.status()
    held.drawn = live_run.phase(status)
    words, press = _next_move(held, config, make_run, label)
    st.button(
        words,
        icon=f":material/{_ICONS.get(words, 'timer')}:",
        key=f"{held.page}_measure",
        on_click=held.press,
        args=(0, press),
        type="primary",
    )
    live_run.offer_left_behind(held)
    other = elsewhere if config not in (None, held.config) else None
    live_run.moving_view(held, partial(_view, ahead, unit, draw, other))


def _submit(
    make: Callable[[Any], Any], total: Callable[[Any], int], config: Any
) -> Any:
    from core.scheduler import shared_scheduler

    return shared_scheduler("cpu").submit(
        partial(make, config), max_steps=total(config)
    )


def _next_move(
    held: HeldRun, config: Any, make_run: Callable[[Any], Any], label: str
) -> tuple[str, Callable[[], Any]]:
    """Return the button's words and what it does."""
    status = held.run.status()

    def anew() -> None:
        held.replace(held.config if config is None else config, make_run)
        held.run.start()

    if status.state in live_run.MOVING:
        return "Stop", lambda: held.run.pause()
    if config not in (None, held.config):
        return f"{label}, with these settings", anew
    if status.state in live_run.OVER or status.let_go:
        return f"{label} again", anew
    return ("Go on" if status.step_count else label), lambda: held.run.start()


def _can_go_on(status: Any) -> bool:
    moves_or_over = status.state in live_run.MOVING | live_run.OVER
    return bool(status.step_count) and not (moves_or_over or status.let_go)


def _view(
    ahead: str,
    unit: str,
    draw: Callable[[Look], None],
    elsewhere: Callable[[Look], str] | None,
    look: Look,
) -> None:
    status = look.status
    with st.container():  # what comes and goes here moves no chart to another place
        if elsewhere and status.step_count:
            stopped = f" {_STOPPED}" if _can_go_on(status) else ""
            parts.note(elsewhere(look) + stopped)
        _progress(ahead, unit, look)
    draw(look)


def _progress(ahead: str, unit: str, look: Look) -> None:
    status = look.status
    count = f"{status.step_count:,} of {status.max_steps:,} {unit}"
    done = f"{count} · {status.elapsed:.1f} s"
    ahead = f"{live_run.LOST} {ahead}" if look.lost else ahead
    words = {"new": ahead, "queued": status.message}.get(status.state, done)
    if status.state == "failed":
        parts.refused(status.message)
    st.progress(status.step_count / status.max_steps, text=parts.plain(words))
