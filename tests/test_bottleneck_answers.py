"""Sentences on one answer: their numbers are those of its map and its changes."""

import torch

from core.bottleneck import text_task
from core.bottleneck_answers import (
    alignment_sentences,
    answer_sentence,
    change_sentence,
    row_numbers,
    step_sentence,
)
from core.bottleneck_reading import END_SIGN, Change, Reading
from core.source_memory import Memory


def broken(said: str) -> str:
    """Return a sentence with ordinary spaces before its percent signs."""
    return said.replace("\u00a0", " ")


def reading_of(answer: str, *, ended: bool = True) -> Reading:
    weights = torch.tensor([[0.1, 0.1, 0.8], [0.0, 0.0, 1.0], [0.25, 0.5, 0.25]])
    letters = (*answer, END_SIGN) if ended else tuple(answer)
    return Reading(
        source=tuple("aba"),
        answer=letters,
        inputs=torch.zeros(1, 4, dtype=torch.int64),
        memory=Memory(torch.zeros(1, 3, 2), torch.ones(1, 3).bool(), None),
        distributions=torch.ones(4, 5) / 5,
        weights=torch.cat([weights, weights[:1]]),
        right=("a", "b", "a", END_SIGN),
    )


def test_an_answer_is_called_right_only_if_all_of_it_is():
    task = text_task()
    assert answer_sentence(reading_of("aba"), task).endswith('writes "aba": right.')
    said = answer_sentence(reading_of("abb"), task)
    assert said.endswith('writes "abb"; right is "aba".')
    cut = answer_sentence(reading_of("abab", ended=False), task)
    assert 'writes "abab", cut off at the limit; right is "aba".' in cut


def test_alignment_is_stated_as_entropy_and_mass_and_place():
    entropy, mass = map(broken, alignment_sentences(reading_of("aba")))
    assert entropy.startswith("Entropy of a row, that of the end counted in: ")
    assert "0 to 1.5;" in entropy
    assert "log₂ 3 = 1.58" in entropy
    # .8, 0 and .25 on the mirrored letters; .9, 1 and .75 with their neighbours
    assert "lies 35 % of its weight on average, and 88 % on it" in mass
    assert (
        "Of the first 3 outputs, each for one letter, 2 have their largest weight "
        "1 letter further right" in mass
    )
    assert "aligns" not in entropy + mass


def test_the_most_frequent_place_of_the_largest_weight_is_told_with_its_side():
    right = torch.tensor([[0.0, 0, 1], [0.0, 0, 1], [0.0, 1, 0], [1.0, 0, 0]])
    said = alignment_sentences(reading_of("aba")._replace(weights=right))[1]
    assert "each for one letter, 2 have their largest weight 1 letter further" in said
    on = torch.eye(3).flip(1)
    said = alignment_sentences(reading_of("aba")._replace(weights=on))[1]
    assert "each for one letter, 3 have their largest weight on the state of" in said
    apart = torch.tensor([[0.0, 0, 1], [1.0, 0, 0], [0.0, 1, 0], [1.0, 0, 0]])
    said = alignment_sentences(reading_of("aba")._replace(weights=apart))[1]
    assert "each for one letter, 1 has its largest weight on the state of" in said


def test_the_row_of_the_end_is_told_only_where_there_is_one():
    cut = reading_of("abab", ended=False)
    assert "the end" not in alignment_sentences(cut)[0]


def test_one_letter_gets_all_weight_by_necessity():
    one = reading_of("a")._replace(source=("a",), weights=torch.ones(2, 1))
    (said,) = alignment_sentences(one)
    assert "by necessity" in said
    assert "0 bits" in said
    assert "log" not in said


def test_one_output_is_told_in_the_singular():
    one = reading_of("")._replace(weights=torch.tensor([[0.5, 0.25, 0.25]]))
    said = alignment_sentences(one)[1]
    assert "The one output has its largest weight 2 letters further left" in said


def test_rows_and_steps_keep_repeated_letters_apart():
    reading = reading_of("aba")
    rows = row_numbers(reading)
    assert [row[0] for row in rows] == ["a·0", "b", "a·2", "end"]
    assert rows[0][2:] == ("a·2", "80\u00a0%")
    assert rows[2][1:] == ("1.5", "b", "50\u00a0%")
    said = step_sentence(reading, 0)
    assert said == 'Step 0: query "a·0" gives 80 % to key "a·2".'


def test_a_change_is_told_with_what_moved_and_what_stayed():
    reading = reading_of("aba")
    change = Change(torch.tensor([0.0, 0.75, 0.1, 0.0]), ("a", "a", "a", END_SIGN))
    said = told(reading, change, 1)
    assert 'output "b" moves most, by 0.75; 2 of 4 move by more than 0.01' in said
    assert "; 2 do not move." in said
    assert 'first choices, "b" becomes "a".' in said
    still = Change(torch.zeros(4), reading.answer)
    assert "no output moves" in told(reading, still)
    slight = Change(torch.tensor([0.1, 0, 0, 0]), reading.answer)
    assert "Of the first choices, every one stays." in told(reading, slight)
    assert "1 of 4 moves by more than 0.01; 3 do not move" in told(reading, slight)
    every = Change(torch.full((4,), 0.1), reading.answer)
    assert "; 4 of 4 move by more than 0.01." in told(reading, every)


def told(reading: Reading, change: Change, position: int = 0) -> str:
    return broken(change_sentence(reading, change, position, "set to zeros"))


def test_a_tiny_movement_is_neither_a_number_nor_none():
    reading = reading_of("aba")
    tiny = Change(torch.tensor([1.9e-10, 0.0, 0.0, 0.0]), reading.answer)
    said = told(reading, tiny)
    assert 'output "a·0" moves most, by less than 0.001;' in said
    assert "0 of 4 move by more than 0.01; 3 do not move." in said
    assert "e-" not in said


def test_a_state_is_named_by_its_number_and_its_bare_letter():
    said = told(reading_of("aba"), Change(torch.ones(4), ("b", "a", "b", "a")), 2)
    assert said.startswith("State 2 (a) set to zeros: ")


def test_the_weight_of_the_most_moved_output_on_the_changed_state_is_told():
    reading = reading_of("aba")
    change = Change(torch.tensor([0.0, 0.1, 0.75, 0.0]), reading.answer)
    said = told(reading, change, 1)
    assert 'Before the change "a·2" put 50 % of its weight on that state.' in said
    assert "because" not in said
    plain = reading._replace(weights=None)
    assert "weight" not in told(plain, change, 1)


def test_at_most_four_new_first_choices_are_listed():
    reading = reading_of("aba")._replace(
        answer=tuple("abcdef"), weights=torch.ones(6, 3) / 3
    )
    change = Change(torch.ones(6), tuple("zzzzzz"))
    assert told(reading, change).endswith('"d" becomes "z" and 2 more change.')
    change = Change(torch.ones(6), tuple("zzzzzf"))
    assert told(reading, change).endswith('"d" becomes "z" and 1 more changes.')
    change = Change(torch.ones(6), tuple("zzzzef"))
    assert told(reading, change).endswith('"c" becomes "z" and "d" becomes "z".')
