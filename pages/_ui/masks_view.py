"""The masks page's own pieces: its tokens, its pictures, one a tab, and its tables."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages._ui import parts
from pages._ui.controls import MOST_TOKENS, Controls

KINDS = [
    "causal",
    "none",
    "padding",
    "causal + padding",
    "sliding window",
    "sliding window + padding",
]
TABS = ["Weights", "Change one token", "PyTorch's conventions", "NaN lab"]
WIDTHS = [1, 2, 4, 8, 16, 32, 64, 128]  # d_k
_SMALL = 8  # cells of longer sequences have no room for their numbers
_SHORT, _TALL = 228, 380  # heights of pictures, in pixels
_SHIFTED = (
    "The diagonal is open because targets are shifted by one: the token at t is an "
    "input when position t predicts token t + 1."
)
ANSWERS = {  # by what core calls the reach of a movement
    "none": "None",
    "its own": "Only its own",
    "some": "Its own and some others",
    "every": "Every output",
}
HINTS = {  # by the right answer and whether too many outputs were picked
    ("none", True): "No query may read it, and its own query has at most one key: one "
    "key gets all the weight, whatever the query.",
    ("its own", False): "Its own output comes from its own query, and that is new.",
    ("its own", True): "Look down its column of the mask: no other query may read it.",
    ("some", False): "Look down its column of the mask: another query may read it, "
    "and mixes in its new value.",
    ("some", True): "Look down its column of the mask: not every query may read it.",
    ("every", False): "Look down its column of the mask: it is open throughout, and "
    "every query mixes in its new value.",
}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "Three real tokens of five, causal + padding: rows 3 and 4 read three keys": {
        "source": "positions", "seq_len": 5, "kind": "causal + padding", "length": 3,
        "view": TABS[0],
    },
    "A window of 2 past two real tokens: which queries are left with nothing?": {
        "source": "positions", "seq_len": 6, "kind": "sliding window + padding",
        "length": 2, "window": 2, "view": TABS[0],
    },
    "A sequence of padding alone: weights 0, not a uniform row": {
        "source": "positions", "seq_len": 6, "kind": "padding", "length": 0,
        "view": TABS[0],
    },
    "No mask, token 3 changed: how many outputs stay?": {
        "source": "positions", "seq_len": 6, "kind": "none", "changed": 3,
        "view": TABS[1],
    },
}  # fmt: skip


def choose_tokens(c: Controls) -> tuple[str | None, int]:
    """Return the text, or None where plain positions are chosen, and their number."""
    if c.choice("Tokens", "source", ["words", "positions"]) == "words":
        return c.words("the cat sat on the mat"), 1
    return None, c.whole("Number of positions, T", "seq_len", 1, MOST_TOKENS, 6)


def choose_sizes(c: Controls, kind: str, seq_len: int) -> dict[str, int]:
    """Return length and window; only those that the mask has are offered."""
    length, window = seq_len, seq_len
    if "padding" in kind:
        length = c.whole("Real tokens; the rest is padding", "length", 0, seq_len, 4)
    if "window" in kind:
        window = c.whole(
            "Window w: keys with |t - s| < w",
            "window",
            1,
            seq_len,
            2,
            help_text="Query t reads itself and w - 1 keys on each side: up to 2w - 1.",
        )
    return {"length": length, "window": window}


def draw_weights(seen: Any, kind: str) -> None:
    """Draw what is allowed, the scores, and the weights before and after."""
    from core import captions

    labels, mask = seen.labels, seen.mask
    summary = captions.mask_sentence(mask)
    scores = captions.scores_sentence(seen.scores, labels, labels)
    before = captions.map_sentence(seen.weights_before, labels, labels)
    first = captions.row_sentence(
        seen.weights_after[0], labels[0], labels, allowed=mask[0]
    )
    left, right = st.columns(2)
    with left:
        _map(mask, labels, "What is allowed", alt=summary, kind="allowed")
        _map(seen.weights_before, labels, "Weights without the mask", alt=before)
    with right:
        _map(seen.scores, labels, "Scores, before the mask", alt=scores, kind="score")
        _map(seen.weights_after, labels, "Weights with the mask", alt=first, mask=mask)
    parts.sentence(f"{summary}; {captions.sums_sentence(seen.blocked)}; {first}.")
    if seen.warning:
        st.warning(parts.plain(seen.warning), icon=":material/block:")
    if "causal" in kind:
        parts.sentence(_SHIFTED)
    if seen.reading_on:
        parts.sentence(
            f"Padding hides keys alone: {_quoted(seen.reading_on)}, padded, reads "
            "on as a query, and the loss drops it."
        )
    parts.random_weights_badge()


def draw_movement(seen: Any, index: int, seed: int) -> None:
    """Draw how far each output moves when one token is replaced."""
    from core import captions, charts, masking
    from core.charts import tidy

    moved, labels = masking.movement_of_outputs(seen, index, seed), seen.labels
    distances, label = moved.distances, labels[index]
    changed = f'Replacing "{label}" (position {index}) by a random token'
    caption = f"{changed}: {captions.movement_sentence(distances, labels)}."
    mask = tidy.matrix_frame(
        seen.mask, kind="allowed", row_labels=labels, column_labels=labels
    )
    left, right = st.columns([1, 2])
    with left:
        parts.bare_chart(
            charts.heatmap,
            mask[mask["key"] == label],
            key="masks_column",
            alt=captions.readers_sentence(seen.mask, index, labels),
            kind="allowed",
            title="Its column: who may read it",
            show_values=True,
            legend=False,
            height=_TALL,
        )
    with right:
        parts.bare_chart(
            charts.movement,
            tidy.movement_frame(distances, labels),
            key="masks_movement",
            alt=caption,
            limit=charts.nice_limit(float(distances.max())),
            height=_TALL,
        )
    parts.sentence(f"{caption} Exactly 0: {_quoted(moved.still) or 'none'}.")
    parts.random_weights_badge()


def draw_conventions(seen: Any) -> None:
    """Draw what PyTorch's layer makes of one mask in three forms."""
    from core import masking, torch_masks

    found = masking.torch_conventions(seen)
    left, right = st.columns(2)
    with left:
        given = "~mask: right"
        if seen.warning:
            given = "~mask: NaN" + ("" if seen.blocked.all() else " or right")
        _torch_map(found.right_weights, seen, given, masking.kept(seen.mask))
        _torch_map(found.float_weights, seen, "0s and 1s: added")
    with right:
        opposite = masking.kept(~seen.mask)
        _torch_map(found.opposite_weights, seen, "mask: the opposite", opposite)
        _what_torch_makes(found, seen)
    function, layer = st.columns(2)
    function.markdown("`F.scaled_dot_product_attention`: **1 = may attend**")
    function.code(_as_digits(found.function_mask), language=None)
    layer.markdown("`nn.MultiheadAttention`: **1 = may NOT attend**")
    layer.code(_as_digits(found.layer_mask), language=None)
    st.markdown("A program that runs; `from_function` and `from_layer` agree:")
    st.code(torch_masks.two_conventions_code(), language="python")


