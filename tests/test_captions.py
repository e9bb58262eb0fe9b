import pytest
import torch

from core.captions import (
    figure,
    map_sentence,
    mask_sentence,
    movement_sentence,
    percent,
    readers_sentence,
    row_sentence,
    scores_sentence,
    softmax_row_sentence,
    sums_sentence,
    sweep_sentence,
)
from core.scaling import SoftmaxRow

KEYS = ["the·0", "street·2", "it·3"]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.003, "under 1 %"),
        (0.006, "1 %"),
        (0.624, "62 %"),
        (0.994, "99 %"),
        (0.998, "over 99 %"),
        (1.0, "100 %"),
        (0.9999999, "100 %"),
    ],
)
def test_a_percentage_never_rounds_to_none_or_all(share, text):
    assert percent(share) == text


def test_the_largest_weight_of_a_row_is_named_with_query_and_key():
    sentence = row_sentence(torch.tensor([0.3, 0.62, 0.08]), "it·3", KEYS)
    assert sentence == 'query "it·3" gives 62 % to key "street·2"'


def test_two_equal_largest_weights_are_both_named():
    sentence = row_sentence(torch.tensor([0.4, 0.2, 0.4]), "it·3", KEYS)
    assert sentence == 'query "it·3" gives 40 % each to keys "the·0" and "it·3"'


def test_three_equal_largest_weights_are_all_named():
    weights = torch.tensor([0.3, 0.1, 0.3, 0.3])
    sentence = row_sentence(weights, "q", ["a", "b", "c", "d"])
    assert sentence == 'query "q" gives 30 % each to keys "a", "c" and "d"'


def test_many_equal_largest_weights_are_counted():
    weights = torch.tensor([0.225] * 4 + [0.1])
    sentence = row_sentence(weights, "it", ["a", "b", "c", "d", "e"])
    assert sentence == 'query "it" gives its largest weight, 22 %, to each of 4 keys'


def test_a_uniform_row_is_called_the_same_for_every_key():
    sentence = row_sentence(torch.full((4,), 0.25), "it", ["a", "b", "c", "d"])
    assert sentence == 'query "it" gives the same 25 % to each of 4 keys'


def test_a_uniform_row_counts_the_open_keys_alone():
    weights, allowed = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([True, True, False])
    sentence = row_sentence(weights, "it", KEYS, allowed=allowed)
    assert sentence == 'query "it" gives the same 50 % to each of 2 keys'


@pytest.mark.parametrize("allowed", [None, torch.tensor([False, False, False])])
def test_a_query_without_keys_has_nothing_to_attend_to(allowed):
    sentence = row_sentence(torch.zeros(3), "it", KEYS, allowed=allowed)
    assert sentence == 'query "it" has nothing to attend to: every key is masked'


def test_the_first_row_of_a_causal_map_is_all_on_key_0_by_necessity():
    weights, allowed = torch.tensor([1.0, 0, 0]), torch.tensor([True, False, False])
    sentence = row_sentence(weights, "the·0", KEYS, allowed=allowed)
    assert sentence == (
        'query "the·0" puts all its weight on key "the·0" by necessity: '
        "nothing else is allowed"
    )


def test_a_row_sentence_refuses_labels_that_do_not_fit():
    with pytest.raises(ValueError, match=r"key_labels \(3\) must be as many as 2"):
        row_sentence(torch.tensor([0.5, 0.5]), "it", KEYS)


def test_weights_with_a_gradient_are_described_as_well():
    weights = torch.tensor([0.3, 0.62, 0.08], requires_grad=True)
    assert "62 %" in row_sentence(weights, "it·3", KEYS)
    assert "62 %" in map_sentence(weights[None], ["it"], KEYS)
    assert "0.62" in movement_sentence(weights, KEYS)


def test_the_strongest_cell_of_a_map_is_named_by_row_and_column():
    attn_weights = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.09, 0.81]])
    assert map_sentence(attn_weights, ["cat", "it"], KEYS) == (
        'the largest weight of the map: query "it" gives 81 % to key "it·3"'
    )


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0)])
def test_a_map_without_weights_has_nothing_to_attend_to(shape):
    sentence = map_sentence(torch.zeros(shape), ["a", "b"][: shape[0]], KEYS)
    assert sentence == "no query of the map has anything to attend to"


