"""Time and memory against length: what is measured, its fits, and what they say."""

import time

import pytest
import torch

from core import layer_memory, timing
from core.growth import Crossing, Curve, crossing, fit_exponent, local_exponents
from core.measuring import Measurement
from core.timing import LENGTHS, MODELS, Timing, TimingConfig, best_curves

DOUBLED = (16, 32, 64, 128, 256, 512)


def curve(rule, lengths=DOUBLED) -> Curve:
    return Curve(tuple(lengths), tuple(rule(n) for n in lengths))


# Powers


@pytest.mark.parametrize("power", [0.0, 1.0, 1.7, 2.0])
def test_a_pure_power_is_fitted_exactly_over_all_lengths(power):
    fit = fit_exponent(curve(lambda n: 3e-6 * n**power))
    assert fit.exponent == pytest.approx(power, abs=1e-9)
    assert fit.coefficient == pytest.approx(3e-6)
    assert (fit.low, fit.high) == (16, 512)
    assert fit.r2 == pytest.approx(1.0)
    assert fit.at(100) == pytest.approx(3e-6 * 100**power)


def test_a_fixed_cost_is_left_out_of_the_range_and_not_smeared_into_the_power():
    fit = fit_exponent(
        curve(lambda n: 1e-3 + 1e-7 * n**2, [2**e for e in range(4, 13)])
    )
    assert fit.low >= 128
    assert fit.exponent == pytest.approx(2.0, abs=0.1)
    everything = fit_exponent(curve(lambda n: 1e-3 + 1e-7 * n**2, (16, 256, 4096)))
    assert everything.exponent < fit.exponent  # what a fit over all would have said


def test_fewer_than_three_lengths_give_no_fit():
    assert fit_exponent(curve(float, (16, 32))) is None
    assert fit_exponent(curve(float, (16, 32, 64))) is not None


def test_local_exponents_are_the_slopes_between_neighbours():
    steps = local_exponents(Curve((16, 32, 128), (1.0, 4.0, 4.0)))
    assert steps == pytest.approx([2.0, 0.0])


# Crossings


def test_two_powers_cross_where_algebra_says_between_two_lengths():
    found = crossing(curve(lambda n: n**2 / 100), curve(float))
    assert found == Crossing(pytest.approx(100.0), measured=True)


def test_a_crossing_beyond_the_lengths_is_by_the_fits_and_says_so():
    found = crossing(curve(lambda n: n**2 / 2000), curve(float))
    assert found == Crossing(pytest.approx(2000.0), measured=False)


@pytest.mark.parametrize(
    "attention",
    [
        pytest.param(lambda n: n / 2, id="the same power below"),
        pytest.param(lambda n: n**2, id="above from the start"),
        pytest.param(lambda n: n**2 / 1e6, id="far beyond the lengths"),
    ],
)
def test_no_crossing_is_named_where_none_is_seen(attention):
    assert crossing(curve(attention), curve(float)) is None


def test_curves_of_unlike_lengths_cross_on_those_they_share():
    found = crossing(curve(lambda n: n**2 / 40, (16, 32, 64)), curve(float))
    assert found.seq_len == pytest.approx(40.0)


# Measuring


def fake(model: str, seq_len: int, seconds: float | None) -> Timing:
    return Timing(model, seq_len, "forward", seconds, 1)


def test_the_shortest_of_all_rounds_counts_and_skipped_ones_are_named():
    timings = [fake("rnn", 32, 0.5), fake("rnn", 16, 0.2), fake("rnn", 32, 0.4)]
    timings += [fake("attention", 16, None), fake("attention", 16, None)]
    assert best_curves(timings) == {"rnn": Curve((16, 32), (0.2, 0.4))}
    assert timing.skipped_lengths(timings) == {"attention": [16]}


def test_a_pass_is_timed_after_a_first_one_and_repeated_only_while_it_is_short():
    calls = []
    short = timing.timed("rnn", 16, "forward", calls.append, 0.0)
    assert 1 < short.repeats == len(calls) - 1
    assert set(calls) == {16}
    slow = timing.timed("rnn", 16, "train", lambda n: time.sleep(0.06), 0.0)
    assert (slow.repeats, slow.what) == (1, "train")
    assert slow.seconds >= 0.06


