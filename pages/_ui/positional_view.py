"""The page of positional encodings: its pictures, one a tab, and its questions."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages._ui import parts
from pages._ui.controls import Controls
from pages._ui.map_view import draw_map, marked_rows, offer_cells

TABS = [
    "Matrix",
    "Curves",
    "Similarity",
    "Shift",
    "Learned table",
    "Permute",
    "Binary counter",
]
BASES = [10, 100, 1_000, 10_000, 100_000, 1_000_000]
MOST_CURVES = 6  # as many as there are colours
_SHIFT_DRAWN = 8  # dimensions, so that each 2 x 2 rotation can be read
COUNTED = 16  # positions beside the binary counter, four digits
SENTENCE = "the cat saw a dog"
HEIGHT = 400
_ORDERS = ["swap", "reverse", "shuffle"]
_SWAP_CHOICES = {  # by what core calls the fate of the outputs
    "each output follows its token": parts.Choice(
        "Each output follows its word: two change places, the rest stays.",
        "Nothing here tells a place from another, yet the outputs changed.",
    ),
    "every output stays at its place": parts.Choice(
        "Nothing: every output stays as it is.",
        "The mean over all outputs stays; each one follows its word.",
    ),
    "outputs change": parts.Choice(
        "Every output changes: the layer reads from left to right.",
        "Weights come from the tokens alone; no place stands in the formula.",
    ),
}
_ALT = {  # of pictures whose row a slider moves; a new one would build them anew
    "similarity": "Dot products of every position with every other, one row framed; "
    "the sentence below gives its numbers.",
    "row": "Dot products of that position; the sentence below gives their numbers.",
    "digits": "Positions in binary, one framed; the sentence below reads its digits.",
    "counted": "Sinusoids of the same positions; the sentence below gives the "
    "framed ones.",
}
EXPERIMENTS = {
    "Give nine tokens to a learned table of eight": {
        "view": "Learned table",
        "max_len": 8,
        "tokens": 9,
    },
    "Make the width odd: the last sine has no cosine to turn with": {
        "view": "Shift",
        "d_model": 7,
        "base": 10,
        "offset": 5,
    },
    "Make width and base small: position 19 looks like position 0 again": {
        "view": "Similarity",
        "d_model": 4,
        "base": 10,
        "length": 20,
        "position": 0,
    },
}
LIMITS = """
- **Defined past any trained length** is not *works past it*: no model is trained here,
  and nothing on this page says that sinusoids carry over to longer sequences.
