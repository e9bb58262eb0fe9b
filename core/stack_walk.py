"""What stands at each part of an encoder-decoder for one source, to be looked at."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from core import translation_story
from core.block_walk import walk_block, walk_decoder_block
from core.captions import counted
from core.charts import stack_diagram
from core.charts.palette import nice_limit
from core.decoding_walk import Walk
from core.masks import causal_mask
from core.text_tasks import TextTask

_SIDES = {  # part -> whose tokens its rows are, and what the numbers are called
    "source": ("source", "rows of the embedding table"),
    "source_embedded": ("source", "embeddings + positions"),
    "encoder_after": ("source", "after encoder layer {layer}"),
    "memory": ("source", "the memory"),
    "target": ("target", "rows of the embedding table"),
    "target_embedded": ("target", "embeddings + positions"),
    "decoder_after": ("target", "after decoder layer {layer}"),
    "decoder_last_norm": ("target", "last LayerNorm"),
}
_POINTS = {  # part inside a layer -> the side, its point in the walk, its name
    "encoder_attention": ("source", "attention", "self-attention"),
    "encoder_feed_forward": ("source", "feed_forward", "feed-forward"),
    "decoder_attention": ("target", "self_attention", "masked self-attention"),
    "cross_attention": ("target", "cross_attention", "cross-attention"),
    "decoder_feed_forward": ("target", "feed_forward", "feed-forward"),
}
_LAYERS = {"source": "encoder layer {layer}", "target": "decoder layer {layer}"}
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
    source, target_in = torch.tensor([walk.source]), torch.tensor([walk.target_in])
    return stack_diagram.shapes_of(source, target_in, walk.explained)


def panel_of(
    model: Any, walk: Walk, task: TextTask, part: str, layer: int, head: int
) -> Panel:
    """Return the tensor at a part of the stack, ready to be drawn.

    Args:
        model: The model of the walk, an encoder-decoder Transformer at rest.
        walk: The walk of one source.
        task: Its task.
        part: A name of the diagram's places.
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
    return _vector_panel(model, walk, labels, part, layer)


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
    named = f"{words[0].upper()}{words[1:]}, {whose[0].lower()}{whose[1:]}"
    if part == "cross_attention":
        source = task.source.decode(walk.source)
        spread = translation_story.spread_of(weights, source, chosen)
        said = translation_story.spread_sentence(named, spread, len(source))
    else:
        said = translation_story.mean_entropy_sentence(named, weights)
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
    model: Any, walk: Walk, labels: dict[str, list[str]], part: str, layer: int
) -> Panel:
    side, words = _named(part, layer)
    values = _vectors(model, walk, part, layer)
    return Panel(
        matrix=values,
        kind="vector",
        title=f"{side.capitalize()}: {words}",
        rows=labels[side],
        columns=None,
        row_title=f"{side} token",
        limit=nice_limit(float(values.abs().max())),
        mask=None,
        numbers=False,
        sentences=_vector_sentences(values, side, words, part),
    )


def _named(part: str, layer: int) -> tuple[str, str]:
    """Return whose tokens the rows of a part are, and what its numbers are called."""
    if part in _SIDES:
        side, words = _SIDES[part]
        return side, words.format(layer=layer)
    inner = part.split(" of ")[-1]
    side, _, name = _POINTS[inner]
    if part.startswith("norm of "):
        name = f"LayerNorm of {name}"
    if part.startswith("sum of "):
        name += " + shortcut"
    return side, f"{name}, {_LAYERS[side].format(layer=layer)}"


def _vectors(model: Any, walk: Walk, part: str, layer: int) -> Tensor:
    """Return the tokens at a part, (number of tokens, d_model)."""
    seen = walk.explained
    with torch.no_grad():
        if part == "source":
            return model.source_embedding(torch.tensor(walk.source))
        if part == "target":
            return model.target_embedding(torch.tensor(walk.target_in))
        if part == "decoder_last_norm":
            return model.decoder_norm(seen.decoder_states[-1][0])
    known = {
        "source_embedded": seen.source_embedded,
        "target_embedded": seen.target_embedded,
        "memory": seen.memory.states,
        "encoder_after": seen.encoder_states[layer - 1],
        "decoder_after": seen.decoder_states[layer - 1],
    }
    return known[part][0] if part in known else _inside(model, walk, part, layer)


def _inside(model: Any, walk: Walk, part: str, layer: int) -> Tensor:
    """Return the tokens at a point inside a layer."""
    seen, inner = walk.explained, part.split(" of ")[-1]
    side, point, _ = _POINTS[inner]
    if side == "source":
        x = (seen.source_embedded, *seen.encoder_states)[layer - 1][0]
        points = walk_block(model.encoder[layer - 1], x)
    else:
        x = (seen.target_embedded, *seen.decoder_states)[layer - 1][0]
        memory = seen.memory.states[0]
        points = walk_decoder_block(model.decoder[layer - 1], x, memory)
    values, kind = dict(points), part.split(" of ")[0]
    if kind in ("norm", "sum"):
        return values[f"{point}_{kind}"]
    return values["contract" if side == "source" else point]


def _vector_sentences(values: Tensor, side: str, words: str, part: str) -> list[str]:
    count, width = values.shape
    size = float(values.square().mean().sqrt())
    said = [
        f"{words[0].upper()}{words[1:]}: {counted(count, f'{side} token')} of "
        f"{counted(width, 'number')}, root mean square {size:.2f}, largest magnitude "
        f"{float(values.abs().max()):.2f}."
    ]
    if part in ("source", "target"):
        said.append(
            f"Equal tokens have equal rows. Each is multiplied by √{width} = "
            f"{math.sqrt(width):.3g} before the positions are added."
        )
    return said


def _output_panel(walk: Walk, task: TextTask, fed: list[str], part: str) -> Panel:
    logits = walk.explained.logits[0]
    soft = part == "softmax"
    values = logits.softmax(dim=-1) if soft else logits
    if soft:
        entropy = float(torch.special.entr(values.double()).sum(dim=-1).mean())
        said = (
            f"Softmax: {counted(len(values), 'distribution')} over "
            f"{counted(values.shape[1], 'token')}, entropy {entropy:.3f} nats on "
            f"average; spread evenly it would be {math.log(values.shape[1]):.2f}."
        )
    else:
        low, high = (f"{float(end):.2f}".replace("-", "−") for end in values.aminmax())
        said = (
            f"Linear: {counted(len(values), 'row')} of "
            f"{counted(values.shape[1], 'logit')}, from {low} to {high}."
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
