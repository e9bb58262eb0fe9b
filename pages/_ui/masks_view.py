"""The masks page's own pieces: its tokens, its pictures, one a tab, and its tables."""

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from pages._ui import parts
from pages._ui.controls import Controls

KINDS = [
    "causal",
    "none",
    "padding",
    "causal + padding",
    "sliding window",
    "sliding window + padding",
]
TABS = ["Weights", "Change one token", "PyTorch's conventions", "NaN lab"]
PRECISIONS = ["float32", "float16", "bfloat16"]
METHODS = ["overwritten", "added"]
MOST_TOKENS = 16
_SMALL = 8  # cells of longer sequences have no room for their numbers
_SHORT, _TALL = 228, 380  # heights of pictures, in pixels
_SCORES = "scores of every query and key, before mask and softmax"
_SHIFTED = (
    "The diagonal is open because targets are shifted by one: the token at t is an "
    "input when position t predicts token t + 1."
)
_PADDED = "Padding hides keys alone: a padded query reads on, and the loss drops it."
ANSWERS = [
    parts.Choice(
        "None",
        "It asks with a new query and, where it may be read, hands over a new value.",
    ),
    parts.Choice(
        "Only its own",
        "Every query that may read it mixes in its value.",
    ),
    parts.Choice(
        "Its own and some others",
        "Look down its column of the mask: no other row reads it.",
    ),
    parts.Choice(
        "Every output",
        "Only where its whole column is open does every query read it.",
    ),
]
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "Three real tokens of five, causal + padding: rows 3 and 4 read 1 1 1 0 0": {
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
_MARKS = {
    "zeros": ":blue-badge[:material/check: {}]",
    "uniform": ":orange-badge[:material/warning: {}]",
    "leak": ":orange-badge[:material/warning: {}]",
    "nan": ":red-badge[:material/error: {}]",
    "overflow": ":red-badge[:material/error: {}]",
}


def choose_tokens(c: Controls) -> tuple[str | None, int]:
    """Return the text, or None where plain positions are chosen, and their number."""
    if c.choice("Tokens", "source", ["words", "positions"]) == "words":
        text = c.text(
            "Words",
            "text",
            "the cat sat on the mat",
            longest=200,
            help_text=f"Split at spaces; 1 to {MOST_TOKENS} words.",
        )
        return text, 1
    return None, c.whole("Number of positions, T", "seq_len", 1, MOST_TOKENS, 6)


def choose_sizes(c: Controls, kind: str, seq_len: int) -> dict[str, int]:
    """Return length and window; only those that the mask has are offered."""
    length, window = seq_len, seq_len
    if "padding" in kind:
        length = c.whole("Real tokens; the rest is padding", "length", 0, seq_len, 4)
    if "window" in kind:
        window = c.whole("Window: keys this near", "window", 1, seq_len, 2)
    return {"length": length, "window": window}


def choose_fill(c: Controls) -> tuple[str, str]:
    """Return the number type shown in full and the way a fill is put in."""
    precision = c.choice("Shown in full", "precision", PRECISIONS)
    method = c.choice(
        "The fill is",
        "method",
        METHODS,
        help_text="Put in place of the masked score, or added to it.",
    )
    return precision, method


def draw_weights(seen: Any, kind: str) -> None:
    """Draw what is allowed, the scores, and the weights before and after."""
    from core import captions

    labels, mask = seen.labels, seen.mask
    summary = f"{int((~mask).sum())} of {mask.numel()} cells are masked (grey, ×)"
    before = captions.map_sentence(seen.weights_before, labels, labels)
    first = captions.row_sentence(
        seen.weights_after[0], labels[0], labels, allowed=mask[0]
    )
    left, right = st.columns(2)
    with left:
        _map(mask, labels, "What is allowed", alt=summary, kind="allowed")
        _map(seen.weights_before, labels, "Weights without the mask", alt=before)
    with right:
        _map(seen.scores, labels, "Scores, before the mask", alt=_SCORES, kind="score")
        _map(seen.weights_after, labels, "Weights with the mask", alt=first, mask=mask)
    parts.sentence(f"{summary}; {_sums(seen)}; {first}.")
    if seen.warning:
        st.warning(parts.plain(seen.warning), icon=":material/block:")
    if "causal" in kind:
        parts.sentence(_SHIFTED)
    if "padding" in kind:
        parts.sentence(_PADDED)
    parts.random_weights_badge()
    _row_sums(seen)


def draw_movement(seen: Any, index: int, seed: int) -> None:
    """Draw how far each output moves when one token is replaced."""
    from core import captions, charts, masking
    from core.charts import tidy

    moved, labels = masking.movement_of_outputs(seen, index, seed), seen.labels
    changed = f'Replacing "{labels[index]}" (position {index}) by a random token'
    caption = f"{changed}: {captions.movement_sentence(moved, labels)}."
    left, right = st.columns([2, 3])
    with left:
        title = "Its column: who may read it"
        _map(seen.mask, labels, title, alt=title, kind="allowed", height=_TALL)
    with right:
        parts.bare_chart(
            charts.movement,
            tidy.movement_frame(moved, labels),
            key="masks_movement",
            alt=caption,
            limit=charts.nice_limit(float(moved.max())),
            height=_TALL,
        )
    still = [f'"{label}"' for label, by in zip(labels, moved, strict=True) if by == 0]
    parts.sentence(f"{caption} Exactly 0: {', '.join(still) or 'none'}.")
    parts.random_weights_badge()


def draw_conventions(seen: Any) -> None:
    """Draw what PyTorch's layer makes of one mask in three forms."""
    from core import masking, torch_masks

    found, labels = masking.torch_conventions(seen), seen.labels
    left, right = st.columns(2)
    with left:
        title = "nn.MultiheadAttention given ~mask: right"
        _map(found.right_weights, labels, title, alt=title, mask=_kept(seen.mask))
        title = "nn.MultiheadAttention given 0s and 1s: added"
        _map(found.float_weights, labels, title, alt=title)
    with right:
        title = "nn.MultiheadAttention given mask: the opposite"
        _map(found.opposite_weights, labels, title, alt=title, mask=_kept(~seen.mask))
        _what_torch_makes(found, seen)
    function, layer = st.columns(2)
    function.markdown("`F.scaled_dot_product_attention`: **1 = may attend**")
    function.code(_as_digits(found.function_mask), language=None)
    layer.markdown("`nn.MultiheadAttention`: **1 = may NOT attend**")
    layer.code(_as_digits(found.layer_mask), language=None)
    st.markdown("A program that runs; `from_function` and `from_layer` agree:")
    st.code(torch_masks.two_conventions_code(), language="python")


def draw_nan_lab(precision: str, method: str) -> None:
    """Show a fully masked row under each fill value and number type."""
    from core import precision as lab

    rows = lab.fully_masked_rows(method)
    by_fill: dict[str, list[str]] = {row.fill: [f"`{row.fill}`"] for row in rows}
    for row in rows:
        by_fill[row.fill].append(_badge(row))
    st.markdown("One query, four keys, all of them masked. Right is 0 throughout.")
    st.markdown(_table(["fill", *PRECISIONS], by_fill.values()))
    st.markdown(f"**Forward and gradient in {precision}**")
    shown = [row for row in rows if row.dtype == precision]
    header = ["fill", "stored as", "weights", "output", "gradient"]
    st.markdown(_table(header, map(_lab_row, shown)))
    for verdict in dict.fromkeys(row.verdict for row in shown):
        parts.sentence(verdict)


def predict(seen: Any, seed: int) -> None:
    """Ask which outputs the last token moves; the mask on the page decides."""
    from core import captions, masking

    last = len(seen.labels) - 1
    if last == 0:  # one token: "its own" and "every" would be the same answer
        return
    question = f"The last token, position {last}, is replaced. Which outputs move?"
    picked = parts.ask_prediction("masks_last", question, ANSWERS)
    if picked is None:
        return
    moved = masking.movement_of_outputs(seen, last, seed)
    measured = parts.plain(captions.movement_sentence(moved, seen.labels))
    right = masking.reach_of_movement(moved, last)
    parts.judge_prediction(ANSWERS, picked, right, f"Measured: {measured}.")


def inside(tab: int) -> list[Any]:
    """Return the functions of core that draw the open tab's numbers."""
    from core import attention, masking, masks, precision, probes, torch_masks

    return [
        [
            masks.causal_mask,
            masks.padding_mask,
            masks.sliding_window_mask,
            attention.scaled_dot_product_attention,
            attention._masked_softmax,
        ],
        [masking.movement_of_outputs, probes.change_one_token],
        [torch_masks.to_sdpa_mask, torch_masks.to_torch_mha_mask],
        [precision.fill_outcome, precision.core_outcome],
    ][tab]


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


def _kept(mask: Any) -> Any:
    """Open the rows without a key, so that PyTorch's NaN is not called masked."""
    return mask | ~mask.any(-1, keepdim=True)


def _what_torch_makes(found: Any, seen: Any) -> None:
    from core import captions, masking

    largest = max(found.function_difference, found.layer_difference)
    opposite = masking.weight_on_masked(found.opposite_weights, seen.mask).max()
    added = masking.weight_on_masked(found.float_weights, seen.mask).max()
    blank = int(found.opposite_weights.isnan().any(dim=-1).sum())
    parts.sentence(
        f"Each given its own form, both differ from core by at most {largest:.1e}. "
        f"Given the other form, the layer puts up to "
        f"{captions.percent(float(opposite))} of a row on keys that should be hidden; "
        f"{blank} of {len(seen.labels)} rows are NaN. "
        f"Added zeros and ones leave them up to {captions.percent(float(added))}."
    )
    st.markdown("`core` refuses zeros and ones:")
    x = seen.embeddings[None]
    with parts.explained():
        seen.layer(x, x, x, mask=seen.mask.float())


def _sums(seen: Any) -> str:
    blocked = int(seen.blocked.sum())
    if not blocked:
        return "every row of weights still sums to 1"
    others = "" if seen.blocked.all() else ", the others to 1"
    return f"{blocked} of {len(seen.labels)} rows sum to 0{others}"


def _row_sums(seen: Any) -> None:
    lines = zip(
        seen.labels, seen.mask.sum(-1), seen.weights_before.sum(-1), seen.row_sums,
        strict=True,
    )  # fmt: skip
    st.markdown(
        _table(
            ["query (reads)", "keys it may read", "row sum without", "row sum with"],
            (
                [parts.plain(label), str(int(keys)), f"{before:.3f}", f"{after:.3f}"]
                for label, keys, before, after in lines
            ),
        )
    )


def _as_digits(mask: Any) -> str:
    return "\n".join(" ".join(str(int(cell)) for cell in row) for row in mask)


def _badge(row: Any) -> str:
    words = {
        "zeros": "0, nothing to attend to",
        "uniform": f"{row.attn_weights[0]:g} each, silent",
        "leak": f"up to {max(row.attn_weights):.2f}, as if unmasked",
        "nan": "NaN",
        "overflow": "overflows: NaN",
    }
    return _MARKS[row.kind].format(words[row.kind])


def _lab_row(row: Any) -> list[str]:
    numbers = [(row.stored,), row.attn_weights, (row.output,), row.gradient]
    return [f"`{row.fill}`", *map(_listed, numbers)]


def _listed(numbers: Sequence[float | None]) -> str:
    shown = ("–" if number is None else f"{number:.3g}" for number in numbers)
    return ",\u2002".join(shown).replace("nan", "NaN")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
