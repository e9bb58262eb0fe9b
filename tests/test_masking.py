"""One mask at work: what the page on masks draws, from plain values."""

import pytest
import torch
from torch import nn

from core.checks import MAX_SEED
from core.masking import (
    MASKS,
    MAX_TOKENS,
    MaskedAttention,
    Reach,
    kept,
    masked_attention,
    movement_of_outputs,
    reach_of_movement,
    read_tokens,
    torch_conventions,
    weight_on_masked,
)

WORDS = ["the", "cat", "sat", "on", "the", "mat"]


def attend(
    kind: str,
    tokens: list[str] = WORDS,
    *,
    length: int = 3,
    window: int = 2,
    d_k: int = 16,
    seed: int = 0,
) -> MaskedAttention:
    length = min(length, len(tokens))
    return masked_attention(
        tokens, kind, length=length, window=window, d_k=d_k, seed=seed
    )


def rows(mask: torch.Tensor) -> list[str]:
    return ["".join(str(int(cell)) for cell in row) for row in mask]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", ["11111"] * 5),
        ("causal", ["10000", "11000", "11100", "11110", "11111"]),
        ("padding", ["11100"] * 5),
        ("causal + padding", ["10000", "11000", "11100", "11100", "11100"]),
        ("sliding window", ["11000", "11100", "01110", "00111", "00011"]),
        ("sliding window + padding", ["11000", "11100", "01100", "00100", "00000"]),
    ],
)
def test_each_kind_of_mask_opens_the_cells_its_name_says(kind, expected) -> None:
    assert rows(attend(kind, list("abcde")).mask) == expected


def test_every_kind_is_worked_by_hand_above() -> None:
    assert len(MASKS) == 6


@pytest.mark.parametrize("kind", MASKS)
def test_weights_before_know_nothing_of_the_mask_and_weights_after_obey_it(
    kind,
) -> None:
    seen = attend(kind)
    torch.testing.assert_close(seen.weights_before, seen.scores.softmax(dim=-1))
    hidden = seen.scores.masked_fill(~seen.mask, -torch.inf).softmax(dim=-1)
    expected = hidden.masked_fill(seen.blocked[:, None], 0.0)
    torch.testing.assert_close(seen.weights_after, expected)
    assert not seen.weights_after[~seen.mask].any()


@pytest.mark.parametrize("kind", MASKS)
def test_rows_sum_to_one_or_to_nothing_where_every_key_is_masked(kind) -> None:
    seen = attend(kind, length=1)
    expected = 1.0 - seen.blocked.float()
    torch.testing.assert_close(seen.weights_after.sum(dim=-1), expected)
    torch.testing.assert_close(seen.blocked, ~seen.mask.any(dim=-1))


def test_row_zero_of_the_causal_map_is_all_on_key_zero() -> None:
    assert attend("causal").weights_after[0].tolist() == [1.0, 0, 0, 0, 0, 0]


def test_equal_words_get_equal_scores_and_labels_that_differ() -> None:
    seen = attend("causal")
    assert seen.labels == ["the·0", "cat", "sat", "on", "the·4", "mat"]
    assert torch.equal(seen.embeddings[0], seen.embeddings[4])
    torch.testing.assert_close(seen.scores[0], seen.scores[4])


def test_the_warning_names_the_sequence_or_the_queries_without_a_key() -> None:
    assert attend("causal").warning == ""
    padding = attend("padding", length=0).warning
    assert padding.startswith("the sequence is all padding")
    five = list("abcde")
    alone = attend("sliding window + padding", five, length=3).warning
    assert alone == 'query "e" has nothing to attend to'
    several = attend("sliding window + padding", five, length=2).warning
    assert several == 'queries "d", "e" have nothing to attend to'


def test_padded_queries_that_read_on_are_named() -> None:
    five = list("abcde")
    assert attend("causal + padding", five, length=3).reading_on == ["d", "e"]
    assert attend("sliding window + padding", five, length=3).reading_on == ["d"]
    assert attend("padding", five, length=0).reading_on == []
    assert attend("causal", five).reading_on == []


def test_one_token_reads_itself() -> None:
    seen = attend("causal", ["a"], d_k=1)
    assert seen.weights_after.tolist() == [[1.0]]


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others() -> None:
    first, again, other = attend("none"), attend("none"), attend("none", seed=1)
    assert torch.equal(first.scores, again.scores)
    assert not torch.allclose(first.scores, other.scores)


@pytest.mark.parametrize("d_k", [1, 3, 16])
@pytest.mark.parametrize("index", [0, 2, 5])
def test_under_a_causal_mask_outputs_before_the_changed_token_stay_exactly(
    index, d_k
) -> None:
    moved = movement_of_outputs(attend("causal", d_k=d_k), index, seed=0).distances
    assert torch.equal(moved[:index], torch.zeros(index))
    assert (moved[index:] > 0).all()


@pytest.mark.parametrize("kind", MASKS)
def test_only_the_token_itself_and_its_readers_move(kind) -> None:
    seen = attend(kind, length=4)
    for index in range(len(WORDS)):
        moved = movement_of_outputs(seen, index, seed=0).distances
        others = ~seen.mask[:, index]
        others[index] = False
        assert not moved[others].any()
        assert (moved[seen.mask[:, index]] > 0).all()


def test_the_reach_of_a_movement_is_counted() -> None:
    assert reach_of_movement(torch.tensor([0.0, 0.0, 0.0]), 2) is Reach.NONE
    assert reach_of_movement(torch.tensor([0.0, 0.0, 0.5]), 2) is Reach.OWN
    assert reach_of_movement(torch.tensor([0.0, 0.5, 0.0]), 2) is Reach.SOME
    assert reach_of_movement(torch.tensor([0.0, 0.1, 0.5]), 2) is Reach.SOME
    assert reach_of_movement(torch.tensor([0.2, 0.1, 0.5]), 2) is Reach.EVERY


