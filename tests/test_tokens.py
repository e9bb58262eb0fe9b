"""Tokens: typed text, labels that differ, and embeddings that repeat."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from core.tokens import (
    MAX_LABEL_LENGTH,
    MAX_TEXT_LENGTH,
    MAX_TOKENS,
    distinct_labels,
    position_labels,
    split_into_tokens,
    token_embeddings,
    token_labels,
)


def test_text_is_split_at_spaces_of_any_number() -> None:
    assert split_into_tokens("  the cat\tsat \n down ") == ["the", "cat", "sat", "down"]


def test_capitals_and_signs_are_kept_as_typed() -> None:
    assert split_into_tokens("The cat, the CAT!") == ["The", "cat,", "the", "CAT!"]


def test_tags_are_just_text() -> None:
    tokens = split_into_tokens("<script>alert(1)</script> **x** $y$")
    assert tokens == ["<script>alert(1)</script>", "**x**", "$y$"]


def test_an_accent_typed_in_two_ways_is_one_word() -> None:
    composed, combined = split_into_tokens("caf\u00e9 cafe\u0301")
    assert composed == combined


@pytest.mark.parametrize("text", ["", "   ", "\n\t\u00a0\u2003"])
def test_text_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="text has 0 words and must have between 1"):
        split_into_tokens(text)


def test_text_of_too_many_words_is_refused_with_both_numbers() -> None:
    assert len(split_into_tokens("a " * MAX_TOKENS)) == MAX_TOKENS
    sentence = f"text has {MAX_TOKENS + 1} words and must have between 1 and"
    with pytest.raises(ValueError, match=f"{sentence} {MAX_TOKENS}"):
        split_into_tokens("a " * (MAX_TOKENS + 1))
    with pytest.raises(
        ValueError, match="text has 3 words and must have between 1 and 2"
    ):
        split_into_tokens("a b c", max_tokens=2)


def test_text_of_too_many_characters_is_refused_with_both_numbers() -> None:
    assert split_into_tokens("a" * MAX_TEXT_LENGTH) == ["a" * MAX_TEXT_LENGTH]
    with pytest.raises(ValueError, match="text has 5000 characters and must have at"):
        split_into_tokens("a" * 5_000)


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(ValueError, match="text must be a string, got NoneType"):
        split_into_tokens(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"max_tokens \(0\) must be at least 1"):
        split_into_tokens("a", max_tokens=0)


def test_repeated_words_are_told_apart_by_position() -> None:
    labels = token_labels(["the", "cat", "saw", "my", "the"])
    assert labels == ["the·0", "cat", "saw", "my", "the·4"]
    assert distinct_labels(labels) == labels
    assert distinct_labels([3, 0, 3]) == ["3·0", "0", "3·2"]


@pytest.mark.parametrize(
    "tokens",
    [
        ["the", "the", "the·0"],
        ["the·1", "the", "the"],
        ["a·1", "a·1·1", "a·1"],
        ["x" * 30, "x" * 31, "x" * (MAX_LABEL_LENGTH - 1) + "…"],
        ["a", "a\u200b", "\u202ea", "\x00", "\x01", "\ud800", "�", "�"],
    ],
)
def test_labels_are_always_different_and_always_print(tokens: list[str]) -> None:
    labels = token_labels(tokens)
    assert len(labels) == len(tokens)
    assert len(set(labels)) == len(labels)
    assert all(label.isprintable() and label for label in labels)
    "".join(labels).encode()  # a lone surrogate would not encode


def test_a_long_word_is_cut_in_its_label() -> None:
    assert token_labels(["abcdefghijkl"]) == ["abcdefghijkl"]
    assert token_labels(["abcdefghijklm"]) == ["abcdefghijk…"]


def test_positions_stand_in_for_words() -> None:
    assert position_labels(3) == ["0", "1", "2"]
    assert position_labels(0) == []
    with pytest.raises(ValueError, match=r"seq_len \(-1\) must be at least 0"):
        position_labels(-1)


def test_the_same_word_has_the_same_vector_wherever_it_stands() -> None:
    table = token_embeddings(["the", "cat", "the"], 7, 3)
    assert torch.equal(table[0], table[2])
    assert not torch.equal(table[0], table[1])
    assert torch.equal(token_embeddings(["cat"], 7, 3)[0], table[1])


def test_another_seed_or_word_gives_another_vector() -> None:
    first = token_embeddings(["the"], 7, 3)
    assert not torch.equal(first, token_embeddings(["the"], 7, 4))
    assert not torch.equal(first, token_embeddings(["The"], 7, 3))
    # The digits of the seed must not run into the word.
    assert not torch.equal(
        token_embeddings(["1x"], 7, 1), token_embeddings(["x"], 7, 11)
    )


def test_vectors_are_standard_normal() -> None:
    table = token_embeddings([str(word) for word in range(200)], 64, 0)
    assert table.mean().item() == pytest.approx(0.0, abs=0.03)
    assert table.std().item() == pytest.approx(1.0, abs=0.03)
    neighbours = (table[:-1] * table[1:]).sum(-1)
    assert neighbours.std().item() == pytest.approx(8.0, rel=0.2)


def test_vectors_are_the_same_in_another_process() -> None:
    program = (
        "from core.tokens import token_embeddings;"
        "import sys; sys.stdout.write(repr(token_embeddings(['cat', 'é'], 3, 5)"
        ".tolist()))"
    )
    other = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
        cwd=Path(__file__).parents[1],
        env={"PYTHONHASHSEED": "12345"},
    )
    assert other.stdout == repr(token_embeddings(["cat", "é"], 3, 5).tolist())


def test_hostile_words_have_vectors_too() -> None:
    table = token_embeddings(["\ud800", "\x00", "\u202e", "🙂"], 5, 0)
    assert table.shape == (4, 5)
    assert table.isfinite().all()


def test_no_token_gives_an_empty_table() -> None:
    assert token_embeddings([], 3, 0).shape == (0, 3)


def test_bad_sizes_of_embeddings_are_named() -> None:
    with pytest.raises(ValueError, match=r"d_model \(0\) must be at least 1"):
        token_embeddings(["a"], 0, 0)
    with pytest.raises(ValueError, match=r"seed \(-1\) must be between 0 and"):
        token_embeddings(["a"], 3, -1)


def test_embeddings_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    token_embeddings(["a", "b"], 17, 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_word_that_means_something_to_the_browsers_objects_is_a_plain_label():
    (label, _) = token_labels(["__proto__", "cat"])
    assert label != "__proto__"
    assert label.replace("\u2060", "") == "__proto__"
