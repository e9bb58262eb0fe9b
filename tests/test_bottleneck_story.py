"""Sentences of the bottleneck page: their numbers are those of runs and maps."""

from core.bottleneck import (
    LENGTHS,
    LengthResult,
    LengthRun,
    WatchRecord,
)
from core.bottleneck_story import (
    apart_sentence,
    here_sentence,
    length_sentence,
    median_curves,
    reach_of,
    reach_sentence,
    right_band,
    seed_curves,
    width_sentence,
)

NO_BREAK = "\u00a0"


def broken(said: str) -> str:
    """Return a sentence with ordinary spaces before its percent signs."""
    return said.replace(NO_BREAK, " ")


def brought(step: int, *exact: float) -> list[WatchRecord]:
    """Return what the tests after so many steps bring, shortest length first."""
    return [
        WatchRecord(step, 1.0, LengthResult(length, share, share))
        for length, share in zip(LENGTHS, exact, strict=False)
    ]


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


def test_the_median_curve_is_the_middle_of_the_seeds_at_each_length():
    curves = median_curves(seed_curves(RUNS, "exact"))
    assert curves["no attention"] == [(2, 0.9), (4, 0.6), (6, 0.1)]
    assert curves["dot product"] == [(2, 1.0), (4, 1.0), (6, 0.97)]


def test_the_length_sentence_gives_both_ends_of_the_measure_asked_for():
    said = broken(length_sentence(RUNS, "exact"))
    assert "90 % to 10 % (no attention) and 100 % to 97 % (dot product)" in said
    assert "from 2 to 6 letters" in said
    assert "95 % to 55 % (no attention)" in broken(length_sentence(RUNS, "letters"))


def test_no_line_breaks_between_a_number_and_its_percent_sign():
    assert f"90{NO_BREAK}%" in length_sentence(RUNS, "exact")
    assert " %" not in length_sentence(RUNS, "exact") + apart_sentence(RUNS, "exact")
    said = here_sentence(brought(400, 1.0, 0.5), "exact", max_steps=1600)
    assert " %" not in said


def test_widths_are_compared_at_the_length_where_they_lie_furthest_apart():
    runs = [run_of("none", 0, 1.0, 0.2, 0.0, size=4), run_of("none", 0, 1.0, 0.9, 0.3)]
    said = broken(apart_sentence(runs, "exact"))
    assert "at 4 letters" in said
    assert said.endswith("20 % (4 numbers) and 90 % (64 numbers).")


def test_the_length_reached_ends_at_the_first_fall_below_half():
    assert reach_of([(2, 0.9), (4, 0.5), (6, 0.4), (8, 0.9)]) == 4
    assert reach_of([(2, 0.4), (4, 0.9)]) == 0
    said = reach_sentence(RUNS)
    assert "up to 4 letters (no attention) and up to 6 letters (dot product)" in said


def test_the_length_reached_is_one_of_those_tested_and_counts_whole_strings():
    said = reach_sentence(RUNS)
    assert said.startswith("Whole strings, of the lengths tested (2, 4, … 6):")
    few = [run_of("none", 0, 1.0, 0.2)]
    assert "of the lengths tested (2, 4):" in reach_sentence(few)


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
    records = [WatchRecord(399, 1.0, None), *brought(400, 1.0, 0.5)]
    said = broken(here_sentence(records, "exact", max_steps=1600))
    assert said == (
        "Run here, so far, after 400 steps, whole strings right: "
        "100 % at 2 and 50 % at 4 letters."
    )


def test_a_run_here_says_so_far_until_every_length_is_tested_after_its_last_step():
    all_of_it = 8 * (0.75,)
    mixed = [*brought(400, *all_of_it), *brought(800, 1.0)]
    said = broken(here_sentence(mixed, "exact", max_steps=1600))
    assert said.startswith("Run here, so far, after 400 to 800 steps, whole")
    begun = brought(1600, 1.0)
    assert "so far" in here_sentence(begun, "exact", max_steps=1600)
    done = [*mixed, *brought(1600, *all_of_it)]
    said = broken(here_sentence(done, "exact", max_steps=1600))
    assert said == (
        "Run here, whole strings right: 75 % at every tested length from 2 letters on."
    )


def test_equal_shares_at_the_end_are_told_once():
    records = brought(400, 1.0, 0.996, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    said = broken(here_sentence(records, "exact", max_steps=1600))
    assert said.endswith(
        ": 100 % at 2, over 99 % at 4 and 0 % at every tested length from 6 letters on."
    )
