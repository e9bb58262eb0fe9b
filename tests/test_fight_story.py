"""What is said of a race, on races made up by hand."""

import pytest

from core.fair_fight import FightStep
from core.fight_config import FightConfig, contenders
from core.fight_questions import QUESTIONS
from core.fight_results import (
    Point,
    median_curves,
    rulers,
    seconds_end,
    seed_curves,
    standings,
)
from core.fight_story import (
    absent_sentence,
    budget_sentence,
    end_sentence,
    floor_sentence,
    parameters_sentence,
    ruler_sentence,
    rulers_told,
    sentences,
    table_rows,
)


def looks(name: str, *runs: list[float], pace: float = 0.5) -> list[FightStep]:
    """Return looks every 20 steps with these accuracies, a run a seed."""
    return [
        FightStep(name, seed, 20 * i, 20 * i * pace, accuracy=share, ruler=(0.25, 0.5))
        for seed, run in enumerate(runs)
        for i, share in enumerate(run)
    ]


FAST = looks("Transformer", [0.5, 0.96, 1.0], [0.5, 0.5, 0.99], pace=0.5)
SLOW = looks("LSTM +3", [0.5, 0.97, 0.98], [0.5, 0.97, 0.96], pace=2.0)
STUCK = looks("LSTM", [0.5, 0.5, 0.52], [0.5, 0.5, 0.48])
HALFWAY = looks("RNN", [0.5, 0.6, 1.0], [0.5, 0.5, 0.55])
RACE = [*FAST, *SLOW, *STUCK, *HALFWAY]


def test_the_sentences_sort_who_learned_who_did_not_and_who_was_in_between():
    assert sentences(RACE) == [
        "After 40 steps, 2 seeds. 95 % or more with every seed: Transformer and "
        "LSTM +3; near a coin flip (40 to 60 %): LSTM; RNN at 55.0 to 100.0 %.",
        "The same LSTM with forget bias +3 stands at 96.0 to 98.0 %: from its default "
        "start the task is hard, not impossible.",
        "To 95 %, looked for every 20 steps, median over seeds (least to most): "
        "Transformer 15.0 s (10.0 to 20.0), in 30 steps (20 to 40); LSTM +3 40.0 s, "
        "in 20 steps.",
    ]


def test_each_cost_keeps_its_own_ends_where_the_seeds_differ_in_pace():
    shares = [0.5, 0.5, 1.0], [0.5, 1.0], [0.5, 1.0]
    paces = zip((0.5, 3.0, 0.25), shares, strict=True)
    runs = [
        step._replace(seed=seed)
        for seed, (pace, run) in enumerate(paces)
        for step in looks("GRU", run, pace=pace)
    ]
    # (40 steps, 20 s), (20 steps, 60 s), (20 steps, 5 s): no seed took 20 and 20.
    assert sentences(runs)[-1].endswith(
        ": GRU 20.0 s (5.0 to 60.0), in 20 steps (20 to 40)."
    )
    ((_, _, _, _, pace, _), *_) = table_rows(FightConfig((contenders()[3],)), runs)
    assert pace == "500.0 ms (250.0 to 3000.0)"


def test_seconds_are_told_only_where_they_are_drawn():
    assert sentences(RACE, "steps")[-1] == (
        "To 95 %, looked for every 20 steps, median over seeds (least to most): "
        "LSTM +3 20 steps; Transformer 30 steps (20 to 40)."
    )
    assert sentences(FAST[:3], "steps")[-1] == (
        "To 95 %, looked for every 20 steps: Transformer 20 steps."
    )


def test_nothing_is_said_of_the_gate_where_it_changed_nothing():
    assert not any("hard" in text for text in sentences([*STUCK, *FAST]))
    both = [*looks("LSTM", [0.5, 1.0]), *looks("LSTM +3", [0.5, 1.0])]
    assert not any("hard" in text for text in sentences(both))


def test_a_race_that_is_still_on_says_so_and_one_not_begun_says_nothing():
    begun = [*FAST[:2], *STUCK[:1]]
    assert end_sentence(standings(begun)).startswith("So far, 0 to 20 steps, 1 seed.")
    assert sentences([]) == []
    assert sentences([FightStep("RNN", 0, 1, 0.1, loss=0.7)]) == []


def test_nobody_impossible_in_any_sentence():
    assert "cannot" not in " ".join(sentences(RACE))


def test_a_curve_is_the_accuracy_in_percent_or_the_mean_of_ten_losses():
    losses = [FightStep("GRU", 0, s, s / 10, loss=float(s)) for s in range(1, 13)]
    lost = [FightStep("GRU", 0, 13, 1.2)]
    assert seed_curves([*losses, *lost], "loss")["GRU", 0] == [
        Point(10, 1.0, 5.5),
        Point(12, 1.2, 11.5),
    ]
    assert seed_curves(FAST, "accuracy")["Transformer", 0][1] == Point(20, 10.0, 96.0)


def test_the_median_is_over_the_seeds_that_came_so_far():
    curves = seed_curves([*FAST[:3], *FAST[3:5]], "accuracy")
    (points,) = median_curves(curves).values()
    assert [point.value for point in points] == [50.0, 73.0, 100.0]


