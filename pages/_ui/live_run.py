"""The view of a live run: buttons in the page, the moving part in a fragment."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any

import streamlit as st

from pages._ui import parts
from pages._ui.leases import HeldRun

REFRESH_SECONDS = 0.5
_FIRST_ANSWER_SECONDS = 0.4
_MOST_KEPT = 5
_MOST_ANSWERS = 8
_STEPS = ((1, ":material/skip_next:"), (10, ":material/fast_forward:"))
MOVING = frozenset({"running", "queued"})
OVER = frozenset({"finished", "failed"})


def buttons(held: HeldRun, make_new: Callable[[], None], label: str) -> None:
    """Draw Run or Pause, Step 1, Step 10, Reset and Keep curve.

    Args:
        held: The run held by this tab.
        make_new: Puts a new run of the settings shown in its place.
        label: Name of the run, for a kept curve.
    """
    status = held.run.status()
    training = status.state in MOVING
    over = status.state in OVER
    row = st.container(horizontal=True, gap="small")
    with row:
        if training:
            st.button(
                "Pause",
                icon=":material/pause:",
                type="primary",
                key=f"{held.page}_pause",
                on_click=held.run.pause,
            )
        else:
            st.button(
                "Run",
                icon=":material/play_arrow:",
                type="primary",
                key=f"{held.page}_run",
                on_click=held.run.start,
                disabled=over,
            )
        for count, icon in _STEPS:
            st.button(
                f"Step {count}",
                icon=icon,
                key=f"{held.page}_step_{count}",
                on_click=held.run.step,
                args=(count,),
                disabled=over,
            )
        st.button(
            "Reset",
            icon=":material/restart_alt:",
            key=f"{held.page}_reset",
            on_click=make_new,
        )
        st.button(
            "Keep curve",
            icon=":material/bookmark_add:",
            key=f"{held.page}_keep",
            on_click=keep,
            args=(held, label),
            disabled=not status.step_count,
            help="Keep this curve in grey and start the next run beside it.",
        )
        if held.kept:
            st.button(
                "Forget kept",
                icon=":material/delete:",
                key=f"{held.page}_forget",
                on_click=held.kept.clear,
            )


def keep(held: HeldRun, label: str) -> None:
    """Keep the curve of the run as it is now; the oldest of many goes."""
    taken = {name for name, _ in held.kept}
    name, number = label, 2
    while name in taken:
        name, number = f"{label} ({number})", number + 1
    held.kept.append((name, held.run.records))
    del held.kept[:-_MOST_KEPT]


def ask(held: HeldRun, key: Any, question: Callable[[Any], Any]) -> Any | None:
    """Return the answer of the run's trainer, or None while it is worked out.

    An answer that cannot be had any more, because its model is gone, is said so.

    Args:
        held: The run held by this tab.
        key: What the answer depends on; an answer is kept until its key changes.
        question: Called with the trainer in the scheduler's thread.
    """
    future: Future[Any] | None = held.answers.get(key)
    if future is None:
        future = held.answers[key] = held.run.ask(question)
        for oldest in list(held.answers)[:-_MOST_ANSWERS]:
            del held.answers[oldest]
    try:
        return future.result(_FIRST_ANSWER_SECONDS)
    except NotYet:
        return None
    except (RuntimeError, ValueError) as refusal:
        parts.note(str(refusal))
        return None


def is_moving(held: HeldRun) -> bool:
    """Return whether the picture changes by itself: training, or an answer is due."""
    waits = any(not answer.done() for answer in held.answers.values())
    return waits or held.run.state in MOVING


def moving_view(held: HeldRun, draw: Callable[[HeldRun], None]) -> None:
    """Draw the moving part: twice a second while something moves, else once."""
    moving = is_moving(held)

    def view() -> None:
        held.run.touch()
        draw(held)
        if moving and not is_moving(held):
            st.rerun()  # the buttons stand outside and change too

    st.fragment(view, run_every=REFRESH_SECONDS if moving else None)()


def status_line(held: HeldRun) -> None:
    """Draw the numbers of the run in one line, with decimals that stay."""
    status = held.run.status()
    numbers = (
        f"**Step {status.step_count:,} / {status.max_steps:,}**",
        f"{status.steps_per_second:.1f} steps a second",
        f"{status.elapsed:.1f} s of training",
        f"on {held.config.device}",
    )
    st.markdown(" &nbsp;·&nbsp; ".join(numbers))
    if status.state == "failed":
        st.error(parts.plain(status.message), icon=":material/error:")
    elif status.state == "queued":
        parts.note(status.message)
    elif status.state == "finished":
        st.markdown(f":material/flag: {parts.plain(status.message)}")


def scrubber(held: HeldRun) -> Any | None:
    """Return the snapshot to show: the newest, or the one chosen when at rest."""
    snapshots = held.run.snapshots
    status = held.run.status()
    if not snapshots:
        return None
    if status.state in MOVING or len(snapshots) < 2:
        st.progress(status.step_count / status.max_steps)
        return snapshots[-1]
    by_step = {snapshot.step: snapshot for snapshot in snapshots}
    steps = sorted(by_step)
    chosen = st.select_slider(
        "Go back to step",
        steps,
        steps[-1],
        key=f"{held.page}_scrub_{status.generation}_{steps[-1]}",
    )
    return by_step[chosen]
