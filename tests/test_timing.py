"""Time and memory against length: what is measured, its fits, and what they say."""

from itertools import product

import pytest
import torch

from core import layer_memory, timing
from core.attention import MultiHeadAttention
from core.growth import (
    Crossing,
    Curve,
    crossing,
    doubts,
    fit_exponent,
    local_exponents,
)
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
    assert fit.at(100) == pytest.approx(3e-6 * 100**power)


def test_a_fixed_cost_is_left_out_of_the_range_and_not_smeared_into_the_power():
    fit = fit_exponent(
        curve(lambda n: 1e-3 + 1e-7 * n**2, [2**e for e in range(4, 13)])
    )
    assert fit.low >= 128
    assert fit.exponent == pytest.approx(2.0, abs=0.1)
    (overall,) = local_exponents(curve(lambda n: 1e-3 + 1e-7 * n**2, (16, 4096)))
    assert overall < fit.exponent  # what a line over all would have said


def test_fewer_than_three_lengths_give_no_fit():
    assert fit_exponent(curve(float, (16, 32))) is None
    assert fit_exponent(curve(float, (16, 32, 64))) is not None


def test_no_power_is_fitted_where_the_last_slopes_still_differ():
    assert fit_exponent(Curve((16, 32, 64), (1.0, 1.1, 3.0))) is None
    bent = curve(lambda n: 1e-3 + 1e-7 * n**2, (16, 32, 64, 128))
    assert fit_exponent(bent) is None  # from 0.4 to 1.0 a doubling
    assert fit_exponent(Curve((16, 32, 64), (1.0, 2.0, 5.0))) is not None


def test_a_crossing_is_not_carried_on_from_what_has_not_settled():
    bent = Curve((16, 32, 64), (1.0, 1.1, 3.0))
    assert crossing(bent, curve(float, (16, 32, 64))) is None


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


def test_the_shortest_of_all_rounds_counts_and_how_many_there_were():
    timings = [fake("rnn", 32, 0.5), fake("rnn", 16, 0.2), fake("rnn", 32, 0.4)]
    timings += [fake("attention", 16, None), fake("attention", 16, None)]
    assert best_curves(timings) == {"rnn": Curve((16, 32), (0.2, 0.4))}
    assert timing.rounds_of(timings) == {("rnn", 32): 2, ("rnn", 16): 1}


def test_the_lengths_left_out_are_those_beyond_a_curve():
    curves = {"rnn": Curve(LENGTHS, LENGTHS), "attention": Curve((16, 32), (1.0, 2.0))}
    assert timing.left_out(curves) == {"attention": 64}


class Clock:
    """A clock that passes of given seconds move on."""

    def __init__(self, *seconds: float) -> None:
        self.now, self.waiting, self.calls = 0.0, list(seconds), []

    def __call__(self) -> float:
        return self.now

    def run(self, seq_len: int) -> None:
        self.calls.append(seq_len)
        self.now += self.waiting.pop(0)


def clocked(clock: Clock, seq_len: int = 16) -> Timing:
    return timing.timed("rnn", seq_len, "train", clock.run, 0.0, clock)


def test_the_shortest_pass_after_the_first_counts():
    clock = Clock(0.01, 0.04, 0.02, 0.01)
    assert clocked(clock) == Timing("rnn", 16, "train", pytest.approx(0.02), 2)
    assert clock.calls == [16] * 3  # 0.05 s are enough


def test_short_passes_are_repeated_fifteen_times():
    assert clocked(Clock(*[1e-3] * 99)).repeats == 15


def test_a_first_pass_that_fills_half_a_turn_counts_and_is_not_repeated():
    clock = Clock(0.16, 0.16)
    assert clocked(clock) == Timing("rnn", 16, "train", pytest.approx(0.16), 0)
    assert clock.calls == [16]


