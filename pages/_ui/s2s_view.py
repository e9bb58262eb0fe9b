"""The encoder-decoder page: task, source and model, and what all its views share."""

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st

from pages._ui import leases, parts
from pages._ui.controls import Controls

VIEWS = ["Stack", "Decode", "Train", "Loss"]
STACK, DECODE, TRAIN, LOSS = VIEWS
HEIGHT = 520
PAGE = "encoder_decoder"  # name under which this page's run is held
SOURCES = ["shipped", "yours"]
TASKS = ["reverse", "copy", "sort", "dates", "numbers"]
_HINTS = {
    "reverse": "1 to 12 letters a-z.",
    "copy": "1 to 12 letters a-z.",
    "sort": "1 to 12 letters a-z.",
    "dates": "A day from 1900 to 2099, such as march 4, 1998; 4 march 1998; "
    "04/03/1998 (the day first).",
    "numbers": "A number from zero to nine thousand nine hundred and ninety-nine, as "
    "words: three hundred and twelve.",
}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "Reverse, cross-attention of the last layer: where does each step read?": {
        "view": STACK, "task": "reverse", "part": "cross_attention", "layer": 2,
        "head": 0,
    },
    "Dates, step 7: the year is written; from where does it read the month?": {
        "view": DECODE, "task": "dates", "step": 7, "forced": False,
    },
    "Sort, the word aa: where does the shipped model go wrong?": {
        "view": DECODE, "task": "sort", "sort_text": "aa", "step": 2, "forced": False,
        "source": "shipped",
    },
    "Label smoothing 0.3: what is left of the loss where the model is sure?": {
        "view": LOSS, "task": "numbers", "place": 1, "smoothed": 0.3,
    },
    "No warm-up and a large rate, post-norm: does it still learn?": {
        "view": TRAIN, "task": "numbers", "warmup": 0, "rate": 1e-2,
        "norms": "post-norm",
    },
}  # fmt: skip


class Shown(NamedTuple):
    """The model that is shown, and the source it is given.

    Attributes:
        task: The text task.
        trained: Its weights and what made them.
        key: Hash of both.
        model: The model with these weights.
        source: Numbers of the source's tokens.
        answer: Numbers of the right answer's tokens.
        labels: A label for each source token.
    """

    task: Any
    trained: Any
    key: str
    model: Any
    source: tuple[int, ...]
    answer: tuple[int, ...]
    labels: list[str]


def open_tab(tabs: Sequence[Any]) -> tuple[str, Any]:
    """Return name and place of the view that is open."""
    return next(pair for pair in zip(VIEWS, tabs, strict=True) if pair[1].open)


def choose_task(c: Controls) -> str:
    """Return the name of the task."""
    return c.menu("Task", "task", TASKS)


def load() -> None:
    """Load what every view computes with, while the page shows its skeleton."""
    for name in ("charts", "shipped_seq2seq", "stack_walk", "translation_run"):
        importlib.import_module(f"core.{name}")


def choose_source(c: Controls, task: str) -> tuple[str, str]:
    """Return whose weights are shown, and the text that was typed for the task."""
    from core.text_tasks import TASKS as TEXT_TASKS

    typed = c.line("Source", f"{task}_text", TEXT_TASKS[task].example, _HINTS[task])
    whose = c.choice(
        "Whose weights",
        "source",
        SOURCES,
        help_text="Yours: the run of the view Train, once it rests. One that is paused "
        "early still errs.",
    )
    return whose, typed


def pick(name: str, whose: str, typed: str) -> Shown:
    """Return the model and the source to be shown.

    Raises:
        RefusedError: If what was typed is no source of the task.
    """
    from core import shipped_seq2seq
    from core.text_tasks import TASKS as TEXT_TASKS

    task = TEXT_TASKS[name]
    own = _own(name) if whose == "yours" else None
    trained = own or shipped_seq2seq.read_shipped(name)
    tokens, key = task.read(typed), trained.key
    return Shown(
        task,
        trained,
        key,
        _built(key, trained),
        tuple(task.source.encode(tokens)),
        tuple(task.target.encode(task.answer_to(tokens))),
        task.labels(tokens),
    )


def tell(shown: Shown, whose: str) -> None:
    """Say whose weights these are."""
    from core import shipped_seq2seq, translation_run

    own = shown.trained is not shipped_seq2seq.read_shipped(shown.task.name)
    if whose == "yours" and not own:
        parts.note(
            "There is no run of this task here that has trained and rests, so the "
            "shipped one is shown."
        )
    words = translation_run.run_words(shown.trained, own=own)
    origin = parts.plain(shown.trained.origin)
    st.markdown(f":small[{parts.plain(words)}]", help=origin)


def walk(shown: Shown, *, forced: bool) -> Any:
    """Return every step of the decoder for the source; kept."""
    return _walk(shown.key, shown.source, forced, shown.model, shown.task, shown.answer)


@st.cache_resource(max_entries=16, show_spinner=False)
def _built(key: str, _trained: Any) -> Any:
    from core import shipped_seq2seq

    return shipped_seq2seq.build(_trained)


@st.cache_resource(max_entries=64, show_spinner=False)
def _walk(
    key: str,
    source: tuple[int, ...],
    forced: bool,
    _model: Any,
    _task: Any,
    _answer: tuple[int, ...],
) -> Any:
    from core.decoding_walk import walk_decoding

    limit = _task.max_target
    return walk_decoding(_model, source, _answer, forced=forced, max_len=limit)


def _own(name: str) -> Any | None:
    """Return the newest weights of this tab's run where it trained this task."""
    held = leases.find(PAGE)
    own = None if held is None else held.newest_answer(leases.WEIGHTS)
    return own if own is not None and own.config.task == name else None
