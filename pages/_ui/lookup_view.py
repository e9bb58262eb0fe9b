"""The lookup page's own pieces: its words, its three views, its prediction."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages._ui import panel_row, parts
from pages._ui.controls import Controls

VIEWS = ["Step by step", "Edit one vector", "Hard and soft"]
STEPS, EDIT, HARD = VIEWS
STAGES = {  # of core.lookup, as they are shown
    "project": "1 Project",
    "score": "2 Score",
    "scale": "3 Scale",
    "softmax": "4 Softmax",
    "weigh": "5 Weigh",
    "sum": "6 Sum",
}
SAME, OTHER = "same words", "other words"
WORDS = "the dog left the street as it was wet"
READERS = "what was wet"
_READER, _READ = "it", "street"  # the pair that the page opens on
# The question is not about the edit that is shown; the second where the first tells
# nothing.
_OTHER_VECTORS = {"q": "kv", "k": "vq", "v": "qk"}
_MOST_TRIED = 12  # edits of a vector
_NAMES = {"q": "query", "k": "key", "v": "value"}
_HINTS = {  # by what was picked wrongly: the idea behind it
    (
        "one",
        "one",
    ): "That is what a new query does: its scores fill one row of the map.",
    ("every", "every"): "That is what a new key does: every query scores it, and each "
    "row must sum to 1 again.",
    ("none", "every"): "That is what a new value does: weights are made of queries and "
    "keys alone.",
    (
        "none",
        "one",
    ): "No vector is private to its own token: keys and values are read by "
    "every query, and a query makes weights.",
}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "One query reads two keys: a single row that sums to 1, columns that do not": {
        "view": STEPS, "stage": "softmax", "text": "dog street", "source": OTHER,
        "reader": "it", "d_model": 3, "d_k": 3, "seed": 0,
    },
    'Edit the value of "street": no weight moves, every output does': {
        "view": EDIT, "text": WORDS, "source": SAME, "edited": "v", "token": "street",
        "dim": 0, "value": -2.0, "d_model": 4, "d_k": 3, "seed": 0,
    },
    "Let the second word tie with the first: even a cold lookup cannot choose": {
        "view": HARD, "text": "wet wet street", "source": OTHER, "reader": "it",
        "temperature": 0.01, "d_model": 4, "d_k": 3, "seed": 4,
    },
    "Which key would be missed most? Not the one with the most weight": {
        "view": STEPS, "stage": "sum", "text": WORDS, "source": SAME, "query": "it",
        "d_model": 4, "d_k": 3, "seed": 2,
    },
}  # fmt: skip


def choose_words(c: Controls) -> tuple[str, str | None]:
    """Return the text that is read, and the one that reads where it is another."""
    text = c.words(WORDS)
    if c.choice("Queries come from", "source", [SAME, OTHER]) == SAME:
        return text, None
    return text, c.words(READERS, label="Words that read (queries)", name="reader")


def choose_stage(c: Controls) -> str:
    """Return the stage, from six steps with a button back and one forward."""
    names = list(STAGES)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        back = st.container(width="content")
        with st.container(width="content"):
            stage = c.choice("Stage", "stage", names, shown=STAGES.get)
        place = names.index(stage)
        with back:
            _step("Back", "arrow_back", names[max(place - 1, 0)], at_end=place == 0)
        last = len(names) - 1
        with st.container(width="content"):
            following = names[min(place + 1, last)]
            _step("Next", "arrow_forward", following, at_end=place == last)
    return stage


def choose_cell(c: Controls, seen: Any, stage: str) -> tuple[Any, str]:
    """Return the cell whose arithmetic is read, and the vector that is projected."""
    from core.arithmetic import Cell

    vector, query, key, dimension = "q", 0, 0, 0
    if stage == "project":
        vector = c.choice("Project to", "vector", list(_NAMES), shown=_NAMES.get)
    if stage != "project" or vector == "q":
        reads = "Token" if stage == "project" else "Query (reads)"
        query = _pick(c, reads, "query", seen.query_labels, _READER)
    if stage not in ("project", "sum") or vector != "q":
        is_read = "Token" if stage == "project" else "Key (is read)"
        key = _pick(c, is_read, "key", seen.key_labels, _READ)
    if stage in ("project", "weigh", "sum"):
        dimension = _dimension(c, seen)
    return Cell(query, key, dimension), vector


def draw_stage(seen: Any, stage: str, cell: Any, vector: str) -> None:
    """Draw the matrices of a stage, and below them how one cell came about."""
    from core import arithmetic, lookup_panels, lookup_story

    told = arithmetic.cell_arithmetic(seen, stage, cell, vector=vector)
    st.markdown(f"${lookup_story.stage_formula(seen, stage, vector)}$")
    parts.sentence(_started(lookup_story.stage_words(seen, stage)))
    sentence = _started(lookup_story.stage_sentence(seen, stage, cell, vector))
    panels = lookup_panels.stage_panels(seen, stage, cell, vector)
    panel_row.draw(panels, key=f"qkv_{stage}", alt=sentence)
    parts.sentence(sentence)
    _random_badge()
    with st.container(border=True):
        parts.sentence(_started(told.sentence))
        st.latex(told.latex)
        parts.sentence(_started(lookup_story.index_sentence(seen, stage, cell, vector)))
    latex, program = st.columns(2)
    latex.code(told.latex, language="latex", wrap_lines=True)
    program.code(told.python, language="python", wrap_lines=True)
    if stage == "sum" and len(seen.key_labels) > 1:
        _draw_influence(seen, cell.query)
    _look_inside(seen)


def _draw_influence(seen: Any, query: int) -> None:
    from core import lookup_panels, lookup_story

    sentence = _started(lookup_story.influence_sentence(seen, query))
    panels = lookup_panels.influence_panels(seen, query)
    panel_row.draw(panels, key="qkv_influence", alt=sentence)
    parts.sentence(sentence)


def choose_edit(c: Controls, seen: Any) -> Any:
    """Return which number of which vector is replaced, and by what."""
    from core.lookup import Edit

    vector = c.choice("Edit the", "edited", ["k", "q", "v"], shown=_NAMES.get)
    labels = seen.query_labels if vector == "q" else seen.key_labels
    token = _pick(c, f"Token whose {_NAMES[vector]} is edited", "token", labels, _READ)
    dimension = _dimension(c, seen)
    steps = [half / 2 for half in range(-8, 9)]
    return Edit(vector, token, dimension, c.listed("New number", "value", steps, -2.0))


def draw_edit(seen: Any, edited: Any, edit: Any) -> None:
    """Draw the edited vectors, and how far each weight and output moved."""
    from core import lookup, lookup_panels, lookup_story

    moved = lookup.movement(seen, edited)
    sentence = _started(lookup_story.edit_sentence(seen, edit, moved))
    panel_row.draw(
        lookup_panels.edit_panels(edited, moved, edit), key="qkv_edit", alt=sentence
    )
    parts.sentence(sentence)
    if edit.which == "v":
        parts.sentence(_started(lookup_story.value_sentence(seen, edit, moved)))
    _random_badge()
    parts.look_inside(
        "qkv",
        [lookup.look_up, lookup.movement],
        {"change of weights": moved.weights, "change of output": moved.outputs},
    )


def choose_temperature(c: Controls) -> float:
    """Return the temperature, from near 0 to large."""
    from core.lookup import TEMPERATURES

    return c.listed(
        "Temperature",
        "temperature",
        list(TEMPERATURES),
        1.0,
        shown="{:g}".format,
        help_text="Divides the scores once more, beside √d_k. 1 is the paper's.",
    )


def choose_query(c: Controls, seen: Any) -> int:
    """Return the query whose lookup is drawn."""
    return _pick(c, "Query (reads)", "query", seen.query_labels, _READER)


def draw_hard(seen: Any, query: int) -> None:
    """Draw one query's hard lookup beside its soft one, over all temperatures."""
    from core import charts, lookup, lookup_panels, lookup_story
    from core.charts import tidy

    st.markdown(f"${lookup_story.HARD_FORMULA}$")
    hard = lookup.hard_lookup(seen.scores)
    swept = lookup.temperature_sweep(seen, query)
    sentence = _started(lookup_story.hard_sentence(seen, hard, query))
    panels = lookup_panels.hard_panels(seen, hard, query)
    panel_row.draw(panels, key="qkv_hard", alt=sentence)
    parts.sentence(sentence)
    curves = {
        "Largest weight": (swept.largest_weight, "largest weight", 1.0),
        "Distance from the hard lookup": (
            swept.distance,
            "distance of the output",
            charts.nice_limit(float(swept.distance.max())),
        ),
    }
    said = _started(lookup_story.sweep_sentence(swept, len(seen.key_labels)))
    columns = st.columns(2)
    for column, (title, drawn) in zip(columns, curves.items(), strict=True):
        numbers, y_title, top = drawn
        with column:
            parts.bare_chart(
                charts.temperature_curve,
                tidy.temperature_frame(
                    swept.temperatures, numbers, chosen=seen.temperature
                ),
                key=f"qkv_{y_title}",
                alt=said,
                title=title,
                y_title=y_title,
                y_domain=(0.0, top),
            )
    parts.sentence(said)
    _random_badge()
    parts.look_inside(
        "qkv",
        [lookup.hard_lookup, lookup.temperature_sweep],
        {"scores": seen.scores, "temperatures": swept.temperatures},
    )