def test_what_would_take_longer_than_a_third_of_a_second_is_not_run():
    def forbidden(seq_len: int) -> None:
        raise AssertionError("it ran")

    assert timing.timed("rnn", 64, "forward", forbidden, 0.076).seconds is None
    assert timing.timed("attention", 64, "forward", forbidden, 0.038).seconds is None
    assert timing.timed("rnn", 64, "forward", forbidden, None).seconds is None
    assert timing.timed("rnn", 64, "forward", lambda n: None, 0.074).repeats > 0


def test_a_measurement_brings_every_model_at_every_length_in_turns():
    state = torch.get_rng_state()
    config = TimingConfig(width=16, rounds=1)
    run = Measurement(timing.measure(config), config.total)
    records = [run.step() for _ in range(9)]
    assert [(r.model, r.seq_len) for r in records] == [
        (model, seq_len) for seq_len in LENGTHS[:3] for model in MODELS
    ]
    assert all(r.seconds > 0 for r in records)
    assert config.total == len(LENGTHS) * len(MODELS)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("what", timing.WHATS)
def test_the_passes_run_the_models_they_are_named_after(what):
    config = TimingConfig(width=16, what=what, rounds=1)
    first = next(timing.measure(config))
    assert (first.model, first.seq_len, first.what) == ("rnn", 16, what)


def test_wrong_settings_are_refused_with_a_sentence():
    with pytest.raises(
        ValueError, match=r"width \(18\) must be divisible by num_heads"
    ):
        TimingConfig(width=18)
    with pytest.raises(ValueError, match="what must be one of 'forward', 'train'"):
        TimingConfig(what="backward")
    with pytest.raises(ValueError, match=r"rounds \(0\) must be between"):
        TimingConfig(rounds=0)


# The shipped table


def test_a_written_table_reads_back_the_same(tmp_path):
    curves = {(16, "train"): {"rnn": Curve((16, 32), (0.25, 0.5))}}
    timing.write_timings(tmp_path / "t.csv", curves, rounds=3)
    shown = timing.read_timings(tmp_path / "t.csv")
    assert shown.curves == curves
    assert shown.origin.startswith("Made by python -m core.timing, seed 0, torch")
    assert shown.origin.endswith("threads, shortest of 3 rounds.")


def test_the_shipped_table_has_every_setting_and_model():
    shipped = timing.read_timings().curves
    assert set(shipped) == {(w, what) for w in timing.WIDTHS for what in timing.WHATS}
    for curves in shipped.values():
        assert set(curves) == set(MODELS)
        for found in curves.values():
            assert found.lengths == LENGTHS[: len(found.lengths)]
            assert len(found.lengths) >= 6


def test_shipped_times_of_attention_grow_towards_n_squared_and_an_rnns_towards_n():
    for (width, what), curves in timing.read_timings().curves.items():
        if what == "forward":
            assert 1.6 < fit_exponent(curves["attention"]).exponent < 2.4, width
            assert 0.7 < fit_exponent(curves["rnn"]).exponent < 1.3, width
        first = local_exponents(curves["attention"])[0]
        assert first < 1, (width, what)  # short ones cost what a call costs


# Memory


@pytest.mark.parametrize("num_heads", [1, 2, 4])
def test_the_worked_bytes_are_those_of_real_tensors(num_heads):
    lengths = (1, 7, 64)
    real = layer_memory.real_bytes(lengths, num_heads=num_heads, width=16)
    worked = layer_memory.worked_bytes(lengths, num_heads=num_heads, width=16)
    assert real == worked
    assert real.scores.values[1] == num_heads * 49 * 4


def test_scores_of_2048_tokens_in_four_heads_take_64_mebibytes():
    assert layer_memory.score_bytes(2048, 4) == 64 * 2**20
    assert layer_memory.state_bytes(2048, 64) == 512 * 2**10


def test_scores_that_would_fill_the_memory_are_refused_beforehand():
    with pytest.raises(
        ValueError, match=r"make 1,073,741,824 bytes of scores; at most"
    ):
        layer_memory.real_bytes([8192], num_heads=4, width=16)
    with pytest.raises(ValueError, match=r"seq_len \(0\) must be at least 1"):
        layer_memory.real_bytes([0], num_heads=4, width=16)
