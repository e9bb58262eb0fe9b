"""Kept weights come back to the last bit, and a shipped file says what made it."""

import numpy as np
import pytest
import torch
from torch import nn

from core.checks import RefusedError
from core.reading import logits_of, marker_sequences
from core.trained import (
    SHIPPED,
    build,
    copied_from,
    made_by,
    path_of,
    read_shipped,
    read_trained,
    write_trained,
)
from core.training import TrainConfig, Trainer
from core.weights_file import MAX_KEPT_PARAMETERS

SMALL = TrainConfig(
    seq_len=5,
    d_model=6,
    num_heads=3,
    num_layers=2,
    positional="learned",
    batch_size=16,
    train_samples=32,
    test_samples=64,
    eval_every=3,
)


def small_run(steps: int) -> Trainer:
    trainer = Trainer(SMALL)
    for _ in range(steps):
        trainer.step()
    return trainer


def test_a_copy_has_the_weights_of_its_run_to_the_last_bit_and_its_answers():
    trainer = small_run(2)
    kept = copied_from(trainer)
    model = build(kept)
    for name, values in trainer.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], values)
    inputs, _ = marker_sequences(kept.config, 7)
    trainer.model.eval()
    torch.testing.assert_close(model(inputs), trainer.model(inputs).detach())


def test_later_steps_of_the_run_leave_the_copy_alone():
    trainer = small_run(1)
    kept = copied_from(trainer)
    key, values = kept.key, kept.weights["head.weight"].clone()
    trainer.step()
    assert torch.equal(kept.weights["head.weight"], values)
    assert kept.key == key != copied_from(trainer).key


def test_a_copy_tells_steps_seed_and_accuracy():
    measured, unmeasured = small_run(3), small_run(2)
    assert copied_from(measured).accuracy == measured.records[-1].accuracy
    assert copied_from(unmeasured).accuracy == unmeasured.evaluate()
    kept = copied_from(unmeasured)
    assert kept.steps == 2
    assert kept.origin == "Your run of the marker page, seed 0, after 2 steps."


def test_a_run_without_steps_can_be_copied_too():
    kept = copied_from(Trainer(SMALL))
    assert kept.steps == 0
    assert kept.accuracy is not None


def test_keeping_and_building_leave_the_global_generator_alone():
    trainer, state = small_run(1), torch.get_rng_state()
    build(copied_from(trainer))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_built_model_drops_nothing_and_asks_for_no_gradient():
    model = build(copied_from(small_run(1)))
    assert not any(part.training for part in model.modules())
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_models_that_differ_in_one_weight_or_one_choice_have_other_keys():
    kept = copied_from(small_run(1))
    bias = kept.weights["head.bias"] + 1e-6
    changed = kept._replace(weights={**kept.weights, "head.bias": bias})
    causal = TrainConfig(**{**SMALL.__dict__, "causal": True}).model
    keys = {kept.key, changed.key, kept._replace(config=causal).key}
    assert len(keys) == 3
    assert kept._replace(weights=dict(kept.weights)).key == kept.key


def test_a_model_of_another_kind_is_refused():
    trainer = Trainer(SMALL, model=nn.Sequential(nn.Flatten(), nn.Linear(5, 1)))
    with pytest.raises(RefusedError, match="TransformerClassifier, got Sequential"):
        copied_from(trainer)


def test_a_run_on_other_noise_than_is_read_later_is_refused():
    other = TrainConfig(**{**SMALL.__dict__, "noise": "normal"})
    with pytest.raises(
        RefusedError, match="noise of trainer must be one of 'uniform', got 'normal'"
    ):
        copied_from(Trainer(other))


def test_a_model_too_large_to_keep_is_refused_with_both_numbers():
    config = TrainConfig(seq_len=2, d_model=384, batch_size=1, train_samples=1)
    size = config.model.num_parameters
    assert size > MAX_KEPT_PARAMETERS
    with pytest.raises(RefusedError, match=f"{size:,} parameters; at most 1,500,000"):
        copied_from(Trainer(config))


def test_weights_of_another_model_are_refused():
    kept = copied_from(small_run(1))
    wider = TrainConfig(**{**SMALL.__dict__, "d_model": 9}).model
    with pytest.raises(RefusedError, match="names and shapes of the model"):
        build(kept._replace(config=wider))


def test_a_written_model_reads_back_to_the_last_bit(tmp_path):
    trainer, path = small_run(2), tmp_path / "small.npz"
    write_trained(path, trainer)
    read, kept = read_trained(path), copied_from(trainer)
    assert read.key == kept.key
    assert (read.config, read.steps) == (kept.config, 2)
    assert read.accuracy == kept.accuracy
    assert read.origin.startswith("Made by python -m core.trained, seed 0, torch ")


def test_a_damaged_file_is_refused_by_its_name(tmp_path):
    path = tmp_path / "small.npz"
    write_trained(path, small_run(1))
    whole = path.read_bytes()
    middle = bytearray(whole)
    middle[len(whole) // 2] ^= 1
    for damaged in (b"", whole[:500], bytes(middle), b"no weights at all"):
        path.write_bytes(damaged)
        with pytest.raises(RefusedError, match=r"small\.npz must be a file of trained"):
            read_trained(path)


def test_a_file_of_other_arrays_or_an_absent_file_is_refused(tmp_path):
    path = tmp_path / "other.npz"
    with pytest.raises(RefusedError, match=r"other\.npz must be a file of trained"):
        read_trained(path)
    np.savez(path, numbers=np.zeros(3))
    with pytest.raises(RefusedError, match=r"other\.npz must be a file of trained"):
        read_trained(path)


def test_a_file_whose_weights_are_not_of_its_configuration_is_refused(tmp_path):
    path = tmp_path / "small.npz"
    write_trained(path, small_run(1))
    with np.load(path) as file:
        arrays = dict(file)
    arrays["head.bias"] = np.zeros(2, dtype=np.float32)
    np.savez(path, **arrays)
    with pytest.raises(RefusedError, match=r"small\.npz .* names and shapes"):
        read_trained(path)


def test_an_unknown_shipped_model_is_refused():
    with pytest.raises(RefusedError, match="name must be one of 'marker'"):
        read_shipped("nobody")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_names_command_seed_versions_and_machine(name):
    made = made_by(path_of(name))
    assert set(made) == {"command", "seed", "versions", "machine"}
    assert made["command"] == "python -m core.trained"
    assert made["seed"] == str(SHIPPED[name].seed)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_has_the_accuracy_it_states(name):
    shipped = read_shipped(name)
    assert shipped.config == SHIPPED[name].model
    assert shipped.steps == SHIPPED[name].max_steps
    inputs, targets = marker_sequences(shipped.config, 1000)
    right = (logits_of(build(shipped), inputs) > 0) == (targets > 0)
    accuracy = right.double().mean().item()
    assert accuracy == pytest.approx(shipped.accuracy, abs=2e-3)  # rounding elsewhere
    assert accuracy >= 0.998
