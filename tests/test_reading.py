"""What a model attends to is what its own explained path says, counted by hand."""

import pytest
import torch

from core.checks import RefusedError
from core.models import ClassifierConfig, TransformerClassifier
from core.reading import (
    MAX_MAP_CELLS,
    NUM_SEQUENCES,
    answers_in_numbers,
    marker_sequences,
    read_many,
    read_sequence,
)
from core.train_config import TrainConfig
from core.training import Trainer


def model_of(**choices) -> TransformerClassifier:
    sizes = {"seq_len": 5, "d_model": 6, "num_heads": 3, "num_layers": 2}
    config = ClassifierConfig(**(sizes | choices))
    return TransformerClassifier(config).eval().requires_grad_(False)


@pytest.mark.parametrize("readout", ["cls", "mean", "last", "first"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_reading_is_what_the_explained_path_says(readout, causal):
    model = model_of(readout=readout, causal=causal)
    seen = read_sequence(model, sequence=11, position=2)
    x = seen.inputs[None, :, None]
    torch.testing.assert_close(seen.maps, torch.cat(model.attention_maps(x)))
    torch.testing.assert_close(seen.rows, model.readout_rows(x)[0])
    assert seen.logit == pytest.approx(model(x).item(), abs=1e-6)
    assert seen.probability == pytest.approx(torch.sigmoid(model(x)).item(), abs=1e-6)


def test_the_marker_stands_where_the_reading_says():
    for readout, shift in (("cls", 1), ("mean", 0)):
        seen = read_sequence(model_of(readout=readout), sequence=3, position=4)
        assert seen.marker_at == 4 + shift
        assert seen.labels[seen.marker_at] == "4"
        assert len(seen.labels) == seen.maps.shape[-1] == 5 + shift
        assert seen.inputs[4] == 2 * seen.target - 1
    assert read_sequence(model_of(), sequence=0).labels[0] == "CLS"


def test_the_sequences_are_those_a_run_is_tested_on():
    trainer = Trainer(TrainConfig(seq_len=5, train_samples=8, batch_size=8))
    inputs, targets = marker_sequences(trainer.config.model, NUM_SEQUENCES)
    trainer.model.eval()
    with torch.no_grad():
        right = (trainer.model(inputs) > 0) == (targets > 0)
    assert trainer.evaluate() == right.double().mean().item()
    row = read_sequence(trainer.model, sequence=0).rows
    torch.testing.assert_close(trainer.snapshot().readout_rows, row)


def test_mean_and_spread_are_those_of_the_single_readings():
    model = model_of(readout="mean")
    many = read_many(model, count=7, position=1)
    seen = [read_sequence(model, sequence=i, position=1) for i in range(7)]
    maps, rows = (torch.stack([getattr(s, a) for s in seen]) for a in ("maps", "rows"))
    torch.testing.assert_close(many.mean, maps.mean(dim=0))
    torch.testing.assert_close(many.spread, maps.std(dim=0, correction=0))
    torch.testing.assert_close(many.rows_mean, rows.mean(dim=0))
    torch.testing.assert_close(many.rows_spread, rows.std(dim=0, correction=0))
    assert (many.count, many.marker_at) == (7, 1)


def test_sequences_read_in_several_parts_give_the_same_mean_and_spread(monkeypatch):
    model = model_of()
    whole = read_many(model, count=7)
    monkeypatch.setattr("core.reading._TOKENS_AT_ONCE", 15)  # 3 sequences a part
    for ours, theirs in zip(read_many(model, count=7), whole, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_one_sequence_has_no_spread():
    many = read_many(model_of(), count=1)
    assert torch.equal(many.spread, torch.zeros_like(many.mean))
    torch.testing.assert_close(many.mean, read_sequence(model_of(), sequence=0).maps)


def test_one_position_is_read_too():
    seen = read_sequence(model_of(seq_len=1, readout="last"), sequence=0)
    assert torch.equal(seen.maps, torch.ones(2, 3, 1, 1))


def test_reading_leaves_the_global_generator_alone():
    model, state = model_of(), torch.get_rng_state()
    read_sequence(model, sequence=0)
    read_many(model, count=3)
    assert torch.equal(torch.get_rng_state(), state)


def test_what_is_out_of_range_is_refused():
    model = model_of()
    with pytest.raises(RefusedError, match=r"sequence \(1000\) must be between 0 and"):
        read_sequence(model, sequence=1000)
    with pytest.raises(RefusedError, match=r"position \(5\) must be between 0 and 4"):
        read_sequence(model, sequence=0, position=5)
    with pytest.raises(RefusedError, match=r"count \(0\) must be between 1 and 1000"):
        read_many(model, count=0)


def test_maps_too_large_to_hold_are_refused_with_their_number():
    model = model_of(seq_len=1000, d_model=12, num_heads=12, num_layers=1)
    cells = 12 * 1001**2
    assert cells > MAX_MAP_CELLS
    with pytest.raises(RefusedError, match=f"maps of {cells:,} weights; at most"):
        read_sequence(model, sequence=0)
    with pytest.raises(RefusedError, match=f"maps of {cells:,} weights; at most"):
        read_many(model, count=2)


def test_a_model_that_has_diverged_answers_no_numbers_though_its_weights_are_some():
    model = model_of()
    assert answers_in_numbers(model)
    for values in model.parameters():
        values.mul_(1e30)
    assert all(values.isfinite().all() for values in model.parameters())
    assert not answers_in_numbers(model)