def predict(seen: Any, shown: str, again: Any) -> None:
    """Ask what a new number in a vector moves that the page does not show edited.

    Args:
        seen: The lookup before the edit.
        shown: The vector whose edit is shown, "q", "k" or "v"; "k" where none is.
        again: ``edit -> Lookup``: the same lookup with a number edited.
    """
    from core import lookup_story

    asked = None if len(seen.query_labels) == 1 else _telling(seen, shown, again)
    if asked is None:
        parts.note(
            "No question is asked here: with so few words, or with numbers that are 0, "
            "an edit would not tell one row from every row."
        )
        return
    edit, moved = asked
    answers = lookup_story.MOVED
    choices = [parts.Choice(answers[answer], _HINTS[answer]) for answer in answers]
    labels = seen.query_labels if edit.which == "q" else seen.key_labels
    label = parts.plain(f'"{labels[edit.token]}"')
    parts.predict(
        "qkv_moves",
        f"One number of the {_NAMES[edit.which]} of {label} grows by 1. What moves?",
        choices,
        list(answers).index(lookup_story.what_moves(moved)),
        f"Measured: {lookup_story.moved_sentence(moved)}.",
    )


def _telling(seen: Any, shown: str, again: Any) -> tuple[Any, Any] | None:
    """Return the first edit whose reach is one of the answers, and what it moves."""
    from core import lookup, lookup_story

    for which in _OTHER_VECTORS[shown]:
        for edit in lookup.telling_edits(seen, which)[:_MOST_TRIED]:
            moved = lookup.movement(seen, again(edit))
            if lookup_story.what_moves(moved) in _HINTS:
                return edit, moved
    return None


def _step(label: str, icon: str, stage: str, *, at_end: bool) -> None:
    st.button(
        label,
        icon=f":material/{icon}:",
        icon_position="right" if label == "Next" else "left",
        key=f"qkv_{label.lower()}",
        disabled=at_end,
        on_click=parts.set_controls,
        args=("qkv", {"stage": stage}),
    )


def _pick(
    c: Controls, label: str, name: str, labels: Sequence[str], wanted: str
) -> int:
    preset = labels.index(wanted) if wanted in labels else 0
    return labels.index(c.menu(label, name, labels, preset=preset))


def _dimension(c: Controls, seen: Any) -> int:
    return c.whole("Dimension", "dim", 0, seen.q.shape[1] - 1, 0)


def _look_inside(seen: Any) -> None:
    from core import attention, lookup

    parts.look_inside(
        "qkv",
        [lookup.look_up, attention.scaled_dot_product_attention],
        {"q": seen.q, "k": seen.k, "v": seen.v, "scores": seen.scores},
    )


def _random_badge() -> None:
    parts.random_weights_badge("Embeddings and projections (to one decimal)")


def _started(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
