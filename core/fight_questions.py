"""The predictions of the race, answered by its shipped runs, whatever they are."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from core.fight_results import Standing

Choices = tuple[tuple[str, str], ...]


class Question(NamedTuple):
    """A prediction about a shipped race.

    Attributes:
        race: The race: its length, and whether parameters are equal.
        text: The question.
        choices: Each answer, and the idea behind it where it is wrong.
        answer: From the standings to the place of the right choice.
    """

    race: tuple[int, bool]
    text: str
    choices: Choices
    answer: Callable[[Sequence[Standing]], int]


def _first_by_clock(found: Sequence[Standing]) -> int:
    costs = {s.name: median(s.costs("seconds")) for s in found if s.learned}
    names = [text for text, _ in _CLOCK]
    first = min(costs, key=lambda name: costs[name], default="nobody")
    return names.index(first)


def _who_learned(found: Sequence[Standing]) -> int:
    learned = {standing.name: standing.learned for standing in found}
    ends = learned["Transformer"], learned["LSTM +3"]
    return [(True, True), (True, False), (False, True), (False, False)].index(ends)


_CLOCK: Choices = (
    (
        "Transformer",
        "Few steps are not little time: what counts is steps times seconds a step.",
    ),
    (
        "LSTM +3",
        "Its open gate brings the gradient to the marker, but it reads 60 tokens one "
        "after the other.",
    ),
    ("RNN", "Its steps are the cheapest, but few steps lead it anywhere by then."),
    ("GRU", "A gate helps only where it starts open."),
    ("nobody", "One that answers every time is among them."),
)
_LONG: Choices = (
    (
        "Both",
        "What an open gate carries over 60 tokens fades over 300: +3 keeps about 95 % "
        "a token.",
    ),
    (
        "The Transformer alone",
        "A forget gate that starts open can carry the marker that far.",
    ),
    (
        "LSTM +3 alone",
        "Length costs attention memory and time; its path stays one step.",
    ),
    (
        "Neither",
        "Length alone does not hide the marker: attention reads it in one step.",
    ),
)
QUESTIONS = {
    "clock": Question(
        (60, False),
        "60 tokens, equal width. Who is first at 95 % by the clock, in the median of "
        "the seeds?",
        _CLOCK,
        _first_by_clock,
    ),
    "long": Question(
        (300, False),
        "Transformer and LSTM +3 at 300 tokens, three seeds: who ends at 95 % or more "
        "with every seed?",
        _LONG,
        _who_learned,
    ),
}
