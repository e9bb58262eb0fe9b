"""Tasks from text to text: their data, what they read, and who is right."""

import datetime
from collections import Counter

import pytest
import torch

from core.checks import RefusedError
from core.text_rules import LETTERS, MONTHS, NUMBER_WORDS, number_words, write_date
from core.text_tasks import (
    MAX_LETTERS,
    TASKS,
    Pair,
    letter_task,
    make_batch,
)
from core.vocabulary import END, PAD, START

NAMES = list(TASKS)


def read(task, text):
    return TASKS[task].write(TASKS[task].answer_to(TASKS[task].read(text)))


# Data


@pytest.mark.parametrize("name", NAMES)
def test_held_out_sources_never_occur_in_training(name):
    task = TASKS[name]
    train = {pair.source for pair in task.pairs(5000, seed=0)}
    held_out = {pair.source for pair in task.pairs(1000, seed=0, held_out=True)}
    assert not train & held_out
    assert len(held_out) > 500  # not a few sources again and again


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_pairs_and_leaves_the_global_generator(name):
    before = torch.get_rng_state()
    task = TASKS[name]
    first = task.pairs(1500, seed=3)
    assert task.pairs(40, seed=3) == first[:40]  # of more pairs the first are the same
    assert task.pairs(40, seed=4) != first[:40]
    assert torch.equal(torch.get_rng_state(), before)
    assert task.pairs(0, seed=0) == []


@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_right_readable_and_within_the_limits(name):
    task = TASKS[name]
    pairs = task.pairs(3000, seed=1)
    for source, target in pairs:
        assert task.is_right(source, target)
        assert task.read(task.write(source)) == source
    longest = max(len(pair.source) for pair in pairs)
    assert longest <= task.max_source
    assert max(len(pair.target) for pair in pairs) + 1 == task.max_target
    assert task.read(task.example)


@pytest.mark.parametrize("name", NAMES)
def test_every_token_of_both_vocabularies_occurs(name):
    task = TASKS[name]
    pairs = task.pairs(20_000, seed=0)
    sources = {token for pair in pairs for token in pair.source}
    targets = {token for pair in pairs for token in pair.target}
    assert sources == set(task.source.own)
    assert targets == set(task.target.own)


def test_one_source_in_ten_is_held_out_whatever_the_task_draws():
    task = letter_task("copy", max_length=3)
    count = Counter(len(pair.source) for pair in task.pairs(20_000, seed=0))
    every = {pair.source for pair in task.pairs(60_000, seed=0, max_length=2)}
    held = task.pairs(6_000, seed=0, held_out=True, max_length=2)
    share = len({pair.source for pair in held}) / (26 * 26)
    assert share == pytest.approx(0.1, abs=0.03)
    assert len(every) == 702 - len({pair.source for pair in held})
    assert all(abs(count[length] / 20_000 - 1 / 3) < 0.04 for length in (1, 2, 3))


@pytest.mark.parametrize("name", ["copy", "numbers"])
def test_every_source_of_one_token_is_trained_on_and_none_is_held_out(name):
    task = TASKS[name]
    alone = {pair.source for pair in task.pairs(40_000, seed=0) if len(pair.source) < 2}
    singles = {"copy": LETTERS, "numbers": NUMBER_WORDS[:-3]}
    assert alone == {(token,) for token in singles[name]}
    held = task.pairs(2_000, seed=0, held_out=True)
    assert min(len(pair.source) for pair in held) == 2
    with pytest.raises(RefusedError, match=r"max_length \(1\) must be at least 2"):
        letter_task("copy").pairs(1, seed=0, held_out=True, max_length=1)


def test_lengths_can_be_asked_for_where_they_vary():
    task = letter_task("reverse", max_length=20)
    for length in (2, 3, 19, 20):
        pairs = task.pairs(
            30, seed=0, held_out=True, min_length=length, max_length=length
        )
        assert {len(pair.source) for pair in pairs} == {length}
    with pytest.raises(RefusedError, match=r"max_length \(21\) must be between 5 and"):
        task.pairs(1, seed=0, min_length=5, max_length=21)
    with pytest.raises(RefusedError, match="cannot be chosen for dates"):
        TASKS["dates"].pairs(1, seed=0, max_length=10)
    with pytest.raises(RefusedError, match=r"max_length \(41\)"):
        letter_task("reverse", max_length=MAX_LETTERS + 1)


# Rules


def test_the_letters_are_reversed_copied_and_sorted():
    assert read("reverse", "abca") == "acba"
    assert read("copy", "abca") == "abca"
    assert read("sort", "cabca") == "aabcc"
    task = TASKS["reverse"]
    assert task.is_right(tuple("ab"), ["b", "a"])
    assert not task.is_right(tuple("ab"), ["b"])
    assert not task.is_right(tuple("ab"), ["b", "a", "a"])


@pytest.mark.parametrize(
    "text",
    [
        "march 4, 1998", "mar 4, 1998", "march 4 1998", "MAR 4 1998", "4 march 1998",
        "4 mar 1998", "4. march 1998", "4. Mar  1998", " 04/03/1998 ", "4/3/1998",
        "march 04, 1998",
    ],
)  # fmt: skip
def test_every_written_form_of_a_date_gives_its_iso_date(text):
    assert read("dates", text) == "1998-03-04"


