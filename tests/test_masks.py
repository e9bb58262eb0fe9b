"""Masks: True = may attend, rows are queries, columns are keys."""

import pytest
import torch

from core.attention import MultiHeadAttention, scaled_dot_product_attention
from core.masks import (
    blocked_queries,
    blocked_query_warnings,
    causal_mask,
    padding_mask,
    sliding_window_mask,
)


def rows(mask: torch.Tensor) -> list[str]:
    """Return a ``(T, S)`` mask as text, one word a query."""
    return ["".join(str(int(cell)) for cell in row) for row in mask]


def test_causal_mask_hides_every_later_token_and_keeps_the_diagonal() -> None:
    assert rows(causal_mask(3)) == ["100", "110", "111"]
    assert causal_mask(3).dtype == torch.bool


@pytest.mark.parametrize("seq_len", [0, 1, 2, 7])
def test_causal_mask_is_the_lower_triangle_at_any_length(seq_len: int) -> None:
    expected = torch.ones(seq_len, seq_len, dtype=torch.bool).tril()
    torch.testing.assert_close(causal_mask(seq_len), expected)


def test_causal_padding_mask_of_three_real_tokens_in_five_hides_key_columns_only() -> (
    None
):
    mask = causal_mask(5) & padding_mask([3], 5)
    assert mask.shape == (1, 5, 5)
    assert rows(mask[0]) == ["10000", "11000", "11100", "11100", "11100"]


def test_padding_mask_opens_as_many_keys_as_each_sequence_is_long() -> None:
    mask = padding_mask([0, 2, 3], 3)
    assert mask.shape == (3, 1, 3)
    assert rows(mask[:, 0]) == ["000", "110", "111"]


def test_padding_mask_broadcasts_over_queries() -> None:
    batch, queries, keys = 2, 5, 7
    mask = padding_mask([7, 4], keys).expand(batch, queries, keys)
    assert mask[0].all()
    assert mask[1, :, :4].all()
    assert not mask[1, :, 4:].any()


def test_padding_mask_takes_a_tensor_of_lengths_like_a_list() -> None:
    torch.testing.assert_close(
        padding_mask(torch.tensor([1, 3]), 3), padding_mask([1, 3], 3)
    )


def test_padding_mask_of_no_sequence_or_no_key_is_empty() -> None:
    assert padding_mask([], 3).shape == (0, 1, 3)
    assert padding_mask([0, 0], 0).shape == (2, 1, 0)


def test_sliding_window_opens_the_same_reach_on_both_sides() -> None:
    assert rows(sliding_window_mask(5, 2)) == [
        "11000",
        "11100",
        "01110",
        "00111",
        "00011",
    ]


def test_sliding_window_and_causal_leave_the_last_tokens() -> None:
    mask = sliding_window_mask(5, 3) & causal_mask(5)
    assert rows(mask) == ["10000", "11000", "11100", "01110", "00111"]


@pytest.mark.parametrize("seq_len", [0, 1, 5])
def test_sliding_window_runs_from_the_diagonal_to_everything(seq_len: int) -> None:
    diagonal = torch.eye(seq_len, dtype=torch.bool)
    torch.testing.assert_close(sliding_window_mask(seq_len, 1), diagonal)
    assert sliding_window_mask(seq_len, max(seq_len, 1)).all()


def test_blocked_queries_are_the_rows_without_an_open_key() -> None:
    mask = torch.tensor([[True, False], [False, False], [False, True]])
    assert blocked_queries(mask).tolist() == [False, True, False]
    assert blocked_queries(torch.ones(3, 0, dtype=torch.bool)).all()


def test_a_warning_names_the_sequence_that_is_all_padding() -> None:
    mask = causal_mask(3) & padding_mask([3, 0, 1], 3)
    assert blocked_query_warnings(mask) == [
        "sequence 1 is all padding: its queries have nothing to attend to"
    ]
    assert blocked_query_warnings(padding_mask([3, 0, 1], 3)) == blocked_query_warnings(
        mask
    )


def test_a_warning_names_a_single_query_that_has_no_key() -> None:
    mask = causal_mask(3)
    mask[1] = False
    assert blocked_query_warnings(mask) == ["query 1 has nothing to attend to"]
    of_second = torch.stack([causal_mask(3), mask])
    expected = ["sequence 1, query 1 has nothing to attend to"]
    assert blocked_query_warnings(of_second) == expected
    assert blocked_query_warnings(of_second[:, None]) == expected


def test_a_query_blocked_in_one_head_only_is_not_named() -> None:
    one_head = torch.stack([torch.zeros(2, 2, dtype=torch.bool), causal_mask(2)])[None]
    assert blocked_query_warnings(one_head) == []


