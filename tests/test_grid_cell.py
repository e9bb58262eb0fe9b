"""A cell is a complete run: what it trains, what it measures, what it refuses."""

import subprocess
import sys
from dataclasses import asdict, replace

import pytest
import torch
from torch.testing import assert_close

from core.grid_cell import (
    MAX_BYTES,
    MODELS,
    Cell,
    GridStep,
    middle,
    run_cell,
    step_bytes,
    watch_cell,
)
from core.recurrent import RecurrentClassifier
from core.train_config import TrainConfig
from core.training import Trainer
from tests.tiny_grid import BASE

TINY = replace(BASE, max_steps=3)


def test_a_cell_hands_every_factor_to_the_run():
    cell = Cell(
        positional="learned", causal=True, readout="last", num_heads=5, num_layers=3,
        d_model=35, seq_len=11, noise="normal", dropout=0.25, norm="post",
        warmup_steps=7,
        learning_rate=2e-3, batch_size=13, train_samples=130, max_steps=17,
    )  # fmt: skip
    config = cell.config(seed=19)
    own = asdict(cell)
    del own["model"], own["norm"]
    assert {name: getattr(config, name) for name in own} == own
    assert (config.norm_first, config.seed) == (False, 19)
    assert Cell().config(0).norm_first
    assert config.test_samples == TrainConfig().test_samples


@pytest.mark.parametrize("model", MODELS)
def test_every_model_trains_and_is_measured_twice(model):
    result = run_cell(replace(TINY, model=model), 5)
    assert (result.cell.model, result.seed, result.steps) == (model, 5, 3)
    assert 0 <= result.accuracy <= 1
    assert 0 <= result.moved <= 1
    assert 0 < result.loss < 3


def test_only_the_lstm_with_bias_3_begins_with_its_forget_gate_open():
    gate = slice(8, 16)  # the second of four blocks of 8
    for model in ("lstm", "lstm bias +3"):
        classifier = replace(TINY, model=model).trainer(2).model
        assert isinstance(classifier, RecurrentClassifier)
        weights = dict(classifier.recurrent.named_parameters())
        bias = weights["bias_ih_l0"][gate] + weights["bias_hh_l0"][gate]
        if model == "lstm":
            assert bias.abs().max() < 1
        else:
            assert_close(bias.detach(), torch.full((8,), 3.0))


def test_a_run_gives_what_its_trainer_gives():
    trainer = Trainer(TINY.config(4))
    losses = [trainer.step().loss for _ in range(3)]
    result = run_cell(TINY, 4)
    assert result.accuracy == trainer.evaluate()
    assert result.moved == trainer.evaluate(position=3)
    assert result.loss == pytest.approx(sum(losses) / 3)


def test_the_marker_moves_to_the_middle():
    assert (middle(60), middle(7), middle(1)) == (30, 3, 0)


def test_a_watched_cell_gives_a_step_at_a_time_and_its_result_last():
    *steps, last = watch_cell(TINY, 1)
    assert steps == [GridStep(TINY, 1, number, None) for number in (1, 2, 3)]
    assert last.result == run_cell(TINY, 1)


def test_the_same_seed_gives_the_same_result_and_moves_no_global_generator():
    before = torch.get_rng_state()
    first, again, other = (run_cell(TINY, seed) for seed in (3, 3, 4))
    assert first == again
    assert first.loss != other.loss
    assert torch.equal(torch.get_rng_state(), before)


def test_what_a_recurrence_has_not_makes_no_other_cell():
    plain = replace(TINY, model="gru", causal=True, num_heads=4, readout="mean").plain
    presets = Cell(model="gru")
    assert (plain.causal, plain.num_heads, plain.readout) == (False, 4, "cls")
    assert (plain.seq_len, plain.d_model) == (TINY.seq_len, TINY.d_model)
    assert not presets.has("causal")
    assert presets.has("seq_len")
    assert TINY.plain is TINY


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"model": "mlp"}, r"model must be one of 'transformer'"),
        ({"norm": "none"}, r"norm must be one of 'pre', 'post'"),
        ({"num_heads": 3}, r"d_model \(8\) must be divisible by num_heads \(3\)"),
        ({"warmup_steps": -1}, r"warmup_steps \(-1\) must be between 0"),
    ],
)
def test_a_cell_that_cannot_be_run_is_refused_with_its_numbers(wrong, words):
    with pytest.raises(ValueError, match=words):
        replace(TINY, **wrong)


def test_memory_beyond_the_bound_is_refused_beforehand_with_the_numbers():
    too_much = {"seq_len": 1000, "num_heads": 16, "batch_size": 16}
    words = (
        r"batch_size \(16\) with seq_len \(1000\), d_model \(32\), num_heads \(16\) "
        r"and num_layers \(1\) would take about 3\.\d GB of memory; it must be at most "
        "1 GB"
    )
    with pytest.raises(ValueError, match=words):
        Cell(**too_much, train_samples=1000)


def test_the_memory_counted_is_that_of_scores_worked_by_hand():
    config = Cell(seq_len=7, readout="last", num_heads=2, d_model=4).config(0)
    samples = 5000 * 7
    kept = 64 * (3 * 2 * 49 + 7 * (12 * 4 + 3 * 16))
    model = config.model.num_parameters
    assert step_bytes(config) == 4 * (samples + 4 * model + kept)


MEASURE = """
import resource
from core.grid_cell import Cell, step_bytes
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
few = dict(max_steps=3, train_samples=500)
small = Cell(seq_len=10, **few).trainer(0)
[small.step() for _ in range(3)]
before, cell = peak(), Cell(seq_len=300, **few)
trainer = cell.trainer(0)
[trainer.step() for _ in range(3)]
print(peak() - before, step_bytes(cell.config(0)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs")
def test_length_300_takes_no_more_memory_than_is_counted():
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    taken, counted = map(int, done.stdout.split())
    assert taken < counted < MAX_BYTES


def test_a_run_is_said_to_take_longer_where_it_does():
    assert Cell(max_steps=200).seconds == pytest.approx(Cell().seconds / 2)
    assert Cell(readout="mean").seconds > Cell().seconds
    assert Cell(model="gru", seq_len=300).seconds > Cell(model="gru").seconds
