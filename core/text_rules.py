"""What the text tasks ask for: how a source is drawn, read and answered.

A source and its answer are tuples of tokens. Nothing here learns or splits anything.
"""

import calendar
import datetime
import functools
import re

import torch
from torch import Generator

from core.checks import RefusedError, require_int

Tokens = tuple[str, ...]

LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
DIGITS = tuple("0123456789")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august",
    "september", "october", "november", "december",
)  # fmt: skip
FIRST_YEAR, LAST_YEAR = 1900, 2099
LARGEST_NUMBER = 9999
DATE_EXAMPLES = "march 4, 1998; mar 4 1998; 4 march 1998; 4. mar 1998; 04/03/1998"

_SMALL_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
    "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
NUMBER_WORDS = (*_SMALL_NUMBERS, *_TENS, "hundred", "thousand", "and")

_DATE_FORMS = (
    "{month} {day}, {year}",
    "{month} {day} {year}",
    "{day} {month} {year}",
    "{day}. {month} {year}",
    "{day:02}/{number:02}/{year}",
)
_DATE_PATTERNS = (
    re.compile(r"(?P<month>[a-z]+) (?P<day>[0-9]{1,2}),? (?P<year>[0-9]{4})"),
    re.compile(r"(?P<day>[0-9]{1,2})\.? (?P<month>[a-z]+) (?P<year>[0-9]{4})"),
    re.compile(r"(?P<day>[0-9]{1,2})/(?P<month>[0-9]{1,2})/(?P<year>[0-9]{4})"),
)


# Letters


def draw_letters(
    count: int, generator: Generator, min_length: int, max_length: int
) -> list[Tokens]:
    """Return strings of random letters; every length is as likely as another.

    Args:
        count: Number of strings.
        generator: Source of the numbers.
        min_length: Letters of the shortest.
        max_length: Letters of the longest.
    """
    lengths = torch.randint(min_length, max_length + 1, (count,), generator=generator)
    drawn = torch.randint(len(LETTERS), (count, max_length), generator=generator)
    return [
        tuple(LETTERS[number] for number in row[:length])
        for row, length in zip(drawn.tolist(), lengths.tolist(), strict=True)
    ]


def reverse(source: Tokens) -> Tokens:
    """Return the tokens from the last to the first."""
    return source[::-1]


def copy(source: Tokens) -> Tokens:
    """Return the tokens as they are."""
    return source


def sort(source: Tokens) -> Tokens:
    """Return the tokens in the order of the alphabet."""
    return tuple(sorted(source))


# Dates


def draw_dates(count: int, generator: Generator) -> list[Tokens]:
    """Return written dates: any day of the years, in any of the forms.

    Args:
        count: Number of dates.
        generator: Source of the numbers.
    """
    first = datetime.date(FIRST_YEAR, 1, 1).toordinal()
    past = datetime.date(LAST_YEAR + 1, 1, 1).toordinal()
    days = torch.randint(first, past, (count,), generator=generator)
    forms = torch.randint(len(_DATE_FORMS), (count,), generator=generator)
    short = torch.randint(2, (count,), generator=generator)
    return [
        tuple(write_date(datetime.date.fromordinal(day), form, short=bool(is_short)))
        for day, form, is_short in zip(
            days.tolist(), forms.tolist(), short.tolist(), strict=True
        )
    ]


def write_date(date: datetime.date, form: int, *, short: bool) -> str:
    """Return a date in one of the written forms, as in ``DATE_EXAMPLES``.

    Args:
        date: The day.
        form: Which form, from 0; the last is day/month/year.
        short: Whether the name of the month is cut to three letters.
    """
    name = MONTHS[date.month - 1]
    return _DATE_FORMS[form].format(
        month=name[:3] if short else name,
        day=date.day,
        number=date.month,
        year=date.year,
    )


def iso_date(source: Tokens) -> Tokens:
    """Return the characters of ``1998-03-04`` for any written form of that date.

    Between slashes the day stands first.

    Args:
        source: Characters of a written date.

    Raises:
        RefusedError: If it is none of the forms, or there is no such day.
    """
    text = "".join(source)
    found = next(filter(None, (p.fullmatch(text) for p in _DATE_PATTERNS)), None)
    if found is None:
        raise RefusedError(_no_date())
    year = require_int("year", int(found["year"]), FIRST_YEAR, LAST_YEAR)
    month = _month_number(found["month"])
    days, day = calendar.monthrange(year, month)[1], int(found["day"])
    if not 1 <= day <= days:
        raise RefusedError(
            f"day ({day}) must be between 1 and {days}: "
            f"{MONTHS[month - 1]} {year} has {days} days"
        )
    return tuple(f"{year}-{month:02}-{day:02}")


def _month_number(text: str) -> int:
    if text.isdigit():
        return require_int("month", int(text), 1, 12)
    for number, name in enumerate(MONTHS, start=1):
        if text in (name, name[:3]):
            return number
    raise RefusedError(_no_date())


def _no_date() -> str:
    return f"text must be a date such as {DATE_EXAMPLES} (day/month/year)"


# Numbers


def draw_numbers(count: int, generator: Generator) -> list[Tokens]:
    """Return numbers in words; each is as likely as another.

    Args:
        count: Number of them.
        generator: Source of the numbers.
    """
    drawn = torch.randint(LARGEST_NUMBER + 1, (count,), generator=generator)
    return [number_words(number) for number in drawn.tolist()]


def number_words(number: int) -> Tokens:
    """Return a number in words: 312 is three hundred and twelve.

    Args:
        number: From 0 to ``LARGEST_NUMBER``.

    Raises:
        RefusedError: If it is out of range.
    """
    require_int("number", number, 0, LARGEST_NUMBER)
    thousands, below = divmod(number, 1000)
    hundreds, rest = divmod(below, 100)
    words: list[str] = []
    for digit, unit in ((thousands, "thousand"), (hundreds, "hundred")):
        words += [_SMALL_NUMBERS[digit], unit] if digit else []
    if words and rest:
        words.append("and")
    if rest or not words:
        words += _below_hundred(rest)
    return tuple(words)


def _below_hundred(number: int) -> list[str]:
    if number < len(_SMALL_NUMBERS):
        return [_SMALL_NUMBERS[number]]
    tens, ones = divmod(number, 10)
    return [_TENS[tens - 2], *([_SMALL_NUMBERS[ones]] if ones else [])]


def digits_of(source: Tokens) -> Tokens:
    """Return the digits of a number in words.

    Args:
        source: Its words.

    Raises:
        RefusedError: If the words spell no number.
    """
    number = _numbers_by_words().get(source)
    if number is None:
        raise RefusedError(
            f"text must spell a number from 0 to {LARGEST_NUMBER}, such as "
            "three hundred and twelve"
        )
    return tuple(str(number))


@functools.cache
def _numbers_by_words() -> dict[Tokens, int]:
    return {number_words(number): number for number in range(LARGEST_NUMBER + 1)}