def test_no_warning_where_every_query_has_a_key() -> None:
    assert blocked_query_warnings(causal_mask(5) & padding_mask([1, 5], 5)) == []
    assert blocked_query_warnings(causal_mask(0)) == []
    assert blocked_query_warnings(padding_mask([], 3)) == []


def test_lengths_out_of_range_are_named_with_their_values() -> None:
    with pytest.raises(ValueError, match=r"lengths\[1\] \(6\) must be between 0 and 5"):
        padding_mask([3, 6], 5)
    with pytest.raises(ValueError, match=r"lengths\[0\] \(-1\) must be between"):
        padding_mask(torch.tensor([-1]), 5)
    with pytest.raises(ValueError, match=r"lengths\[0\] must be a whole number"):
        padding_mask(torch.tensor([2.5]), 5)
    with pytest.raises(ValueError, match=r"max_len \(-1\) must be at least 0"):
        padding_mask([], -1)


def test_sizes_out_of_range_are_named_with_their_values() -> None:
    with pytest.raises(ValueError, match=r"seq_len \(-2\) must be at least 0"):
        causal_mask(-2)
    with pytest.raises(ValueError, match=r"seq_len must be a whole number, got 2\.5"):
        causal_mask(2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"window \(0\) must be at least 1"):
        sliding_window_mask(5, 0)
    with pytest.raises(ValueError, match=r"seq_len \(-1\) must be at least 0"):
        sliding_window_mask(-1, 2)


def test_a_mask_that_is_not_boolean_is_refused() -> None:
    sentence = r"mask must be boolean, True = may attend, got dtype torch\.float32"
    with pytest.raises(ValueError, match=sentence):
        blocked_queries(torch.ones(3, 3))
    with pytest.raises(ValueError, match=r"mask must be \(\.\.\., T, S\), got shape"):
        blocked_queries(torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"mask must have 2 to 4 dimensions"):
        blocked_query_warnings(torch.ones(1, 1, 1, 2, 2, dtype=torch.bool))


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_row_zero_of_a_causal_map_is_all_on_key_zero() -> None:
    layer = MultiHeadAttention(6, 3).double().eval()
    x = draw(2, 5, 6)
    weights = layer.attend(x, x, x, mask=causal_mask(5)).attn_weights  # (2, 3, 5, 5)
    first_row = torch.tensor([1.0, 0, 0, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(weights[:, :, 0], first_row.expand(2, 3, 5))


def test_a_query_without_a_key_gets_zeros_and_finite_gradients() -> None:
    mask = causal_mask(4)
    mask[2] = False
    x = draw(1, 4, 6).requires_grad_()
    layer = MultiHeadAttention(6, 2, bias=False).double().eval()
    seen = layer.attend(x, x, x, mask=mask)
    assert torch.equal(seen.attn_weights[0, :, 2], torch.zeros(2, 4).double())
    assert torch.equal(seen.output[0, 2], torch.zeros(6).double())
    seen.output.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_a_sequence_of_padding_leaves_the_other_sequences_unchanged() -> None:
    x = draw(3, 5, 7)
    mask = causal_mask(5) & padding_mask([5, 0, 2], 5)
    together = scaled_dot_product_attention(x, x, x, mask=mask)
    assert together.output.isfinite().all()
    assert not together.attn_weights[1].any()
    for index in (0, 2):
        one = x[index : index + 1]
        alone = scaled_dot_product_attention(one, one, one, mask=mask[index])
        torch.testing.assert_close(together.output[index], alone.output[0])


def test_padding_gets_no_weight_at_all() -> None:
    layer = MultiHeadAttention(6, 3).double().eval()
    queries, keys = draw(2, 3, 6), draw(2, 5, 6, seed=1)
    mask = padding_mask([2, 5], 5)
    weights = layer.attend(queries, keys, keys, mask=mask).attn_weights
    assert weights.shape == (2, 3, 3, 5)
    assert not weights[0, :, :, 2:].any()
    torch.testing.assert_close(weights[0, :, :, :2].sum(-1), torch.ones(3, 3).double())


def test_one_query_spreads_its_weight_over_the_keys_of_the_context() -> None:
    query, context = draw(1, 1, 3), draw(1, 2, 3, seed=1)
    weights = scaled_dot_product_attention(query, context, context).attn_weights
    assert weights.shape == (1, 1, 2)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 1).double())


def test_attention_refuses_a_float_mask_of_zeros_and_ones() -> None:
    x = draw(1, 3, 2)
    with pytest.raises(ValueError, match=r"mask must be boolean, True = may attend"):
        scaled_dot_product_attention(x, x, x, mask=torch.ones(3, 3))


def test_masks_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    blocked_query_warnings(causal_mask(3) & padding_mask([2], 3))
    sliding_window_mask(3, 2)
    assert torch.equal(torch.get_rng_state(), before)
