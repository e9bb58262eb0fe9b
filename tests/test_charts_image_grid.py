from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from core.charts.heatmap import heatmap
from core.charts.image_grid import (
    image_grid,
    matrix_image,
    pixel_frame,
    pixel_map,
    png_bytes,
)
from core.charts.palette import PURPLE_ORANGE, VIRIDIS, channels, palette
from core.charts.tidy import matrix_frame


def test_weights_run_from_the_first_to_the_last_colour_of_viridis():
    picture = matrix_image(np.array([[0.0, 0.5, 1.0]]), cell=1)
    assert picture.dtype == np.uint8
    assert picture.tolist() == [
        [list(channels(VIRIDIS[0])), [33, 145, 141], list(channels(VIRIDIS[-1]))]
    ]


def test_scores_run_about_zero():
    picture = matrix_image(np.array([[-2.0, 2.0]]), look="diverging", limit=2.0, cell=1)
    assert picture[0, 0].tolist() == list(channels(PURPLE_ORANGE[0]))
    assert picture[0, 1].tolist() == list(channels(PURPLE_ORANGE[-1]))


def test_zero_lies_in_the_middle_of_the_diverging_colours():
    zero = matrix_image(np.zeros((1, 1)), look="diverging", cell=1)[0, 0].astype(int)
    assert np.abs(zero - channels(PURPLE_ORANGE[5])).max() <= 2


def test_numbers_beyond_the_limit_take_the_colour_of_the_end():
    picture = matrix_image(np.array([[-1.0, 0.0, 0.3, 0.9]]), limit=0.3, cell=1)[0]
    assert picture[0].tolist() == picture[1].tolist()
    assert picture[2].tolist() == picture[3].tolist()


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_not_finite_is_grey(dark):
    matrix = np.array([[np.nan, -np.inf, np.inf, 0.0]])
    picture = matrix_image(matrix, cell=1, dark=dark)[0].tolist()
    assert picture[:3] == [list(channels(palette(dark).masked))] * 3
    assert picture[3] == list(channels(VIRIDIS[0]))


def test_each_number_is_a_square_of_its_colour():
    matrix = np.array([[0.0, 0.1, 0.2], [0.3, 0.4, 0.5]])
    picture, small = matrix_image(matrix, cell=5), matrix_image(matrix, cell=1)
    assert picture.shape == (10, 15, 3)
    assert len(np.unique(small.reshape(-1, 3), axis=0)) == 6
    for row in range(2):
        for column in range(3):
            square = picture[5 * row : 5 * row + 5, 5 * column : 5 * column + 5]
            assert (square == small[row, column]).all()
    assert small[0, 0].tolist() == list(channels(VIRIDIS[0]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (512, 256)])
def test_a_matrix_of_any_size_becomes_a_picture_of_that_size(shape):
    picture = matrix_image(np.zeros(shape), cell=2)
    assert picture.shape == (2 * shape[0], 2 * shape[1], 3)


def test_a_dense_encoding_is_a_light_file():
    position, dimension = np.arange(512)[:, None], np.arange(256)
    table = np.sin(position / 10_000 ** (dimension / 256))
    assert len(png_bytes(matrix_image(table, look="diverging", cell=2))) < 400_000


def test_a_png_holds_the_very_pixels():
    picture = matrix_image(np.random.default_rng(0).random((7, 11)), cell=3)
    with Image.open(BytesIO(png_bytes(picture))) as image:
        assert image.format == "PNG"
        assert (np.asarray(image.convert("RGB")) == picture).all()


def test_a_grid_shows_every_matrix_at_its_place():
    maps = np.zeros((2, 3, 5, 7))
    maps[1, 2] = 1.0
    picture = image_grid(
        maps, row_labels=["layer 1", "layer 2"],
        column_labels=["head 1", "head 2", "head 3"], cell=4, gap=10,
    )  # fmt: skip
    yellow = (picture == channels(VIRIDIS[-1])).all(axis=-1)
    purple = (picture == channels(VIRIDIS[0])).all(axis=-1)
    assert yellow.sum() == 20 * 28
    assert purple.sum() == 5 * 20 * 28
    rows, columns = np.nonzero(yellow)
    assert rows.min() > np.nonzero(purple)[0].min() + 20
    assert columns.min() > np.nonzero(purple)[1].min() + 2 * 28
    assert (rows.max() - rows.min() + 1, columns.max() - columns.min() + 1) == (20, 28)


@pytest.mark.parametrize("dark", [False, True])
def test_a_grid_has_the_background_and_the_text_of_its_theme(dark):
    picture = image_grid(
        np.zeros((1, 1, 3, 3)), row_labels=["layer 1"], column_labels=["head 1"],
        dark=dark,
    )  # fmt: skip
    assert picture[-1, -1].tolist() == list(channels(palette(dark).background))
    assert (picture == channels(palette(dark).text)).all(axis=-1).any()


