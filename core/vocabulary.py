"""Vocabularies: which number stands for which token of a text."""

from collections.abc import Iterable
from dataclasses import dataclass

from core.checks import RefusedError, require_int
from core.tokens import shown_token

PAD, START, END = 0, 1, 2
SPECIALS = ("<pad>", "<s>", "</s>")
_MOST_LISTED = 40


@dataclass(frozen=True)
class Vocabulary:
    """All tokens of one side of a task; the number of a token is its place here.

    The first three are the same everywhere: padding, start of a target, end of a
    target.

    Attributes:
        tokens: ``"<pad>"``, ``"<s>"``, ``"</s>"``, then the task's own tokens.

    Raises:
        RefusedError: If the special tokens do not come first, or a token comes twice.
    """

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse tokens that could not be told apart."""
        if self.tokens[: len(SPECIALS)] != SPECIALS:
            raise RefusedError(f"tokens must begin with {', '.join(SPECIALS)}")
        if len(set(self.tokens)) < len(self.tokens):
            raise RefusedError("tokens must differ from one another")
        first = len(SPECIALS)
        numbers = {token: number for number, token in enumerate(self.own, first)}
        object.__setattr__(self, "_numbers", numbers)

    @classmethod
    def of(cls, own: Iterable[str]) -> "Vocabulary":
        """Return the vocabulary of the special tokens and a task's own.

        Args:
            own: The task's tokens, in order.
        """
        return cls((*SPECIALS, *own))

    def __len__(self) -> int:
        """Number of tokens V, the special ones counted."""
        return len(self.tokens)

    @property
    def own(self) -> tuple[str, ...]:
        """The task's tokens, without the special ones."""
        return self.tokens[len(SPECIALS) :]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the numbers of tokens; the special ones may not be written.

        Args:
            tokens: Tokens of the task.

        Raises:
            RefusedError: If one is unknown; the sentence says which, where, and what is
                known.
        """
        numbers: dict[str, int] = self._numbers  # type: ignore[attr-defined]
        tokens = list(tokens)
        try:
            return [numbers[token] for token in tokens]
        except KeyError as error:
            place = tokens.index(error.args[0])
        raise RefusedError(
            f"token {place + 1} ({_named(tokens[place])}) must be one of "
            f"{listed(self.own)}"
        )

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of numbers, the special ones too; it stops nowhere.

        Args:
            ids: Numbers from 0 to V - 1.

        Raises:
            RefusedError: If a number is out of range.
        """
        last = len(self.tokens) - 1
        return [self.tokens[require_int("id", number, 0, last)] for number in ids]


def listed(tokens: Iterable[str]) -> str:
    """Return tokens as a short list to read: ``a-z``, and a space as the word.

    Args:
        tokens: Tokens, in the order of the list.
    """
    names = _with_runs_cut([_named(token) for token in tokens])
    if len(names) > _MOST_LISTED:
        names = [*names[: _MOST_LISTED - 1], "…"]
    return ", ".join(names)


def _named(token: str) -> str:
    return "space" if token == " " else shown_token(token)


def _with_runs_cut(names: list[str]) -> list[str]:
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(name, runs[-1][-1]):
            runs[-1].append(name)
        else:
            runs.append([name])
    cut = [[f"{run[0]}-{run[-1]}"] if len(run) > 2 else run for run in runs]
    return [name for run in cut for name in run]


def _follows(name: str, before: str) -> bool:
    both = len(name) == 1 == len(before) and name.isalnum() and before.isalnum()
    return both and ord(name) == ord(before) + 1
