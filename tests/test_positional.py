"""Positional encodings: values, the shift, and the two modules."""

import math

import pytest
import torch

from core.attention import MultiHeadAttention
from core.positional import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
    angular_frequencies,
    binary_counter,
    measure_shift,
    position_similarity,
    shift_matrix,
    sinusoidal_encoding,
    wavelengths,
)

WIDTHS = [1, 2, 3, 4, 7, 32, 64]


def test_position_one_of_width_four_has_the_known_values() -> None:
    expected = torch.tensor([0.84147, 0.54030, 0.0099998, 0.99995])
    row = sinusoidal_encoding(2, 4)[1]
    torch.testing.assert_close(row, expected, atol=1e-5, rtol=0)


def test_position_zero_is_zeros_and_ones_in_turn() -> None:
    assert sinusoidal_encoding(1, 5).tolist() == [[0, 1, 0, 1, 0]]


@pytest.mark.parametrize("d_model", WIDTHS)
def test_every_entry_is_the_sine_or_cosine_of_the_formula(d_model: int) -> None:
    table = sinusoidal_encoding(11, d_model, base=100.0, dtype=torch.float64)
    for position in range(11):
        for column in range(d_model):
            angle = position / 100.0 ** ((column - column % 2) / d_model)
            value = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[position, column].item() == pytest.approx(value, abs=1e-12)


def test_an_odd_width_has_one_more_sine_than_cosine() -> None:
    sines = (sinusoidal_encoding(1, 3) == 0).sum()
    assert sines == 2
    assert sinusoidal_encoding(4, 1).shape == (4, 1)


def test_a_far_position_is_right_to_the_last_digit_of_float32() -> None:
    position = 99_991  # float32 angles would be off by about 0.004 here
    row = sinusoidal_encoding(position + 1, 4)[position]
    angles = [position, position, position / 100, position / 100]
    waves = [math.sin, math.cos, math.sin, math.cos]
    exact = [wave(angle) for wave, angle in zip(waves, angles, strict=True)]
    torch.testing.assert_close(row, torch.tensor(exact), atol=6e-8, rtol=0)


def test_sinusoids_of_no_position_are_an_empty_table() -> None:
    assert sinusoidal_encoding(0, 4).shape == (0, 4)


def test_wavelengths_grow_from_two_pi_towards_base_times_two_pi() -> None:
    lengths = wavelengths(4, base=100.0)
    expected = 2 * math.pi * torch.tensor([1.0, 1.0, 10.0, 10.0])
    torch.testing.assert_close(lengths, expected.double())


@pytest.mark.parametrize("d_model", WIDTHS)
def test_each_dimension_repeats_after_its_wavelength(d_model: int) -> None:
    turns = angular_frequencies(d_model) * wavelengths(d_model) / (2 * math.pi)
    torch.testing.assert_close(turns, torch.ones(d_model).double())


def test_a_base_that_makes_whole_wavelengths_repeats_in_the_table() -> None:
    # Dimension 2 of width 4 repeats every 2π·√base positions, here 30.
    base = (30 / (2 * math.pi)) ** 2
    table = sinusoidal_encoding(61, 4, base=base, dtype=torch.float64)
    torch.testing.assert_close(table[30:, 2:], table[:31, 2:])


def test_shift_of_one_pair_is_the_rotation_worked_by_hand() -> None:
    sine, cosine = math.sin(3.0), math.cos(3.0)
    expected = torch.tensor([[cosine, sine], [-sine, cosine]])
    torch.testing.assert_close(shift_matrix(3, 2), expected)


@pytest.mark.parametrize("offset", [-7, 0, 1, 5, 50])
@pytest.mark.parametrize("d_model", [2, 4, 32, 64])
def test_one_matrix_shifts_every_position(offset: int, d_model: int) -> None:
    table = sinusoidal_encoding(131, d_model, dtype=torch.float64)
    matrix = shift_matrix(offset, d_model, dtype=torch.float64)
    position = torch.arange(11, 71)
    torch.testing.assert_close(table[position] @ matrix.T, table[position + offset])
    exact = measure_shift(offset, d_model, num_positions=60, dtype=torch.float64)
    assert exact.missed.max() < 1e-12
    assert measure_shift(offset, d_model, num_positions=60).missed.max() < 1e-5


