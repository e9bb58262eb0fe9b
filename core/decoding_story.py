"""What the steps of a decoder say in numbers, its answer, and the beam beside it."""

from collections.abc import Sequence

from core.captions import counted, unbroken
from core.decoding import Hypothesis
from core.decoding_walk import Walk, WalkStep
from core.translation_story import number, percent
from core.vocabulary import END, Vocabulary


def role_of(token: int, step: WalkStep) -> str:
    """Return what a token is at a step, as the chart of the next token names it."""
    if token == step.chosen:
        return "chosen, right" if token == step.true else "chosen, wrong"
    return "right, not chosen" if token == step.true else "other"


def step_sentence(walk: Walk, at: int, vocabulary: Vocabulary) -> str:
    """Return what was fed at a step, and what the model gives to the next token."""
    step = walk.steps[at]
    (fed,) = vocabulary.decode([step.fed])
    (first, most), (second, next_most) = _two_largest(step, vocabulary)
    said = (
        f"Step {at + 1} of {len(walk.steps)}: after '{fed}' the model gives {most} to "
        f"'{first}' and {next_most} to '{second}'."
    )
    if step.true is None:
        return f"{said} The right answer has ended before."
    if step.true == step.chosen:
        return said
    (true,) = vocabulary.decode([step.true])
    gets = percent(float(step.distribution[step.true]))
    return f"{said} Right would be '{true}', which gets {gets}."


def answer_sentence(walk: Walk, vocabulary: Vocabulary, separator: str) -> str:
    """Return what was chosen in all, and where it goes wrong or is least sure.

    Where the true tokens are fed there is a choice at each step, but no answer.

    Args:
        walk: The walk.
        vocabulary: Of the target.
        separator: What stands between two tokens of an answer.
    """
    if walk.forced:
        return _choices_sentence(walk, vocabulary)
    verdict = _verdict(walk.chosen, walk.true)
    answer = _answer(walk.chosen, vocabulary, separator)
    said = f"Fed its own tokens it answers {answer}, which is {verdict}"
    end = "" if walk.ended else " It did not end: the limit of tokens was reached."
    if walk.right:
        return f"{said}. {_least_sure(walk, vocabulary)}"
    if walk.first_wrong is None:
        return f"{said}.{end}"
    wrong = _choice(walk, walk.first_wrong, vocabulary)
    return f"{said}: first at {wrong}.{end}"


def beam_rows(
    hypotheses: Sequence[Hypothesis],
    vocabulary: Vocabulary,
    separator: str,
    walk: Walk,
) -> list[tuple[str, str, str, str]]:
    """Return rank, text, log-probability and verdict of what a beam holds.

    Args:
        hypotheses: What the beam holds, best first.
        vocabulary: Of the target.
        separator: What stands between two tokens of an answer.
        walk: The greedy walk; what it answered is named.
    """
    rows = []
    for rank, found in enumerate(hypotheses, start=1):
        text = separator.join(vocabulary.decode(_without_end(found.tokens)))
        end = f" {vocabulary.tokens[END]}" if found.ended else "…"
        said = _verdict(found.tokens, walk.true)
        if found.tokens == walk.chosen[: len(found.tokens)]:
            said += ", greedy's"
        text = unbroken(f"{text}{end}".strip())
        rows.append((str(rank), text, number(found.log_probability), said))
    return rows


def beam_title(width: int, step: int, count: int) -> str:
    """Return what a table of a beam shows.

    Args:
        width: Hypotheses kept a step.
        step: The step that is asked for, from 1.
        count: Steps until the search was over.
    """
    if step > count:
        return f"A beam of {width} ended at step {count} and holds"
    return f"What a beam of {width} holds after step {step} of its {count}"


def beam_sentence(
    hypotheses: Sequence[Hypothesis],
    walk: Walk,
    vocabulary: Vocabulary,
    separator: str,
) -> str:
    """Return with what a beam and greedy decoding end, and the two sums of ln p.

    Args:
        hypotheses: What the beam ends with, best first.
        walk: The greedy walk.
        vocabulary: Of the target.
        separator: What stands between two tokens of an answer.
    """
    best = hypotheses[0]
    greedy = sum(float(step.distribution[step.chosen].log()) for step in walk.steps)
    said, other = (
        f"ends with {_answer(tokens, vocabulary, separator)}, which is "
        f"{_verdict(tokens, walk.true)}{'' if ended else ', cut off at the limit'}: "
        f"{unbroken(f'ln p = {number(log_p)}')}."
        for tokens, ended, log_p in (
            (best.tokens, best.ended, best.log_probability),
            (walk.chosen, walk.ended, greedy),
        )
    )
    if best.tokens == walk.chosen:
        return f"The beam {said} It is the greedy answer."
    return f"The beam {said} Greedy decoding {other}"


def _choices_sentence(walk: Walk, vocabulary: Vocabulary) -> str:
    chosen = " ".join(vocabulary.decode(walk.chosen))
    said = f"Fed the true tokens it chooses, step by step, '{chosen}': right at"
    if walk.first_wrong is None:
        return f"{said} every step. {_least_sure(walk, vocabulary)}"
    right = sum(step.chosen == step.true for step in walk.steps)
    wrong = _choice(walk, walk.first_wrong, vocabulary)
    return (
        f"{said} {right} of {counted(len(walk.steps), 'step')}, first wrong at {wrong}."
    )


def _without_end(tokens: Sequence[int]) -> list[int]:
    return [token for token in tokens if token != END]


def _answer(tokens: Sequence[int], vocabulary: Vocabulary, separator: str) -> str:
    kept = vocabulary.decode(_without_end(tokens))
    return f"'{separator.join(kept)}'" if kept else "nothing"


def _verdict(tokens: tuple[int, ...], true: tuple[int, ...]) -> str:
    if tokens == true:
        return "right"
    return "right so far" if tokens == true[: len(tokens)] else "wrong"


def _choice(walk: Walk, at: int, vocabulary: Vocabulary) -> str:
    step = walk.steps[at]
    (chosen,) = vocabulary.decode([step.chosen])
    gets = percent(float(step.distribution[step.chosen]))
    return f"step {at + 1}, '{chosen}' with {gets}"


def _least_sure(walk: Walk, vocabulary: Vocabulary) -> str:
    at = walk.least_sure
    (token, most), (other, second) = _two_largest(walk.steps[at], vocabulary)
    return f"Least sure at step {at + 1}: '{token}' {most} before '{other}' {second}."


def _two_largest(step: WalkStep, vocabulary: Vocabulary) -> list[tuple[str, str]]:
    """Return the two most probable tokens, each with its percentage."""
    top = step.distribution.topk(2)
    tokens = vocabulary.decode(top.indices.tolist())
    return list(zip(tokens, map(percent, top.values.tolist()), strict=True))
