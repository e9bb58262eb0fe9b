"""The bottleneck page's own pieces: the two networks and one answer, a tab each."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts
from pages._ui.controls import Controls

VIEWS = ["Two networks", "Length", "Alignment", "Change a state", "Context size"]
ATTENTIONS = {"none": "none", "additive": "additive", "dot": "dot product"}
HEIGHT = 400
_LETTERS = 16
_SOURCE_HELP = f"1 to {_LETTERS} letters from a to z, to be written in reverse."
CHANGES = {
    "zeros": "zeros",
    "scaled": "scaled",
    "another source": "another source's state",
}
_FACTORS = [-2.0, -1.0, 0.5, 2.0, 4.0]
_FRAMED = "Framed letters are wrong."
_ONE_VECTOR = (
    "Nothing else passes: the decoder starts from these {size} numbers, however long "
    "the source is."
)
_ALL_STATES = (
    "The decoder starts from the last state and reads a new mixture of all of them at "
    "each step: {count} vectors stand ready here, one for each letter."
)
_READ_BY = {
    "additive": "The state before the step asks (at step 0 the start), and what is "
    "read enters the step.",
    "dot": "The state of the step asks, and what is read joins it to write the letter.",
}
_SCORES = {
    "additive": r"\text{score}(s_{t-1}, h_j) = v^\top \tanh(W s_{t-1} + U h_j)",
    "dot": r"\text{score}(s_t, h_j) = s_t^\top h_j",
}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "Three letters without attention: the one vector is enough": {
        "view": "Two networks", "attention": "none", "source": "sea", "cut": 0,
    },
    "Twelve letters without attention: where does it go wrong?": {
        "view": "Two networks", "attention": "none", "source": "abcdefghijkl", "cut": 0,
    },
    "Four e's in one word: do the rows tell them apart?": {
        "view": "Alignment", "score": "additive", "source": "seventeen",
    },
    "Without attention, set the first state to zeros: what moves?": {
        "view": "Change a state", "changed": "none", "source": "encoder",
        "position": 0, "how": "zeros",
    },
}  # fmt: skip


class Shown(NamedTuple):
    """What the controls of one answer say."""

    attention: str
    source: str
    step: int = 0


class StateChange(NamedTuple):
    """What the controls of a changed state say."""

    position: int
    how: str
    factor: float
    other: str


class Answered(NamedTuple):
    """One source, read and answered by a shipped model.

    Attributes:
        model: The model.
        origin: What made it, as a sentence.
        reading: What it made of the source.
        sources: Labels of the source letters.
        outputs: Labels of the letters written.
    """

    model: Any
    origin: str
    reading: Any
    sources: list[str]
    outputs: list[str]


def choose_source(c: Controls, *, model: str, preset: str) -> Shown:
    """Return the source and the kind of attention.

    Args:
        c: The controls.
        model: Name of the control of the attention: each view opens on its own.
        preset: What it opens on; the map has no choice "none".
    """
    mapped = model == "score"
    names = [name for name in ATTENTIONS if not (mapped and name == "none")]
    attention = c.menu(
        "Attention",
        model,
        names,
        preset=names.index(preset),
        shown=ATTENTIONS.__getitem__,
    )
    return Shown(attention, c.line("Source", "source", "encoderdecoder", _SOURCE_HELP))


def choose_cut(c: Controls, shown: Shown) -> Shown:
    """Return the source without its last letters, as many as are left out."""
    out = c.whole("Letters left out at the end", "cut", 0, _length(shown) - 1, 0)
    return shown._replace(source=shown.source.strip()[:-out]) if out else shown


def choose_step(c: Controls, shown: Shown) -> int:
    """Return the step of the decoder that is drawn, from 0; the last writes the end."""
    return c.whole("Step of the decoder, from 0", "step", 0, _length(shown), 0)


def choose_change(c: Controls, shown: Shown) -> StateChange:
    """Return which encoder state is changed, and to what."""
    last = _length(shown) - 1
    position = c.whole("Encoder state, from 0", "position", 0, last, 4)
    how = c.menu("Becomes", "how", list(CHANGES), shown=CHANGES.__getitem__)
    factor, other = 2.0, ""
    if how == "scaled":
        factor = c.listed("Factor", "factor", _FACTORS, 2.0)
    if how == "another source":
        other = c.line("Other source", "other", "transform", _SOURCE_HELP)
    return StateChange(position, how, factor, other)


def answered(shown: Shown) -> Answered:
    """Return the shipped model's answer to a typed source.

    Raises:
        ValueError: If the text is no source.
    """
    from core import bottleneck

    return _answered(shown.attention, bottleneck.text_task().read(shown.source))


@st.cache_resource(max_entries=64, show_spinner=False)
def _answered(attention: str, source: tuple[str, ...]) -> Answered:
    from core import bottleneck, bottleneck_answers, bottleneck_reading
    from core.tokens import token_labels

    model, origin = bottleneck.read_model(attention)
    task = bottleneck.text_task()
    reading = bottleneck_reading.read_source(model, task, source)
    outputs = bottleneck_answers.output_labels(reading)
    return Answered(model, origin, reading, token_labels(source), outputs)


def draw_networks(shown: Shown) -> None:
    """Draw encoder, context and decoder, with what the chosen step reads."""
    from core import bottleneck, bottleneck_answers, charts
    from core.charts import two_rnns
    from core.charts.diagram import diagram_frame

    seen = answered(shown)
    reading, step = seen.reading, min(shown.step, len(seen.outputs) - 1)
    size = bottleneck.HIDDEN_SIZE
    weights = None if reading.weights is None else reading.weights[step].tolist()
    nodes, edges = two_rnns.two_rnns(
        reading.source,
        reading.answer,
        hidden_size=size,
        context_size=size,
        step=step,
        weights=weights,
        joins_letter=shown.attention == "dot",
        wrong=reading.wrong,
    )
    said = [_answer(seen)]
    if reading.wrong:
        said.append(_FRAMED)
    if weights is None:
        said.append(_ONE_VECTOR.format(size=size))
    else:
        said.append(_ALL_STATES.format(count=len(reading.source)))
        said.append(_READ_BY[shown.attention])
        said.append(bottleneck_answers.step_sentence(reading, step))
    parts.picture(
        charts.diagram,
        diagram_frame(nodes, edges),
        key="bottleneck_networks",
        caption=" ".join(said),
        x_domain=two_rnns.x_domain(reading.source, reading.answer),
        y_domain=two_rnns.Y_DOMAIN,
        title=f"Two recurrent networks, attention: {ATTENTIONS[shown.attention]}",
        height=HEIGHT,
    )
    st.caption("Trained weights.", help=parts.plain(seen.origin))
    _inside(seen, "networks")


def draw_alignment(shown: Shown) -> None:
    """Draw the weights of every output on every source letter, with its numbers."""
    from core import bottleneck_answers, charts
    from core.charts import tidy

    seen = answered(shown)
    st.latex(_SCORES[shown.attention])
    said = [_answer(seen), *bottleneck_answers.alignment_sentences(seen.reading)]
    parts.picture(
        charts.heatmap,
        tidy.matrix_frame(
            seen.reading.weights, row_labels=seen.outputs, column_labels=seen.sources
        ),
        key="bottleneck_alignment",
        caption=" ".join(said),
        title="Weight of each output on each encoder state",
        row_title="output as query (reads)",
        show_values=True,
        height=HEIGHT - 50,
    )
    with st.expander("Row by row", icon=":material/table_rows:"):
        rows = bottleneck_answers.row_numbers(seen.reading)
        header = ("output", "entropy, bits", "largest weight on", "that weight")
        plain = [tuple(map(parts.plain, row)) for row in rows]
        st.markdown(parts.table(header, plain))
    _inside(seen, "alignment")


def draw_change(shown: Shown, change: StateChange) -> None:
    """Draw which outputs move when one encoder state is replaced."""
    from core import bottleneck, bottleneck_answers, bottleneck_reading, charts
    from core.charts import tidy

    seen, task = answered(shown), bottleneck.text_task()
    position = min(change.position, len(seen.sources) - 1)
    other = task.read(change.other) if change.how == "another source" else ()
    found = bottleneck_reading.change_state(
        seen.model,
        task,
        seen.reading,
        position,
        how=change.how,
        factor=change.factor,
        other=other,
    )
    becomes = {"scaled": f"times {change.factor:g}", "zeros": "set to zeros"}
    done = becomes.get(change.how, f'taken from "{task.write(other)}"')
    said = bottleneck_answers.change_sentence(seen.reading, found, position, done)
    state = bottleneck_answers.state_words(seen.reading, position, done)
    parts.picture(
        charts.movement,
        tidy.movement_frame(found.moved, seen.outputs),
        key="bottleneck_change",
        caption=f"{_answer(seen)} {said}",
        x_title="output",
        title=f"How far each output moves: {state}",
        height=HEIGHT - 40,
    )
    st.caption(
        "Distance: half the sum of the changes of all probabilities, from 0 to 1. The "
        "decoder reads the same letters before and after. The last state is also what "
        "it starts from."
    )
    _inside(seen, "change")


def _length(shown: Shown) -> int:
    """Return how many letters the source has; text that is none counts as one."""
    return min(max(len(shown.source.strip()), 1), _LETTERS)


def _answer(seen: Answered) -> str:
    from core import bottleneck, bottleneck_answers

    task = bottleneck.text_task()
    return bottleneck_answers.answer_sentence(seen.reading, task)


def _inside(seen: Answered, view: str) -> None:
    from core import bottleneck_reading, recurrent_seq2seq

    model = recurrent_seq2seq.RecurrentEncoderDecoder
    functions: dict[str, list[Any]] = {
        "networks": [model.encode, model.decode],
        "alignment": [
            recurrent_seq2seq.additive_attention,
            bottleneck_reading.spread_of,
        ],
        "change": [bottleneck_reading.change_state],
    }
    memory = seen.reading.memory
    shapes = {
        "encoder states": memory.states,
        "context vector": memory.final,
        "distributions": seen.reading.distributions,
    }
    if seen.reading.weights is not None:
        shapes["weights"] = seen.reading.weights
    parts.look_inside(f"bottleneck_{view}", functions[view], shapes)
