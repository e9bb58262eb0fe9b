"""Tasks from text to text whose right answers are known.

Each makes its data from a seed, reads what somebody types, and says whether an answer
is right. What a task asks for is written in ``core.text_rules``.
"""

import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from core.checks import RefusedError, require_choice, require_int
from core.initial import generator_from
from core.text_rules import (
    DIGITS,
    LETTERS,
    MONTHS,
    NUMBER_WORDS,
    Tokens,
    copy,
    digits_of,
    draw_dates,
    draw_letters,
    draw_numbers,
    iso_date,
    reverse,
    sort,
)
from core.tokens import MAX_TEXT_LENGTH, token_labels
from core.vocabulary import END, PAD, START, Vocabulary

MAX_LETTERS = 40
MAX_PAIRS = 100_000
HELD_OUT_SHARE = 10  # one source in so many is held out
LEAST_HELD_OUT = 2  # tokens: what a token alone asks for, only that source shows
_DRAWN_AT_ONCE = 1024
_SPACE = "␣"  # how a space is shown as a token
_LETTER_RULES = {"reverse": reverse, "copy": copy, "sort": sort}
_LETTER_TITLES = {
    "reverse": "Reverse the letters",
    "copy": "Copy the letters",
    "sort": "Sort the letters",
}


class Pair(NamedTuple):
    """A source and its right answer, in tokens."""

    source: Tokens
    target: Tokens


class Batch(NamedTuple):
    """Pairs in numbers, filled up with PAD on the right.

    Attributes:
        source: Sources, (B, S), int64.
        target_in: What the decoder reads: START and the target, (B, T).
        target_out: What it shall say: the target and END, (B, T).
    """

    source: Tensor
    target_in: Tensor
    target_out: Tensor

    def rows(self, chosen: Tensor) -> "Batch":
        """Return chosen pairs without the columns that are padding in all of them.

        Args:
            chosen: Which rows, (B',), int64.
        """
        picked = (table.index_select(0, chosen) for table in self)
        return Batch(*(_trimmed(table) for table in picked))

    def to(self, device: torch.device) -> "Batch":
        """Return the same on a device."""
        return Batch(*(table.to(device) for table in self))


@dataclass(frozen=True)
class TextTask:
    """A task from source tokens to target tokens.

    Attributes:
        name: Its key in ``TASKS``.
        title: Its name in words.
        source: Vocabulary of the sources.
        target: Vocabulary of the answers.
        max_source: Tokens of the longest source.
        max_target: Tokens of the longest answer with its END: a limit for decoding.
        example: A text that ``read`` takes.
        separator: What stands between tokens where they are written as a text.
        rule: Source -> right answer; refuses what is no source.
        draw: Count, generator, least and greatest length -> sources.
        lengths_vary: Whether a least and a greatest length can be asked for.
    """

    name: str
    title: str
    source: Vocabulary
    target: Vocabulary
    max_source: int
    max_target: int
    example: str
    separator: str
    rule: Callable[[Tokens], Tokens]
    draw: Callable[[int, Generator, int, int], list[Tokens]]
    lengths_vary: bool = False

    def pairs(
        self,
        count: int,
        *,
        seed: int,
        held_out: bool = False,
        min_length: int = 1,
        max_length: int | None = None,
    ) -> list[Pair]:
        """Return pairs from a seed; no source is both held out and not.

        One source in ``HELD_OUT_SHARE`` is held out, by a hash of the source alone, so
        all seeds and processes agree on it. A source of one token never is: there are
        few of them, and a test of it would ask for what no other source shows. Of more
        pairs the first ones are the same.

        Args:
            count: Number of pairs, at most ``MAX_PAIRS``.
            seed: The same seed gives the same pairs.
            held_out: True for those to test on, False for those to train on.
            min_length: Fewest tokens of a source, where lengths vary.
            max_length: Most tokens of a source; None means ``max_source``.

        Raises:
            RefusedError: If a number is out of range, a length is asked for where the
                task decides it, or sources of one token alone are to be held out.
        """
        require_int("count", count, 0, MAX_PAIRS)
        longest = self._checked_length(min_length, max_length)
        if held_out:
            require_int("max_length", longest, LEAST_HELD_OUT)
        sources = self._sources(generator_from(seed), min_length, longest)
        chosen = (source for source in sources if _is_held_out(source) == held_out)
        return [
            Pair(source, self.rule(source))
            for _, source in zip(range(count), chosen, strict=False)
        ]

    def read(self, text: str) -> Tokens:
        """Return the source tokens of a typed text.

        Capitals become small letters, accents are brought to one form (NFC), and blanks
        at the ends or in a row do not count.

        Args:
            text: What was typed.

        Raises:
            RefusedError: If it is empty, too long, has unknown tokens, or is no source
                of this task; a sentence says which.
        """
        plain = " ".join(_plain_words(text))
        tokens = tuple(plain.replace("-", " ").split() if self.separator else plain)
        if not 1 <= len(tokens) <= self.max_source:
            raise RefusedError(
                f"text has {len(tokens)} {self._unit} and must have between 1 and "
                f"{self.max_source}"
            )
        self.source.encode(tokens)
        self.rule(tokens)
        return tokens

    def write(self, tokens: Sequence[str]) -> str:
        """Return tokens, of a source or an answer, as a readable text."""
        return self.separator.join(tokens)

    def labels(self, tokens: Sequence[str]) -> list[str]:
        """Return a label for each token; no two are equal, and a space can be seen."""
        return token_labels([_SPACE if token == " " else token for token in tokens])

    def answer_to(self, source: Tokens) -> Tokens:
        """Return the right answer, by the rule.

        Raises:
            RefusedError: If ``source`` is none of this task.
        """
        return self.rule(tuple(source))

    def is_right(self, source: Tokens, answer_tokens: Sequence[str]) -> bool:
        """Return whether an answer is the one that the rule gives."""
        return tuple(answer_tokens) == self.answer_to(source)

    @property
    def _unit(self) -> str:
        return "words" if self.separator else "characters"

    def _checked_length(self, min_length: int, max_length: int | None) -> int:
        require_int("min_length", min_length, 1, self.max_source)
        if max_length is None and min_length == 1:
            return self.max_source
        if not self.lengths_vary:
            raise RefusedError(
                f"min_length ({min_length}) and max_length ({max_length}) cannot be "
                f"chosen for {self.name}"
            )
        longest = self.max_source if max_length is None else max_length
        return require_int("max_length", longest, min_length, self.max_source)

    def _sources(
        self, generator: Generator, min_length: int, max_length: int
    ) -> Iterator[Tokens]:
        while True:
            yield from self.draw(_DRAWN_AT_ONCE, generator, min_length, max_length)


