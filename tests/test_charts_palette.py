import tomllib
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from core.charts.image_grid import LOOKS, matrix_image
from core.charts.palette import (
    DARK,
    DARK_INK,
    DIVERGING_INK_CHANGES,
    LIGHT,
    LIGHT_INK,
    VIRIDIS_INK_CHANGE,
    channels,
    contrast,
    nice_limit,
    palette,
)

BACKGROUNDS = {"light": "#ffffff", "dark": "#0e1117"}
# Linear-light matrices of Machado, Oliveira and Fernandes (2009) at full severity.
BLINDNESS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def oklab(colour: str, blindness: str) -> np.ndarray:
    """Return how a colour looks, in a space where distance is difference."""
    share = np.array(channels(colour)) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(BLINDNESS[blindness]) @ linear, 0, 1)
    cone = np.array(
        [[0.4122214708, 0.5363325363, 0.0514459929],
         [0.2119034982, 0.6806995451, 0.1073969566],
         [0.0883024619, 0.2817188376, 0.6299787005]]
    ) @ linear  # fmt: skip
    return np.array(
        [[0.2104542553, 0.7936177850, -0.0040720468],
         [1.9779984951, -2.4285922050, 0.4505937099],
         [0.0259040371, 0.7827717662, -0.8086757660]]
    ) @ np.cbrt(cone)  # fmt: skip


@pytest.mark.parametrize(("name", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_background_and_text_are_those_of_the_theme(name, colours):
    config = Path(__file__).parent.parent / ".streamlit" / "config.toml"
    theme = tomllib.loads(config.read_text(encoding="utf-8"))["theme"][name]
    assert theme["backgroundColor"] == colours.background == BACKGROUNDS[name]
    assert theme["textColor"] == colours.text


def test_contrast_runs_from_1_to_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#123456", "#123456") == 1


def test_contrast_of_a_known_pair_is_the_published_one():
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("name", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_every_line_stands_out_against_its_background(name, colours):
    assert colours.background == BACKGROUNDS[name]
    lines = asdict(colours)
    series = lines.pop("series")
    for fill in ("background", "masked"):
        lines.pop(fill)
    for role, colour in [*lines.items(), *(("series", one) for one in series)]:
        assert contrast(colour, colours.background) >= 3, (role, colour)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_the_sign_on_a_masked_cell_can_be_read(colours):
    assert contrast(colours.masked_mark, colours.masked) >= 3
    assert contrast(colours.text, colours.masked) >= 4.5


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_colours_of_different_meaning_stay_apart_for_the_colour_blind(
    colours, blindness
):
    for group in (
        (colours.query, colours.key, colours.value),
        (colours.wrong, colours.right),
        colours.series,
    ):
        for first, second in combinations(group, 2):
            apart = oklab(first, blindness) - oklab(second, blindness)
            assert np.linalg.norm(apart) > 0.1, (first, second)


def test_the_two_themes_do_not_share_a_line_colour():
    assert not set(LIGHT.series) & set(DARK.series)
    assert palette(dark=True) is DARK
    assert palette(dark=False) is LIGHT


@pytest.mark.parametrize("look", LOOKS)
def test_the_ink_on_every_shade_can_be_read(look):
    values = np.linspace(0 if look == "weight" else -1, 1, 401)
    shades = matrix_image(values[None], look=look, cell=1)[0]
    low, high = DIVERGING_INK_CHANGES
    for value, shade in zip(values, shades, strict=True):
        if look == "weight":
            on_dark = value < VIRIDIS_INK_CHANGE
        else:
            on_dark = value < low or value > high
        ink = LIGHT_INK if on_dark else DARK_INK
        colour = "#" + "".join(f"{channel:02x}" for channel in shade)
        assert contrast(ink, colour) >= 3.8, (value, colour)


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (0, 1.0),
        (1, 1.0),
        (1.0001, 2.0),
        (3, 5.0),
        (5, 5.0),
        (7.2, 10.0),
        (0.031, 0.05),
        (0.2, 0.2),
        (0.1, 0.1),
        (1e-3, 1e-3),
        (999, 1000.0),
        (2e-9, 2e-9),
        (1e22, 1e22),
    ],
)
def test_a_nice_limit_rounds_up_to_1_2_or_5(value, limit):
    assert nice_limit(value) == limit


def test_a_nice_limit_is_never_below_nor_far_above():
    for value in np.geomspace(1e-12, 1e12, 997):
        assert value <= nice_limit(float(value)) <= 2.5000001 * value


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_nice_limit_refuses_what_is_no_size(value):
    with pytest.raises(ValueError, match="value"):
        nice_limit(value)
