"""Scaling: the size of scores, and what it does to the softmax."""

import math

import pytest
import torch
from torch import Tensor

from core.attention import scaled_dot_product_attention
from core.initial import generator_from
from core.scaling import (
    DIVISORS,
    POWERS_OF_TWO,
    expected_variance,
    jacobian_norm,
    lab_table,
    measured_divisor,
    saturation_of_scores,
    saturation_sweep,
    softmax_row,
    softmax_saturation,
    trial_band,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def direct_scores(d_k: int, num_keys: int, num_trials: int, spread: float) -> Tensor:
    """Draw every query and key and multiply them out: slow and beyond doubt."""
    generator = seeded(99)
    query = spread * torch.randn(num_trials, 1, d_k, generator=generator)
    key = spread * torch.randn(num_trials, num_keys, d_k, generator=generator)
    return (query @ key.transpose(-2, -1)).squeeze(1)  # (trials, keys)


def norm_of_whole_matrix(attn_weights: Tensor) -> Tensor:
    outer = attn_weights[..., :, None] * attn_weights[..., None, :]
    return (torch.diag_embed(attn_weights) - outer).flatten(-2).norm(dim=-1)


@pytest.mark.parametrize("num_keys", [2, 3, 17])
def test_jacobian_norm_is_the_norm_of_the_matrix_autograd_finds(num_keys: int) -> None:
    scores = 3 * torch.randn(num_keys, generator=seeded(), dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores)
    torch.testing.assert_close(jacobian_norm(scores.softmax(0)), jacobian.norm())


def test_jacobian_norm_runs_from_one_hot_to_one_half() -> None:
    rows = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    expected = torch.tensor([0.0, 0.5, math.sqrt(2) / 3])
    torch.testing.assert_close(jacobian_norm(rows), expected)
    many = torch.randn(2_000, 5, generator=seeded()).mul(3).softmax(-1)
    assert (jacobian_norm(many) <= 0.5 + 1e-6).all()


def test_jacobian_norm_of_a_sharp_row_survives_rounding() -> None:
    # 1 - p of the largest weight is 0 in float32 here.
    scores = torch.tensor([[30.0, 0.0, 1.0, -2.0]])
    exact = norm_of_whole_matrix(scores.double().softmax(-1))
    norm = jacobian_norm(scores.softmax(-1))
    assert exact.item() < 1e-11
    torch.testing.assert_close(norm.double(), exact, rtol=1e-5, atol=0)


def test_statistics_of_two_equal_keys_are_known() -> None:
    row = saturation_of_scores(torch.tensor([[1.0, 1.0], [3.0, 1.0]]))
    torch.testing.assert_close(row.score_variance, torch.tensor([0.0, 2.0]))
    sharp = 1 / (1 + math.exp(-2))
    torch.testing.assert_close(row.largest_weight, torch.tensor([0.5, sharp]))
    bits = -sharp * math.log2(sharp) - (1 - sharp) * math.log2(1 - sharp)
    torch.testing.assert_close(row.entropy, torch.tensor([1.0, bits]))
    norm = 2 * sharp * (1 - sharp)
    torch.testing.assert_close(row.jacobian_norm, torch.tensor([0.5, norm]))


@pytest.mark.parametrize("d_k", [1, 2, 5, 64])
@pytest.mark.parametrize("spread", [1.0, 0.5])
def test_fast_draw_is_distributed_as_multiplied_out(d_k: int, spread: float) -> None:
    num_keys, num_trials = 7, 1_000
    runs = [
        softmax_saturation(
            d_k,
            num_keys=num_keys,
            num_trials=num_trials,
            generator=seeded(seed),
            scale=1.0,
            spread=spread,
        )
        for seed in range(5)
    ]
    direct = saturation_of_scores(direct_scores(d_k, num_keys, 5_000, spread))
    for name, expected in direct._asdict().items():
        values = torch.cat([getattr(run, name) for run in runs])
        # Kolmogorov–Smirnov: 0.039 is exceeded once in a thousand at 5,000 a side.
        grid = torch.cat([values, expected]).sort().values
        gap = (
            torch.searchsorted(values.sort().values, grid, right=True)
            - torch.searchsorted(expected.sort().values, grid, right=True)
        ).abs().max() / 5_000
        assert gap < 0.045, name


@pytest.mark.parametrize("d_k", [1, 2, 7])
def test_variance_of_a_row_varies_as_the_length_of_its_query_does(d_k: int) -> None:
    # E[v] = d and E[v²] = (d² + 2d)(n + 1)/(n - 1): a fixed |q|² = d would lack 2d.
    num_keys, num_trials = 33, 1_000
    variance = torch.cat(
        [
            softmax_saturation(
                d_k,
                num_keys=num_keys,
                num_trials=num_trials,
                generator=seeded(seed),
                scale=1.0,
            ).score_variance
            for seed in range(6)
        ]
    )
    assert variance.mean().item() == pytest.approx(d_k, rel=0.06)
    second = (d_k**2 + 2 * d_k) * (num_keys + 1) / (num_keys - 1)
    assert variance.square().mean().item() == pytest.approx(second, rel=0.15)


def test_raw_scores_grow_as_the_root_of_the_width_and_saturate_eight_keys() -> None:
    widths = (4, 16, 64, 256, 1024)
    sweep = saturation_sweep(widths, num_keys=8, num_trials=1_000, generator=seeded())
    raw, scaled = sweep["nothing"], sweep["sqrt_d_k"]
    expected = torch.tensor([2.0, 4.0, 8.0, 16.0, 32.0]).double()
    spread = raw.score_variance.mean(dim=-1).sqrt()
    torch.testing.assert_close(spread, expected, rtol=0.05, atol=0)
    largest = raw.largest_weight.mean(dim=-1)
    expected = torch.tensor([0.53, 0.75, 0.88, 0.94, 0.97]).double()
    torch.testing.assert_close(largest, expected, rtol=0, atol=0.02)
    spread = scaled.score_variance.mean(dim=-1).sqrt()
    torch.testing.assert_close(spread, torch.ones(5).double(), rtol=0.05, atol=0)
    flat = scaled.largest_weight.mean(dim=-1)
    torch.testing.assert_close(flat, torch.full((5,), 0.35).double(), rtol=0, atol=0.02)


def test_raw_gradient_vanishes_with_width_and_scaled_gradient_does_not() -> None:
    sweep = saturation_sweep(num_keys=16, num_trials=500, generator=seeded())
    raw = trial_band(sweep["nothing"].jacobian_norm).median
    scaled = trial_band(sweep["sqrt_d_k"].jacobian_norm).median
    assert raw[-1] < 1e-3
    assert (scaled > 0.1).all()
    too_flat = trial_band(sweep["d_k"].entropy).median
    assert too_flat[-1] > 3.99  # of 4 bits: every key gets the same weight


def test_scaling_by_default_is_that_of_attention() -> None:
    d_k, num_keys = 5, 3
    row = softmax_row(d_k, num_keys=num_keys, generator=seeded(4))["sqrt_d_k"]
    generator = seeded(4)
    query = torch.randn(1, d_k, generator=generator)
    key = torch.randn(num_keys, d_k, generator=generator)
    expected = scaled_dot_product_attention(query, key, key)
    torch.testing.assert_close(row.scores, expected.scores[0])
    torch.testing.assert_close(row.attn_weights, expected.attn_weights[0])
    default, named = (
        softmax_saturation(
            d_k, num_keys=3, num_trials=7, generator=seeded(), scale=scale
        )
        for scale in (None, 1 / math.sqrt(d_k))
    )
    torch.testing.assert_close(default, named)


def test_sweep_gives_every_divisor_the_same_scores() -> None:
    sweep = saturation_sweep((4, 9), num_keys=3, num_trials=5, generator=seeded())
    raw = sweep["nothing"].score_variance
    divisor = torch.tensor([[4.0], [9.0]])
    torch.testing.assert_close(sweep["sqrt_d_k"].score_variance, raw / divisor)
    torch.testing.assert_close(sweep["d_k"].score_variance, raw / divisor.square())


def test_a_sweep_of_one_width_is_a_single_measurement() -> None:
    sweep = saturation_sweep((6,), num_keys=3, num_trials=5, generator=seeded(2))
    single = softmax_saturation(6, num_keys=3, num_trials=5, generator=seeded(2))
    for swept, alone in zip(sweep["sqrt_d_k"], single, strict=True):
        torch.testing.assert_close(swept[0], alone)


@pytest.mark.parametrize("num_keys", [2, 64])
@pytest.mark.parametrize("num_trials", [1, 500])
@pytest.mark.parametrize("spread", [0.0, 0.1, 10.0, 100.0])
def test_sweep_stays_finite_at_every_extreme(
    num_keys: int, num_trials: int, spread: float
) -> None:
    sweep = saturation_sweep(
        num_keys=num_keys, num_trials=num_trials, generator=seeded(), spread=spread
    )
    assert list(sweep) == list(DIVISORS)
    for saturation in sweep.values():
        for statistic in saturation:
            assert statistic.shape == (len(POWERS_OF_TWO), num_trials)
            assert statistic.isfinite().all()
        assert (saturation.largest_weight >= 1 / num_keys - 1e-6).all()
        assert (saturation.largest_weight <= 1 + 1e-6).all()
        assert (saturation.entropy >= 0).all()
        assert (saturation.entropy <= math.log2(num_keys) + 1e-5).all()


def test_spread_multiplies_the_scores_by_its_square() -> None:
    narrow, wide = (
        softmax_saturation(
            8, num_keys=5, num_trials=9, generator=seeded(), spread=spread
        )
        for spread in (1.0, 3.0)
    )
    torch.testing.assert_close(wide.score_variance, narrow.score_variance * 3**4)


def test_spread_of_a_row_widens_query_and_keys_alike() -> None:
    narrow = softmax_row(8, num_keys=5, generator=seeded())["nothing"]
    wide = softmax_row(8, num_keys=5, generator=seeded(), spread=3.0)["nothing"]
    torch.testing.assert_close(wide.scores, 9 * narrow.scores)


def test_gradient_of_a_row_is_the_one_autograd_finds() -> None:
    rows = softmax_row(9, num_keys=7, generator=seeded(1))
    for row in rows.values():
        scores = row.scores.clone().requires_grad_()
        scores.softmax(0).max().backward()
        assert scores.grad is not None
        torch.testing.assert_close(row.gradient, scores.grad, rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(row.attn_weights.sum(), torch.tensor(1.0))


@pytest.mark.parametrize("d_k", [1, 4096])
@pytest.mark.parametrize("spread", [0.0, 0.1, 10.0])
def test_a_row_stays_finite_at_every_extreme(d_k: int, spread: float) -> None:
    rows = softmax_row(d_k, num_keys=64, generator=seeded(), spread=spread)
    for row in rows.values():
        assert all(part.isfinite().all() for part in row)
        assert row.gradient.sum().abs() < 1e-6


def test_band_holds_eight_trials_in_ten() -> None:
    values = torch.arange(11.0).flip(0).expand(2, 11)
    band = trial_band(values)
    assert band.median.tolist() == [5, 5]
    assert band.low.tolist() == [1, 1]
    assert band.high.tolist() == [9, 9]
    assert band.mean.tolist() == [5, 5]


def test_lab_table_shows_the_digits_of_the_course_lab() -> None:
    rows = [tuple(row) for row in lab_table()]
    assert rows == [
        (8, 0.6302, 0.1969),
        (64, 0.7270, 0.1527),
        (512, 1.0000, 0.2190),
        (4096, 1.0000, 0.4201),
    ]


def test_the_same_seed_gives_the_same_statistics() -> None:
    first, second, other = (
        softmax_saturation(8, num_keys=5, num_trials=9, generator=seeded(seed))
        for seed in (3, 3, 4)
    )
    assert torch.equal(first.entropy, second.entropy)
    assert not torch.equal(first.entropy, other.entropy)


def test_no_draw_moves_the_global_generator() -> None:
    before = torch.get_rng_state()
    saturation_sweep(num_keys=3, num_trials=2, generator=seeded())
    softmax_row(4, num_keys=3, generator=seeded())
    lab_table((8,))
    assert torch.equal(torch.get_rng_state(), before)


def test_arguments_out_of_range_are_named_with_their_values() -> None:
    def measure(d_k: int = 8, **changed: object) -> None:
        arguments = {"num_keys": 4, "num_trials": 3, **changed}
        softmax_saturation(d_k, generator=seeded(), **arguments)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match=r"d_k \(0\) must be between 1 and 4096"):
        measure(0)
    with pytest.raises(ValueError, match=r"d_k \(4097\) must be between 1 and 4096"):
        measure(4097)
    with pytest.raises(ValueError, match=r"num_keys \(1\) must be between 2 and 64"):
        measure(num_keys=1)
    with pytest.raises(ValueError, match=r"num_trials \(0\) must be between 1 and"):
        measure(num_trials=0)
    with pytest.raises(ValueError, match=r"spread \(-1\) must be between 0"):
        measure(spread=-1.0)
    with pytest.raises(ValueError, match="scale must be finite, got inf"):
        measure(scale=math.inf)
    with pytest.raises(
        ValueError, match=r"divisors\[0\] must be one of 'nothing', 'sqrt_d_k'"
    ):
        saturation_sweep(
            num_keys=4, num_trials=3, generator=seeded(), divisors=["sqrt"]
        )
    with pytest.raises(ValueError, match=r"num_keys \(65\) must be between 2 and 64"):
        softmax_row(8, num_keys=65, generator=seeded())


def test_expected_variance_is_d_k_times_the_spread_to_the_fourth() -> None:
    assert expected_variance([1, 7], 2.0).tolist() == [16.0, 112.0]
    assert expected_variance([]).tolist() == []
    scores = direct_scores(7, 5, 4_000, 1.5)
    mean = scores.var(dim=-1).mean().item()
    assert mean == pytest.approx(expected_variance([7], 1.5).item(), rel=0.1)


@pytest.mark.parametrize(("d_model", "num_heads"), [(64, 8), (64, 1), (21, 7), (5, 5)])
def test_a_layer_divides_by_the_root_of_the_width_of_one_head(
    d_model: int, num_heads: int
) -> None:
    for seq_len in (1, 11):  # the length of the sequence plays no part
        measured = measured_divisor(d_model, num_heads, seq_len=seq_len, seed=3)
        d_k = d_model // num_heads
        assert measured.divisor == pytest.approx(math.sqrt(d_k), rel=1e-5)
        assert measured.width == d_k


def test_measured_divisor_refuses_heads_that_do_not_fit_and_no_tokens() -> None:
    rule = r"d_model \(10\) must be divisible by num_heads \(3\)"
    with pytest.raises(ValueError, match=rule):
        measured_divisor(10, 3, seq_len=2)
    for seq_len in (0, -1):
        rule = rf"seq_len \({seq_len}\) must be at least 1"
        with pytest.raises(ValueError, match=rule):
            measured_divisor(6, 2, seq_len=seq_len)


def test_pieces_of_the_page_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    measured_divisor(6, 2, seq_len=3)
    softmax_row(4, num_keys=3, generator=generator_from(0))
    assert torch.equal(torch.get_rng_state(), before)
