"""Maps as pictures and as a film: sizes, colours, frames."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from core.charts.animation import SIDE, gif_bytes, map_picture
from core.charts.image_grid import matrix_image
from core.charts.palette import channels, palette

LABELS = ["CLS", "0", "1"]


def picture_of(matrix, **options):
    labels = ["CLS", *map(str, range(len(matrix) - 1))]
    return map_picture(matrix, labels=labels, title="Layer 1, head 1", **options)


def test_pictures_are_of_one_size_whatever_the_number_of_positions():
    shapes = {picture_of(np.eye(size)).shape for size in (1, 2, 3, 61, 301)}
    assert len(shapes) == 1


def test_a_cell_has_the_colour_of_its_weight_rows_down_and_columns_across():
    matrix = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.5], [0.2, 0.0, 0.0]])
    picture = picture_of(matrix)
    colours = matrix_image(matrix, cell=1)
    top, left = 34, 74
    for row in range(3):
        for column in range(3):
            y, x = (int((n + 0.5) * SIDE / 3) for n in (row, column))
            np.testing.assert_array_equal(
                picture[top + y, left + x], colours[row, column]
            )


def test_round_positions_are_named_and_cls_where_there_is_room(monkeypatch):
    written = []

    def note(pen, place, text, **options):
        written.append(text)

    monkeypatch.setattr("core.charts.animation.ImageDraw.ImageDraw.text", note)
    picture_of(np.eye(61))
    assert written[:12:2] == ["CLS", "10", "20", "30", "40", "50"]
    written.clear()
    picture_of(np.eye(6))
    assert written[:12:2] == ["CLS", "0", "1", "2", "3", "4"]


@pytest.mark.parametrize("dark", [False, True])
def test_the_background_is_that_of_the_theme(dark):
    expected = channels(palette(dark).background)
    assert tuple(picture_of(np.eye(2), dark=dark)[0, 0]) == expected


def test_a_film_has_a_frame_a_picture_and_the_time_of_each():
    pictures = [picture_of(np.eye(3) * weight) for weight in (1.0, 0.5, 0.25)]
    with Image.open(BytesIO(gif_bytes(pictures, seconds=0.4))) as film:
        assert film.format == "GIF"
        assert film.n_frames == 3
        assert film.info["duration"] == 400
        assert film.info["loop"] == 0
        for number, picture in enumerate(pictures):
            film.seek(number)
            shown = np.asarray(film.convert("RGB")).astype(int)
            assert np.abs(shown - picture).max() <= 40


def test_what_is_no_map_and_an_empty_film_are_refused():
    with pytest.raises(ValueError, match=r"matrix \(2, 3\) must be square"):
        map_picture(np.ones((2, 3)), labels=LABELS, title="")
    with pytest.raises(ValueError, match="got 3 labels"):
        map_picture(np.eye(2), labels=LABELS, title="")
    with pytest.raises(ValueError, match=r"number of pictures \(0\)"):
        gif_bytes([], seconds=1.0)
    with pytest.raises(ValueError, match="seconds"):
        gif_bytes([picture_of(np.eye(2))], seconds=0.0)
