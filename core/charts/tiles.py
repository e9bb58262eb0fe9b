"""From several tensors to the one frame of small multiples, with places for cells."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from core.charts import tidy
from core.checks import RefusedError

_NAME_SHARE = 5  # a name takes a place for this many rows of a tile, at least one


class Tile(NamedTuple):
    """One matrix of a picture of many.

    Attributes:
        matrix: (T, S), at least one cell; T is the same in every tile of a picture.
        column_labels: S labels of its columns.
    """

    matrix: Tensor
    column_labels: tidy.Labels


class Tiled(NamedTuple):
    """The frame of ``multiples`` and the numbers of places it needs."""

    frame: pd.DataFrame
    across: int
    down: int


def multiples_frame(
    tiles: Mapping[str, Tile],
    row_labels: tidy.Labels,
    *,
    kind: str = "weight",
    per_line: int | None = None,
    mask: Tensor | None = None,
    chosen: str | None = None,
    gap: int = 1,
) -> Tiled:
    """Return one row per cell of every tile, each with its place in the picture.

    Args:
        tiles: Name of each tile to its matrix, at least one.
        row_labels: T labels of the rows of every tile.
        kind: What the cells are, as for ``heatmap``.
        per_line: Tiles side by side; None makes the picture as square as it can be.
        mask: Boolean, (T, S), True = may attend; the same for all tiles.
        chosen: Name of the tile to be marked.
        gap: Places between two tiles side by side.

    Returns:
        A frame with the columns of ``matrix_frame`` and ``tile, across, down, first,
        chosen``; and how many places its cells and names take.

    Raises:
        ValueError: If there is no tile or labels do not fit.
    """
    if not tiles:
        raise RefusedError("tiles must name at least one matrix")
    line = math.ceil(math.sqrt(len(tiles))) if per_line is None else per_line
    widths = [len(tile.column_labels) for tile in tiles.values()]
    lead = -(-len(row_labels) // _NAME_SHARE)  # places of the name above a tile
    parts, places = [], []
    for index, tile in enumerate(tiles.values()):
        start = index - index % line
        left = sum(widths[start:index]) + gap * (index - start)
        top = (index // line) * (len(row_labels) + lead) + lead
        parts.append(
            tidy.matrix_frame(
                tile.matrix,
                kind=kind,
                row_labels=row_labels,
                column_labels=tile.column_labels,
                mask=mask,
            )
        )
        places.append(_places(len(row_labels), widths[index], left, top))
    across, down, first = np.concatenate(places, axis=1)
    named = np.repeat(np.array(list(tiles), dtype=object), [len(p) for p in parts])
    frame = pd.concat(parts, ignore_index=True).assign(
        tile=named, across=across, down=down, first=first == 1, chosen=named == chosen
    )
    return Tiled(frame, int(across.max()) + 1, int(down.max()) + 1)


def side_by_side(parts: Mapping[str, Tensor], row_labels: tidy.Labels) -> Tiled:
    """Return one line of tiles whose columns are numbered through, for values.

    Args:
        parts: Name of each tile to its values, (T, width).
        row_labels: T labels of the tokens.
    """
    tiles, first = {}, 0
    for name, matrix in parts.items():
        tiles[name] = Tile(matrix, range(first, first + matrix.shape[1]))
        first += matrix.shape[1]
    return multiples_frame(tiles, row_labels, kind="encoding", per_line=len(tiles))


def maps_of_heads(maps: Tensor, labels: tidy.Labels) -> dict[str, Tile]:
    """Return a tile for the map of each head, and one for their mean if there are two.

    Args:
        maps: One map a head, (H, T, S).
        labels: S labels of the keys.
    """
    tiles = {
        f"head {number}": Tile(matrix, labels)
        for number, matrix in enumerate(maps, start=1)
    }
    if len(maps) > 1:
        tiles[mean_name(len(maps))] = Tile(maps.mean(dim=0), labels)
    return tiles


def mean_name(num_heads: int) -> str:
    """Return the name of the mean over the heads."""
    return f"mean of {num_heads} heads"


def _places(height: int, width: int, left: int, top: int) -> np.ndarray:
    """Return across, down and whether it is the first, of each cell of a tile."""
    down, across = np.divmod(np.arange(height * width), width)
    return np.stack([across + left, down + top, across + down == 0])
