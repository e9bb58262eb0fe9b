"""Weights of encoder-decoders come back as they were written, and say what they are."""

from dataclasses import replace

import pytest
import torch

from core.checks import RefusedError
from core.seq2seq_training import Seq2SeqConfig, Seq2SeqTrainer
from core.shipped_seq2seq import (
    SHIPPED,
    build,
    copied_from,
    read_shipped,
    read_trained,
    write_trained,
)

SMALL = Seq2SeqConfig(
    task="numbers", d_model=12, num_heads=3, num_layers=1, batch_size=8,
    train_pairs=32, test_pairs=16, max_steps=4, eval_every=2,
)  # fmt: skip


def small_run(steps: int = 2, **changes) -> Seq2SeqTrainer:
    trainer = Seq2SeqTrainer(replace(SMALL, **changes))
    for _ in range(steps):
        trainer.step()
    return trainer


def test_a_copy_has_the_weights_of_its_run_and_later_steps_leave_it_alone():
    trainer = small_run()
    kept = copied_from(trainer)
    model = build(kept)
    for name, values in trainer.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], values)
    key = kept.key
    trainer.step()
    assert kept.key == key != copied_from(trainer).key
    assert (kept.steps, kept.num_tested) == (2, 16)
    assert kept.exact == trainer.records[1].exact


def test_written_weights_come_back_rounded_to_half_precision(tmp_path):
    trainer = small_run()
    path = tmp_path / "run.npz"
    write_trained(path, trainer)
    read = read_trained(path)
    assert read.config == trainer.config
    for name, values in copied_from(trainer).weights.items():
        assert torch.equal(read.weights[name], values.half().float())
    assert [step for step, _ in read.curves["loss"]] == [1, 2]
    assert "python -m core.shipped_seq2seq" in read.origin


def test_a_damaged_or_missing_file_is_refused_without_its_folder(tmp_path):
    path = tmp_path / "broken.npz"
    with pytest.raises(RefusedError, match=r"broken\.npz must be a file") as missing:
        read_trained(path)
    assert str(tmp_path) not in str(missing.value)
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(RefusedError, match="cannot be read"):
        read_trained(path)


def test_weights_of_another_size_and_recurrent_models_are_refused():
    kept = copied_from(small_run())
    with pytest.raises(RefusedError, match="names and shapes"):
        build(kept._replace(config=replace(SMALL, num_layers=2)))
    with pytest.raises(RefusedError, match="model of trainer must be one of"):
        copied_from(small_run(1, model="dot", hidden_size=8))


LEAST = {"reverse": 0.99, "copy": 0.99, "sort": 0.85, "dates": 0.98, "numbers": 0.98}


@pytest.mark.parametrize("task", SHIPPED)
def test_a_shipped_model_is_of_the_run_that_the_command_makes(task):
    shipped = read_shipped(task)
    assert shipped.config == SHIPPED[task]
    assert shipped.steps == SHIPPED[task].max_steps
    assert shipped.exact is not None
    assert shipped.exact >= LEAST[task]