@pytest.mark.parametrize(("seconds", "last"), [(0.2, 64), (0.4, 32)])
def test_what_filled_a_turn_ends_the_lengths_of_later_rounds(
    monkeypatch, seconds, last
):
    def timed(model, seq_len, what, run, before):
        if before is None:
            return Timing(model, seq_len, what, None, 0)
        slow = model == "rnn" and seq_len >= 64
        return Timing(model, seq_len, what, seconds if slow else 1e-3, 0 if slow else 9)

    monkeypatch.setattr(timing, "timed", timed)
    found = list(timing.measure(TimingConfig(width=16, rounds=2)))
    second = [t for t in found[len(found) // 2 :] if t.seconds is not None]
    assert max(t.seq_len for t in second if t.model == "rnn") == last
    assert max(t.seq_len for t in second if t.model == "lstm") == LENGTHS[-1]


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
def test_the_passes_run_the_models_they_are_named_after(monkeypatch, what):
    seen, passes = [], {"forward": 0, "train": 0}

    def spy(kind):
        original = kind.forward

        def forward(layer, x, *others):
            seen.append((type(layer).__name__, tuple(x.shape)))
            return original(layer, x, *others)

        monkeypatch.setattr(kind, "forward", forward)

    grad = torch.autograd.grad

    def watched(*args, **options):
        passes["train"] += 1
        return grad(*args, **options)

    for kind in (torch.nn.RNN, torch.nn.LSTM, MultiHeadAttention):
        spy(kind)
    monkeypatch.setattr(torch.autograd, "grad", watched)
    lengths = (16, 32)
    monkeypatch.setattr(timing, "LENGTHS", lengths)
    found = list(timing.measure(TimingConfig(width=16, what=what, rounds=1)))
    names = {"rnn": "RNN", "lstm": "LSTM", "attention": "MultiHeadAttention"}
    shapes = [shape for _, shape in dict.fromkeys(seen)]
    assert list(dict.fromkeys(seen)) == [
        (names[t.model], (1, t.seq_len, 16)) for t in found
    ]
    assert len(shapes) == len(found) == 6
    assert passes["train"] == (len(seen) if what == "train" else 0)


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
    timings = [Timing("rnn", n, "train", n / 64, 3) for n in (16, 32)]
    timings += [
        Timing("rnn", 16, "train", 0.75, 3),
        Timing("rnn", 64, "train", None, 0),
    ]
    timing.write_timings(tmp_path / "t.csv", {(16, "train"): timings})
    shown = timing.read_timings(tmp_path / "t.csv")
    assert shown.curves == curves
    assert shown.origin.startswith("Made by python -m core.timing, seed 0, torch")
    assert shown.origin.endswith(
        "processor time of one thread, shortest of 1 to 2 rounds."
    )


def table() -> dict:
    """Return curves of two widths, as a quiet machine brings them."""
    return {
        (width, "train"): {
            "rnn": curve(lambda n: 1e-4 * n),
            "attention": curve(lambda n: 1e-5 * n**2),
        }
        for width in (16, 32)
    }


def test_a_table_without_outliers_raises_no_doubt():
    assert doubts(table()) == []


def test_a_wider_layer_that_is_clearly_faster_is_doubted():
    curves = table()
    values = list(curves[16, "train"]["rnn"].values)
    values[2] *= 1.4
    curves[16, "train"]["rnn"] = Curve(DOUBLED, tuple(values))
    (doubt,) = doubts(curves)
    assert (
        doubt == "rnn, train, d = 16: n = 64 takes 1.40 times what it takes at d = 32"
    )


def test_a_recurrence_that_grows_clearly_faster_than_its_length_is_doubted():
    curves = table()
    late = (1e-4, 1e-4, 2e-4, 4e-4, 8e-4, 8e-4 * 2**1.45)
    for width in (16, 32):
        curves[width, "train"]["rnn"] = Curve(DOUBLED, late)
    assert "rnn, train, d = 16: the local exponent is 1.45 up to n = 512" in doubts(
        curves
    )


def test_a_doubted_table_is_not_written(tmp_path, monkeypatch, capsys):
    def measure(config):
        slow = 3.0 if config.width == 16 else 1.0
        for model, n in product(MODELS, LENGTHS[:4]):
            yield Timing(model, n, config.what, slow * n, 1)

    monkeypatch.setattr(timing, "measure", measure)
    target = tmp_path / "t.csv"
    monkeypatch.setattr("sys.argv", ["timing", "--path", str(target)])
    with pytest.raises(SystemExit):
        timing.main()
    assert not target.exists()
    assert "measure again on a quiet machine" in capsys.readouterr().err


def test_the_shipped_table_raises_no_doubt():
    assert doubts(timing.read_timings().curves) == []


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
        assert 1.6 < fit_exponent(curves["attention"]).exponent < 2.4, (width, what)
        for name in ("rnn", "lstm"):
            assert 0.7 < fit_exponent(curves[name]).exponent < 1.3, (width, what, name)
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
