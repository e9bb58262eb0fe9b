"""Vocabularies: numbers for tokens and back, and a clear word where there is none."""

import pytest

from core.checks import RefusedError
from core.vocabulary import END, PAD, SPECIALS, START, Vocabulary, listed

WORDS = Vocabulary.of(("three", "hundred", "and", "twelve"))


def test_the_special_tokens_come_first_in_every_vocabulary():
    assert (PAD, START, END) == (0, 1, 2)
    assert WORDS.tokens == ("<pad>", "<s>", "</s>", "three", "hundred", "and", "twelve")
    assert len(WORDS) == 7
    with pytest.raises(RefusedError, match="tokens must begin with <pad>, <s>, </s>"):
        Vocabulary(("a", "b", "c"))


def test_a_token_that_comes_twice_is_refused():
    with pytest.raises(RefusedError, match="differ"):
        Vocabulary.of(("a", "b", "a"))


def test_encode_and_decode_are_each_others_inverse():
    assert WORDS.encode(["twelve", "three", "twelve"]) == [6, 3, 6]
    assert WORDS.decode([6, 3, 6]) == ["twelve", "three", "twelve"]
    assert WORDS.encode([]) == WORDS.decode([]) == []


def test_decode_shows_special_tokens_and_stops_nowhere():
    found = WORDS.decode([START, 3, END, PAD, 4])
    assert found == ["<s>", "three", "</s>", "<pad>", "hundred"]


@pytest.mark.parametrize("special", SPECIALS)
def test_a_special_token_cannot_be_written(special):
    with pytest.raises(RefusedError, match=r"token 2 .* must be one of three"):
        WORDS.encode(["three", special])


def test_an_unknown_token_is_named_with_its_place_and_what_is_known():
    known = "must be one of three, hundred, and, twelve$"
    with pytest.raises(RefusedError, match=r"^token 3 \(nought\) " + known):
        WORDS.encode(["three", "and", "nought"])


def test_a_hostile_token_is_cut_and_loses_what_does_not_print():
    with pytest.raises(RefusedError) as refused:
        WORDS.encode(["<script>\x1b[31m\n" * 1000])
    text = str(refused.value)
    assert len(text) < 100
    assert text.isprintable()


@pytest.mark.parametrize("number", [-1, 7])
def test_a_number_out_of_range_is_refused(number):
    with pytest.raises(RefusedError, match="must be between 0 and 6"):
        WORDS.decode([3, number])


def test_neighbours_in_the_alphabet_are_listed_as_a_run_and_a_space_as_a_word():
    assert listed([*" ,/019", *"abcdxyz", "ab"]) == "space, ,, /, 0, 1, 9, a-d, x-z, ab"
    many = listed([f"w{number}" for number in range(100)])
    assert many.count(",") == 39
    assert many.endswith("…")
