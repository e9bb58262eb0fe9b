"""The table of a grid: one row a run, as CSV, and sentences on what is wrong in one."""

import csv
import datetime
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from core.checks import MAX_SEED, RefusedError, require_int, require_number
from core.grid_cell import Cell, Result
from core.shipped import TABLES, made_here, origin_of, table_text

GRID_TABLES = TABLES / "experiments"
MAX_ROWS = 2000
MAX_CHARACTERS = 400_000
_MOST_SHOWN = 40  # characters of a foreign value that are quoted
_ORIGIN = ("#", '"#')  # a spreadsheet puts a line with a comma in quotes
_LINE_END = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"\w+")
_KINDS = {field.name: type(field.default) for field in fields(Cell)}
_RESULTS = ("seed", "steps", "loss", "accuracy", "moved")
COLUMNS = (*_KINDS, *_RESULTS)


class GridTable(NamedTuple):
    """Runs of a grid, and what made them.

    Attributes:
        made_by: Field to text: command, seed, versions, machine, date; what a table
            from elsewhere does not say is absent.
        results: One of every run.
    """

    made_by: dict[str, str]
    results: tuple[Result, ...]

    @property
    def origin(self) -> str:
        """What made it, as a sentence."""
        return f"{origin_of(self.made_by)[:-1]}, {self.made_by['date']}."


def grid_made_here(command: str, num_seeds: int) -> dict[str, str]:
    """Return what makes a grid that is written here today: field to text."""
    seeds = "0" if num_seeds == 1 else f"0 to {num_seeds - 1}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return made_here(command, seeds) | {"date": today}


def grid_text(made_by: Mapping[str, str], results: Sequence[Result]) -> str:
    """Return runs as CSV, below lines on what made them."""
    return table_text(made_by, COLUMNS, map(row_of, results))


def row_of(result: Result) -> tuple[str, ...]:
    """Return the row of a run: every factor, then how it ended."""
    factors = (_text(getattr(result.cell, name)) for name in _KINDS)
    ends = (f"{result.accuracy:.4f}", f"{result.moved:.4f}")
    return (
        *factors,
        str(result.seed),
        str(result.steps),
        f"{result.loss:.6f}",
        *ends,
    )


@functools.lru_cache(maxsize=8)
def parse_grid(text: str) -> GridTable:
    """Return the runs of a table of this form, from here or elsewhere.

    Args:
        text: The file's text.

    Raises:
        ValueError: If it is no such table; the sentence names line and column.
    """
    if len(text) > MAX_CHARACTERS:
        raise RefusedError(
            f"the table has {len(text):,} characters; at most {MAX_CHARACTERS:,} are "
            "allowed"
        )
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    above = list(takewhile(lambda line: line.startswith(_ORIGIN), lines))
    count = len(above)
    head = [line.strip('"#, ').partition(": ") for line in above]
    results: dict[tuple[Cell, int], Result] = {}
    found: dict[tuple[Cell, int], int] = {}
    for line, row in _rows(lines, count):
        result = _result_of(row, line)
        run = (result.cell, result.seed)
        if run in found:
            raise RefusedError(
                f"line {line}, column seed: the same run stands in line {found[run]}"
            )
        found[run], results[run] = line, result
    return GridTable({k: v for k, _, v in head if v}, tuple(results.values()))


def brought_runs(content: bytes) -> tuple[Result, ...]:
    """Return the runs of a file that somebody brings.

    Raises:
        ValueError: As ``decode`` and ``parse_grid``, or if it holds no run.
    """
    results = parse_grid(decode(content)).results
    if not results:
        raise RefusedError("the table holds no run: below the columns stands no row")
    return results