@pytest.mark.parametrize("d_model", [2, 6, 10])
def test_shifts_turn_without_stretching_and_add_up(d_model: int) -> None:
    three = shift_matrix(3, d_model, dtype=torch.float64)
    five = shift_matrix(5, d_model, dtype=torch.float64)
    eight = shift_matrix(8, d_model, dtype=torch.float64)
    torch.testing.assert_close(three @ five, eight)
    torch.testing.assert_close(three @ three.T, torch.eye(d_model).double())


@pytest.mark.parametrize("d_model", [1, 3, 7])
def test_a_lone_sine_cannot_be_shifted_but_the_pairs_can(d_model: int) -> None:
    table = sinusoidal_encoding(30, d_model, base=10.0, dtype=torch.float64)
    matrix = shift_matrix(4, d_model, base=10.0, dtype=torch.float64)
    missed = (table[:26] @ matrix.T - table[4:]).abs().amax(dim=0)
    assert (missed[:-1] < 1e-12).all()
    assert missed[-1] > 0.1
    measured = measure_shift(4, d_model, num_positions=26, base=10.0).missed
    torch.testing.assert_close(measured.double(), missed, rtol=0, atol=1e-5)


@pytest.mark.parametrize("offset", [-6, 0, 4])
def test_a_measured_shift_tells_map_angles_and_misses(offset: int) -> None:
    shift = measure_shift(offset, 5, num_positions=26, base=10.0, dtype=torch.float64)
    expected = shift_matrix(offset, 5, base=10.0, dtype=torch.float64)
    torch.testing.assert_close(shift.matrix, expected)
    torch.testing.assert_close(
        shift.angles[:2], torch.tensor([1.0, 1.0]) * offset, check_dtype=False
    )
    start = torch.arange(26) + max(-offset, 0)
    table = sinusoidal_encoding(40, 5, base=10.0, dtype=torch.float64)
    landed = table[start] @ shift.matrix.T
    missed = (landed - table[start + offset]).abs().amax(dim=0)
    torch.testing.assert_close(shift.missed, missed)
    assert (shift.missed[:4] < 1e-12).all()
    assert (shift.missed[4] > 0.1) == (offset != 0)


def test_similarity_depends_on_the_distance_alone() -> None:
    similarity = position_similarity(sinusoidal_encoding(13, 6, dtype=torch.float64))
    torch.testing.assert_close(similarity.diag(), torch.full((13,), 3.0).double())
    for distance in range(1, 13):
        band = similarity.diagonal(distance)
        expected = (angular_frequencies(6)[::2] * distance).cos().sum()
        torch.testing.assert_close(band, expected.expand(13 - distance))


def test_binary_counter_counts_with_the_fastest_digit_first() -> None:
    digits = binary_counter(6, 3).tolist()
    assert digits == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]]


def test_binary_counter_starts_again_when_its_digits_are_used_up() -> None:
    digits = binary_counter(9, 2)
    torch.testing.assert_close(digits[4:8], digits[:4])
    assert digits[8].tolist() == [0, 0]
    assert binary_counter(0, 2).shape == (0, 2)


def test_sinusoids_are_added_and_go_on_past_max_len() -> None:
    layer = SinusoidalPositionalEncoding(5, 6)
    x = torch.ones(2, 11, 6)
    expected = 1 + sinusoidal_encoding(11, 6).expand(2, 11, 6)
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer(x[:, :3]), expected[:, :3])


def test_sinusoids_are_neither_learned_nor_stored() -> None:
    layer = SinusoidalPositionalEncoding(5, 6)
    assert list(layer.parameters()) == []
    assert layer.state_dict() == {}


@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("seq_len", [0, 1, 5])
def test_both_encodings_keep_the_shape(batch: int, seq_len: int) -> None:
    x = torch.zeros(batch, seq_len, 7)
    assert SinusoidalPositionalEncoding(5, 7)(x).shape == x.shape
    assert LearnedPositionalEncoding(5, 7)(x).shape == x.shape


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("seq_len", [3, 7])
def test_sinusoids_keep_the_type_of_the_tokens(
    dtype: torch.dtype, seq_len: int
) -> None:
    x = torch.zeros(1, seq_len, 4, dtype=dtype)
    assert SinusoidalPositionalEncoding(5, 4)(x).dtype == dtype


