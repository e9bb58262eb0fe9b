"""The table of a grid: written, read again, and refused with line and column."""

import math

import pytest

from core.grid_cell import Cell, Result
from core.grid_table import (
    COLUMNS,
    MAX_CHARACTERS,
    decode,
    grid_made_here,
    grid_text,
    merged,
    parse_grid,
    read_grid,
)

ROWS = (
    Result(Cell(), 0, 400, 0.25, 0.875, 0.5),
    Result(Cell(model="gru", seq_len=11), 2, 7, 0.0625, 0.4375, 0.625),
    Result(Cell(causal=True, dropout=0.1, norm="post"), 3, 5, math.nan, 0.5, 0.5),
)
TEXT = grid_text({"command": "c", "seed": "0 to 3"}, ROWS)
FIRST = 4  # line of the first row: two lines of origin, one of names


def changed(line: int, column: str, value: str) -> str:
    lines = TEXT.split("\n")
    cells = lines[line - 1].split(",")
    cells[COLUMNS.index(column)] = value
    lines[line - 1] = ",".join(cells)
    return "\n".join(lines)


def test_a_written_table_reads_back_the_same(tmp_path):
    (tmp_path / "grid.csv").write_text(TEXT, encoding="utf-8")
    table = read_grid(tmp_path / "grid.csv")
    assert table.made_by == {"command": "c", "seed": "0 to 3"}
    assert table.results[:2] == ROWS[:2]
    assert math.isnan(table.results[2].loss)
    assert grid_text(table.made_by, table.results) == TEXT


def test_a_table_written_here_names_command_seeds_versions_machine_and_date():
    made_by = grid_made_here("python -m x", 3)
    assert list(made_by) == ["command", "seed", "versions", "machine", "date"]
    assert made_by["seed"] == "0 to 2"
    assert grid_made_here("x", 1)["seed"] == "0"
    origin = parse_grid(grid_text(made_by, ROWS)).origin
    assert origin.startswith("Made by python -m x, seed 0 to 2, torch ")
    assert origin.endswith(f", {made_by['date']}.")


def test_a_table_from_a_spreadsheet_reads_too():
    theirs = "\ufeff" + TEXT.replace("\n", "\r\n") + "\r\n"
    assert parse_grid(theirs).results[:2] == ROWS[:2]
    origin = grid_made_here("python -m x", 3)
    first, *rest = grid_text(origin, ROWS).split("\n")
    ends = "," * (len(COLUMNS) - 1)  # a spreadsheet fills every row up, and quotes
    saved = [f"{first}{ends}", *(f'"{x}"{ends}' for x in rest[:4]), *rest[4:], ends]
    table = parse_grid("\r".join(saved))
    assert (table.made_by, table.results[:2]) == (origin, ROWS[:2])
    bare = "\n".join(TEXT.split("\n")[2:])
    assert parse_grid(bare).made_by == {}


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("accuracy", "much", "it must be a number, got 'much'"),
        ("accuracy", "1.5", r"the share \(1.5\) must be between 0 and 1"),
        ("moved", "nan", "the share must be finite, got nan"),
        ("loss", "-1", r"the loss \(-1\) must be at least 0"),
        ("loss", "inf", "the loss must be finite"),
        ("seed", "-1", r"the seed \(-1\) must be between 0 and"),
        ("seed", "2.0", "it must be a whole number, got '2.0'"),
        ("steps", "0", r"the number of steps \(0\) must be at least 1"),
        ("causal", "true", "it must be yes or no, got 'true'"),
        ("model", "<script>", "model must be one of"),
        ("readout", "=cmd()", "readout must be one of"),
        ("num_heads", "5", "must be divisible by num_heads"),
        ("d_model", "9" * 5000, "it must be a whole number, got '9999"),
        ("d_model", "9" * 400, "d_model must be between 1 and 512, got a number"),
        ("seq_len", "", "it must be a whole number, got ''"),
        ("dropout", "1e999", "must be finite"),
        ("norm", "\u202e", "norm must be one of"),
        ("noise", "pink", "noise must be one of 'uniform', 'normal'"),
    ],
)
def test_a_damaged_value_is_refused_with_its_line_and_column(column, value, words):
    line = FIRST
    with pytest.raises(ValueError, match=words) as refusal:
        parse_grid(changed(line, column, value))
    named = str(refusal.value)
    guilty = {"num_heads": "d_model"}.get(column, column)
    assert named.startswith(f"line {line}, column {guilty}: ")
    assert len(named) < 300


def test_a_factor_that_a_recurrence_has_not_is_refused():
    words = "line 5, column causal: a gru has no causal; it must be no"
    with pytest.raises(ValueError, match=words):
        parse_grid(changed(FIRST + 1, "causal", "yes"))


def test_a_table_that_was_read_before_is_not_read_again():
    assert parse_grid(TEXT) is parse_grid("".join(TEXT))


def test_a_run_that_stands_there_twice_is_refused_with_both_lines():
    lines = TEXT.split("\n")
    twice = "\n".join([*lines[:5], lines[FIRST - 1]])
    words = "line 6, column seed: the same run stands in line 4"
    with pytest.raises(ValueError, match=words):
        parse_grid(twice)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1, column 1: it must be named model, got ''"),
        ("# only\n# lines", "line 3: the table is empty"),
        ("step,loss\n1,2", "line 1, column 1: it must be named model, got 'step'"),
        (TEXT.replace(",", ";"), "line 3, column 1: commas must part the columns, and"),
        (",".join((*COLUMNS, "x")), "line 1, column 22: there must be no further"),
        (",".join(COLUMNS[:-1]), "line 1, column 21: it must be named moved, got ''"),
        (
            ",".join(COLUMNS) + "\ntransformer,none",
            "line 2, column positional: the row",
        ),
        (",".join(COLUMNS) + '\n"a', "line 2: unexpected end of data"),
        ("x" * (MAX_CHARACTERS + 1), "the table has 400,001 characters; at most"),
    ],
)
def test_a_foreign_table_is_refused_in_one_sentence(text, words):
    with pytest.raises(ValueError, match=words):
        parse_grid(text)


def test_bytes_that_are_no_text_are_refused_with_their_line():
    assert decode("é\n".encode()) == "é\n"
    with pytest.raises(ValueError, match="line 3: the file is no text in UTF-8"):
        decode(b"a\nb\n\xff\xfe")


def test_tables_put_together_hold_each_run_once_and_the_later_wins():
    newer = ROWS[0]._replace(accuracy=1.0)
    assert merged(ROWS[:2], [newer]) == (newer, ROWS[1])
