"""The encoder-decoder page: task, source and model, and what all its views share."""

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st

from pages._ui import live_run, parts
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
    "04/03/1998 (the day first; trained with two digits each).",
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
    "Sort, six times g: greedy decoding writes one too many; what does a beam find?": {
        "view": DECODE, "task": "sort", "sort_text": "gggggg", "step": 7,
        "forced": False, "source": "shipped", "beam": 4,
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
        reason: Why it is not the visitor's run though that was chosen, as half a
            sentence.
        key: Hash of both.
        model: The model with these weights.
        source: Numbers of the source's tokens.
        answer: Numbers of the right answer's tokens.
        labels: A label for each source token.
    """

    task: Any
    trained: Any
    reason: str
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
    own, reason = _own(name) if whose == "yours" else (None, "")
    trained = own or shipped_seq2seq.read_shipped(name)
    tokens, key = task.read(typed), trained.key
    return Shown(
        task,
        trained,
        reason,
        key,
        _built(key, trained)[0],
        tuple(task.source.encode(tokens)),
        tuple(task.target.encode(task.answer_to(tokens))),
        task.labels(tokens),
    )


def tell(shown: Shown) -> None:
    """Say whose weights these are."""
    from core import shipped_seq2seq, translation_run

    own = shown.trained is not shipped_seq2seq.read_shipped(shown.task.name)
    if shown.reason:
        parts.note(f"The shipped run is shown: {shown.reason}.")
    words = translation_run.run_words(shown.trained, own=own)
    origin = parts.plain(shown.trained.origin)
    st.markdown(f":small[{parts.plain(words)}]", help=origin)


def walk(shown: Shown, *, forced: bool) -> Any:
    """Return every step of the decoder for the source; kept."""
    return _walk(shown.key, shown.source, forced, shown.model, shown.task, shown.answer)


@st.cache_resource(max_entries=16, show_spinner=False)
def _built(key: str, _trained: Any) -> tuple[Any, bool]:
    """Return the model, and whether it answers in finite numbers."""
    from core import shipped_seq2seq

    model = shipped_seq2seq.build(_trained)
    return model, shipped_seq2seq.answers_in_numbers(model, _trained.config)


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


def _own(name: str) -> live_run.Own:
    """Return the newest weights of this tab's run where it trained this task."""
    from core.shipped_seq2seq import copied_from

    found = live_run.own_weights(PAGE, copied_from, _size_of)
    if found.answer is None:
        return found
    trained = found.answer.config.task
    if trained != name:
        return live_run.Own(None, f"your run trained another task, {trained}")
    if not _built(found.answer.key, found.answer)[1]:
        return live_run.Own(None, "your run diverged: it answers in no finite numbers")
    return found


def _size_of(config: Any) -> int:
    return config.model_config.num_parameters