def decode(content: bytes) -> str:
    """Return the text of a file that somebody brings.

    Raises:
        ValueError: If it is no text in UTF-8; the sentence names the line.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise RefusedError(
            f"line {line}: the file is no text in UTF-8; save it as CSV (UTF-8)"
        ) from None


@functools.cache
def read_shipped(name: str) -> GridTable:
    """Return the shipped table of a preset."""
    return read_grid(GRID_TABLES / f"{name}.csv")


def read_grid(path: Path) -> GridTable:
    """Return the table of a file.

    Raises:
        ValueError: As ``parse_grid``.
    """
    return parse_grid(decode(path.read_bytes()))


def merged(*tables: Sequence[Result]) -> tuple[Result, ...]:
    """Return all runs, one of each cell and seed; later tables win."""
    own = {(run.cell, run.seed): run for table in tables for run in table}
    return tuple(own.values())


def _rows(lines: list[str], start: int) -> list[tuple[int, list[str]]]:
    """Return the rows below the names of the columns, each with its line."""
    reader = csv.reader(lines[start:], strict=True)
    rows = []
    try:
        for row in reader:
            rows.append((start + reader.line_num, row))
    except csv.Error as fault:
        raise RefusedError(f"line {start + reader.line_num}: {fault}") from None
    if not rows:
        raise RefusedError(f"line {start + 1}: the table is empty")
    _check_columns(*rows[0])
    kept = [(line, row) for line, row in rows[1:] if any(row)]
    if len(kept) > MAX_ROWS:
        raise RefusedError(
            f"the table has {len(kept):,} rows; at most {MAX_ROWS:,} are allowed"
        )
    return kept


def _check_columns(line: int, names: list[str]) -> None:
    if len(names) == 1 and ";" in names[0]:
        raise RefusedError(
            f"line {line}, column 1: commas must part the columns, and points the "
            "decimals; this file has semicolons"
        )
    for number, expected in enumerate(COLUMNS, start=1):
        given = names[number - 1] if number <= len(names) else ""
        if given != expected:
            raise RefusedError(
                f"line {line}, column {number}: it must be named {expected}, got "
                f"{_quoted(given)}"
            )
    if len(names) > len(COLUMNS):
        raise RefusedError(
            f"line {line}, column {len(COLUMNS) + 1}: there must be no further column,"
            f" got {_quoted(names[len(COLUMNS)])}"
        )


def _result_of(row: list[str], line: int) -> Result:
    if len(row) != len(COLUMNS):
        after = COLUMNS[min(len(row), len(COLUMNS)) - 1]
        raise RefusedError(
            f"line {line}, column {after}: the row ends at {len(row)} values; there "
            f"must be {len(COLUMNS)}"
        )
    given = dict(zip(COLUMNS, row, strict=True))
    values = {name: _value(name, text, line) for name, text in given.items()}
    ends = {name: values.pop(name) for name in _RESULTS}
    try:
        cell = Cell(**values)
    except RefusedError as refusal:
        guilty = next(n for n in _WORD.findall(str(refusal)) if n in values)
        raise RefusedError(f"line {line}, column {guilty}: {refusal}") from None
    if cell.plain != cell:
        wrong = next(n for n in _KINDS if getattr(cell.plain, n) != values[n])
        raise RefusedError(
            f"line {line}, column {wrong}: a {cell.model} has no {wrong}; it must be "
            f"{_text(getattr(cell.plain, wrong))}"
        )
    return Result(cell, **ends)


def _value(name: str, text: str, line: int) -> Any:
    """Return a value as what its column holds."""
    try:
        return _READERS[name](text)
    except RefusedError as refusal:
        raise RefusedError(f"line {line}, column {name}: {refusal}") from None
    except (ValueError, OverflowError):
        kind = _KINDS.get(name, int if name in ("seed", "steps") else float)
        wanted = {int: "a whole number", float: "a number", bool: "yes or no"}[kind]
        raise RefusedError(
            f"line {line}, column {name}: it must be {wanted}, got {_quoted(text)}"
        ) from None


def _yes_or_no(text: str) -> bool:
    return bool(("no", "yes").index(text))


def _share(text: str) -> float:
    return require_number("the share", float(text), 0, 1)


def _loss(text: str) -> float:
    loss = float(text)
    return loss if math.isnan(loss) else require_number("the loss", loss, 0)


def _seed(text: str) -> int:
    return require_int("the seed", int(text), 0, MAX_SEED)


def _steps(text: str) -> int:
    return require_int("the number of steps", int(text), 1)


def _word(text: str) -> str:
    return text[:_MOST_SHOWN]


_BY_KIND: dict[type, Callable[[str], Any]] = {
    str: _word,
    int: int,
    float: float,
    bool: _yes_or_no,
}
_READERS: dict[str, Callable[[str], Any]] = {
    **{name: _BY_KIND[kind] for name, kind in _KINDS.items()},
    "seed": _seed,
    "steps": _steps,
    "loss": _loss,
    "accuracy": _share,
    "moved": _share,
}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…")