def test_longer_labels_make_room_for_themselves():
    short, long = (
        image_grid(np.zeros((1, 1, 3, 3)), row_labels=[label], column_labels=["h"])
        for label in ("a", "a much longer label")
    )
    assert long.shape[1] > short.shape[1] + 50


def test_pictures_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="matrix must have 2 dimensions, got 3"):
        matrix_image(np.zeros((2, 3, 3)))
    with pytest.raises(ValueError, match="look must be one of"):
        matrix_image(np.zeros((2, 3)), look="jet")
    with pytest.raises(ValueError, match=r"limit \(0\) must be at least"):
        matrix_image(np.zeros((2, 3)), limit=0.0)
    with pytest.raises(ValueError, match=r"cell \(0\) must be at least 1"):
        matrix_image(np.zeros((2, 3)), cell=0)
    with pytest.raises(ValueError, match="matrices must share one shape"):
        image_grid([[np.zeros((2, 3)), np.zeros((3, 2))]], row_labels=["a"],
                   column_labels=["b", "c"])  # fmt: skip
    with pytest.raises(ValueError, match=r"labels \(2 rows, 1 columns\) must fit"):
        image_grid(np.zeros((1, 1, 2, 2)), row_labels=["a", "b"], column_labels=["c"])
    with pytest.raises(ValueError, match="matrices must share one shape"):
        image_grid([], row_labels=[], column_labels=[])


def picture_in(frame):
    """Return the pixels of the file that the first row of a frame holds."""
    head, data = frame["picture"][0].split(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(BytesIO(b64decode(data))))


@pytest.mark.parametrize(("kind", "look"), [("weight", "weight"), ("map", "diverging")])
def test_a_pixel_frame_holds_one_pixel_a_cell(kind, look):
    matrix = np.linspace(-0.3, 0.3, 21).reshape(3, 7)
    frame = pixel_frame(matrix, kind=kind, limit=0.3, dark=True)
    expected = matrix_image(matrix, look=look, limit=0.3, cell=1, dark=True)
    np.testing.assert_array_equal(picture_in(frame), expected)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (1, 1)])
def test_a_pixel_frame_counts_rows_and_columns_and_marks_one_row(shape):
    frame = pixel_frame(np.zeros(shape), kind="encoding", marked=shape[0] - 1)
    assert len(frame) == max(shape)
    assert frame["position"].unique().tolist() == list(range(shape[0]))
    assert frame["dimension"].unique().tolist() == list(range(shape[1]))
    assert frame["picture"].notna().sum() == 1
    assert frame[frame["marked"]]["position"].unique().tolist() == [shape[0] - 1]
    assert not pixel_frame(np.zeros(shape), kind="encoding")["marked"].any()


def test_a_pixel_map_has_axes_legend_one_image_and_a_frame_round_the_marked_row():
    frame = pixel_frame(np.eye(11), kind="similarity", marked=4)
    chart = pixel_map(frame, kind="similarity", limit=2.0)
    unseen, picture, row = chart.to_dict()["layer"]
    assert unseen["encoding"]["color"]["scale"]["domain"] == [-2.0, 2.0]
    assert unseen["encoding"]["y"]["axis"]["title"] == "position"
    assert picture["mark"] == {"type": "image", "aspect": False, "smooth": False}
    assert picture["encoding"]["url"]["field"] == "picture"
    assert picture["encoding"]["key"]["field"] == "picture"
    assert row["transform"][0] == {"filter": "datum.marked"}


def test_a_pixel_map_draws_the_same_bands_as_a_heat_map():
    frame = pixel_frame(np.eye(11), kind="similarity")
    by_cell = heatmap(matrix_frame(torch.eye(11), kind="similarity"), kind="similarity")
    drawn = pixel_map(frame, kind="similarity").to_dict()["layer"][0]["encoding"]
    cells = by_cell.to_dict()["layer"][0]["encoding"]
    assert (drawn["x"], drawn["y"]) == (cells["x"], cells["y"])


def test_a_picture_is_refused_of_a_mask_and_of_no_cells():
    with pytest.raises(ValueError, match="kind must be one of 'weight', 'score'"):
        pixel_frame(np.eye(2), kind="allowed")
    with pytest.raises(ValueError, match=r"2 dimensions and cells, got \(0, 3\)"):
        pixel_frame(np.zeros((0, 3)))
    with pytest.raises(ValueError, match=r"limit \(0\) must be at least"):
        pixel_map(pixel_frame(np.eye(2)), limit=0.0)