def letter_task(name: str, *, max_length: int = 12) -> TextTask:
    """Return one of the tasks on strings of letters, with its longest string.

    Args:
        name: ``"reverse"``, ``"copy"`` or ``"sort"``.
        max_length: Letters of the longest string, at most ``MAX_LETTERS``.

    Raises:
        RefusedError: If the name is unknown or the length out of range.
    """
    require_choice("name", name, _LETTER_RULES)
    require_int("max_length", max_length, 1, MAX_LETTERS)
    letters = Vocabulary.of(LETTERS)
    return TextTask(
        name=name,
        title=_LETTER_TITLES[name],
        source=letters,
        target=letters,
        max_source=max_length,
        max_target=max_length + 1,
        example="attention"[:max_length],
        separator="",
        rule=_LETTER_RULES[name],
        draw=draw_letters,
        lengths_vary=True,
    )


def make_batch(task: TextTask, pairs: Sequence[Pair]) -> Batch:
    """Return pairs in numbers, as long as the longest source and target of them.

    Args:
        task: The task they are of.
        pairs: Any number of pairs, 0 too.
    """
    sources = [task.source.encode(pair.source) for pair in pairs]
    targets = [task.target.encode(pair.target) for pair in pairs]
    return Batch(
        source=pad_ids(sources),
        target_in=pad_ids([[START, *target] for target in targets]),
        target_out=pad_ids([[*target, END] for target in targets]),
    )


def pad_ids(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return rows of numbers as one table, filled up with PAD on the right.

    Args:
        rows: B rows of any lengths.

    Returns:
        (B, longest length), int64.
    """
    longest = max(map(len, rows), default=0)
    filled = [[*row, *[PAD] * (longest - len(row))] for row in rows]
    return torch.tensor(filled, dtype=torch.int64).view(len(rows), longest)


def _trimmed(table: Tensor) -> Tensor:
    used = (table != PAD).any(dim=0).sum().item()
    return table[:, : int(used)]


def _is_held_out(source: Tokens) -> bool:
    if len(source) < LEAST_HELD_OUT:
        return False
    digest = hashlib.blake2b("\x1f".join(source).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % HELD_OUT_SHARE == 0


def _plain_words(text: str) -> list[str]:
    if not isinstance(text, str):
        raise RefusedError(f"text must be a string, got {type(text).__name__}")
    if len(text) > MAX_TEXT_LENGTH:
        raise RefusedError(
            f"text has {len(text)} characters and must have at most {MAX_TEXT_LENGTH}"
        )
    return unicodedata.normalize("NFC", text.lower()).split()


_DATE_CHARACTERS = sorted({*"".join(MONTHS), *DIGITS, *" ,./"})
TASKS: dict[str, TextTask] = {
    **{name: letter_task(name) for name in _LETTER_RULES},
    "dates": TextTask(
        name="dates",
        title="Written dates to ISO dates",
        source=Vocabulary.of(_DATE_CHARACTERS),
        target=Vocabulary.of((*DIGITS, "-")),
        max_source=18,
        max_target=11,
        example="march 4, 1998",
        separator="",
        rule=iso_date,
        draw=lambda count, generator, *_: draw_dates(count, generator),
    ),
    "numbers": TextTask(
        name="numbers",
        title="Number words to digits",
        source=Vocabulary.of(NUMBER_WORDS),
        target=Vocabulary.of(DIGITS),
        max_source=7,
        max_target=5,
        example="three hundred and twelve",
        separator=" ",
        rule=digits_of,
        draw=lambda count, generator, *_: draw_numbers(count, generator),
    ),
}
