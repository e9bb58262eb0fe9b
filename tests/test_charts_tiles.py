import json

import pytest
import torch

from core.charts import cached_spec, multiples
from core.charts.tiles import (
    Tile,
    maps_of_heads,
    mean_name,
    multiples_frame,
    side_by_side,
)

MAPS = torch.tensor(
    [[[1.0, 0.0], [0.25, 0.75]], [[1.0, 0.0], [0.75, 0.25]], [[1.0, 0.0], [0.5, 0.5]]]
)
LABELS = ["a", "b"]


def places(frame, tile):
    part = frame[frame["tile"] == tile]
    return list(zip(part["across"], part["down"], strict=True))


def test_the_maps_of_heads_come_with_their_mean_each_under_its_name():
    tiles = maps_of_heads(MAPS, LABELS)
    assert list(tiles) == ["head 1", "head 2", "head 3", "mean of 3 heads"]
    mean = tiles[mean_name(3)].matrix
    torch.testing.assert_close(mean, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    assert list(maps_of_heads(MAPS[:1], LABELS)) == ["head 1"]


def test_tiles_stand_in_lines_with_room_for_names_and_gaps():
    tiled = multiples_frame(maps_of_heads(MAPS, LABELS), LABELS)  # four: two a line
    assert places(tiled.frame, "head 1") == [(0, 1), (1, 1), (0, 2), (1, 2)]
    assert places(tiled.frame, "head 2") == [(3, 1), (4, 1), (3, 2), (4, 2)]
    assert places(tiled.frame, "head 3") == [(0, 4), (1, 4), (0, 5), (1, 5)]
    assert (tiled.across, tiled.down) == (5, 6)
    taken = tiled.frame[["across", "down"]]
    assert len(taken.drop_duplicates()) == len(taken) == 16


def test_a_cell_keeps_its_number_its_labels_and_whether_it_is_masked():
    mask = torch.tensor([[True, False], [True, True]])
    tiled = multiples_frame(
        maps_of_heads(MAPS, LABELS), LABELS, mask=mask, chosen="head 2"
    )
    second = tiled.frame[tiled.frame["tile"] == "head 2"]
    assert second["query"].tolist() == ["a", "a", "b", "b"]
    assert second["key"].tolist() == ["a", "b", "a", "b"]
    assert second["status"].tolist() == ["allowed", "masked", "allowed", "allowed"]
    assert second["weight"].fillna(-1).tolist() == [1.0, -1.0, 0.75, 0.25]
    assert second["first"].tolist() == [True, False, False, False]
    assert second["chosen"].all()
    assert tiled.frame["chosen"].sum() == 4


def test_values_stand_in_one_line_with_columns_numbered_through():
    written = torch.arange(12.0).view(2, 6)
    tiled = side_by_side({"1": written[:, :4], "2": written[:, 4:]}, LABELS)
    assert "".join(tiled.frame["dimension"]) == "0123" * 2 + "45" * 2
    assert places(tiled.frame, "2") == [(5, 1), (6, 1), (5, 2), (6, 2)]
    assert (tiled.across, tiled.down) == (7, 3)


def test_all_tiles_share_one_scale_and_the_chosen_name_is_marked():
    tiled = multiples_frame(maps_of_heads(MAPS, LABELS), LABELS)
    spec = cached_spec(
        multiples, tiled.frame, across=tiled.across, down=tiled.down, legend=False
    )
    cells, _, names = spec["layer"]
    colour = cells["encoding"]["color"]
    assert colour["scale"]["domain"] == [0.0, 1.0]
    assert colour["legend"] is None
    assert cells["encoding"]["x"]["scale"]["domain"] == [0, 1, 2, 3, 4]
    assert "▸" in json.dumps(names, ensure_ascii=False)


def test_no_tile_and_impossible_places_are_refused():
    with pytest.raises(ValueError, match="at least one matrix"):
        multiples_frame({}, LABELS)
    with pytest.raises(ValueError, match=r"column_labels \(1\) must name all 2"):
        multiples_frame({"x": Tile(MAPS[0], ["a"])}, LABELS)
    frame = multiples_frame(maps_of_heads(MAPS, LABELS), LABELS).frame
    with pytest.raises(ValueError, match=r"across \(0\) must be at least 1"):
        multiples(frame, across=0, down=1)
    with pytest.raises(ValueError, match="kind must be one of"):
        multiples(frame, kind="allowed", across=1, down=1)
    with pytest.raises(ValueError, match=r"limit \(0\) must be at least"):
        multiples(frame, limit=0.0, across=1, down=1)