def test_the_ruler_is_the_median_over_seeds_at_the_first_or_the_last_look():
    steps = [
        FightStep("RNN", seed, step, 0.0, accuracy=0.5, ruler=(value, 2 * value))
        for seed, value in enumerate((1.0, 3.0, 9.0))
        for step, value in ((0, value), (20, 10 * value))
    ]
    assert rulers(steps, "before") == {"RNN": (3.0, 6.0)}
    assert rulers(steps, "after") == {"RNN": (30.0, 60.0)}
    assert rulers([], "before") == {}


def test_the_ruler_sentences_give_the_marker_beside_the_last_token():
    read = {"RNN": (2e-18, 1e-17, 0.1), "LSTM +3": (0.05, 0.2, 0.1)}
    said = ruler_sentence(read)
    assert "RNN 2e-18; LSTM +3 0.05." in said
    assert "In RNN it is 2e-17 times that of the last token." in said
    assert floor_sentence(read) == "Below 1e-16, not drawn: RNN at 2 positions."
    assert floor_sentence({"LSTM +3": read["LSTM +3"]}) is None


def test_what_single_precision_does_not_hold_is_told_as_less_and_not_as_nothing():
    said = ruler_sentence({"RNN": (0.0, 0.0)})
    assert said.endswith("RNN less than 1.2e-38.")
    said = ruler_sentence({"RNN": (0.0, 0.5), "GRU": (2e-38, 1.0)})
    assert "RNN less than 1.2e-38; GRU 2e-38." in said
    assert "In RNN it is less than 2.4e-38 times that of the last token." in said


def test_a_small_gradient_at_the_start_is_said_not_to_rule_learning_out():
    faint = [s._replace(ruler=(1e-15, 0.5)) for s in [*FAST, *STUCK]]
    said = rulers_told([*faint, *SLOW], "before")
    assert said[0] == "Read before training; median over 2 seeds."
    assert said[-1] == (
        "Transformer begins with 1e-15 and stands at 99.0 to 100.0 %: a small "
        "gradient at the start does not rule learning out."
    )
    assert len(rulers_told([*faint, *SLOW], "after")) == 2
    assert len(rulers_told(SLOW, "before")) == 2
    assert rulers_told([], "before") == []


def test_a_ruler_of_a_race_that_is_still_on_is_not_called_one_after_training():
    begun = [*SLOW, *FAST[:2]]
    assert rulers_told(begun, "after")[0] == (
        "Read after 20 to 40 steps; median over 1 to 2 seeds."
    )
    assert rulers_told(FAST[:3], "after")[0] == (
        "Read after 40 steps; median over 1 seed."
    )


def test_the_table_gives_width_parameters_and_time_of_each():
    rows = {row[0]: row[1:] for row in table_rows(FightConfig(), RACE)}
    assert rows["Transformer"][:3] == ("d_model 32", "12,897", "1.000")
    assert rows["LSTM"] == ("hidden 32", "4,513", "0.350", "500.0 ms", "48.0 to 52.0 %")
    assert rows["GRU"][3:] == ("–", "–")


def test_the_parameters_are_told_apart_or_as_near_as_they_are():
    said = parameters_sentence(FightConfig())
    assert "RNN 1,153, Transformer 12,897" in said
    equal = parameters_sentence(FightConfig(equal_parameters=True))
    assert "12,816 to 12,993, 1.4 % apart" in equal


def test_the_cost_is_told_beforehand():
    said = budget_sentence(FightConfig(num_seeds=3))
    assert said.startswith("15 runs of 300 steps: about ")
    assert FightConfig(num_seeds=3).seconds == pytest.approx(3 * FightConfig().seconds)


def test_who_is_named_but_did_not_run_is_told():
    two = FightConfig((contenders()[0], contenders()[2]))
    assert absent_sentence(two, ["Transformer", "RNN", "LSTM", "GRU"]) == (
        "Not in this race: RNN and GRU."
    )
    assert absent_sentence(two, ["LSTM"]) is None


def test_the_axis_of_seconds_ends_at_the_next_round_number():
    assert seconds_end([]) == 1
    assert seconds_end([FightStep("RNN", 0, 1, 7.3)]) == 10
    assert seconds_end([FightStep("RNN", 0, 1, 12.0)]) == 20


def test_the_answers_follow_the_runs():
    clock, long = QUESTIONS["clock"], QUESTIONS["long"]
    first = clock.answer(standings(RACE))
    assert clock.choices[first][0] == "Transformer"
    late = [s._replace(seconds=9 * s.seconds) for s in FAST]
    assert clock.choices[clock.answer(standings([*late, *SLOW]))][0] == "LSTM +3"
    assert clock.choices[clock.answer(standings(STUCK))][0] == "nobody"
    assert long.choices[long.answer(standings(RACE))][0] == "Both"
    bad = looks("LSTM +3", [0.5, 1.0], [0.5, 0.5])
    alone = long.answer(standings([*FAST, *bad]))
    assert long.choices[alone][0] == "The Transformer alone"
