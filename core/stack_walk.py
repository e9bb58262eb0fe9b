"""What stands at each part of an encoder-decoder for one source, to be looked at."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from core import translation_story
from core.charts.palette import nice_limit
from core.decoding_walk import Walk
from core.masks import causal_mask
from core.text_tasks import TextTask

_SIDES = {  # part -> whose tokens its rows are, and what the numbers are called
    "source_embedded": ("source", "embeddings + positions"),
    "encoder_feed_forward": ("source", "after encoder layer"),
    "memory": ("source", "the memory"),
    "target_embedded": ("target", "embeddings + positions"),
    "decoder_feed_forward": ("target", "after decoder layer"),
}
_MAPS = {  # part -> its maps in what was explained, the two sides, its name
    "encoder_attention": ("encoder_maps", "source", "source", "self-attention"),
    "decoder_attention": ("self_maps", "target", "target", "masked self-attention"),
    "cross_attention": ("cross_maps", "target", "source", "cross-attention"),
}
_ROWS = {"source": "source token", "target": "token fed"}  # of the maps
_MOST_NUMBERS = 13  # columns of a map whose cells carry their numbers


class Panel(NamedTuple):
    """One tensor of the stack, with all that a picture of it needs.

    Attributes:
        matrix: (rows, columns).
        kind: What the cells are, as for ``core.charts.heatmap``.
        title: Title of the picture.
        rows: Labels of the rows.
        columns: Labels of the columns; None writes their numbers.
        row_title: What the rows are.
        limit: End of the colours.
        mask: Boolean, True = may attend; None hides nothing.
        numbers: Whether each cell carries its number.
        sentences: What it says in numbers.
    """

    matrix: Tensor
    kind: str
    title: str
    rows: list[str]
    columns: list[str] | None
    row_title: str | None
    limit: float
    mask: Tensor | None
    numbers: bool
    sentences: list[str]


def shapes_of(walk: Walk) -> dict[str, tuple[int, ...]]:
    """Return the shapes that leave the parts of the stack, without the batch."""
    seen = walk.explained
    source = tuple(seen.source_embedded.shape[1:])
    target = tuple(seen.target_embedded.shape[1:])
    sides = {"source": source, "target": target}
    shapes = {part: sides[side] for part, (side, _) in _SIDES.items()}
    shapes |= {part: sides[rows] for part, (_, rows, _, _) in _MAPS.items()}
    for name in ("encoder", "decoder", "cross"):
        maps, *_ = _MAPS[f"{name}_attention"]
        shapes[f"{name}_map"] = tuple(getattr(seen, maps)[0].shape[1:])
    logits = tuple(seen.logits.shape[1:])
    ends = {"source": source[:1], "target": target[:1]}
    return shapes | ends | {"linear": logits, "softmax": logits}


def panel_of(walk: Walk, task: TextTask, part: str, layer: int, head: int) -> Panel:
    """Return the tensor at a part of the stack, ready to be drawn.

    Args:
        walk: The walk of one source.
        task: Its task.
        part: A name of the diagram's parts.
        layer: Which layer, from 1, where the part is one of a layer.
        head: Which head, from 1, of a map; 0 is the mean of all.
    """
    labels = {
        "source": task.labels(task.source.decode(walk.source)),
        "target": task.labels(task.target.decode(walk.target_in)),
    }
    if part in _MAPS:
        return _map_panel(walk, task, labels, part, layer, head)
    if part in ("linear", "softmax"):
        return _output_panel(walk, task, labels["target"], part)
    return _vector_panel(walk, labels, part, layer)


def _map_panel(
    walk: Walk,
    task: TextTask,
    labels: dict[str, list[str]],
    part: str,
    layer: int,
    head: int,
) -> Panel:
    name, rows, columns, words = _MAPS[part]
    maps = getattr(walk.explained, name)
    weights = translation_story.of_head(maps, layer, head)
    whose = translation_story.map_name(layer, head, maps[0].shape[1])
    chosen = task.target.decode(walk.chosen)
    if part == "cross_attention":
        source = task.source.decode(walk.source)
        spread = translation_story.spread_of(weights, source, chosen)
        said = translation_story.spread_sentence(whose, spread, len(source))
    else:
        said = translation_story.mean_entropy_sentence(whose, weights)
    return Panel(
        matrix=weights,
        kind="weight",
        title=f"{whose}: {words}",
        rows=labels[rows],
        columns=labels[columns],
        row_title=f"query (reads): {_ROWS[rows]}",
        limit=1.0,
        mask=causal_mask(len(weights)) if part == "decoder_attention" else None,
        numbers=weights.shape[1] <= _MOST_NUMBERS,
        sentences=[said],
    )


def _vector_panel(
    walk: Walk, labels: dict[str, list[str]], part: str, layer: int
) -> Panel:
    side, words = _SIDES[part]
    seen: Any = walk.explained
    tensors = {
        "source_embedded": seen.source_embedded,
        "target_embedded": seen.target_embedded,
        "memory": seen.memory.states,
        "encoder_feed_forward": seen.encoder_states[layer - 1],
        "decoder_feed_forward": seen.decoder_states[layer - 1],
    }
    values = tensors[part][0]
    place = f" {layer}" if "layer" in words else ""
    size = float(values.square().mean().sqrt())
    said = (
        f"{values.shape[0]} tokens of {values.shape[1]} numbers {words}{place}: root "
        f"mean square {size:.2f}, the largest {float(values.abs().max()):.2f}."
    )
    return Panel(
        matrix=values,
        kind="vector",
        title=f"{side.capitalize()}: {words}{place}",
        rows=labels[side],
        columns=None,
        row_title=f"{side} token",
        limit=nice_limit(float(values.abs().max())),
        mask=None,
        numbers=False,
        sentences=[said],
    )


def _output_panel(walk: Walk, task: TextTask, fed: list[str], part: str) -> Panel:
    logits = walk.explained.logits[0]
    soft = part == "softmax"
    values = logits.softmax(dim=-1) if soft else logits
    if soft:
        entropy = float(torch.special.entr(values.double()).sum(dim=-1).mean())
        said = (
            f"{len(values)} distributions over {values.shape[1]} tokens: entropy "
            f"{entropy:.3f} nats on average, evenly spread "
            f"{math.log(values.shape[1]):.2f}."
        )
    else:
        said = (
            f"{len(values)} rows of {values.shape[1]} logits, from "
            f"{float(values.min()):.2f} to {float(values.max()):.2f}."
        )
    return Panel(
        matrix=values,
        kind="probability" if soft else "logit",
        title="Softmax: the next token" if soft else "Linear layer: logits",
        rows=fed,
        columns=task.target.decode(range(len(task.target))),
        row_title=None,
        limit=1.0 if soft else nice_limit(float(values.abs().max())),
        mask=None,
        numbers=False,
        sentences=[said],
    )
