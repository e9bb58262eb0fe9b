"""What must also hold on a CUDA or MPS device; skipped where there is none."""

import pytest
import torch
from torch import nn

from core.attention import MultiHeadAttention
from core.device import explain_device, present_devices
from core.masks import causal_mask, padding_mask
from core.models import ClassifierConfig, TransformerClassifier
from core.positional import sinusoidal_encoding
from core.scheduler import Scheduler
from core.training import TrainConfig, Trainer, TrainRecord, train
from tests.fake_trainers import wait_until

DEVICE = present_devices()[0]
pytestmark = pytest.mark.skipif(DEVICE == "cpu", reason="no CUDA or MPS device here")


def curve(config: TrainConfig) -> list[TrainRecord]:
    return list(train(config))


def test_auto_takes_the_accelerator_and_says_why():
    choice = explain_device()
    assert choice.device.type == DEVICE
    assert "the fastest device found" in choice.sentence


@pytest.mark.parametrize("kind", [None, "causal", "padding", "blocked"])
def test_attention_on_the_device_equals_the_cpu(kind):
    layer = MultiHeadAttention(12, 3, generator=torch.Generator().manual_seed(1))
    x = torch.randn(5, 7, 12, generator=torch.Generator().manual_seed(2))
    mask = {
        None: None,
        "causal": causal_mask(7),
        "padding": padding_mask(torch.tensor([7, 5, 3, 2, 1]), 7).unsqueeze(1),
        "blocked": padding_mask(torch.tensor([7, 0, 3, 2, 0]), 7).unsqueeze(1),
    }[kind]
    here = layer(x, x, x, mask=mask)
    explained = layer.attend(x, x, x, mask=mask)
    layer, x = layer.to(DEVICE), x.to(DEVICE)
    mask = None if mask is None else mask.to(DEVICE)
    there = layer.attend(x, x, x, mask=mask)
    close = {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(layer(x, x, x, mask=mask).cpu(), here, **close)
    torch.testing.assert_close(there.output.cpu(), explained.output, **close)
    torch.testing.assert_close(
        there.attn_weights.cpu(), explained.attn_weights, **close
    )


def test_a_blocked_query_has_finite_gradients_on_the_device():
    layer = MultiHeadAttention(12, 3).to(DEVICE)
    x = torch.randn(2, 5, 12).to(DEVICE).requires_grad_()
    mask = padding_mask(torch.tensor([0, 3]), 5).unsqueeze(1).to(DEVICE)
    for output in (layer(x, x, x, mask=mask), layer.attend(x, x, x, mask=mask).output):
        gradient = torch.autograd.grad(output.square().sum(), x, retain_graph=True)[0]
        assert gradient.isfinite().all()


def test_weights_copied_from_torch_give_its_output_on_the_device():
    mha = nn.MultiheadAttention(16, 4, batch_first=True, device=DEVICE)
    x = torch.randn(3, 5, 16).to(DEVICE)
    ours = MultiHeadAttention.from_torch(mha).attend(x, x, x)
    output, weights = mha(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(ours.output, output, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.attn_weights, weights, atol=1e-5, rtol=1e-5)


def test_a_classifier_on_the_device_gives_the_logits_of_the_cpu():
    model = TransformerClassifier(ClassifierConfig(seq_len=11, dropout=0.0)).eval()
    x = torch.randn(3, 11, 1, generator=torch.Generator().manual_seed(0))
    here, maps = model(x), model.attention_maps(x)
    model = model.to(DEVICE)
    close = {"atol": 1e-4, "rtol": 1e-4}
    torch.testing.assert_close(model(x.to(DEVICE)).cpu(), here, **close)
    for there, expected in zip(model.attention_maps(x.to(DEVICE)), maps, strict=True):
        torch.testing.assert_close(there.cpu(), expected, **close)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_run_on_the_device_repeats_to_the_last_bit(dropout):
    config = TrainConfig(device=DEVICE, dropout=dropout, max_steps=60, eval_every=20)
    assert curve(config) == curve(config)


def test_the_lab_learns_on_the_device():
    trainer = Trainer(TrainConfig(device=DEVICE, max_steps=189, eval_every=63))
    while not trainer.finished:
        trainer.step()
    assert trainer.records[-1].accuracy >= 0.99
    assert trainer.snapshot().readout_rows.device.type == "cpu"


def test_two_runs_that_take_turns_on_the_device_train_as_if_alone():
    configs = [TrainConfig(device=DEVICE, seed=s, max_steps=40) for s in (0, 1)]
    alone = [[record.loss for record in curve(c)] for c in configs]
    scheduler = Scheduler(name=DEVICE, slice_seconds=0.005)
    try:
        runs = [scheduler.submit(lambda c=c: Trainer(c), max_steps=40) for c in configs]
        for run in runs:
            run.start()
        for run, expected in zip(runs, alone, strict=True):
            wait_until(lambda run=run: run.state == "finished", 60)
            assert [record.loss for record in run.records] == expected
    finally:
        scheduler.stop()


def test_the_sinusoids_move_to_the_device_as_they_are():
    table = sinusoidal_encoding(7, 5)
    torch.testing.assert_close(table.to(DEVICE).cpu(), table)
