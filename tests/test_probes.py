"""Probes: what moves when one token, or the order of the tokens, changes."""

import pytest
import torch
from torch import Tensor

from core.attention import MultiHeadAttention, scaled_dot_product_attention
from core.masks import causal_mask, padding_mask, sliding_window_mask
from core.positional import LearnedPositionalEncoding, SinusoidalPositionalEncoding
from core.probes import change_one_token, permutation_distances


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def layer_and_tokens(
    seq_len: int, *, batch: int = 2, dtype: torch.dtype = torch.float32
) -> tuple[MultiHeadAttention, Tensor]:
    layer = MultiHeadAttention(15, 3, generator=seeded(1)).to(dtype).eval()
    return layer, torch.randn(batch, seq_len, 15, generator=seeded()).to(dtype)


def attention_alone(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
) -> Tensor:
    """Attention without projections, one head."""
    return scaled_dot_product_attention(query, key, value, mask=mask).output


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seq_len", [1, 2, 11, 60])
def test_under_a_causal_mask_a_later_token_changes_nothing_earlier(
    seq_len: int, dtype: torch.dtype
) -> None:
    layer, x = layer_and_tokens(seq_len, dtype=dtype)
    for index in {0, seq_len // 2, seq_len - 1}:
        moved = change_one_token(
            layer, x, index, generator=seeded(2), mask=causal_mask(seq_len)
        )
        assert moved.shape == (2, seq_len)
        assert (moved[:, :index] == 0).all()
        assert (moved[:, index:] > 0).all()


def test_the_explained_path_hides_later_tokens_as_exactly() -> None:
    layer, x = layer_and_tokens(7)

    def explained(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None) -> Tensor:
        return layer.attend(q, k, v, mask=mask).output

    moved = change_one_token(explained, x, 4, generator=seeded(2), mask=causal_mask(7))
    assert (moved[:, :4] == 0).all()
    assert (moved[:, 4:] > 0).all()


def test_without_a_mask_one_token_moves_every_output() -> None:
    layer, x = layer_and_tokens(7)
    assert (change_one_token(layer, x, 3, generator=seeded(2)) > 0).all()


def test_a_window_lets_a_change_reach_as_far_as_it_is_wide() -> None:
    layer, x = layer_and_tokens(7)
    mask = sliding_window_mask(7, 2)
    moved = change_one_token(layer, x, 3, generator=seeded(2), mask=mask)
    assert (moved[0] > 0).tolist() == [False, False, True, True, True, False, False]


def test_a_change_in_the_padding_moves_only_the_padded_output() -> None:
    layer, x = layer_and_tokens(5)
    mask = padding_mask([3, 5], 5)
    moved = change_one_token(layer, x, 4, generator=seeded(2), mask=mask)
    assert (moved[0] > 0).tolist() == [False, False, False, False, True]
    assert (moved[1] > 0).all()


def test_distance_of_a_single_token_is_known_by_hand() -> None:
    # One token attends to itself alone: the output is the token.
    x = torch.tensor([[[3.0, 4.0]]], dtype=torch.float64)
    new = torch.randn(1, 2, generator=seeded(5))
    moved = change_one_token(attention_alone, x, 0, generator=seeded(5))
    torch.testing.assert_close(moved, (new - x[0]).norm()[None, None])


def test_the_probed_tokens_themselves_stay_as_they_are() -> None:
    layer, x = layer_and_tokens(5)
    kept = x.clone()
    change_one_token(layer, x, 1, generator=seeded())
    permutation_distances(layer, x, [4, 3, 2, 1, 0])
    assert torch.equal(x, kept)


@pytest.mark.parametrize("permutation", [[1, 0, 2, 3, 4], [3, 0, 4, 1, 2]])
def test_without_positions_outputs_change_places_as_tokens_do(
    permutation: list[int],
) -> None:
    layer, x = layer_and_tokens(5)
    distances = permutation_distances(layer, x, permutation)
    assert distances.after_undoing.max() < 1e-6
    assert distances.pooled.max() < 1e-6
    changed = torch.tensor(permutation) != torch.arange(5)
    assert (distances.moved[:, changed] > 0.01).all()  # equivariant, not invariant
    assert (distances.moved[:, ~changed] < 1e-6).all()


@pytest.mark.parametrize(
    "positions", [SinusoidalPositionalEncoding(5, 15), LearnedPositionalEncoding(5, 15)]
)
def test_positions_make_the_order_count(
    positions: SinusoidalPositionalEncoding | LearnedPositionalEncoding,
) -> None:
    layer, x = layer_and_tokens(5)
    distances = permutation_distances(layer, x, [3, 0, 4, 1, 2], positions=positions)
    assert (distances.after_undoing > 1e-4).all()
    assert (distances.pooled > 1e-5).all()


def test_a_causal_mask_lets_the_order_count_without_positions() -> None:
    layer, x = layer_and_tokens(5)
    distances = permutation_distances(layer, x, [1, 0, 2, 3, 4], mask=causal_mask(5))
    assert (distances.pooled > 1e-3).all()
    # Later queries read the same set of keys, in whatever order.
    assert (distances.after_undoing[:, 2:] < 1e-6).all()
    assert (distances.after_undoing[:, :2] > 1e-3).all()


def test_permutation_sends_the_named_token_to_each_place() -> None:
    # A layer that returns its tokens: after_undoing is 0 for the right order alone.
    def same(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None) -> Tensor:
        return q

    x = torch.tensor([[[0.0], [1.0], [5.0]]])
    distances = permutation_distances(same, x, [2, 0, 1])
    assert distances.moved.tolist() == [[5, 1, 4]]
    assert distances.after_undoing.tolist() == [[0, 0, 0]]
    assert distances.pooled.tolist() == [0]


@pytest.mark.parametrize("batch", [0, 1])
def test_probes_take_small_batches(batch: int) -> None:
    layer, x = layer_and_tokens(3, batch=batch)
    assert change_one_token(layer, x, 0, generator=seeded()).shape == (batch, 3)
    assert permutation_distances(layer, x, [2, 1, 0]).pooled.shape == (batch,)


def test_probes_leave_the_global_generator_alone() -> None:
    layer, x = layer_and_tokens(3)
    before = torch.get_rng_state()
    change_one_token(layer, x, 0, generator=seeded())
    permutation_distances(layer, x, [2, 1, 0])
    assert torch.equal(torch.get_rng_state(), before)


def test_bad_arguments_are_named_with_their_values() -> None:
    layer, x = layer_and_tokens(3)
    with pytest.raises(ValueError, match=r"index \(3\) must be between 0 and 2"):
        change_one_token(layer, x, 3, generator=seeded())
    with pytest.raises(
        ValueError, match=r"permutation \[0, 0, 1\] must hold each of 0"
    ):
        permutation_distances(layer, x, [0, 0, 1])
    with pytest.raises(
        ValueError, match=r"permutation \[0, 1\] must hold each of 0 to"
    ):
        permutation_distances(layer, x, [0, 1])