def test_a_map_sentence_refuses_labels_that_do_not_fit():
    with pytest.raises(ValueError, match=r"query_labels \(1\) must be as many as 2"):
        map_sentence(torch.ones(2, 3) / 3, ["a"], KEYS)
    with pytest.raises(ValueError, match=r"key_labels \(3\) must be as many as 5"):
        map_sentence(torch.ones(2, 5) / 5, ["a", "b"], KEYS)


def test_a_sweep_sentence_gives_each_series_its_number():
    medians = {"raw": 0.8813, "÷ √d_k": 0.3499, "÷ d_k": 0.125}
    assert sweep_sentence("d_k", 64, "median largest weight", medians) == (
        "at d_k = 64 the median largest weight is 0.881 (raw), 0.35 (÷ √d_k) "
        "and 0.125 (÷ d_k)"
    )


def test_outputs_that_did_not_move_are_counted_exactly():
    moved = torch.tensor([0.0, 1e-9, 0.0, 1.25])
    assert movement_sentence(moved, ["a", "b", "c", "d"]) == (
        '2 of 4 outputs did not move at all; "d" moved most, by 1.25'
    )


def test_no_movement_is_said_to_be_exact():
    sentence = movement_sentence(torch.zeros(3), KEYS)
    assert sentence == "no output moved: all distances are exactly 0"


def test_the_sentence_of_a_softmax_row_follows_the_key_with_the_largest_raw_score():
    scores = torch.tensor([0.0, 3.0, 1.0])
    raw = SoftmaxRow(scores, torch.tensor([0.04, 0.84, 0.12]), scores / 8)
    scaled = SoftmaxRow(scores / 2, torch.tensor([0.2, 0.5, 0.3]), scores / 12)
    assert softmax_row_sentence(4, {"raw": raw, "÷ √d_k": scaled}) == (
        "at d_k = 4 key 1 gets 84 % (raw) and 50 % (÷ √d_k), with a gradient of "
        "0.375 (raw) and 0.25 (÷ √d_k)"
    )
    assert softmax_row_sentence(4, {"raw": raw}).endswith("of 0.375 (raw)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.97361, "0.974"),
        (2.34e-20, "2.34e-20"),
        (999.4, "999"),
        (4096.2, "4096"),
        (0.99973, "over 0.999"),
        (1.0, "1"),
    ],
)
def test_a_figure_has_three_digits_or_is_whole(value, text):
    assert figure(value) == text


def test_rows_of_nan_are_counted_apart():
    weights = torch.tensor([[0.25, 0.75], [torch.nan, torch.nan]])
    said = map_sentence(weights, ["a", "b"], ["c", "d"])
    assert said.endswith('query "a" gives 75 % to key "d"; 1 of 2 rows NaN')


def test_scores_are_told_by_their_ends_and_their_highest_pair():
    scores = torch.tensor([[0.5, -1.25], [2.0, 0.0]])
    assert scores_sentence(scores, ["a", "b"], ["c", "d"]) == (
        "scores from -1.25 to 2.00, before mask and softmax; the highest is of query "
        '"b" and key "c"'
    )


def test_a_mask_is_told_by_its_cells_its_rows_and_its_readers():
    mask = torch.tensor([[True, False], [True, True]])
    assert mask_sentence(mask) == "1 of 4 cells are masked (grey, ×)"
    assert readers_sentence(mask, 0, ["a", "b"]) == '2 of 2 queries may read key "a"'
    assert readers_sentence(mask, 1, ["a", "b"]) == '1 of 2 queries may read key "b"'
    with pytest.raises(ValueError, match=r"labels \(1\) must be as many as 2"):
        readers_sentence(mask, 0, ["a"])


@pytest.mark.parametrize(
    ("blocked", "said"),
    [
        ([False, False], "every row of weights still sums to 1"),
        ([True, False, True], "2 of 3 rows sum to 0, the others to 1"),
        ([True, True], "2 of 2 rows sum to 0"),
    ],
)
def test_blocked_rows_are_told_from_those_that_sum_to_one(blocked, said):
    assert sums_sentence(torch.tensor(blocked)) == said


@pytest.mark.parametrize(("value", "text"), [(999.91, "1000"), (-0.0, "0"), (0.0, "0")])
def test_a_figure_that_rounds_up_to_a_thousand_stays_readable(value, text):
    assert figure(value) == text
