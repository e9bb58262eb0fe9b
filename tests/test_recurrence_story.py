import pytest
import torch

from core import forget_bias, recurrence_story
from core.chains import Chains
from core.forget_bias import LstmRun
from core.growth import Curve

DOUBLED = (16, 32, 64, 128, 256)


def powers(attention: float = 2.0) -> dict[str, Curve]:
    rules = {"rnn": lambda n: n, "attention": lambda n: n**attention / 50}
    return {
        name: Curve(DOUBLED, tuple(float(rule(n)) for n in DOUBLED))
        for name, rule in rules.items()
    }


def norms() -> dict[str, torch.Tensor]:
    steps = torch.arange(21, dtype=torch.float64)
    return {"rnn": (0.5**steps).expand(3, -1), "attention": torch.full((3, 21), 0.04)}


def test_the_path_sentence_gives_the_factor_of_a_step_and_attentions_ends():
    assert recurrence_story.path_sentence(norms()) == (
        "Over the last 10 steps one step keeps 50 % (RNN) of the norm. Attention has "
        "0.04 at distance 1 and 0.04 at distance 20: no step lies between."
    )


def test_what_leaves_the_axis_is_named_with_its_distance():
    said = recurrence_story.floor_sentence(norms(), 1e-4)
    assert said == "Below 1e-04, the end of the axis: RNN from distance 14 on."
    assert recurrence_story.floor_sentence(norms(), 1e-20) is None


def test_a_norm_of_zero_is_said_and_not_divided_by():
    found = norms() | {"rnn": torch.zeros(3, 21)}
    assert "keeps nothing that can be measured (RNN)" in recurrence_story.path_sentence(
        found
    )


def test_the_time_sentences_give_powers_with_their_range_and_the_crossing():
    said = recurrence_story.time_sentences(powers(), 32)
    assert said == [
        "Time grows as n¹˙⁰⁰ (RNN, n = 16 to 256) and n²˙⁰⁰ (attention, n = 16 to "
        "256).",
        "At d = 32 attention takes longer than the RNN at n ≈ 50.",
    ]


def test_where_a_fit_does_not_hold_is_said():
    curves = powers()
    fixed = tuple(20 + value for value in curves["attention"].values)
    curves["attention"] = Curve(DOUBLED, fixed)
    said = recurrence_story.limit_sentence(curves)
    assert said.startswith("Below its range a fit does not hold")
    assert said.endswith("from n = 16 to 32 it is n⁰˙⁶⁹ (attention).")
    assert "RNN" not in said
    assert recurrence_story.limit_sentence(powers()) is None


def test_no_crossing_and_no_fit_are_said():
    assert "passes neither" in recurrence_story.time_sentences(powers(1.0), 8)[-1]
    few = {"rnn": Curve((16,), (1.0,))}
    assert recurrence_story.time_sentences(few, 8) == [
        "Too few lengths are measured for a fit."
    ]


def test_a_crossing_of_the_fits_is_called_so_and_stays_out_of_the_picture():
    curves = powers()
    late = tuple(value / 10 for value in curves["attention"].values)
    curves["attention"] = Curve(DOUBLED, late)
    assert "n ≈ 500 (fits)" in recurrence_story.time_sentences(curves, 8)[-1]
    assert recurrence_story.rules_of(curves, 4096) == {}
    assert recurrence_story.rules_of(powers(), 256) == {
        "attention passes RNN": pytest.approx(50)
    }


def test_the_table_sets_theory_beside_measurement():
    counted = {
        "rnn": (Chains(10, 10), Chains(20, 20)),
        "attention": (Chains(26, 4), Chains(26, 4)),
    }
    rnn, attention = recurrence_story.theory_rows(powers(), counted)
    assert (rnn.path, rnn.waits, rnn.longest) == ("O(n)", "n", "10 → 20")
    assert (attention.path, attention.waits) == ("O(1)", "1")
    assert (attention.shortest, attention.longest) == ("4 → 4", "26 → 26")
    assert attention.measured == "n²˙⁰⁰ for n = 16 to 256"
    assert "n²" in attention.cost
    assert "n²" not in rnn.cost
    said = recurrence_story.chains_sentence(counted, (8, 10))
    assert "adds 5 (RNN) operations" in said
    assert said.endswith("none to attention.")