def test_a_movement_names_the_outputs_that_stay_and_its_reach() -> None:
    moved = movement_of_outputs(attend("causal"), 2, seed=0)
    assert moved.still == ["the·0", "cat"]
    assert moved.reach is Reach.SOME
    assert movement_of_outputs(attend("none"), 2, seed=0).reach is Reach.EVERY
    for seed in (-1, MAX_SEED + 1):
        with pytest.raises(ValueError, match=rf"seed \({seed}\) must be between 0"):
            movement_of_outputs(attend("causal"), 2, seed=seed)
    movement_of_outputs(attend("causal", seed=MAX_SEED), 2, seed=MAX_SEED)


def test_a_mask_with_its_empty_rows_opened_keeps_the_others() -> None:
    mask = torch.tensor([[True, False], [False, False]])
    assert kept(mask).tolist() == [[True, False], [True, True]]


def test_weight_on_masked_keys_is_summed_by_query_and_nan_is_none() -> None:
    weights = torch.tensor([[0.25, 0.75], [0.5, 0.5], [torch.nan, torch.nan]])
    mask = torch.tensor([[True, False], [True, True], [False, False]])
    assert weight_on_masked(weights, mask).tolist() == [0.75, 0.0, 0.0]


@pytest.mark.parametrize("kind", MASKS)
def test_pytorch_agrees_with_core_where_each_interface_gets_its_own_form(kind) -> None:
    seen = attend(kind, length=2)
    found = torch_conventions(seen)
    assert torch.equal(found.function_mask, seen.mask)
    assert torch.equal(found.layer_mask, ~seen.mask)
    assert found.difference < 1e-6
    open_rows = ~seen.blocked
    torch.testing.assert_close(
        found.right_weights[open_rows], seen.weights_after[open_rows]
    )
    assert found.right_weights[seen.blocked].isnan().all()


def test_the_other_form_opens_what_should_be_hidden_and_leaves_nan() -> None:
    seen = attend("causal")
    found = torch_conventions(seen)
    on_hidden = weight_on_masked(found.opposite_weights, seen.mask)
    torch.testing.assert_close(on_hidden, torch.tensor([1.0, 1, 1, 1, 1, 0]))
    assert found.opposite_leak == pytest.approx(1)
    assert found.nan_rows == 1
    assert found.opposite_weights[5].isnan().all()


def test_zeros_and_ones_are_added_and_hide_nothing() -> None:
    seen = attend("causal")
    expected = (seen.scores + seen.mask.float()).softmax(dim=-1)
    found = torch_conventions(seen)
    torch.testing.assert_close(found.float_weights, expected)
    hidden = expected.masked_fill(seen.mask, 0.0).sum(dim=-1)
    assert found.float_leak == pytest.approx(hidden.max().item())


def test_the_differences_see_a_layer_that_is_not_the_same(monkeypatch) -> None:
    def other_layer(layer):
        own = torch.Generator().manual_seed(9)
        torch_layer = nn.MultiheadAttention(
            layer.d_model, 1, bias=False, batch_first=True, device="meta"
        ).to_empty(device="cpu")
        for parameter in torch_layer.parameters():
            nn.init.normal_(parameter, generator=own)
        return torch_layer

    monkeypatch.setattr("core.masking.torch_layer", other_layer)
    assert torch_conventions(attend("causal")).difference > 0.1


def test_nothing_here_touches_the_global_generator() -> None:
    before = torch.get_rng_state()
    seen = attend("causal")
    movement_of_outputs(seen, 2, seed=0)
    torch_conventions(seen)
    assert torch.equal(torch.get_rng_state(), before)


def test_tokens_are_the_words_of_a_text_or_plain_positions() -> None:
    assert read_tokens("  a  b a ", 1) == ["a", "b", "a"]
    assert read_tokens(None, 3) == ["0", "1", "2"]
    assert len(read_tokens(None, MAX_TOKENS)) == MAX_TOKENS
    with pytest.raises(ValueError, match="text has 0 words"):
        read_tokens("   ", 3)
    with pytest.raises(ValueError, match=r"seq_len \(0\) must be between 1 and 16"):
        read_tokens(None, 0)
    with pytest.raises(ValueError, match=r"seq_len \(17\) must be between 1 and 16"):
        read_tokens(None, MAX_TOKENS + 1)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "upside down"}, "kind must be one of 'causal'"),
        ({"length": 7}, r"length \(7\) must be between 0 and 6"),
        ({"length": -1}, r"length \(-1\) must be between 0 and 6"),
        ({"window": 0}, r"window \(0\) must be at least 1"),
        ({"d_k": 0}, r"d_k \(0\) must be between 1 and"),
        ({"d_k": 10**9}, r"d_k \(1000000000\) must be between 1 and"),
        ({"seed": -1}, r"seed \(-1\) must be between 0 and"),
        ({"seed": 2**64}, r"seed \(18446744073709551616\) must be between"),
        ({"tokens": []}, r"len\(tokens\) \(0\) must be between 1 and 16"),
        ({"tokens": ["a"] * 17}, r"len\(tokens\) \(17\) must be between 1 and 16"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_rule(settings, sentence) -> None:
    usual = {
        "tokens": WORDS, "kind": "causal", "length": 3, "window": 2, "d_k": 5, "seed": 0
    }  # fmt: skip
    with pytest.raises(ValueError, match=sentence):
        masked_attention(**(usual | settings))


def test_a_changed_token_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match=r"index \(6\) must be between 0 and 5"):
        movement_of_outputs(attend("causal"), 6, seed=0)