def test_the_day_stands_first_between_slashes():
    assert read("dates", "02/01/2000") == "2000-01-02"


def test_every_day_of_a_leap_year_is_read_in_every_form():
    first = datetime.date(2000, 1, 1)
    for number in range(366):
        day = first + datetime.timedelta(days=number)
        text = write_date(day, number % 5, short=number % 2 == 0)
        assert read("dates", text) == day.isoformat()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("30 february 2001", r"day \(30\) must be between 1 and 28: february 2001"),
        ("29/02/1900", r"day \(29\) must be between 1 and 28"),
        ("0 may 2001", r"day \(0\) must be between 1 and 31"),
        ("31/13/2001", r"month \(13\) must be between 1 and 12"),
        ("4 march 1899", r"year \(1899\) must be between 1900 and 2099"),
        ("4 marcy 1998", "text must be a date such as march 4, 1998"),
        ("1998", "text must be a date such as"),
        ("4 maerz 1998", r"token 7 \(z\) must be one of space"),
        ("4 march 1998 4 march", "has 20 characters and must have between 1 and 18"),
    ],
)
def test_a_date_that_is_none_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(RefusedError, match=sentence):
        TASKS["dates"].read(text)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (7, "seven"),
        (13, "thirteen"),
        (20, "twenty"),
        (99, "ninety nine"),
        (100, "one hundred"),
        (312, "three hundred and twelve"),
        (1005, "one thousand and five"),
        (1200, "one thousand two hundred"),
        (9999, "nine thousand nine hundred and ninety nine"),
    ],
)
def test_numbers_are_spelled_and_read(number, words):
    assert number_words(number) == tuple(words.split())
    assert read("numbers", words) == " ".join(str(number))


def test_no_two_numbers_are_spelled_alike_and_a_hyphen_is_a_space():
    spelled = {number_words(number) for number in range(10_000)}
    assert len(spelled) == 10_000
    assert {word for words in spelled for word in words} == set(NUMBER_WORDS)
    assert max(map(len, spelled)) == TASKS["numbers"].max_source
    assert read("numbers", "Forty-Two") == "4 2"


@pytest.mark.parametrize(
    "text", ["three hundred twelve", "one two", "and", "zero zero"]
)
def test_words_that_spell_no_number_are_refused(text):
    with pytest.raises(RefusedError, match="spell a number from 0 to 9999"):
        TASKS["numbers"].read(text)


# Texts that people type


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u00a0"])
def test_an_empty_text_is_refused(name, text):
    with pytest.raises(RefusedError, match=r"has 0 .* must have between 1 and"):
        TASKS[name].read(text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "a" * 1001, "x " * 500, "\x00", "\u202eabc",
        "日本", "__prot__", "a\u0301" * 5, "\ud800", "🙂", "1e5", "٤", "ﬁ", None, 7,
    ],
)  # fmt: skip
def test_hostile_text_is_refused_in_one_short_printable_sentence(name, text):
    with pytest.raises(RefusedError) as refused:
        TASKS[name].read(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


def test_capitals_and_composed_letters_are_brought_to_one_form():
    assert TASKS["copy"].read(" AbC ") == ("a", "b", "c")
    with pytest.raises(RefusedError, match=r"token 4 \(é\) must be one of a-z$"):
        TASKS["copy"].read("cafe\u0301")
    with pytest.raises(RefusedError, match=r"has 13 characters .* between 1 and 12"):
        TASKS["copy"].read("abcdefghijklm")


def test_repeated_tokens_and_spaces_get_labels_of_their_own():
    assert TASKS["copy"].labels("aba") == ["a·0", "b", "a·2"]
    assert TASKS["dates"].labels("4 m") == ["4", "␣", "m"]


# Batches


def test_a_batch_is_shifted_and_padded_as_worked_by_hand():
    task = TASKS["numbers"]
    pairs = [
        Pair(("three", "hundred"), tuple("300")),
        Pair(("zero",), ("0",)),
    ]
    batch = make_batch(task, pairs)
    three, zero = task.target.encode("30")
    assert batch.source.tolist() == [
        task.source.encode(["three", "hundred"]),
        [*task.source.encode(["zero"]), PAD],
    ]
    assert batch.target_in.tolist() == [
        [START, three, zero, zero],
        [START, zero, PAD, PAD],
    ]
    assert batch.target_out.tolist() == [
        [three, zero, zero, END],
        [zero, END, PAD, PAD],
    ]
    short = batch.rows(torch.tensor([1]))
    assert [table.shape for table in short] == [(1, 1), (1, 2), (1, 2)]


def test_a_batch_of_no_pairs_is_empty():
    assert [table.shape for table in make_batch(TASKS["copy"], [])] == [(0, 0)] * 3


def test_the_months_are_twelve():
    assert [MONTHS[number - 1] for number in (1, 5, 12)] == [
        "january",
        "may",
        "december",
    ]
