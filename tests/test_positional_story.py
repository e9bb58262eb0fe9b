"""Sentences under the pictures of positional encodings."""

import pytest
import torch

from core.positional import (
    binary_counter,
    measure_shift,
    position_similarity,
    sinusoidal_encoding,
    wavelengths,
)
from core.positional_story import (
    OrderFate,
    counter_sentence,
    encoding_sentence,
    fate_of_outputs,
    follows,
    leak_sentence,
    order_numbers,
    order_sentence,
    overflow_sentence,
    shift_numbers,
    shift_sentence,
    shift_title,
    similarity_ends,
    similarity_sentence,
    stays,
    swap_sentence,
    table_sentence,
    wavelength_sentence,
)
from core.probes import PermutationDistances, new_order, probe_order
from core.tokens import token_embeddings


def test_the_matrix_tells_the_known_values_of_position_one() -> None:
    said = encoding_sentence(sinusoidal_encoding(2, 4), wavelengths(4))
    assert said == (
        "Position 1 is 0.84147 0.54030 0.0099998 0.99995. "
        "Dimension 0 repeats every 6.28 positions, dimension 3 every 628."
    )


def test_the_matrix_of_one_position_tells_that_one() -> None:
    said = encoding_sentence(sinusoidal_encoding(1, 7), wavelengths(7))
    assert said.startswith("Position 0 begins 0.0000 1.0000 0.0000 1.0000. ")


def test_a_single_dimension_is_named_once() -> None:
    said = encoding_sentence(sinusoidal_encoding(3, 1), wavelengths(1))
    assert said == "Position 1 is 0.84147. Dimension 0 repeats every 6.28 positions."


def test_long_wavelengths_are_whole_numbers_of_positions() -> None:
    said = wavelength_sentence(wavelengths(64), [63])
    assert said == "Dimension 63 repeats every 47,117 positions."


@pytest.mark.parametrize(
    ("position", "others"), [(0, [1, 4]), (1, [2, 4]), (3, [4, 0]), (4, [3, 0])]
)
def test_similarity_names_neighbour_and_farthest(
    position: int, others: list[int]
) -> None:
    similarity = position_similarity(sinusoidal_encoding(5, 6))
    said = similarity_sentence(similarity, position)
    assert said.startswith(
        f"The dot product of position {position} is 3.00 with itself"
    )
    for other in others:
        value = f"{float(similarity[position, other]):.2f}".replace("-", "−")
        assert f"{value} with position {other}" in said


def test_one_position_is_similar_to_itself_alone() -> None:
    said = similarity_sentence(position_similarity(sinusoidal_encoding(1, 6)), 0)
    assert said == "The dot product of position 0 is 3.00 with itself."


def test_a_shift_tells_its_largest_miss() -> None:
    shift = measure_shift(-7, 6, num_positions=11)
    assert shift_sentence(shift, -7, 11) == (
        "One matrix moves all 11 positions back by 7 "
        f"(rounding: {float(shift.missed.max()):.0e})."
    )
    assert list(shift_numbers(shift)) == [
        "Dimension 0 turns by",
        "Miss, sine-cosine pairs",
    ]
    assert shift_numbers(shift)["Dimension 0 turns by"] == "−7.00 rad"


def test_a_shift_of_an_odd_width_names_the_lone_sine() -> None:
    shift = measure_shift(5, 3, num_positions=11, base=10.0)
    miss = f"{float(shift.missed[2]):.2g}"
    said = shift_sentence(shift, 5, 11)
    assert "on by 5, but for dimension 2: a sine without its cosine" in said
    assert said.endswith(f"by up to {miss}.")
    assert shift_numbers(shift)["Miss, lone sine"] == miss
    alone = measure_shift(5, 1, num_positions=11)
    assert "A sine without its cosine cannot be shifted" in shift_sentence(alone, 5, 11)
    assert "Miss, sine-cosine pairs" not in shift_numbers(alone)


def test_a_lone_sine_that_stays_where_it_is_is_not_said_to_miss() -> None:
    for width in (1, 7):
        said = shift_sentence(measure_shift(0, width, num_positions=11), 0, 11)
        assert said == "One matrix moves all 11 positions on by 0 exactly."


@pytest.mark.parametrize(
    ("width", "drawn", "title"),
    [
        (1, 1, "No matrix shifts a lone sine: the best factor"),
        (7, 7, "The matrix that shifts every dimension but the last"),
        (8, 8, "The matrix that shifts every position"),
        (
            64,
            8,
            "The matrix that shifts every position, its first 8 of 64 dimensions",
        ),
    ],
)
def test_the_title_of_a_shift_promises_no_more_than_it_does(
    width: int, drawn: int, title: str
) -> None:
    assert shift_title(width, drawn) == title


