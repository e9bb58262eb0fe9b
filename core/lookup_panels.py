"""Which matrices stand side by side in each picture of a lookup."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.arithmetic import NAMES, Cell
from core.checks import require_choice
from core.lookup import (
    STAGES,
    VECTORS,
    Edit,
    HardLookup,
    Lookup,
    Movement,
    influence_of_keys,
)

_MOST_ROWS = 11  # of queries; of more only the picked one is drawn
_NAME = 12  # characters of a word in a title
_READS, _IS_READ = "query (reads)", "key (is read)"


class Panel(NamedTuple):
    """One matrix of a picture.

    Attributes:
        title: Its name and shape.
        kind: What the cells are, as for ``core.charts.heatmap``.
        matrix: The numbers, (rows, columns).
        rows: A label for each row.
        columns: A label for each column.
        marked: Boolean, as the matrix, True = the cell is framed.
        role: "query", "key" or "value", whose colour the title has; or "".
        row_title: Title of the rows where it is not that of the kind.
        digits: Decimals of the numbers on the cells.
    """

    title: str
    kind: str
    matrix: Tensor
    rows: Sequence[str | int]
    columns: Sequence[str | int]
    marked: Tensor
    role: str = ""
    row_title: str | None = None
    digits: int = 2


def shape_text(matrix: Tensor) -> str:
    """Return a shape as it stands in titles, such as ``(9, 3)``."""
    return f"({', '.join(map(str, matrix.shape))})"


def stage_panels(seen: Lookup, stage: str, cell: Cell, vector: str) -> list[Panel]:
    """Return what goes into a stage and what comes out, the picked cell framed.

    From 12 queries on only the row of the picked one is drawn after the first stage.

    Args:
        seen: The lookup.
        stage: Name in ``STAGES``.
        cell: The cell whose arithmetic is shown.
        vector: "q", "k" or "v": which projection the stage "project" shows.

    Raises:
        ValueError: If a name is unknown.
    """
    require_choice("stage", stage, STAGES)
    require_choice("vector", vector, VECTORS)
    if stage == "project":
        return _project(seen, cell, vector)
    pair, below = (cell.query, cell.key), (cell.key, cell.dimension)
    scores = _scores(seen, "Scores q·k", seen.scores, pair)
    scaled = _scores(seen, "Scores ÷ √d_k", seen.scaled, pair)
    weights = _weights(seen, pair)
    panels = {
        "score": lambda: [
            _vector(seen, "q", (cell.query, None)),
            _vector(seen, "k", (cell.key, None)),
            scores,
        ],
        "scale": lambda: [scores, scaled],
        "softmax": lambda: [
            scaled._replace(marked=_marked(seen.scaled, cell.query, None)),
            weights,
        ],
        "weigh": lambda: [
            weights,
            _vector(seen, "v", below),
            _weighted(seen, *below, cell),
        ],
        "sum": lambda: [
            weights._replace(marked=_marked(seen.attn_weights, cell.query, None)),
            _weighted(seen, None, cell.dimension, cell),
            _output(seen, cell),
        ],
    }[stage]()
    if len(seen.query_labels) <= _MOST_ROWS:
        return panels
    return [_row_alone(panel, seen, cell.query) for panel in panels]


def edit_panels(after: Lookup, moved: Movement, edit: Edit) -> list[Panel]:
    """Return the edited vectors and how far every weight and output moved."""
    dimensions = range(moved.outputs.shape[1])
    return [
        _vector(after, edit.which, (edit.token, edit.dimension)),
        Panel(
            f"Δ weights {shape_text(moved.weights)}, one head",
            "change",
            moved.weights,
            after.query_labels,
            after.key_labels,
            _nothing(moved.weights),
        ),
        Panel(
            f"Δ output {shape_text(moved.outputs)}",
            "output change",
            moved.outputs,
            after.query_labels,
            dimensions,
            _nothing(moved.outputs),
        ),
    ]


def hard_panels(seen: Lookup, hard: HardLookup, query: int) -> list[Panel]:
    """Return weights and result of one query, hard above soft."""
    weights = torch.stack([hard.weights[query], seen.attn_weights[query]])
    returned = torch.stack([hard.weights[query] @ seen.v, seen.output[query]])
    names = ["hard", "soft"]
    scores = seen.scores[query : query + 1]
    return [
        Panel(
            f"Scores q·k of {_named(seen, query)}, one head",
            "score",
            scores,
            seen.query_labels[query : query + 1],
            seen.key_labels,
            _nothing(scores),
            row_title="query",
        ),
        Panel(
            "Weights of the query, one head",
            "lookup",
            weights,
            names,
            seen.key_labels,
            _nothing(weights),
        ),
        Panel(
            "What is returned",
            "vector",
            returned,
            names,
            range(returned.shape[1]),
            _nothing(returned),
            role="value",
            row_title="lookup",
        ),
    ]


def influence_panels(seen: Lookup, query: int) -> list[Panel]:
    """Return the weights of one query, and how far hiding each key moves its output."""
    rows = seen.query_labels[query : query + 1]
    weights = seen.attn_weights[query : query + 1]
    moves = influence_of_keys(seen, query)[None]  # (1, S)
    return [
        Panel(
            f"Weights {shape_text(weights)}, one head",
            "weight",
            weights,
            rows,
            seen.key_labels,
            weights == weights.max(),
        ),
        Panel(
            f"Output moves with a key hidden {shape_text(moves)}",
            "influence",
            moves,
            rows,
            seen.key_labels,
            moves == moves.max(),
        ),
    ]


def _project(seen: Lookup, cell: Cell, vector: str) -> list[Panel]:
    of_query = vector == "q"
    x, labels = (
        (seen.x_query, seen.query_labels) if of_query else (seen.x_key, seen.key_labels)
    )
    w = getattr(seen, f"w_{vector}")
    row = cell.query if of_query else cell.key
    return [
        Panel(
            f"x {shape_text(x)}",
            "vector",
            x,
            labels,
            range(x.shape[1]),
            _marked(x, row, None),
            digits=1,
        ),
        Panel(
            f"W_{vector} {shape_text(w)}",
            "projection",
            w,
            range(w.shape[0]),
            range(w.shape[1]),
            _marked(w, None, cell.dimension),
            role=NAMES[vector],
            digits=1,
        ),
        _vector(seen, vector, (row, cell.dimension)),
    ]


def _vector(seen: Lookup, name: str, place: tuple[int | None, int | None]) -> Panel:
    matrix = getattr(seen, name)
    of_query = name == "q"
    return Panel(
        f"{name} {shape_text(matrix)}",
        "vector",
        matrix,
        seen.query_labels if of_query else seen.key_labels,
        range(matrix.shape[1]),
        _marked(matrix, *place),
        role=NAMES[name],
        row_title=_READS if of_query else _IS_READ,
    )


def _scores(seen: Lookup, name: str, matrix: Tensor, pair: tuple[int, int]) -> Panel:
    return Panel(
        f"{name} {shape_text(matrix)}, one head",
        "score",
        matrix,
        seen.query_labels,
        seen.key_labels,
        _marked(matrix, *pair),
    )


def _weights(seen: Lookup, pair: tuple[int, int]) -> Panel:
    panel = _scores(seen, "Weights", seen.attn_weights, pair)
    return panel._replace(kind="weight")


def _weighted(seen: Lookup, row: int | None, column: int, cell: Cell) -> Panel:
    matrix = seen.weighted[cell.query]
    return Panel(
        f"{_named(seen, cell.query)}: weight · v {shape_text(matrix)}",
        "vector",
        matrix,
        seen.key_labels,
        range(matrix.shape[1]),
        _marked(matrix, row, column),
        role="value",
        row_title=_IS_READ,
    )


def _output(seen: Lookup, cell: Cell) -> Panel:
    return Panel(
        f"output {shape_text(seen.output)}",
        "vector",
        seen.output,
        seen.query_labels,
        range(seen.output.shape[1]),
        _marked(seen.output, cell.query, cell.dimension),
        row_title=_READS,
    )


def _row_alone(panel: Panel, seen: Lookup, query: int) -> Panel:
    """Return the row of one query, where the rows of a panel are the queries."""
    if panel.rows is not seen.query_labels or panel.row_title == _IS_READ:
        return panel
    own = slice(query, query + 1)
    return panel._replace(
        title=f"{panel.title}: {_named(seen, query)}",
        matrix=panel.matrix[own],
        rows=panel.rows[own],
        marked=panel.marked[own],
    )


def _named(seen: Lookup, query: int) -> str:
    label = seen.query_labels[query]
    short = label if len(label) <= _NAME else f"{label[: _NAME - 1]}…"
    return f'"{short}"'


def _marked(matrix: Tensor, row: int | None, column: int | None) -> Tensor:
    """Return which cells are framed; None means every row or every column."""
    marked = _nothing(matrix)
    marked[
        slice(None) if row is None else row, slice(None) if column is None else column
    ] = True
    return marked


def _nothing(matrix: Tensor) -> Tensor:
    return torch.zeros_like(matrix, dtype=torch.bool)
