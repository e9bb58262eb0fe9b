"""The view of a live run: buttons in the page, the moving part in a fragment."""

from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NotYet
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from pages._ui import leases, parts
from pages._ui.leases import HeldRun, Kept, Look

REFRESH_SECONDS = 0.5
MOVING = frozenset({"running", "queued"})
OVER = frozenset({"finished", "failed"})
_FIRST_ANSWER_SECONDS = 0.4
_MOST_KEPT = 5
_SCRUBBER_HEIGHT = 90  # pixels, for the bar of a run as for the slider afterwards
_ICONS = {"running": "play_arrow", "queued": "hourglass", "finished": "flag"}
_KINDS = ("loss", "accuracy")
_STEPS = ((1, "skip_next"), (10, "fast_forward"))
_ORDER = ("keep_curve", "forget_kept", "reset", "run", "step_1", "step_10")
LOST = (
    "The server was restarted or has forgotten this tab: a run that stood here is gone."
)
_KEEP_HELP = "Keep this curve in grey and start the next run beside it."


class _Button(NamedTuple):
    label: str
    icon: str
    press: Callable[[], Any]
    options: dict[str, Any]


def buttons(
    held: HeldRun, make_new: Callable[[], None], name_of: Callable[[Any], str]
) -> None:
    """Draw Run or Pause, Step 1, Step 10, Reset and Keep curve.

    Args:
        held: The run held by this tab.
        make_new: Puts a new run of the settings shown in its place.
        name_of: Names a run by its settings, for a kept curve.
    """
    status = held.run.status()
    moving, over, begun = held.drawn = phase(status)
    row = {
        "run": _Button(  # one button, so that the keyboard stays on it
            "Pause" if moving else "Run",
            "pause" if moving else "play_arrow",
            (lambda: held.run.pause()) if moving else (lambda: train(held, name_of)),
            {"type": "primary", "disabled": over},
        )
    }
    for count, icon in _STEPS:
        step = partial(train, held, name_of, count)
        row[f"step_{count}"] = _Button(f"Step {count}", icon, step, {"disabled": over})
    row["reset"] = _Button("Reset", "restart_alt", make_new, {})
    row["keep_curve"] = _Button(
        "Keep curve",
        "bookmark_add",
        partial(keep, held, name_of),
        {"disabled": not begun, "help": _KEEP_HELP},
    )
    if held.kept:
        row["forget_kept"] = _Button(
            "Forget kept", "delete", partial(_forget, held), {}
        )
    _draw_buttons(held, row)


def train(
    held: HeldRun, name_of: Callable[[Any], str], count: int | None = None
) -> None:
    """Train on, or ``count`` steps; a curve that would begin again is kept first."""
    if held.run.status().let_go:
        keep(held, name_of)
    if count is None:
        held.run.start()
    else:
        held.run.step(count)


def keep(held: HeldRun, name_of: Callable[[Any], str]) -> None:
    """Keep the curve of the run as it is now; the oldest of many goes."""
    look = held.look()
    taken = {kept.name for kept in look.kept}
    name = first = name_of(look.config)
    number = 2
    while name in taken:
        name, number = f"{first} ({number})", number + 1
    held.kept = (*look.kept, kept_curve(name, look.records))[-_MOST_KEPT:]


def kept_curve(name: str, records: Sequence[Any]) -> Kept:
    """Return the curves of a run, thinned once and for all."""
    from core.charts.records import record_points, thin

    curves = {kind: thin(record_points(records, kind), 300) for kind in _KINDS}
    return Kept(name, curves, len(records))


def ask(held: HeldRun, key: Any, question: Callable[[Any], Any]) -> Any | None:
    """Return the answer of the run's trainer, or None while it is worked out.

    An answer that cannot be had is said so.

    Args:
        held: The run held by this tab.
        key: What the answer depends on besides the run; an answer is kept until then.
        question: Called with the trainer in the scheduler's thread.
    """
    try:
        return held.ask(key, question).result(_FIRST_ANSWER_SECONDS)
    except NotYet:
        return None
    except (RuntimeError, ValueError) as refusal:
        parts.note(str(refusal))
        return None


