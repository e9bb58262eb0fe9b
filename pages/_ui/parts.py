"""The parts every page is built from: head, picture, prediction, source, limits."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import streamlit as st

from pages._ui.catalogue import PageInfo

_MARKDOWN_SIGNS = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:<>&^])")
# Addresses, icons and arrows are made of text that is escaped already, so an unseen
# word joiner parts their signs as well.
_JOINED_SIGNS = re.compile(r"(?i:www)(?=\.)|[:@](?=\S)|[-<~](?=[-=>])|>(?==)")
_WORD_JOINER = "\u2060"
_HELD_KEYS = "_keys_of_experiments"  # session key: keys without a control yet


class Choice(NamedTuple):
    """One answer of a prediction and, where it is wrong, the idea behind it."""

    text: str
    misconception: str


def plain(text: str) -> str:
    """Return ``text`` with every sign that Markdown would read made harmless."""
    parted = _JOINED_SIGNS.sub(rf"\g<0>{_WORD_JOINER}", text)
    return _MARKDOWN_SIGNS.sub(r"\\\1", parted)


def is_dark() -> bool:
    """Return whether the visitor's theme is dark."""
    return st.context.theme.type == "dark"


def head(page: PageInfo, formula: str) -> None:
    """Draw the title, the claim in one sentence and the formula."""
    st.title(page.title, anchor=False)
    claim, maths = st.columns([3, 2], vertical_alignment="center")
    claim.markdown(page.claim)
    maths.latex(formula)


def random_weights_badge(what: str = "Weights") -> None:
    """Say that nothing here was learned, in the words used on every page."""
    st.markdown(
        f":violet-badge[:material/casino: {what} are random] "
        ":small[the pattern shows the mechanism, not meaning]"
    )


def loading(height: int) -> AbstractContextManager[Any]:
    """Show a skeleton of the picture's own size while torch loads."""
    return st.skeleton(height=height)


@contextmanager
def explained() -> Iterator[None]:
    """Show what core refuses as one sentence; the rest of the page stays.

    Any other error is a fault of the program and is not hidden.
    """
    from core.checks import RefusedError

    try:
        yield
    except RefusedError as refusal:
        refused(str(refusal))


def refused(text: str) -> None:
    """Show the sentence with which core refuses something."""
    st.error(plain(text), icon=":material/block:")


def picture(
    chart: Callable[..., Any], frame: Any, *, key: str, caption: str, **options: Any
) -> None:
    """Draw a chart of ``frame`` with its generated sentence.

    Args:
        chart: A chart function of ``core.charts``; its spec is built once.
        frame: The tidy frame it draws.
        key: Stable identity, so that new data move the picture and do not redraw it.
        caption: One sentence with the picture's numbers; also its alternative text.
        **options: Options of the chart function.
    """
    bare_chart(chart, frame, key=key, alt=caption, **options)
    sentence(caption)


def bare_chart(
    chart: Callable[..., Any], frame: Any, *, key: str, alt: str, **options: Any
) -> None:
    """Draw a chart whose sentence stands elsewhere; ``alt`` is its alternative text.

    A live chart needs an ``alt`` that never changes: Streamlit builds a chart anew when
    it does, and the picture goes blank for a moment at every tick.
    """
    from core.charts import cached_spec

    spec = cached_spec(chart, frame, dark=is_dark(), **options)
    st.vega_lite_chart(frame, spec, key=key, alt=alt)


def clickable_chart(
    chart: Callable[..., Any],
    frame: Any,
    *,
    key: str,
    alt: str,
    on_click: Callable[[str], None],
    **options: Any,
) -> None:
    """Draw a chart as ``bare_chart`` does; a click on a node calls ``on_click``.

    A click puts a name into the chart's selection or takes it out, so that clicking
    the same node again is told too: what was clicked is what changed.

    Args:
        chart: A chart function with the option ``clickable``.
        frame: The tidy frame it draws.
        key: Stable identity of the chart.
        alt: Its alternative text.
        on_click: Takes the name of the node, before the page runs again.
        **options: Options of the chart function.
    """
    from core.charts import cached_spec

    before = f"{key}_before"

    def tell() -> None:
        now = _names_clicked(st.session_state[key])
        for name in now ^ st.session_state.get(before, frozenset()):
            on_click(name)

    spec = cached_spec(chart, frame, dark=is_dark(), clickable=True, **options)
    event = st.vega_lite_chart(frame, spec, key=key, alt=alt, on_select=tell)
    st.session_state[before] = _names_clicked(event)


def _names_clicked(event: Any) -> frozenset[str]:
    from core.charts.diagram import CLICKED

    return frozenset(one["name"] for one in event.selection.get(CLICKED) or ())


