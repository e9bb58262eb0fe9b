"""Sentences on decoding: what is chosen step by step, and what a beam ends with."""

import math

import pytest
import torch

from core import decoding_story, shipped_seq2seq
from core.charts.next_token import ROLES
from core.decoding import Hypothesis
from core.decoding_walk import Walk, WalkStep, search, walk_decoding
from core.text_tasks import TASKS, letter_task
from core.vocabulary import END, START

TASK = letter_task("sort", max_length=6)
A, B, C = TASK.target.encode("abc")


def walk(chosen: str, true: str, *, forced: bool = False, ended: bool = True) -> Walk:
    """Return a walk that chooses letters, each with 60 %; "." stands for the end."""
    numbers = [
        END if token == "." else TASK.target.encode(token)[0] for token in chosen
    ]
    right = (*TASK.target.encode(true), END)
    steps = []
    for at, token in enumerate(numbers):
        distribution = torch.zeros(len(TASK.target))
        distribution[C if token != C else A] = 0.4
        distribution[token] = 0.6
        wanted = right[at] if at < len(right) else None
        steps.append(WalkStep(START, distribution.log(), distribution, token, wanted))
    fed = (START, *(right if forced else numbers)[:-1])
    return Walk((A, B), fed, right, forced, ended, tuple(steps), None)


def answer(seen: Walk) -> str:
    return spaced(decoding_story.answer_sentence(seen, TASK.target, ""))


def beam(best: Hypothesis, seen: Walk) -> str:
    return spaced(decoding_story.beam_sentence([best], seen, TASK.target, ""))


def step(seen: Walk, at: int) -> str:
    return spaced(decoding_story.step_sentence(seen, at, TASK.target))


def spaced(words: str) -> str:
    """Return words with common spaces, and without the signs that keep lines whole."""
    return words.replace("\u00a0", " ").replace("\u2060", "")


def test_an_answer_tells_where_it_goes_wrong_first():
    assert answer(walk("abb.", "ab")) == (
        "Fed its own tokens it answers 'abb', which is wrong: first at step 3, 'b' "
        "with 60.0 %."
    )
    assert answer(walk("ab.", "ab")).startswith(
        "Fed its own tokens it answers 'ab', which is right. Least sure at step 1: 'a' "
        "60.0 % before 'c' 40.0 %."
    )


def test_an_answer_without_a_token_is_told_in_words():
    assert answer(walk(".", "ab")).startswith("Fed its own tokens it answers nothing,")
    (_, first, _, _), *_ = decoding_story.beam_rows(
        [Hypothesis((END,), -0.5, ended=True)], TASK.target, "", walk("ab.", "ab")
    )
    assert first == "</s>"


def test_an_answer_that_the_limit_cut_off_says_so():
    cut = answer(walk("ab", "abb", ended=False))
    assert cut == (
        "Fed its own tokens it answers 'ab', which is right so far. It did not end: "
        "the limit of tokens was reached."
    )


def test_with_the_true_tokens_fed_each_step_has_a_choice_and_none_is_an_answer():
    said = answer(walk("a..", "ab", forced=True))
    assert said == (
        "Fed the true tokens it chooses, step by step, 'a </s> </s>': right at 2 of 3 "
        "steps, first wrong at step 2, '</s>' with 60.0 %."
    )
    right = answer(walk("ab.", "ab", forced=True))
    assert "'a b </s>': right at every step. Least sure at step 1" in right
    # A last choice that is not the end breaks no limit: the true tokens are all fed.
    last = answer(walk("abb", "ab", forced=True, ended=False))
    assert "limit" not in last
    assert "answer" not in said + right + last


def test_the_table_of_a_beam_tells_finished_right_and_greedy_hypotheses():
    seen = walk("abb.", "ab")
    rows = decoding_story.beam_rows(
        [
            Hypothesis((A,), -0.25, ended=False),
            Hypothesis((A, B, END), -0.5, ended=True),
            Hypothesis((A, B, B), -1.0, ended=False),
            Hypothesis((A, C), -2e-5, ended=False),
        ],
        TASK.target,
        "",
        seen,
    )
    assert [tuple(map(spaced, row)) for row in rows] == [
        ("1", "a…", "−0.25", "right so far, greedy's"),
        ("2", "ab </s>", "−0.5", "right"),
        ("3", "abb…", "−1", "wrong, greedy's"),
        ("4", "ac…", "−2.00e−05", "wrong"),
    ]


