"""One colour language for every picture, with a pair of colours for the two themes.

A colour always keeps its meaning: queries are blue, keys orange, values green; what is
raw or wrong is vermilion, what is scaled or right is blue; what is masked is grey and
carries a mark as well, since no meaning rests on colour alone. Lines keep a contrast of
at least 3 : 1 to the background, and colours that stand for different things stay
apart for the common kinds of colour blindness.

Reference: Okabe and Ito (2008), Color Universal Design; Tol (2021), Colour Schemes.
"""

import math
from dataclasses import dataclass

from core.checks import require_number


@dataclass(frozen=True)
class Palette:
    """The colours of one theme, named after what they mean.

    ``background`` and ``text`` are the page's own, as ``.streamlit/config.toml`` sets
    them.
    """

    background: str
    text: str
    query: str
    key: str
    value: str
    wrong: str
    right: str
    reference: str  # dashed lines that the model is compared with
    kept: str  # curves of earlier runs
    masked: str  # fill of a cell that may not be read
    masked_mark: str  # the sign on such a cell
    random: str  # badge of weights that nobody has trained
    series: tuple[str, ...]  # layers, heads, chosen dimensions


LIGHT = Palette(
    background="#ffffff",
    text="#1c2430",
    query="#0072b2",
    key="#b87400",
    value="#005f3b",
    wrong="#c8340e",
    right="#0072b2",
    reference="#5f6368",
    kept="#8b8f98",
    masked="#d9d9d9",
    masked_mark="#5f6368",
    random="#7a4fb5",
    series=("#0072b2", "#bf291a", "#0ca37e", "#861659", "#af8616", "#3930a0"),
)
DARK = Palette(
    background="#0e1117",
    text="#eef1f6",
    query="#56b4e9",
    key="#e8a13c",
    value="#8ff0c0",
    wrong="#ff7b5a",
    right="#56b4e9",
    reference="#9aa0ab",
    kept="#8a909c",
    masked="#3a3f4a",
    masked_mark="#b4bac4",
    random="#c6a4f2",
    series=("#56b4e9", "#f08a63", "#89fbd3", "#d04f90", "#fdd73b", "#8768f0"),
)

# Eleven samples of each colour scale, evenly spaced; pictures made of pixels are looked
# up here and charts name the same scale, so both show one number in one colour.
VIRIDIS = (
    "#440154", "#482575", "#414487", "#35608d", "#2a788e", "#21918d",
    "#22a884", "#43bf71", "#7ad151", "#bcdf27", "#fde725",
)  # fmt: skip
PURPLE_ORANGE = (
    "#411469", "#664796", "#8f83b7", "#b9b4d6", "#dadbeb", "#f3eeea",
    "#fce0ba", "#fbbf74", "#e8932f", "#c5690d", "#994a07",
)  # fmt: skip

# Ink of the numbers on a cell, and the shares of the limit where it changes: white on
# the dark end of viridis, white on both dark ends of the diverging scale.
LIGHT_INK = "#ffffff"
DARK_INK = "#1a1a1a"
VIRIDIS_INK_CHANGE = 0.475
DIVERGING_INK_CHANGES = (-0.65, 0.83)


def palette(dark: bool) -> Palette:
    """Return the colours of the dark or of the light theme."""
    return DARK if dark else LIGHT


def channels(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue, 0 to 255 each, of ``"#rrggbb"``."""
    digits = colour.removeprefix("#")
    red, green, blue = (int(digits[start : start + 2], 16) for start in (0, 2, 4))
    return red, green, blue


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, 0 for black and 1 for white.

    ``0.2126 R + 0.7152 G + 0.0722 B`` of the linear channels.

    Reference: WCAG 2.2, definition of relative luminance.
    """
    linear = [_linear(channel / 255) for channel in channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 (equal) to 21 (black on white).

    ``(lighter + 0.05) / (darker + 0.05)`` of their luminances.

    Reference: WCAG 2.2, definition of contrast ratio.
    """
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def nice_limit(value: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below ``value``.

    A chart whose axis ends there keeps its axis while a slider moves the numbers a
    little.

    Args:
        value: Largest size to be drawn, at least 0.

    Returns:
        The limit; 1.0 for a value of 0, so that an axis never has no length.

    Raises:
        ValueError: If ``value`` is negative or not finite.
    """
    require_number("value", value, 0.0)
    if value == 0:
        return 1.0
    power = math.floor(math.log10(value))
    limits = (
        float(f"{step}e{exponent}")
        for exponent in (power - 1, power, power + 1)
        for step in (1, 2, 5)
    )
    return next(limit for limit in limits if limit >= value)


def _linear(channel: float) -> float:
    if channel <= 0.04045:
        return channel / 12.92
    return ((channel + 0.055) / 1.055) ** 2.4