- The learned table is shown at its random start; training would change it.
- Similarity compares bare encodings; a model adds them to tokens and projects the sum.
"""


def choose_order(c: Controls) -> tuple[str, str]:
    """Return the words and how they are reordered."""
    text = c.words(SENTENCE)
    how = c.choice(
        "New order", "order", _ORDERS, help_text="Swap exchanges first and last word."
    )
    return text, how


def draw_matrix(table: Any, waves: Any) -> None:
    """Draw the sinusoids, a row a position and a column a dimension."""
    from core import positional, positional_story

    _map(
        table,
        "matrix",
        positional_story.encoding_sentence(table, waves),
        title="Sinusoids, added to the tokens row by row",
    )
    _inside(
        "matrix",
        [positional.sinusoidal_encoding, positional.angular_frequencies],
        {"sinusoidal_encoding": table},
    )


def draw_curves(table: Any, waves: Any, dimensions: Sequence[int]) -> None:
    """Draw chosen columns of the matrix as curves over the positions."""
    from core import charts, positional, positional_story
    from core.charts import tidy

    if not dimensions:
        parts.note("Choose at least one dimension in the sidebar.")
        return
    chosen = sorted(dimensions)
    curves = {f"{d} ({'cosine' if d % 2 else 'sine'})": table[:, d] for d in chosen}
    parts.picture(
        charts.curves,
        tidy.curves_frame(curves),
        key="positional_curves",
        caption=positional_story.wavelength_sentence(waves, chosen),
        series=tuple(curves),
        x_domain=_all_of(table),
        title="Columns of the matrix, by dimension",
        height=HEIGHT,
    )
    _inside("curves", [positional.wavelengths], {"wavelengths": waves})


def draw_similarity(similarity: Any, position: int) -> None:
    """Draw the dot products of all positions, and the row of one of them."""
    from core import charts, positional, positional_story
    from core.charts import tidy

    ends = positional_story.similarity_ends(similarity)
    caption = positional_story.similarity_sentence(similarity, position)
    left, right = st.columns(2)
    with left:
        draw_map(
            similarity,
            key="positional_similarity",
            alt=_ALT["similarity"],
            marked=position,
            kind="similarity",
            title="PE · PEᵀ: every position with every other",
            limit=ends[1],
            height=HEIGHT,
        )
    with right:
        parts.bare_chart(
            charts.curves,
            tidy.curves_frame({"row of the position": similarity[position]}),
            key="positional_similarity_row",
            alt=_ALT["row"],
            series=("row of the position",),
            x_domain=_all_of(similarity),
            y_title="dot product",
            y_domain=ends,
            title="One row of it",
            height=HEIGHT,
        )
    parts.sentence(caption)
    offer_cells(similarity, "positional_similarity", kind="similarity")
    _inside("similarity", [positional.position_similarity], {"PE · PEᵀ": similarity})


def draw_shift(shift: Any, offset: int, num_positions: int) -> None:
    """Draw the matrix of a shift, and by how much it misses, in numbers."""
    from core import positional, positional_story

    width = len(shift.missed)
    corner = shift.matrix[:_SHIFT_DRAWN, :_SHIFT_DRAWN]
    picture, numbers = st.columns([3, 1], vertical_alignment="center")
    with picture:
        _map(
            corner,
            "shift",
            positional_story.shift_sentence(shift, offset, num_positions),
            kind="map",
            title=positional_story.shift_title(width, len(corner)),
            show_values=True,
        )
    for name, number in positional_story.shift_numbers(shift).items():
        numbers.metric(name, number)
    _inside(
        "shift", [positional.shift_matrix, positional.measure_shift], shift._asdict()
    )


def draw_tables(tables: Any, max_len: int) -> None:
    """Draw sinusoids beside a learned table, grey where it has no vector."""
    from core import positional, positional_story, probes

    num_tokens = len(tables.sinusoidal)
    parts.random_weights_badge("The learned vectors")
    left, right = st.columns(2)
    with left:
        _map(
            tables.sinusoidal,
            "sinusoids",
            positional_story.table_sentence(num_tokens, num_tokens),
            title="Sinusoids",
            height=310,
        )
    with right:
        _map(
            tables.learned,
            "learned",
            positional_story.table_sentence(min(num_tokens, max_len), num_tokens),
            title="Learned table at its start",
            limit=0.05,
            height=310,
        )
    if tables.refusal:
        said = positional_story.overflow_sentence(max_len, num_tokens)
        st.warning(parts.plain(said), icon=":material/block:")
    _inside(
        "learned",
        [positional.LearnedPositionalEncoding, probes.position_tables],
        {"sinusoidal": tables.sinusoidal, "learned": tables.learned},
    )


def draw_order(probe: Any, before: Sequence[str], after: Sequence[str]) -> None:
    """Draw how far outputs move when tokens do, without and with positions."""
    from core import charts, positional_story, probes
    from core.charts import tidy

    numbers = positional_story.order_numbers(probe)
    parts.random_weights_badge("Embeddings and weights")
    st.markdown(parts.plain(f"{' '.join(before)}  →  {' '.join(after)}"))
    parts.picture(
        charts.comparison,
        tidy.comparison_frame(numbers),
        key="positional_order",
        caption=positional_story.order_sentence(probe),
        series=tuple(next(iter(numbers.values()))),
        domain=(1e-19, 1e3),
        log=True,
        digits=".2~g",
        x_title="largest distance from before the reordering (log scale)",
        title="How far outputs move when the tokens do",
        height=290,
    )
    _inside(
        "order",
        [probes.permutation_distances, probes.probe_order],
        probe.plain._asdict(),
    )


def draw_counter(digits: Any, table: Any, waves: Any, position: int) -> None:
    """Draw the digits of a binary counter beside the sinusoids, row by row."""
    from core import charts, positional, positional_story
    from core.charts import tidy

    caption = positional_story.counter_sentence(digits, table, position)
    left, right = st.columns([1, 2])
    with left:
        parts.bare_chart(
            charts.digits,
            marked_rows(tidy.digits_frame(digits), position),
            key="positional_digits",
            alt=_ALT["digits"],
            height=HEIGHT,
        )
    with right:
        draw_map(
            table,
            key="positional_counted",
            alt=_ALT["counted"],
            marked=position,
            kind="encoding",
            title="Sinusoids of the same positions",
            height=HEIGHT,
        )
    parts.sentence(f"{caption} {positional_story.wavelength_sentence(waves, [0, -1])}")
    _inside("counter", [positional.binary_counter], {"binary_counter": digits})


def ask_about_order() -> None:
    """Ask what a swap does to the outputs of a layer without positions."""
    from core import positional_story, probes, tokens

    choices = list(_SWAP_CHOICES.values())
    picked = parts.ask_prediction(
        "positional_swap",
        f"A layer without positions reads “{SENTENCE}”. The first and the last word "
        "change places. What do the outputs do?",
        choices,
    )
    if picked is None:
        return
    words = tokens.split_into_tokens(SENTENCE)
    order = probes.new_order(len(words), "swap")
    plain = probes.probe_order(
        tokens.token_embeddings(words, 64, 0), order, seed=0
    ).plain
    right = list(_SWAP_CHOICES).index(positional_story.fate_of_outputs(plain))
    parts.judge_prediction(
        choices, picked, right, positional_story.swap_sentence(plain)
    )


def ask_about_mask(probe: Any) -> None:
    """Ask whether a causal mask lets order in where no positions are added."""
    from core import positional_story

    parts.predict(
        "positional_causal",
        "Still no positions, but a causal mask. Do outputs only follow their tokens?",
        [
            parts.Choice(
                "Yes: without positions a layer cannot know the order.",
                "A causal mask leaks order: position t reads t + 1 tokens.",
            ),
            parts.Choice(
                "No: the output of a token depends on where it stands.",
                "In this order no output depends on its place.",
            ),
        ],
        0 if positional_story.follows(probe.causal) else 1,
        positional_story.leak_sentence(probe.causal),
    )


def _all_of(table: Any) -> tuple[int, int]:
    return 0, max(len(table) - 1, 1)  # an axis needs two ends


def _map(table: Any, name: str, caption: str, **options: Any) -> None:
    settings = {"kind": "encoding", "height": HEIGHT} | options
    draw_map(table, key=f"positional_{name}", alt=caption, **settings)
    parts.sentence(caption)
    offer_cells(table, f"positional_{name}", kind=settings["kind"])


def _inside(name: str, functions: Sequence[Any], shapes: dict[str, Any]) -> None:
    parts.look_inside(f"positional_{name}", functions, shapes)
