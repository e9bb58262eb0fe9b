"""The multi-head page's own pieces: its pictures and tables, one a tab."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parity_badge, parts
from pages._ui.controls import Controls

VIEWS = ["Heads", "Concatenate", "Parity", "Cost", "Bug hunt", "Mistakes"]
WIDTHS = [8, 10, 12, 16, 24, 32, 48, 64, 96, 128]  # d_model
MASKS = ["causal", "none", "left padding"]
PRECISIONS = ["float32", "float64"]
HEIGHT = 395
_MOST_DIGITS = 4_000  # of a number in an address; Python reads no longer ones
SMALL = 8  # cells of longer sequences have no room for their numbers
ASKED = (64, 4, 8)  # of the prediction: d_model, heads before, heads after
GROWTH = {  # factor -> the answer that says so
    2.0: parts.Choice("It doubles", "Twice the heads, each half as wide: d_k halves."),
    1.0: parts.Choice("It stays the same", ""),
    0.5: parts.Choice("It halves", "d_k halves, but there are twice as many heads."),
    4.0: parts.Choice(
        "It grows fourfold",
        "Each head has its own share of three matrices, not matrices of full size.",
    ),
}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "One head of all 64 numbers: nothing to average, nothing to differ": {
        "view": "Heads", "d_model": 64, "num_heads": 1, "mask": "causal", "head": 1,
    },
    "Sixteen heads and their mean: the mean hides what single heads do": {
        "view": "Heads", "d_model": 64, "num_heads": 16, "mask": "none", "head": 0,
    },
    "A query without a key: PyTorch's layer says NaN; what is compared?": {
        "view": "Parity", "d_model": 64, "num_heads": 8, "mask": "left padding",
        "precision": "float64",
    },
}  # fmt: skip


class Asked(NamedTuple):
    """The sizes that the address asks for, as it has them; "" where it has none."""

    d_model: str
    num_heads: str


def asked_sizes() -> Asked:
    """Return the sizes of the address, before its controls drop what does not fit."""
    names = (f"heads_{name}" for name in Asked._fields)
    held, query = st.session_state, st.query_params
    return Asked(*("" if name in held else query.get(name, "") for name in names))


def choose_heads(c: Controls, d_model: int, asked: Asked) -> int:
    """Return the number of heads; only those that divide d_model are offered.

    An address may ask for others. Core refuses them in a sentence, and the page goes
    on with one that fits.
    """
    from core import heads

    if _is_number(asked.num_heads):
        width = int(asked.d_model) if _is_number(asked.d_model) else d_model
        with parts.explained():
            heads.require_heads(width, int(asked.num_heads))
    return c.listed(
        "Heads, H",
        "num_heads",
        heads.head_counts(d_model),
        8 if d_model % 8 == 0 else 2,
        help_text="Only numbers that divide d_model; a head is d_model / H wide.",
    )


def choose_head(c: Controls, num_heads: int) -> int:
    """Return the number of the head drawn large; 0 is the mean."""
    numbers, help_text = range(num_heads + 1), "0 draws the mean of all heads."
    return c.listed("Head drawn large", "head", numbers, 1, help_text=help_text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def draw_heads(seen: Any, head: int) -> None:
    """Draw the map of every head in one picture, and one map large."""
    from core import charts, heads_story
    from core.charts import tiles

    matrix, name = heads_story.large_map(seen, head or None)
    caption = heads_story.heads_sentence(seen)
    tiled = tiles.multiples_frame(
        tiles.maps_of_heads(seen.weights, seen.labels),
        seen.labels,
        mask=seen.mask,
        chosen=f"head {head}" if head else tiles.mean_name(len(seen.weights)),
    )
    parts.sentence(heads_story.split_line(seen))
    every, large = st.columns(2)
    with every:
        parts.bare_chart(
            charts.multiples,
            tiled.frame,
            key="heads_every",
            alt=caption,
            across=tiled.across,
            down=tiled.down,
            title="Every head, one scale",
            legend=False,
            height=HEIGHT,
        )
    with large:
        said = heads_story.map_sentence(name, matrix, seen)
        draw_map(matrix, seen, title=name, key="heads_large", alt=said, mask=seen.mask)
    parts.sentence(f"{caption} {said}")
    parts.random_weights_badge()


def draw_map(
    matrix: Any,
    seen: Any,
    *,
    title: str,
    key: str,
    alt: str,
    mask: Any = None,
) -> None:
    """Draw one map with the labels of its tokens, and numbers where there is room."""
    from core import charts
    from core.charts import tidy

    small = len(seen.labels) <= SMALL
    parts.bare_chart(
        charts.heatmap,
        tidy.matrix_frame(
            matrix, row_labels=seen.labels, column_labels=seen.labels, mask=mask
        ),
        key=key,
        alt=alt,
        title=title,
        show_values=small,
        legend=not small,
        height=HEIGHT,
    )


def draw_concatenation(seen: Any) -> None:
    """Draw the heads side by side, what the output projection makes, and the steps."""
    from core import heads_story

    caption = heads_story.merge_sentence(seen)
    limit = heads_story.value_limit(seen.concatenated, seen.output)
    _draw_values(
        heads_story.outputs_of_heads(seen),
        seen,
        key="heads_concatenated",
        title="The heads side by side: every column comes from one head",
        alt=caption,
        limit=limit,
    )
    _draw_values(
        {"all heads": seen.output},
        seen,
        key="heads_output",
        title="After the output projection W_O: every column comes from all heads",
        alt=caption,
        limit=limit,
    )
    parts.sentence(caption)
    steps = heads_story.steps_of(seen)
    rows = [[s.does, s.gives, f"`{s.shape}`", f"{s.parameters:,}"] for s in steps]
    st.markdown(parts.table(["step", "gives", "shape", "parameters"], rows))
    parts.random_weights_badge()


def _draw_values(values: dict[str, Any], seen: Any, **options: Any) -> None:
    from core import charts
    from core.charts import tiles

    tiled = tiles.side_by_side(values, seen.labels)
    options |= {"across": tiled.across, "down": tiled.down}
    height = max(215, 100 + 11 * len(seen.labels))
    options |= {"kind": "encoding", "row_labels": True, "height": height}
    parts.bare_chart(charts.multiples, tiled.frame, **options)


def draw_parity(seen: Any, settings: dict[str, Any]) -> None:
    """Show how far PyTorch's layer with the same weights lies from ours."""
    from core import head_parity, heads_story

    parity = head_parity.parity_with_torch(seen.layer, seen.embeddings, seen.mask)
    script = head_parity.parity_script(seen.tokens, **settings)
    parity_badge.badge(parity, "nn.MultiheadAttention with the same weights")
    numbers, said = st.columns(2, gap="large")
    rows = heads_story.parity_rows(parity)
    numbers.markdown(parts.table(["compared", "largest difference"], rows))
    with said:
        parts.sentence(heads_story.compared_sentence(seen))
        parts.sentence(heads_story.initial_sentence(seen.layer))
        st.markdown(
            "PyTorch returns the mean of the heads unless `average_attn_weights=False`."
        )
        st.download_button(
            "The comparison as a program",
            script,
            file_name="parity.py",
            mime="text/x-python",
            key="heads_script",
            icon=":material/download:",
            on_click="ignore",
        )
    st.code(script, language="python")