def sentence(text: str) -> None:
    """Write one generated sentence under a picture; nothing in it is markup."""
    st.markdown(plain(text))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; what is in it is markup, never a student's text."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def note(text: str) -> None:
    """Say what follows from the settings, beside the picture."""
    st.info(plain(text), icon=":material/info:")


def predict(
    key: str, question: str, choices: Sequence[Choice], right: int, reveal: str
) -> None:
    """Ask one question before its answer is shown.

    Nothing is chosen at the start and nothing is shown before the commit; a wrong
    choice names the idea behind it and can be tried again.

    Args:
        key: Key of the question, unique in the app.
        question: The question, about something the page has not shown yet.
        choices: The answers offered.
        right: Index of the right one, worked out from the tensors of the page.
        reveal: The sentence with the numbers, shown with the right answer.
    """
    picked = ask_prediction(key, question, choices)
    if picked is not None:
        judge_prediction(choices, picked, right, reveal)


def ask_prediction(key: str, question: str, choices: Sequence[Choice]) -> int | None:
    """Ask the question of a prediction; return the choice once it is committed.

    For a page that works the answer out only when somebody has committed to one.
    """
    st.subheader("Predict first", anchor=False)
    texts = [choice.text for choice in choices]
    with st.form(f"{key}_form"):
        picked = st.radio(question, texts, index=None, key=f"{key}_picked")
        committed = st.form_submit_button("Commit", icon=":material/check:")
    if not committed:
        return None
    if picked not in texts:
        st.info("Choose an answer first.", icon=":material/help:")
        return None
    return texts.index(picked)


def judge_prediction(
    choices: Sequence[Choice], picked: int, right: int, reveal: str
) -> None:
    """Say whether the choice is right, and what idea stands behind a wrong one."""
    if picked == right:
        st.success(f"Right. {reveal}", icon=":material/check_circle:")
    else:
        st.warning(
            f"Not this one. {choices[picked].misconception} Try again.",
            icon=":material/replay:",
        )


def look_inside(
    key: str, functions: Sequence[Callable[..., Any]], shapes: Mapping[str, Any]
) -> None:
    """Show the source of the functions that just ran, with the live shapes.

    Args:
        key: Key of the expander, unique in the app.
        functions: Functions or classes of core, shown as they stand.
        shapes: What went in and came out: name to tensor, or name to text.
    """
    inside = st.expander(
        "Look inside: the code that just ran",
        icon=":material/code:",
        key=f"{key}_inside",
        on_change="rerun",
    )
    if not inside.open:
        return
    with inside:
        st.markdown("  ·  ".join(f"`{k}` {_shape(v)}" for k, v in shapes.items()))
        for function in functions:
            st.code(_source(function), language="python")


def try_it(prefix: str, experiments: Mapping[str, Mapping[str, Any]]) -> None:
    """Offer experiments that set the controls of the page.

    Args:
        prefix: The page's prefix.
        experiments: What to look for, and the controls it sets by name.
    """
    st.subheader("Try it", anchor=False)
    with st.container(gap=None):
        for number, (text, settings) in enumerate(experiments.items()):
            st.button(
                text,
                type="tertiary",
                icon=":material/arrow_forward:",
                key=f"{prefix}_try_{number}",
                on_click=set_controls,
                args=(prefix, settings),
            )
    _hold_keys(prefix, experiments.values())


def set_controls(prefix: str, settings: Mapping[str, Any]) -> None:
    """Set controls of a page by name; only where a button calls back."""
    for name, value in settings.items():
        st.session_state[f"{prefix}_{name}"] = value


def free_keys() -> None:
    """Take back the keys that ``try_it`` held, before a control is drawn with one."""
    for key in st.session_state.pop(_HELD_KEYS, ()):
        if st.session_state.get(key) is None:
            st.session_state.pop(key, None)


def _hold_keys(prefix: str, experiments: Iterable[Mapping[str, Any]]) -> None:
    """Hold the keys of controls of other views until the next run begins.

    Streamlit writes into the address what a button sets only where the session knew
    the key before; the address would not tell of a control that is not drawn yet.
    """
    keys = {f"{prefix}_{name}" for settings in experiments for name in settings}
    state = st.session_state
    # A seed that the address made infinite is drawn with another key, see controls.
    free = [k for k in sorted(keys) if k not in state and f"{k}_free" not in state]
    state.update(dict.fromkeys(free))
    state[_HELD_KEYS] = free


def limits(text: str) -> None:
    """Say what this toy does not show."""
    st.subheader("Limits", anchor=False)
    st.markdown(text)


def _shape(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return str(value) if shape is None else f"({', '.join(map(str, shape))})"


@functools.lru_cache(maxsize=256)
def _source(function: Callable[..., Any]) -> str:
    return inspect.getsource(function)