def test_no_line_ends_within_an_answer_of_the_table():
    task = TASKS["dates"]
    tokens = (*task.target.encode("1998-03-04"), END)
    seen = walk("ab.", "ab")._replace(true=tokens)
    held = [Hypothesis(tokens, -1.0, ended=True)]
    ((_, text, _, verdict),) = decoding_story.beam_rows(held, task.target, "", seen)
    assert text == "1998-\u206003-\u206004\u00a0</s>"
    assert verdict == "right"


def test_a_beam_names_its_last_answer_and_greedys_where_they_differ():
    seen = walk("abb.", "ab")
    best = Hypothesis((A, B, END), -0.5, ended=True)
    said = beam(best, seen)
    greedy = f"−{-4 * math.log(0.6):.3g}"
    assert said == (
        "The beam ends with 'ab', which is right: ln p = −0.5. Greedy decoding ends "
        f"with 'abb', which is wrong: ln p = {greedy}."
    )
    same = Hypothesis(seen.chosen, -2.0, ended=True)
    assert beam(same, seen) == (
        "The beam ends with 'abb', which is wrong: ln p = −2. It is the greedy answer."
    )
    cut = Hypothesis((C, C), -0.25, ended=False)
    said = "'cc', which is wrong, cut off at the limit: ln p = −0.25"
    assert said in beam(cut, seen)


def test_the_title_of_a_beam_that_has_ended_names_its_last_step():
    assert decoding_story.beam_title(4, 2, 5).endswith("holds after step 2 of its 5")
    assert decoding_story.beam_title(4, 5, 5).endswith("holds after step 5 of its 5")
    assert decoding_story.beam_title(4, 6, 5) == "A beam of 4 ended at step 5 and holds"


def test_a_token_is_right_or_wrong_and_chosen_or_not():
    wrong, right, past = walk("ab..", "bb").steps[:3:2] + walk("ab.", "a").steps[2:]
    assert decoding_story.role_of(A, wrong) == "chosen, wrong"
    assert decoding_story.role_of(B, wrong) == "right, not chosen"
    assert decoding_story.role_of(C, wrong) == "other"
    assert decoding_story.role_of(END, right) == "chosen, right"
    assert decoding_story.role_of(END, past) == "chosen, wrong"  # nothing is right


@pytest.mark.parametrize("chosen", ["ab.", "b.."])
def test_every_role_has_a_colour_of_its_own(chosen):
    for step in walk(chosen, "ab").steps:
        roles = {decoding_story.role_of(token, step) for token in (A, B, C, END)}
        assert roles <= set(ROLES)


def test_a_step_tells_the_two_largest_and_the_right_token():
    seen = walk("abb.", "ab")
    assert step(seen, 0) == (
        "Step 1 of 4: after '<s>' the model gives 60.0 % to 'a' and 40.0 % to 'c'."
    )
    assert step(seen, 2).endswith("Right would be '</s>', which gets 0 %.")
    assert step(seen, 3).endswith("The right answer has ended before.")


def test_the_shipped_beam_finds_the_right_order_where_greedy_decoding_errs():
    task = TASKS["sort"]
    model = shipped_seq2seq.build(shipped_seq2seq.read_shipped("sort"))
    source, limit = task.source.encode("gggggg"), task.max_target
    greedy = walk_decoding(model, source, source, forced=False, max_len=limit)
    assert greedy.first_wrong == 6  # an end is right at step 7
    assert len(greedy.chosen) == len(greedy.true) + 1
    _, best = search(model, source, beam_size=4, max_len=limit)
    assert best[0].tokens == greedy.true
    said = decoding_story.beam_sentence(best, greedy, task.target, task.separator)
    assert "'gggggg', which is right" in said
    assert "'ggggggg', which is wrong" in said