def at_rest(look: Look) -> bool:
    """Return whether there is a trained model to be asked, and nothing moves it."""
    status = look.status
    resting = status.state not in MOVING
    return resting and status.step_count > 0 and not status.let_go


def keep_weights(
    held: HeldRun, copied_from: Callable[[Any], Any], num_parameters: int
) -> None:
    """Keep a copy of what a resting run has learned, for other views and pages.

    The newest alone is kept, and none of a model that is too large for it.

    Args:
        held: The run held by this tab.
        copied_from: Copies the weights of its trainer, in the scheduler's thread.
        num_parameters: Number of its parameters.
    """
    from core.weights_file import MAX_KEPT_PARAMETERS

    look = held.look()
    failed = look.status.state == "failed"
    if num_parameters > MAX_KEPT_PARAMETERS or failed or not at_rest(look):
        return
    key = (leases.WEIGHTS, look.status.step_count)
    held.keep_only(key)
    ask(held, key, copied_from)


def is_moving(held: HeldRun) -> bool:
    """Return whether the picture changes by itself: training, or an answer is due."""
    return held.waits or held.run.state in MOVING


def moving_view(held: HeldRun, draw: Callable[[Look], None]) -> bool:
    """Draw the moving part: twice a second while something moves, else once.

    Returns:
        Whether something moves; the page is then drawn again when it rests.
    """
    moving = is_moving(held)

    def view() -> None:
        held.run.touch()
        draw(held.look())
        if moving != is_moving(held) or held.drawn != phase(held.run.status()):
            st.rerun()  # the buttons stand outside and change too

    st.fragment(view, run_every=REFRESH_SECONDS if moving else None)()
    return moving


def status_line(look: Look, ahead: str) -> None:
    """Draw the numbers of the run in one line, with decimals that stay.

    A second line, there in every state so that nothing below moves, says what goes on.

    Args:
        look: The run at one moment.
        ahead: A sentence on the whole run, shown before its first step.
    """
    status = look.status
    pace = [f"{status.steps_per_second:.1f} steps a second"]
    numbers = (
        f"**Step {status.step_count:,} / {status.max_steps:,}**",
        *(pace if status.state in MOVING else []),
        f"{status.elapsed:.1f} s of training",
        f"on {look.config.device}",
    )
    words = status.message
    if status.state == "new":
        words = f"{LOST if look.lost else words} {ahead}"
    with st.container():  # what comes and goes here moves no chart to another place
        st.markdown(" &nbsp;·&nbsp; ".join(numbers))
        if status.state == "failed":
            st.error(parts.plain(words), icon=":material/error:")
        else:
            icon = _ICONS.get(status.state, "info")
            st.markdown(f":material/{icon}: {parts.plain(words)}")


def scrubber(page: str, look: Look) -> Any | None:
    """Return the snapshot to show: the newest, or the one chosen when at rest."""
    snapshots, status = look.snapshots, look.status
    with st.container(height=_SCRUBBER_HEIGHT, border=False):
        if not snapshots or status.state in MOVING or len(snapshots) < 2:
            st.progress(status.step_count / status.max_steps)
            return snapshots[-1] if snapshots else None
        by_step = {snapshot.step: snapshot for snapshot in snapshots}
        steps = sorted(by_step)
        chosen = st.select_slider(
            "Go back to step",
            steps,
            steps[-1],
            key=f"{page}_scrub_{status.generation}_{steps[-1]}",
        )
    return by_step[chosen]


def _forget(held: HeldRun) -> None:
    held.kept = ()


def phase(status: Any) -> tuple[bool, bool, bool]:
    """Return what the buttons depend on: whether it moves, is over, has begun."""
    return status.state in MOVING, status.state in OVER, status.step_count > 0


def _draw_buttons(held: HeldRun, row: dict[str, _Button]) -> None:
    with st.container(horizontal=True, gap="small"):
        for name, button in row.items():
            st.button(
                button.label,
                icon=f":material/{button.icon}:",
                key=f"{held.page}_{name}",
                on_click=held.press,
                args=(_ORDER.index(name), button.press),
                **button.options,
            )
