"""Dense matrices as pixels: one picture of all heads and layers in a few kilobytes."""

from collections.abc import Sequence
from io import BytesIO

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from core.charts.palette import PURPLE_ORANGE, VIRIDIS, channels, palette
from core.checks import RefusedError, require_choice, require_int, require_number

LOOKS = {"weight": VIRIDIS, "diverging": PURPLE_ORANGE}
_SHADES = 256


def matrix_image(
    matrix: np.ndarray,
    *,
    look: str = "weight",
    limit: float = 1.0,
    cell: int = 4,
    dark: bool = False,
) -> np.ndarray:
    """Return a matrix as an RGB picture, each number a square of ``cell`` pixels.

    Args:
        matrix: (rows, columns); what is not finite is drawn in the masked grey.
        look: "weight" (viridis from 0 to ``limit``) or "diverging" (from ``-limit`` to
            ``limit``); numbers beyond the ends take the colour of the end.
        limit: End of the colour scale.
        cell: Side of a square in pixels.
        dark: Whether the theme is dark.

    Returns:
        uint8, (rows · cell, columns · cell, 3).

    Raises:
        ValueError: If the matrix has not two dimensions, ``look`` is unknown or
            ``limit`` is not above 0.
    """
    require_choice("look", look, LOOKS)
    require_number("limit", limit, 1e-12)
    require_int("cell", cell, 1)
    if matrix.ndim != 2:
        raise RefusedError(f"matrix must have 2 dimensions, got {matrix.ndim}")
    low = 0.0 if look == "weight" else -limit
    finite = np.isfinite(matrix)
    share = np.clip((np.where(finite, matrix, low) - low) / (limit - low), 0, 1)
    picture = _shades(LOOKS[look])[np.rint(share * (_SHADES - 1)).astype(np.intp)]
    picture[~finite] = channels(palette(dark).masked)
    return picture.repeat(cell, axis=0).repeat(cell, axis=1)


def image_grid(
    matrices: Sequence[Sequence[np.ndarray]],
    *,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    look: str = "weight",
    limit: float = 1.0,
    cell: int = 4,
    gap: int = 10,
    dark: bool = False,
) -> np.ndarray:
    """Return one picture of all matrices: a row a layer, a column a head.

    Args:
        matrices: Rows of matrices of one shape, for instance an array (L, H, T, S).
        row_labels: One label a row, such as "layer 1".
        column_labels: One label a column, such as "head 1".
        look: As for ``matrix_image``.
        limit: End of the one colour scale that all matrices share.
        cell: Side of a number's square in pixels.
        gap: Pixels between two matrices.
        dark: Whether the theme is dark.

    Returns:
        uint8, (height, width, 3).

    Raises:
        ValueError: If there are no matrices, their shapes differ or labels do not fit.
    """
    shape = _common_shape(matrices, row_labels, column_labels)
    tile_height, tile_width = (size * cell for size in shape)
    font = ImageFont.load_default(size=14)
    left = max(int(font.getlength(label)) for label in row_labels) + gap
    top = 18 + gap // 2
    height = top + len(row_labels) * (tile_height + gap)
    width = left + len(column_labels) * (tile_width + gap)
    shown = palette(dark)
    picture = Image.new("RGB", (width, height), shown.background)
    pen = ImageDraw.Draw(picture)
    for column, label in enumerate(column_labels):
        middle = left + column * (tile_width + gap) + tile_width / 2
        pen.text((middle, top - 4), label, fill=shown.text, font=font, anchor="md")
    for row, label in enumerate(row_labels):
        upper = top + row * (tile_height + gap)
        pen.text(
            (0, upper + tile_height / 2), label, fill=shown.text, font=font, anchor="lm"
        )
        for column, matrix in enumerate(matrices[row]):
            tile = matrix_image(matrix, look=look, limit=limit, cell=cell, dark=dark)
            picture.paste(
                Image.fromarray(tile), (left + column * (tile_width + gap), upper)
            )
    return np.asarray(picture)


def png_bytes(picture: np.ndarray) -> bytes:
    """Return an RGB picture, uint8 (height, width, 3), as the bytes of a PNG file."""
    buffer = BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG")
    return buffer.getvalue()


def _shades(anchors: Sequence[str]) -> np.ndarray:
    """Return 256 colours that pass evenly through the anchors: uint8, (256, 3)."""
    points = np.array([channels(colour) for colour in anchors], dtype=np.float64)
    at = np.linspace(0, 1, len(points))
    along = np.linspace(0, 1, _SHADES)
    mixed = [np.interp(along, at, points[:, channel]) for channel in range(3)]
    return np.rint(np.stack(mixed, axis=1)).astype(np.uint8)


def _common_shape(
    matrices: Sequence[Sequence[np.ndarray]],
    row_labels: Sequence[str],
    column_labels: Sequence[str],
) -> tuple[int, int]:
    shapes = {np.shape(matrix) for row in matrices for matrix in row}
    if len(shapes) != 1:
        raise RefusedError(f"matrices must share one shape, got {sorted(shapes)}")
    counts = {len(row) for row in matrices}
    if len(matrices) != len(row_labels) or counts != {len(column_labels)}:
        raise RefusedError(
            f"labels ({len(row_labels)} rows, {len(column_labels)} columns) must fit "
            f"the matrices ({len(matrices)} rows, {sorted(counts)} columns)"
        )
    return shapes.pop()