@st.cache_resource(max_entries=64, show_spinner=False)
def costs_of(d_model: int, seq_len: int) -> list[Any]:
    """Return what layers of one width cost, each built and run once; kept."""
    from core import heads

    return heads.head_costs(d_model, seq_len)


def draw_costs(d_model: int, seq_len: int) -> None:
    """Show parameters and operations of one width with every number of heads."""
    from core import heads, heads_story

    costs = costs_of(d_model, seq_len)
    rows = [
        [
            f"{cost.num_heads}",
            f"{cost.d_k}",
            f"**{cost.parameters:,}**",
            f"**{cost.flops:,}**",
            f"{cost.map_cells:,}",
        ]
        for cost in costs
    ]
    header = ["heads", "d_k", "parameters", "operations", "weights"]
    st.markdown(parts.table(header, rows))
    parts.sentence(heads_story.costs_sentence(costs, seq_len))
    parts.sentence(heads_story.products_sentence(d_model, seq_len))
    st.caption(
        "Counted from a layer that is built and run. An operation is one addition or "
        "one multiplication in a matrix product; the softmax is left out."
    )
    shapes = {"d_model": d_model, "tokens": seq_len}
    parts.look_inside("heads", [heads.head_costs, heads._cost], shapes)


@st.cache_resource(max_entries=4, show_spinner=False)
def growth_of_parameters(d_model: int, before: int, after: int) -> float:
    """Return by which factor parameters grow between two numbers of heads; kept."""
    from core import heads_story

    return heads_story.growth_of_parameters(d_model, before, after)


def predict() -> None:
    """Ask what more heads do to the number of parameters."""
    d_model, before, after = ASKED
    choices = list(GROWTH.values())
    picked = parts.ask_prediction(
        "heads_predict",
        f"A layer with d_model = {d_model} has {before} heads. It is built again with "
        f"{after}. What becomes of its number of parameters?",
        choices,
    )
    if picked is not None:
        growth = growth_of_parameters(d_model, before, after)
        parts.judge_prediction(
            choices,
            picked,
            list(GROWTH).index(growth),
            f"Counted on both layers: {growth:g} times as many. {after} heads of "
            f"{d_model // after} are as wide as {before} of {d_model // before}.",
        )


def look_inside(view: str, seen: Any) -> None:
    """Show the functions of core that work out the numbers of a view."""
    from core import attention, head_parity, heads, mistakes

    layer = attention.MultiHeadAttention
    functions: dict[str, list[Any]] = {
        "Heads": [layer.attend, attention.split_heads, heads.head_differences],
        "Concatenate": [attention.merge_heads, heads.head_shares],
        "Parity": [head_parity.torch_layer, head_parity.parity_with_torch],
        "Bug hunt": [mistakes.MistakenAttention.stages, mistakes.see_mistake],
        "Mistakes": [mistakes.Recipe, mistakes.MistakenAttention.stages],
    }
    shapes = {
        "tokens": seen.embeddings,
        "weights": seen.weights,
        "heads": seen.head_outputs,
        "output": seen.output,
    }
    parts.look_inside("heads", functions[view], shapes)
