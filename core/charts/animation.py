"""Maps as pictures of one fixed size, and a film of them as GIF."""

from collections.abc import Sequence
from io import BytesIO

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from core.charts.image_grid import matrix_image
from core.charts.lines import round_ticks
from core.charts.palette import palette
from core.checks import RefusedError, require_int, require_number

SIDE = 340  # of the map, in pixels
_LEFT, _TOP, _RIGHT, _BOTTOM = 74, 34, 62, 48
_CROWDED = 20  # positions; CLS and 0 are then too close to be named both
_BAR = 14  # width of the colour scale
_SHADES = 64


def map_picture(
    matrix: np.ndarray,
    *,
    labels: Sequence[str],
    title: str,
    limit: float = 1.0,
    dark: bool = False,
) -> np.ndarray:
    """Return a map of weights under its title, with its axes and its colour scale.

    Every picture is of the same size, however many positions there are.

    Args:
        matrix: (S, S), at least one cell; rows are queries, columns keys.
        labels: S names of the positions.
        title: Whose map it is.
        limit: End of the colour scale, which starts at 0.
        dark: Whether the theme is dark.

    Returns:
        uint8, (height, width, 3).

    Raises:
        ValueError: If the map is not square, has no cells or other labels than cells.
    """
    size = len(labels)
    if matrix.shape != (size, size) or not size:
        raise RefusedError(
            f"matrix {matrix.shape} must be square, with one label for each of its "
            f"positions, got {size} labels"
        )
    shown = palette(dark)
    picture = Image.new(
        "RGB", (_LEFT + SIDE + _RIGHT, _TOP + SIDE + _BOTTOM), shown.background
    )
    cells = Image.fromarray(matrix_image(matrix, limit=limit, cell=1, dark=dark))
    picture.paste(cells.resize((SIDE, SIDE), Image.Resampling.NEAREST), (_LEFT, _TOP))
    pen = ImageDraw.Draw(picture)
    _write_axes(picture, pen, labels, shown.text)
    _draw_scale(picture, pen, limit, dark=dark)
    pen.text((_LEFT, 6), title, fill=shown.text, font=ImageFont.load_default(size=16))
    return np.asarray(picture)


def gif_bytes(pictures: Sequence[np.ndarray], *, seconds: float) -> bytes:
    """Return pictures of one size as a GIF that plays over and over.

    Args:
        pictures: uint8, (height, width, 3) each, at least one.
        seconds: How long each of them stands.

    Raises:
        ValueError: If there is no picture, or ``seconds`` is below 0.02.
    """
    require_int("number of pictures", len(pictures), 1)
    require_number("seconds", seconds, 0.02)
    frames = [
        Image.fromarray(picture).quantize(
            method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
        for picture in pictures
    ]
    buffer = BytesIO()
    frames[0].save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=round(1000 * seconds),
        loop=0,
    )
    return buffer.getvalue()


def _write_axes(
    picture: Image.Image, pen: ImageDraw.ImageDraw, labels: Sequence[str], ink: str
) -> None:
    small, large = (ImageFont.load_default(size=size) for size in (12, 14))
    cell = SIDE / len(labels)
    for number in _ticks(labels):
        middle = (number + 0.5) * cell
        below = (_LEFT + middle, _TOP + SIDE + 5)
        pen.text(below, labels[number], fill=ink, font=small, anchor="mt")
        beside = (_LEFT - 6, _TOP + middle)
        pen.text(beside, labels[number], fill=ink, font=small, anchor="rm")
    below = (_LEFT + SIDE / 2, _TOP + SIDE + 26)
    pen.text(below, "key (is read)", fill=ink, font=large, anchor="mt")
    _write_upwards(picture, "query (reads)", ink)


def _write_upwards(picture: Image.Image, words: str, ink: str) -> None:
    """Write the title of the rows along them, from bottom to top."""
    font = ImageFont.load_default(size=14)
    mask = Image.new("L", (int(font.getlength(words)) + 2, 20))
    ImageDraw.Draw(mask).text((0, 2), words, fill=255, font=font)
    turned = mask.rotate(90, expand=True)
    picture.paste(ink, (6, _TOP + (SIDE - turned.height) // 2), turned)


def _draw_scale(
    picture: Image.Image, pen: ImageDraw.ImageDraw, limit: float, *, dark: bool
) -> None:
    shades = np.linspace(limit, 0, _SHADES)[:, None]
    bar = Image.fromarray(matrix_image(shades, limit=limit, cell=1, dark=dark))
    left = _LEFT + SIDE + 12
    picture.paste(bar.resize((_BAR, SIDE // 2)), (left, _TOP))
    font, ink = ImageFont.load_default(size=12), palette(dark).text
    for value, down in ((limit, 0), (0, SIDE // 2)):
        place = (left + _BAR + 4, _TOP + down)
        anchor = "lt" if value else "lb"
        pen.text(place, f"{value:g}", fill=ink, font=font, anchor=anchor)
    pen.text((left, _TOP + SIDE // 2 + 6), "weight", fill=ink, font=font)


def _ticks(labels: Sequence[str]) -> list[int]:
    """Return the places of round numbers, and of CLS where it stands before them."""
    if labels[0].isdigit():
        return round_ticks(len(labels) - 1)
    rounds = [1 + number for number in round_ticks(len(labels) - 2)]
    return [0, *rounds[len(labels) > _CROWDED :]]