def test_learned_positions_are_small_seeded_and_trained() -> None:
    layer = LearnedPositionalEncoding(
        100, 30, generator=torch.Generator().manual_seed(7)
    )
    same = LearnedPositionalEncoding(
        100, 30, generator=torch.Generator().manual_seed(7)
    )
    other = LearnedPositionalEncoding(100, 30)
    assert torch.equal(layer.table, same.table)
    assert not torch.equal(layer.table, other.table)
    assert layer.table.std().item() == pytest.approx(0.02, rel=0.1)
    layer(torch.zeros(2, 3, 30)).sum().backward()
    gradient = layer.table.grad
    assert gradient is not None
    torch.testing.assert_close(gradient[:3], torch.full((3, 30), 2.0))
    assert not gradient[3:].any()


def test_learned_positions_end_at_max_len() -> None:
    layer = LearnedPositionalEncoding(8, 3)
    x = torch.zeros(1, 9, 3)
    torch.testing.assert_close(layer(x[:, :8])[0], layer.table.detach())
    with pytest.raises(
        ValueError, match=r"seq_len \(9\) must be at most max_len \(8\)"
    ):
        layer(x)


def test_positions_tell_equal_tokens_apart() -> None:
    attention = MultiHeadAttention(6, 2).eval()
    x = torch.ones(1, 4, 6)
    plain = attention.attend(x, x, x).output[0]
    torch.testing.assert_close(plain, plain[:1].expand(4, 6))
    placed = SinusoidalPositionalEncoding(4, 6)(x)
    output = attention.attend(placed, placed, placed).output[0]
    assert (output[0] - output[1]).abs().max() > 1e-3


def test_no_encoding_moves_the_global_generator() -> None:
    before = torch.get_rng_state()
    LearnedPositionalEncoding(5, 4)(torch.zeros(1, 2, 4))
    SinusoidalPositionalEncoding(5, 4)(torch.zeros(1, 2, 4))
    measure_shift(2, 4, num_positions=3)
    assert torch.equal(torch.get_rng_state(), before)


def test_bad_arguments_are_named_with_their_values() -> None:
    with pytest.raises(ValueError, match=r"d_model \(0\) must be at least 1"):
        sinusoidal_encoding(3, 0)
    with pytest.raises(ValueError, match=r"seq_len \(-1\) must be at least 0"):
        sinusoidal_encoding(-1, 4)
    with pytest.raises(ValueError, match=r"base \(0\.5\) must be at least 1"):
        wavelengths(4, base=0.5)
    with pytest.raises(ValueError, match=r"base must be finite, got inf"):
        shift_matrix(1, 4, base=math.inf)
    with pytest.raises(ValueError, match=r"offset must be a whole number, got 1\.5"):
        shift_matrix(1.5, 4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"num_positions \(0\) must be at least 1"):
        measure_shift(1, 4, num_positions=0)
    with pytest.raises(ValueError, match=r"bits \(63\) must be between 1 and 62"):
        binary_counter(4, 63)
    with pytest.raises(ValueError, match=r"encoding must be \(T, d_model\), got"):
        position_similarity(torch.zeros(3))


@pytest.mark.parametrize(
    "kind", [SinusoidalPositionalEncoding, LearnedPositionalEncoding]
)
def test_both_modules_refuse_a_wrong_width_and_no_positions(
    kind: type[SinusoidalPositionalEncoding] | type[LearnedPositionalEncoding],
) -> None:
    with pytest.raises(ValueError, match=r"x must be \(B, T, d_model = 4\), got shape"):
        kind(5, 4)(torch.zeros(2, 5, 3))
    with pytest.raises(ValueError, match=r"max_len \(0\) must be at least 1"):
        kind(0, 4)
    with pytest.raises(ValueError, match=r"d_model \(0\) must be at least 1"):
        kind(5, 0)