def predict(seen: Any, seed: int) -> None:
    """Ask which outputs the last token moves; the mask on the page decides."""
    from core import captions, masking

    last = len(seen.labels) - 1
    if last == 0:  # one token: "its own" and "every" would be the same answer
        return
    question = f"The last token, position {last}, is replaced. Which outputs move?"
    choices = [parts.Choice(text, "") for text in ANSWERS.values()]
    picked = parts.ask_prediction("masks_last", question, choices)
    if picked is None:
        return
    moved = masking.movement_of_outputs(seen, last, seed)
    measured = parts.plain(captions.movement_sentence(moved.distances, seen.labels))
    right = list(ANSWERS).index(moved.reach)
    hint = HINTS.get((moved.reach, picked > right), "")
    choices[picked] = choices[picked]._replace(misconception=hint)
    parts.judge_prediction(choices, picked, right, f"Measured: {measured}.")


def look_inside(tab: int, seen: Any) -> None:
    """Show the functions of core that draw the open tab's numbers."""
    from core import attention, masking, masks, probes, torch_masks

    functions: list[Any] = [
        [
            masks.causal_mask,
            masks.padding_mask,
            masks.sliding_window_mask,
            attention.scaled_dot_product_attention,
            attention.masked_softmax,
        ],
        [masking.movement_of_outputs, probes.change_one_token],
        [torch_masks.to_sdpa_mask, torch_masks.to_torch_mha_mask],
    ][tab]
    shapes = {"tokens": seen.embeddings, "mask": seen.mask, "scores": seen.scores}
    parts.look_inside("masks", functions, shapes)


def _map(
    matrix: Any,
    labels: list[str],
    title: str,
    *,
    alt: str,
    kind: str = "weight",
    mask: Any = None,
    height: int = _SHORT,
) -> None:
    from core import charts
    from core.charts import tidy

    limit = 1.0 if kind != "score" else charts.nice_limit(float(matrix.abs().max()))
    small = len(labels) <= _SMALL
    parts.bare_chart(
        charts.heatmap,
        tidy.matrix_frame(
            matrix, kind=kind, row_labels=labels, column_labels=labels, mask=mask
        ),
        key=f"masks_map_{title}",
        alt=alt,
        kind=kind,
        title=title,
        limit=limit,
        show_values=small,
        legend=not small,
        height=height if small else _TALL,
    )


def _torch_map(weights: Any, seen: Any, given: str, mask: Any = None) -> None:
    from core import captions

    title = f"nn.MultiheadAttention given {given}"
    said = captions.map_sentence(weights, seen.labels, seen.labels)
    _map(weights, seen.labels, title, alt=f"{title}; {said}", mask=mask)


def _what_torch_makes(found: Any, seen: Any) -> None:
    from core import captions

    count, blocked = len(seen.labels), int(seen.blocked.sum())
    if blocked:
        parts.sentence(
            f"~mask: {blocked} of {count} rows have no key. PyTorch's layer makes them "
            "NaN, core makes them 0."
        )
    if blocked < count:
        parts.sentence(
            f"Each given its own form, function and layer differ from core by at most "
            f"{found.difference:.1e} on the {count - blocked} rows that have a key."
        )
    parts.sentence(
        f"The opposite: {found.nan_rows} of {count} rows are NaN, the others put up to "
        f"{captions.percent(found.opposite_leak)} of their weight on keys that should "
        f"be hidden. Added zeros and ones leave those keys up to "
        f"{captions.percent(found.float_leak)}."
    )
    st.markdown("`core` refuses zeros and ones:")
    x = seen.embeddings[None]
    with parts.explained():
        seen.layer(x, x, x, mask=seen.mask.float())


def _quoted(labels: Sequence[str]) -> str:
    return ", ".join(f'"{label}"' for label in labels)


def _as_digits(mask: Any) -> str:
    return "\n".join(" ".join(str(int(cell)) for cell in row) for row in mask)