def test_the_memory_is_worked_out_in_bytes():
    first = recurrence_story.memory_sentences(2048, 4, 64)[0]
    assert "4 · 2,048² · 4 bytes = 67,108,864 bytes (64 MiB)" in first
    assert "2,048 · 64 · 4 bytes = 524,288 bytes (512 KiB)" in first


def test_lengths_left_out_are_named_with_the_reason():
    assert recurrence_story.left_out_sentence({"attention": 2048}) == (
        "Left out: attention from n = 2,048 on; a measurement would take over 0.3 s, "
        "judged by half the length."
    )
    assert recurrence_story.left_out_sentence({}) is None


def test_a_bend_that_no_fixed_cost_makes_is_called_a_change_of_slope():
    curves = {"rnn": Curve(DOUBLED, (1.0, 3.0, 6.0, 12.0, 24.0))}
    said = recurrence_story.limit_sentence(curves)
    assert said == "The slope changes at n = 32 (RNN); below, the fit does not hold."


def test_a_slope_that_has_not_settled_is_said_and_gives_no_crossing():
    curves = powers()
    curves["attention"] = Curve(DOUBLED, (0.1, 0.1, 0.1, 0.11, 0.3))
    said = recurrence_story.time_sentences(curves, 32)
    assert said[1] == "Not settled to a power at these lengths: attention."
    assert "passes neither" in said[-1]
    assert "attention" not in recurrence_story.fits_of(curves)
    counted = dict.fromkeys(curves, (Chains(1, 1), Chains(2, 2)))
    rows = recurrence_story.theory_rows(curves, counted)
    assert rows[1].measured == "not settled at these lengths"


@pytest.mark.parametrize(("ratio", "index"), [(0.9, 0), (0.3, 1), (0.05, 2), (1e-9, 3)])
def test_the_closest_ratio_is_judged_by_factors(ratio, index):
    assert recurrence_story.closest(ratio, [1, 1 / 4, 1 / 16, 1e-6]) == index


# The start of the forget gate: an LSTM on 60 steps


def test_an_lstm_learns_60_steps_with_an_open_forget_gate_and_not_yet_by_default():
    opened = forget_bias.train_lstm(3.0, 0)
    assert opened.steps == forget_bias.RECIPE.max_steps
    assert opened.accuracy >= 0.99
    assert 0.4 < forget_bias.train_lstm(None, 0).accuracy < 0.6


def test_the_start_is_called_hard_and_never_impossible():
    shipped = forget_bias.read_runs()
    said = recurrence_story.start_sentence(shipped.runs, forget_bias.RECIPE)
    assert "Marker task, 60 tokens" in said
    assert "100 % with bias +3" in said
    assert "hard from the default start, not out of reach" in said
    assert "cannot" not in said
    assert shipped.origin.startswith("Made by python -m core.forget_bias, seed 0 to 2")


def test_a_share_just_below_all_is_not_called_all():
    runs = [
        LstmRun(b, seed, 9, a)
        for b, a in ((None, 0.5), (3.0, 0.997))
        for seed in (0, 1)
    ]
    said = recurrence_story.start_sentence(runs, forget_bias.RECIPE)
    assert "over 99 % with bias +3" in said


def test_hard_is_not_said_where_the_default_start_learns():
    runs = [LstmRun(bias, seed, 9, 1.0) for bias in (None, 3.0) for seed in (0, 1)]
    said = recurrence_story.start_sentence(runs, forget_bias.RECIPE)
    assert "hard" not in said
    assert "100 % from PyTorch's start, 100 % with bias +3" in said


def test_the_shipped_runs_hold_every_start_with_every_seed_and_read_back(tmp_path):
    runs = forget_bias.read_runs().runs
    expected = [(b, s) for b in forget_bias.BIASES for s in forget_bias.SEEDS]
    assert [(run.forget_bias, run.seed) for run in runs] == expected
    forget_bias.write_runs(tmp_path / "runs.csv", runs)
    assert forget_bias.read_runs(tmp_path / "runs.csv").runs == runs
