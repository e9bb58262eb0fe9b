"""Sentences of the bottleneck page: their numbers are those of runs and maps."""

import torch

from core.bottleneck import LengthResult, LengthRun, text_task
from core.bottleneck_reading import END_SIGN, Change, Reading
from core.bottleneck_story import (
    alignment_sentences,
    answer_sentence,
    apart_sentence,
    change_sentence,
    here_sentence,
    length_sentence,
    median_curves,
    reach_of,
    reach_sentence,
    right_band,
    row_numbers,
    seed_curves,
    step_sentence,
    width_sentence,
)
from core.source_memory import Memory


def run_of(attention: str, seed: int, *exact: float, size: int = 64) -> LengthRun:
    results = [
        LengthResult(length, share, (1 + share) / 2)
        for length, share in zip(range(2, 17, 2), exact, strict=False)
    ]
    return LengthRun(attention, size, seed, tuple(results))


RUNS = [
    run_of("none", 0, 1.0, 0.5, 0.2),
    run_of("none", 1, 0.9, 0.7, 0.1),
    run_of("none", 2, 0.8, 0.6, 0.0),
    run_of("dot", 0, 1.0, 1.0, 0.97),
]
HELD = 8 * (1.0,)


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


def test_the_median_curve_is_the_middle_of_the_seeds_at_each_length():
    curves = median_curves(seed_curves(RUNS, "exact"))
    assert curves["no attention"] == [(2, 0.9), (4, 0.6), (6, 0.1)]
    assert curves["dot product"] == [(2, 1.0), (4, 1.0), (6, 0.97)]


def test_the_length_sentence_gives_both_ends_of_the_measure_asked_for():
    said = length_sentence(RUNS, "exact")
    assert "90 % to 10 % (no attention) and 100 % to 97 % (dot product)" in said
    assert "from 2 to 6 letters" in said
    assert "95 % to 55 % (no attention)" in length_sentence(RUNS, "letters")


def test_widths_are_compared_at_the_length_where_they_lie_furthest_apart():
    runs = [run_of("none", 0, 1.0, 0.2, 0.0, size=4), run_of("none", 0, 1.0, 0.9, 0.3)]
    said = apart_sentence(runs, "exact")
    assert "at 4 letters" in said
    assert said.endswith("20 % (4 numbers) and 90 % (64 numbers).")


def test_the_length_reached_ends_at_the_first_fall_below_half():
    assert reach_of([(2, 0.9), (4, 0.5), (6, 0.4), (8, 0.9)]) == 4
    assert reach_of([(2, 0.4), (4, 0.9)]) == 0
    said = reach_sentence(RUNS)
    assert "up to 4 letters (no attention) and up to 6 letters (dot product)" in said


def test_the_prediction_follows_the_runs_without_attention():
    held, none = (1.0,) * 8, (0.1,) * 8
    middle, short = (1.0,) * 4 + (0.0,) * 4, (1.0,) + (0.0,) * 7
    found = [right_band([run_of("none", 0, *e)]) for e in (held, middle, short, none)]
    assert found == [0, 1, 2, 3]
    assert right_band([run_of("dot", 0, *held), run_of("none", 0, *none)]) == 3


def test_a_wider_context_is_said_to_reach_further_only_where_it_does():
    narrow, wide = (1.0,) + (0.0,) * 7, (1.0,) * 4 + (0.0,) * 4
    up = [run_of("none", 0, *narrow, size=4), run_of("none", 0, *wide, size=64)]
    assert "never falls as the context grows from 4 numbers to 64 numbers" in (
        width_sentence(up)
    )
    down = [run_of("none", 0, *wide, size=4), run_of("none", 0, *narrow, size=64)]
    assert "does not grow" in width_sentence(down)


def test_a_run_here_is_told_length_by_length():
    said = here_sentence(
        [LengthResult(2, 1.0, 1.0), LengthResult(4, 0.5, 0.8)], "exact"
    )
    assert "100 % at 2 and 50 % at 4 letters" in said


def test_an_answer_is_called_right_only_if_all_of_it_is():
    task = text_task()
    assert answer_sentence(reading_of("aba"), task).endswith('writes "aba": right.')
    said = answer_sentence(reading_of("abb"), task)
    assert said.endswith('writes "abb"; right is "aba".')
    cut = answer_sentence(reading_of("abab", ended=False), task)
    assert 'writes "abab", cut off at the limit; right is "aba".' in cut


def test_alignment_is_stated_as_entropy_and_mass_and_place():
    entropy, mass = alignment_sentences(reading_of("aba"))
    assert "0 to 1.5;" in entropy
    assert "log₂ 3 = 1.58" in entropy
    # .8, 0 and .25 on the mirrored letters; .9, 1 and .75 with their neighbours
    assert "lies 35 % of its weight on average, and 88 % on it" in mass
    assert (
        "Of these 3 outputs, 2 have their largest weight 1 letter further right" in mass
    )
    assert "aligns" not in entropy + mass


def test_the_most_frequent_place_of_the_largest_weight_is_told_with_its_side():
    right = torch.tensor([[0.0, 0, 1], [0.0, 0, 1], [0.0, 1, 0], [1.0, 0, 0]])
    said = alignment_sentences(reading_of("aba")._replace(weights=right))[1]
    assert (
        "Of these 3 outputs, 2 have their largest weight 1 letter further right" in said
    )
    on = torch.eye(3).flip(1)
    said = alignment_sentences(reading_of("aba")._replace(weights=on))[1]
    assert (
        "Of these 3 outputs, 3 have their largest weight on the state of that" in said
    )


def test_rows_and_steps_keep_repeated_letters_apart():
    reading = reading_of("aba")
    rows = row_numbers(reading)
    assert [row[0] for row in rows] == ["a·0", "b", "a·2", "end"]
    assert rows[0][2:] == ("a·2", "80 %")
    assert rows[2][1:] == ("1.5", "b", "50 %")
    said = step_sentence(reading, 0)
    assert said == 'Step 0: query "a·0" gives 80 % to key "a·2".'


def test_a_change_is_told_with_what_moved_and_what_stayed():
    reading = reading_of("aba")
    change = Change(torch.tensor([0.0, 0.75, 0.1, 0.0]), ("a", "a", "a", END_SIGN))
    said = change_sentence(reading, change, "State 1 set to zeros")
    assert 'output "b" moves most, by 0.75; 2 of 4 do not move. ' in said
    assert 'first choices, "b" becomes "a".' in said
    still = Change(torch.zeros(4), reading.answer)
    assert "no output moves" in change_sentence(reading, still, "State 0")
    slight = Change(torch.tensor([0.1, 0, 0, 0]), reading.answer)
    assert "every first choice stays" in change_sentence(reading, slight, "State 0")
    every = Change(torch.full((4,), 0.1), reading.answer)
    assert "; all of them move. " in change_sentence(reading, every, "State 0")