def test_a_table_that_is_too_short_is_told_in_words() -> None:
    said = overflow_sentence(8, 9)
    assert said.startswith("A table of 8 positions, 9 tokens: the layer refuses them.")


def test_an_order_is_told_without_and_with_positions() -> None:
    tokens = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    probe = probe_order(tokens, new_order(5, "swap"), seed=0)
    assert follows(probe.plain)
    assert not stays(probe.plain)
    assert not follows(probe.placed)
    said = order_sentence(probe)
    assert "the output changes at 2 of 5 places" in said
    miss = float(probe.plain.after_undoing.max())
    assert f"the mean stays (rounding: {miss:.0e})" in said
    assert f"moves by up to {float(probe.placed.after_undoing.max()):.2f}." in said
    broken = probe._replace(plain=probe.causal)
    assert "the mean stays" not in order_sentence(broken)


@pytest.mark.parametrize("words", [["a"], ["a", "b", "a"], ["one", "one"]])
def test_where_every_output_stays_nothing_is_said_of_the_mean_alone(words) -> None:
    order = new_order(len(words), "swap")
    probe = probe_order(token_embeddings(words, 6, 0), order, seed=0)
    assert fate_of_outputs(probe.plain) is OrderFate.STAY
    said = order_sentence(probe)
    assert said.startswith("Each place keeps its word, so every output stays")
    assert "mean" not in said
    assert ("tell equal words apart" in said) == (len(words) > 1)


def test_the_fate_of_the_outputs_is_named() -> None:
    tokens = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    probe = probe_order(tokens, new_order(5, "swap"), seed=0)
    assert fate_of_outputs(probe.plain) is OrderFate.FOLLOW
    assert fate_of_outputs(probe.causal) is OrderFate.CHANGE
    assert f"{float(probe.plain.moved.max()):.2f}" in swap_sentence(probe.plain)
    assert f"{float(probe.causal.after_undoing.max()):.2g}" in leak_sentence(
        probe.causal
    )


def test_the_numbers_of_an_order_are_the_largest_of_each_case() -> None:
    tokens = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    probe = probe_order(tokens, new_order(5, "swap"), seed=0)
    numbers = order_numbers(probe)
    assert len(numbers) == 3
    same_place = numbers["output at the same place"]
    assert same_place["no positions"] == float(probe.plain.moved.max())
    assert same_place["sinusoids added"] == float(probe.placed.moved.max())


def test_the_ends_of_similarity_hold_every_dot_product() -> None:
    for d_model in (1, 6, 7, 127, 128):
        similarity = position_similarity(sinusoidal_encoding(50, d_model))
        low, high = similarity_ends(similarity)
        assert low <= float(similarity.min())
        assert float(similarity.max()) <= high + 1e-3
    assert similarity_ends(torch.tensor([[3.0, 0.5]])) == (0.0, 4.0)


def test_outputs_that_stay_are_told_from_outputs_that_follow() -> None:
    zero, one = torch.zeros(1, 3), torch.ones(1, 3)
    assert stays(PermutationDistances(moved=zero, after_undoing=one, pooled=zero))
    assert not follows(PermutationDistances(moved=zero, after_undoing=one, pooled=zero))


def test_the_counter_reads_digits_and_sines_of_one_position() -> None:
    digits, table = binary_counter(16, 4), sinusoidal_encoding(16, 6)
    sines = " ".join(f"{x:.2f}".replace("-", "−") for x in table[11, 0::2].tolist())
    assert counter_sentence(digits, table, 11) == (
        "Position 11 is 1 1 0 1 in binary, fastest digit first; its first sines are "
        f"{sines}."
    )
    narrow = counter_sentence(digits, sinusoidal_encoding(16, 1), 11)
    assert narrow.endswith("its sine is −1.00.")


def test_no_sentence_says_minus_zero() -> None:
    table = torch.tensor([[-1e-9, 1.0]])
    assert "0.00" in counter_sentence(binary_counter(1, 4), table, 0)
    assert "−" not in counter_sentence(binary_counter(1, 4), table, 0)


def test_a_table_tells_how_many_tokens_get_a_vector() -> None:
    assert table_sentence(8, 9) == "8 of 9 tokens get a vector."
