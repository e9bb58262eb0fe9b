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
_WEIGHTS_SECONDS = 3.0  # without them the view would show another model
_MOST_KEPT = 5
_SCRUBBER_HEIGHT = 90  # pixels, for the bar of a run as for the slider afterwards
_ICONS = {"running": "play_arrow", "queued": "hourglass", "finished": "flag"}
_KINDS = ("loss", "accuracy")
NAMED = (("current", "this run"), ("shipped", "shipped run"))  # above live curves
_STEPS = ((1, "skip_next"), (10, "fast_forward"))
_ORDER = ("keep_curve", "forget_kept", "reset", "run", "step_1", "step_10")
LOST = (
    "The server was restarted or has forgotten this tab: a run that stood here is gone."
)
_NONE_TRAINED = "no run of yours has trained here"
_KEEP_HELP = "Keep this curve in grey and start the next run beside it."


class Own(NamedTuple):
    """What a visitor's own run has learned, or why it is not there.

    Attributes:
        answer: What ``copied_from`` made of its trainer; None without.
        reason: Half a sentence on why there is none; empty where there is one.
    """

    answer: Any | None
    reason: str


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
    offer_left_behind(held, name_of)


def offer_left_behind(
    held: HeldRun, name_of: Callable[[Any], str] = lambda _: "with its own settings"
) -> None:
    """Offer a parked run of this browser where the one of this tab has not begun.

    A reload finds a run by its settings alone; where the address had lost them, or a
    tab was closed, it is found here.

    Args:
        held: The run held by this tab.
        name_of: Names a run by its settings.
    """
    if held.run.state != "new":
        return
    behind = leases.left_behind(held.page)
    if behind is None:
        return
    status = behind.run.status()
    done = f"{status.step_count:,} of {status.max_steps:,}"
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button(
            "Take up the run left behind",
            icon=":material/history:",
            key=f"{held.page}_take_up",
            on_click=leases.take_up,
            args=(behind,),
        )
        words = f"This browser left one here at {done}: {name_of(behind.config)}"
        st.markdown(f":small[{parts.plain(words)}]")


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


def ask(
    held: HeldRun,
    key: Any,
    question: Callable[[Any], Any],
    seconds: float = _FIRST_ANSWER_SECONDS,
) -> Any | None:
    """Return the answer of the run's trainer, or None while it is worked out.

    An answer that cannot be had is said so.

    Args:
        held: The run held by this tab.
        key: What the answer depends on besides the run; an answer is kept until then.
        question: Called with the trainer in the scheduler's thread.
        seconds: How long the page waits for it.
    """
    try:
        return held.ask(key, question).result(seconds)
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
    held: HeldRun,
    copied_from: Callable[[Any], Any],
    num_parameters: int,
    seconds: float = _FIRST_ANSWER_SECONDS,
) -> None:
    """Keep a copy of what a resting run has learned, for other views and pages.

    The newest alone is kept, and none of a model that is too large for it.

    Args:
        held: The run held by this tab.
        copied_from: Copies the weights of its trainer, in the scheduler's thread.
        num_parameters: Number of its parameters.
        seconds: How long the page waits for them.
    """
    from core.weights_file import MAX_KEPT_PARAMETERS

    look = held.look()
    failed = look.status.state == "failed"
    if num_parameters > MAX_KEPT_PARAMETERS or failed or not at_rest(look):
        return
    key = (leases.WEIGHTS, look.status.step_count)
    held.keep_only(key)
    ask(held, key, copied_from, seconds)


def own_weights(
    page: str, copied_from: Callable[[Any], Any], size_of: Callable[[Any], int]
) -> Own:
    """Return what the visitor's run of a page has learned, for another view of it.

    Args:
        page: Name of the page.
        copied_from: As in ``keep_weights``.
        size_of: Number of parameters of a run with these settings.
    """
    held = leases.find(page)
    if held is None:
        return Own(None, _NONE_TRAINED)
    look, size = held.look(), size_of(held.config)
    if leases.is_held_here(held) and look.status.state != "parked":
        keep_weights(held, copied_from, size, _WEIGHTS_SECONDS)
    answer = held.newest_answer(leases.WEIGHTS)
    return Own(answer, "" if answer else _why_none(look, size))


def _why_none(look: Look, num_parameters: int) -> str:
    from core.weights_file import MAX_KEPT_PARAMETERS

    if look.status.state not in MOVING and not look.status.step_count:
        return _NONE_TRAINED
    if num_parameters > MAX_KEPT_PARAMETERS:
        return (
            f"your run has {num_parameters:,} parameters, and the weights of at most "
            f"{MAX_KEPT_PARAMETERS:,} are kept for other views"
        )
    if look.status.state == "failed" or look.status.let_go:
        return "the model of your run is gone"
    if look.status.state == "parked":
        return "your run was left while it trained; pause it before you leave it"
    if not at_rest(look):
        return "your run still trains; pause it to look into it"
    return "the weights of your run are still being copied; look again in a moment"


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
