"""The recurrence page's own pieces: its pictures, one a tab, and its table."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts, timing_view
from pages._ui.controls import Controls

VIEWS = ["Path", "Time", "Memory", "Theory and measurement"]
WIDTHS = [4, 8, 16]  # of the Jacobians
LENGTHS = [10, 20, 30, 40, 50, 60]
BIASES = [-2, -1, 0, 1, 2, 3, 4, 5]
NUM_HEADS = [1, 2, 4, 8]
SEQ_LENS = [2**exponent for exponent in range(4, 15)]  # of the memory
HEIGHT = 400
_FLOOR = 1e-20
_START = "LSTM, PyTorch's start"
_PRODUCT = (
    r"\frac{\partial s_t}{\partial x_0} = J_t \, J_{t-1} \cdots J_1 \,"
    r"\frac{\partial s_0}{\partial x_0} \qquad h_t \text{ is part of } s_t"
    r"\text{ (LSTM: } h \text{ and } c\text{)}"
)
_BYTES = (1e2, 1e11)
_MOST_MADE = 512  # longest sequence whose scores are really made here
_SHORT, _LONG, _DISTANCE = 20, 80, 10  # of the prediction
_COUNTED = (32, 64)  # lengths at which chains of operations are counted
_HEADER = (
    "layer", "longest path",
    f"shortest chain of operations, n = {_COUNTED[0]} → {_COUNTED[1]}",
    "steps in a row", "longest chain of operations", "cost", "measured time",
)  # fmt: skip
ANSWERS = {  # what is left of the norm, n times 4
    1.0: parts.Choice(
        "It stays as it is",
        "The path stays one step, but every output shares its weights among more "
        "tokens.",
    ),
    1 / 4: parts.Choice("It falls to about a quarter", ""),
    1 / 16: parts.Choice(
        "It falls to about a sixteenth",
        "n² counts the scores of the whole layer; one output spreads one row of them.",
    ),
    1e-6: parts.Choice(
        "It falls below a millionth, as in the RNN",
        "That takes a product of many steps; attention reads token 0 in one.",
    ),
}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "Close the forget gate (bias -2): the LSTM fades faster than the plain RNN": {
        "view": "Path", "length": 60, "width": 16, "forget_bias": -2, "seed": 0,
    },
    "Open it wide (bias 5): the LSTM carries token 0 through 60 tokens": {
        "view": "Path", "length": 60, "width": 16, "forget_bias": 5, "seed": 0,
    },
    "Take d = 128: attention passes the LSTM at a longer sequence than at d = 16": {
        "view": "Time", "timed_width": 128, "what": "forward",
    },
}  # fmt: skip


class Shown(NamedTuple):
    """What the controls of the path say."""

    seq_len: int
    width: int
    forget_bias: int
    seed: int


def choose_path(c: Controls) -> Shown:
    """Return the settings of the Jacobians."""
    return Shown(
        seq_len=c.listed("Tokens, n", "length", LENGTHS, 60),
        width=c.listed("Width of tokens and states, d", "width", WIDTHS, 16),
        forget_bias=c.listed(
            "Forget bias of the LSTM",
            "forget_bias",
            BIASES,
            3,
            help_text="Added inside the forget gate at the start. PyTorch draws it "
            "near 0.",
        ),
        seed=c.seed(),
    )


def norms(
    model: str, seq_len: int, width: int, forget_bias: float | None, seed: int
) -> Any:
    """Return the norms of one model over distance; those of a cell keep their start."""
    if model == "attention":
        return _norms(model, seq_len, width, None, seed)
    return _norms(model, LENGTHS[-1], width, forget_bias, seed)[:, :seq_len]


@st.cache_resource(max_entries=64, show_spinner=False)
def _norms(
    model: str, seq_len: int, width: int, forget_bias: float | None, seed: int
) -> Any:
    from core import path_length

    return path_length.jacobian_norms(
        model, seq_len=seq_len, width=width, forget_bias=forget_bias, seed=seed
    )


def draw_path(shown: Shown) -> None:
    """Draw the norm of the Jacobian over distance, four layers and one reference."""
    from core import charts, forget_bias, path_length, recurrence_story, recurrent
    from core.charts import growth_frames

    biases = {"lstm": shown.forget_bias}
    rest = shown.seq_len, shown.width
    found = {
        model: norms(model, *rest, biases.get(model), shown.seed)
        for model in path_length.MODELS
    }
    start = norms("lstm", *rest, None, shown.seed)
    names = recurrence_story.NAMES
    said = recurrence_story.path_sentence(found)
    st.latex(_PRODUCT)
    parts.picture(
        charts.reach,
        growth_frames.reach_frame(
            {names[model]: by for model, by in found.items()},
            references={_START: start},
            floor=_FLOOR,
        ),
        key="recurrence_path",
        caption=said,
        references=(_START,),
        x_domain=(0, LENGTHS[-1] - 1),
        y_domain=(_FLOOR, 10.0),
        title="Influence of token 0 on output t: median and 10–90 % of "
        f"{path_length.NUM_DRAWS} draws",
        height=HEIGHT,
    )
    floor = recurrence_story.floor_sentence(found, _FLOOR)
    if floor:
        parts.sentence(floor)
    runs = forget_bias.read_runs()
    trained = recurrence_story.start_sentence(runs.runs, forget_bias.RECIPE)
    st.markdown(parts.plain(trained), help=parts.plain(runs.origin))
    parts.random_weights_badge("Weights and tokens")
    parts.look_inside(
        "recurrence",
        [
            recurrent.rnn_units,
            recurrent.lstm_units,
            recurrent.step,
            path_length.cell_jacobians,
            path_length.attention_jacobians,
        ],
        {
            "norms of one layer, (draws, T)": found["lstm"],
            "heads of attention": path_length.NUM_HEADS,
        },
    )


def draw_memory(seq_len: int, num_heads: int, width: int) -> None:
    """Draw the bytes of scores and of hidden states against length."""
    from core import attention, charts, layer_memory, recurrence_story
    from core.charts import growth_frames

    kinds = "scores: heads · n² · 4", "hidden states: n · d · 4"
    made = _real_bytes(width, num_heads)
    worked = layer_memory.worked_bytes(SEQ_LENS, num_heads=num_heads, width=width)
    said = recurrence_story.memory_sentences(seq_len, num_heads, width)
    parts.picture(
        charts.growth,
        growth_frames.growth_frame(
            dict(zip(kinds, made, strict=True)),
            fits=dict(zip(kinds, worked, strict=True)),
            chosen={"chosen n": seq_len},
        ),
        key="recurrence_memory",
        caption=" ".join(said),
        series=kinds,
        x_domain=(SEQ_LENS[0], SEQ_LENS[-1]),
        y_domain=_BYTES,
        y_title="memory",
        unit="bytes",
        title="Memory of one sequence: points measured, dashes the formula",
        height=HEIGHT,
    )
    parts.look_inside(
        "recurrence",
        [
            layer_memory.score_bytes,
            layer_memory.state_bytes,
            layer_memory.real_bytes,
            attention.scaled_dot_product_attention,
        ],
        {"scores": f"({num_heads}, {seq_len}, {seq_len})"},
    )


def draw_theory(width: int, what: str) -> None:
    """Show the table of path, parallelism and cost, with what was measured beside."""
    from core import chains as counting
    from core import recurrence_story, timing

    shipped = timing.read_timings()
    curves = shipped.curves[width, what]
    chains = {model: _chains(model) for model in curves}
    rows = recurrence_story.theory_rows(curves, chains)
    st.markdown(_table(_HEADER, rows), help=parts.plain(shipped.origin))
    setting = timing_view.setting_words(width, what)
    parts.sentence(f"Measured time: the shipped table, {setting}.")
    parts.sentence(recurrence_story.chains_sentence(chains, _COUNTED))
    limit = recurrence_story.limit_sentence(curves)
    if limit:
        parts.sentence(limit)
    parts.look_inside(
        "recurrence",
        [counting.chains, counting.longest_chain, counting.shortest_chain],
        {"d of the measured layers": width},
    )


def predict() -> None:
    """Ask what a longer sequence does to attention's norm; worked out when asked."""
    from core import path_length, recurrence_story

    choices = list(ANSWERS.values())
    picked = parts.ask_prediction(
        "recurrence_predict",
        f"A sequence grows from {_SHORT} to {_LONG} tokens. What happens to "
        f"attention's norm at distance {_DISTANCE}?",
        choices,
    )
    if picked is None:
        return
    left = path_length.fade_with_length(_SHORT, _LONG, distance=_DISTANCE, width=16)
    right = recurrence_story.closest(left, list(ANSWERS))
    reveal = (
        f"Measured: {left:.2f} of it is left, the median of {path_length.MAX_DRAWS} "
        "draws. Both lengths have the same layers and first tokens."
    )
    parts.judge_prediction(choices, picked, right, reveal)


@st.cache_resource(max_entries=32, show_spinner=False)
def _real_bytes(width: int, num_heads: int) -> Any:
    from core import layer_memory

    lengths = [n for n in SEQ_LENS if n <= _MOST_MADE]
    return layer_memory.real_bytes(lengths, width=width, num_heads=num_heads)


@st.cache_resource(max_entries=8, show_spinner=False)
def _chains(model: str) -> Any:
    from core import chains

    return tuple(chains.chains(model, seq_len=n) for n in _COUNTED)


def _table(header: Any, rows: Any) -> str:
    """Return a Markdown table; nothing in its cells is markup."""
    lines = [header, *rows]
    cells = [" | ".join(parts.plain(cell) for cell in line) for line in lines]
    cells.insert(1, " | ".join("---" for _ in header))
    return "\n".join(f"| {line} |" for line in cells)
