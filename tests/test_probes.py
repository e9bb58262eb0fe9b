"""Probes: what moves when one token, or the order of the tokens, changes."""

import pytest
import torch
from torch import Tensor

from core.attention import MultiHeadAttention, scaled_dot_product_attention
from core.masks import causal_mask, padding_mask, sliding_window_mask
from core.positional import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
    sinusoidal_encoding,
)
from core.probes import (
    change_one_token,
    new_order,
    permutation_distances,
    position_tables,
    probe_order,
)


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


@pytest.mark.parametrize("d_model", [1, 3, 64])
@pytest.mark.parametrize("how", ["swap", "reverse", "shuffle"])
def test_only_positions_or_a_causal_mask_tell_a_layer_of_the_order(
    how: str, d_model: int
) -> None:
    tokens = torch.randn(7, d_model, generator=seeded(3))
    probe = probe_order(tokens, new_order(7, how, seed=2), seed=5)
    for field in ("after_undoing", "pooled"):
        assert getattr(probe.plain, field).max() < 1e-12
        assert getattr(probe.placed, field).max() > 1e-5
        assert getattr(probe.causal, field).max() > 1e-5
    assert probe.plain.moved.max() > 1e-3


def test_the_probe_of_an_order_is_seeded_and_takes_one_token() -> None:
    tokens = torch.randn(5, 6, generator=seeded(3))
    before = torch.get_rng_state()
    first, again, other = (
        probe_order(tokens, [1, 0, 2, 3, 4], seed=s) for s in (1, 1, 2)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.placed.moved, again.placed.moved)
    assert not torch.equal(first.placed.moved, other.placed.moved)
    alone = probe_order(tokens[:1], [0], seed=1)
    assert all(not distance.any() for part in alone for distance in part)


def test_new_orders_hold_each_position_once() -> None:
    assert new_order(5, "swap") == [4, 1, 2, 3, 0]
    assert new_order(5, "reverse") == [4, 3, 2, 1, 0]
    shuffled = new_order(11, "shuffle", seed=3)
    assert sorted(shuffled) == list(range(11))
    assert shuffled == new_order(11, "shuffle", seed=3)
    assert shuffled != new_order(11, "shuffle", seed=4)


@pytest.mark.parametrize("how", ["swap", "reverse", "shuffle"])
@pytest.mark.parametrize("seq_len", [0, 1])
def test_fewer_than_two_tokens_have_one_order(how: str, seq_len: int) -> None:
    assert new_order(seq_len, how) == list(range(seq_len))


def test_an_unknown_order_is_named() -> None:
    with pytest.raises(ValueError, match=r"how must be one of 'swap'.* got 'sort'"):
        new_order(3, "sort")
    with pytest.raises(ValueError, match=r"seq_len \(-1\) must be at least 0"):
        new_order(-1, "swap")


def test_tables_side_by_side_show_where_the_learned_one_ends() -> None:
    tables = position_tables(9, 3, max_len=8, seed=4, base=100.0)
    torch.testing.assert_close(tables.sinusoidal, sinusoidal_encoding(9, 3, base=100.0))
    assert tables.learned[8].isnan().all()
    layer = LearnedPositionalEncoding(8, 3, generator=seeded(4))
    torch.testing.assert_close(tables.learned[:8], layer.table.detach())
    short = position_tables(2, 3, max_len=8, seed=4)
    torch.testing.assert_close(short.learned, layer.table.detach()[:2])
    assert position_tables(0, 3, max_len=8, seed=4).learned.shape == (0, 3)


def test_tables_past_the_learned_one_carry_its_refusal_with_both_numbers() -> None:
    before = torch.get_rng_state()
    assert position_tables(8, 3, max_len=8, seed=4).refusal == ""
    assert torch.equal(before, torch.get_rng_state())
    refusal = position_tables(9, 3, max_len=8, seed=4).refusal
    assert refusal.startswith("seq_len (9) must be at most max_len (8)")
    with pytest.raises(ValueError, match=r"seq_len \(-1\) must be at least 0"):
        position_tables(-1, 3, max_len=8, seed=4)


def test_a_negative_seed_is_refused_whatever_is_drawn() -> None:
    rule = r"seed \(-1\) must be between 0 and 2147483647"
    for how in ("swap", "reverse", "shuffle"):
        with pytest.raises(ValueError, match=rule):
            new_order(3, how, seed=-1)
    with pytest.raises(ValueError, match=rule):
        probe_order(torch.zeros(3, 4), [0, 1, 2], seed=-1)
    with pytest.raises(ValueError, match=rule):
        position_tables(3, 4, max_len=8, seed=-1)
