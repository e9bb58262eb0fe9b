"""Dense matrices as pixels: a picture of some kilobytes in place of many cells."""

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO

import altair as alt
import numpy as np
import pandas as pd
from PIL import Image, ImageDraw, ImageFont

from core.charts import marks
from core.charts.digits import frame_of_row
from core.charts.heatmap import MATRIX_KINDS, cell_axes, cell_colour
from core.charts.palette import PURPLE_ORANGE, VIRIDIS, channels, palette
from core.checks import RefusedError, require_choice, require_int, require_number

LOOKS = {"weight": VIRIDIS, "diverging": PURPLE_ORANGE}
_SHADES = 256
_LOOK_OF_SCHEME = {"viridis": "weight", "purpleorange": "diverging"}


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


def pixel_frame(
    matrix: np.ndarray,
    *,
    kind: str = "weight",
    limit: float = 1.0,
    marked: int | None = None,
    dark: bool = False,
) -> pd.DataFrame:
    """Return a matrix as one picture, with the numbers of its axes, for ``pixel_map``.

    Args:
        matrix: (rows, columns), at least one cell; what is not finite is masked grey.
        kind: What the cells are, as for ``heatmap``, but no mask.
        limit: End of the colour scale.
        marked: Row to be framed; None frames none.
        dark: Whether the theme is dark.

    Returns:
        A frame with the two columns that ``kind`` names for rows and columns, each
        counting from 0 and the shorter one repeating its last number; ``picture``, in
        the first row the address of a PNG that holds the file itself; and ``marked``.

    Raises:
        ValueError: If the matrix has no cells, ``kind`` is unknown or ``limit`` is not
            above 0.
    """
    look, what = _look_of(kind), MATRIX_KINDS[kind]
    if matrix.ndim != 2 or not matrix.size:
        shape = matrix.shape
        raise RefusedError(f"matrix must have 2 dimensions and cells, got {shape}")
    picture = matrix_image(matrix, look=look, limit=limit, cell=1, dark=dark)
    address = png_address(picture)
    counted = np.arange(max(matrix.shape))
    rows, columns = (np.minimum(counted, size - 1) for size in matrix.shape)
    return pd.DataFrame(
        {
            what.row: rows,
            what.column: columns,
            "picture": [address, *[None] * (len(counted) - 1)],
            "marked": rows == marked,
        }
    )


def pixel_map(
    frame: pd.DataFrame,
    *,
    kind: str = "weight",
    title: str = "Attention weights",
    limit: float = 1.0,
    height: int = 380,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw a dense matrix as one picture under the axes and colours of ``heatmap``.

    A browser draws it at once, however many cells it has; in exchange no cell answers
    to the pointer. The marked row is framed.

    Args:
        frame: From ``pixel_frame`` with the same ``kind``, ``limit`` and ``dark``.
        kind: What the cells are, as for ``heatmap``, but no mask.
        title: Title of the picture.
        limit: End of the colour scale.
        height: Height in pixels, title and axes counted in.
        dark: Whether the theme is dark.

    Raises:
        ValueError: If ``kind`` is unknown or ``limit`` is not above 0.
    """
    _look_of(kind)
    require_number("limit", limit, 1e-12)
    what = MATRIX_KINDS[kind]
    x, y = cell_axes(what)
    whole = {"x": alt.value(0), "x2": alt.value("width")}
    picture = alt.Chart().transform_filter("isValid(datum.picture)")
    picture = picture.mark_image(aspect=False, smooth=False).encode(
        url="picture:N",
        key="picture:N",  # kept while it is the same: a picture read anew blinks
        y=alt.value(0),
        y2=alt.value("height"),
        **whole,
    )
    unseen = alt.Chart().transform_calculate(**{what.value: "0"}).mark_point(opacity=0)
    legend = cell_colour(what, limit=limit, dark=dark)
    return marks.layered(
        frame,
        unseen.encode(x=x, y=y, color=legend),
        picture,
        frame_of_row(what.row, dark=dark).encode(y=y),
        title=title,
        height=height,
        dark=dark,
    )


def png_bytes(picture: np.ndarray) -> bytes:
    """Return an RGB picture, uint8 (height, width, 3), as the bytes of a PNG file."""
    buffer = BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG")
    return buffer.getvalue()


def png_address(picture: np.ndarray) -> str:
    """Return an address that holds an RGB picture itself; nothing is left to fetch."""
    return f"data:image/png;base64,{b64encode(png_bytes(picture)).decode()}"


def _shades(anchors: Sequence[str]) -> np.ndarray:
    """Return 256 colours that pass evenly through the anchors: uint8, (256, 3)."""
    points = np.array([channels(colour) for colour in anchors], dtype=np.float64)
    at = np.linspace(0, 1, len(points))
    along = np.linspace(0, 1, _SHADES)
    mixed = [np.interp(along, at, points[:, channel]) for channel in range(3)]
    return np.rint(np.stack(mixed, axis=1)).astype(np.uint8)


def _look_of(kind: str) -> str:
    pictured = [k for k, what in MATRIX_KINDS.items() if what.scheme in _LOOK_OF_SCHEME]
    require_choice("kind", kind, pictured)
    return _LOOK_OF_SCHEME[MATRIX_KINDS[kind].scheme]


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
