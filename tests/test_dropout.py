"""Dropout: its rate, its scale, and where its randomness comes from."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from core.dropout import Dropout, use_generator


def dropout(p, seed=0):
    return Dropout(p, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9])
def test_an_entry_is_dropped_with_probability_p(p):
    entries = 1_000_003
    dropped = (dropout(p)(torch.ones(entries)) == 0).double().mean().item()
    deviation = math.sqrt(p * (1 - p) / entries)
    assert dropped == pytest.approx(p, abs=4 * deviation)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_kept_entries_are_scaled_up_by_what_is_lost(p):
    x = torch.randn(7, 11, 13, generator=torch.Generator().manual_seed(1)).double()
    output = dropout(p)(x)
    kept = output != 0
    assert_close(output[kept], x[kept] / (1 - p))
    assert 0 < kept.sum() < kept.numel()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (5, 7), (2, 3, 0)])
def test_any_shape_keeps_its_shape(shape):
    assert dropout(0.5)(torch.ones(shape)).shape == shape


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_number_format_is_kept(dtype):
    output = dropout(0.5)(torch.ones(101, dtype=dtype))
    assert output.dtype == dtype
    assert output.unique().tolist() == [0, 2]


def test_an_entry_is_dropped_whatever_its_neighbours_are():
    masks = dropout(0.5)(torch.ones(400_000)).view(-1, 4) > 0  # four share a draw
    patterns = (masks * torch.tensor([1, 2, 4, 8])).sum(dim=1).bincount(minlength=16)
    shares = patterns / len(masks)
    assert_close(shares, torch.full((16,), 1 / 16), rtol=0, atol=0.005)


def test_calls_are_independent():
    layer = dropout(0.5)
    first, second = (layer(torch.ones(100_003)) > 0 for _ in range(2))
    both = (first & second).double().mean().item()
    assert both == pytest.approx(0.25, abs=0.01)


def test_one_seed_gives_one_sequence_of_masks_and_another_another():
    first, same, other = (
        [layer(torch.ones(101)) for _ in range(3)]
        for layer in (dropout(0.5, 1), dropout(0.5, 1), dropout(0.5, 2))
    )
    assert_close(first, same, rtol=0, atol=0)
    assert not torch.equal(first[0], other[0])


def test_the_layout_of_the_input_does_not_matter():
    x = torch.arange(1.0, 36.0).reshape(5, 7)
    turned = dropout(0.5)(x.T)
    assert_close(turned, dropout(0.5)(x.T.contiguous()))


def test_the_global_generator_is_neither_read_nor_moved():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        before = torch.get_rng_state()
        first = dropout(0.5)(torch.ones(101))
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(2)
        assert_close(dropout(0.5)(torch.ones(101)), first)


@pytest.mark.parametrize(("p", "training"), [(0.5, False), (0.0, True)])
def test_outside_training_or_at_p_0_the_input_is_returned(p, training):
    x, layer = torch.ones(5), dropout(p).train(training)
    state = layer.generator.get_state()
    assert layer(x) is x
    assert torch.equal(layer.generator.get_state(), state)


def test_the_gradient_is_scaled_where_kept_and_zero_where_dropped():
    x = torch.ones(1001, requires_grad=True)
    output = dropout(0.25)(x)
    output.sum().backward()
    assert_close(x.grad, output.detach())
    assert x.grad.unique().tolist() == pytest.approx([0, 4 / 3])


def test_one_generator_can_serve_every_dropout_of_a_model():
    model = nn.Sequential(Dropout(0.5), nn.Sequential(nn.Linear(2, 2), Dropout(0.1)))
    generator = torch.Generator().manual_seed(3)
    use_generator(model, generator)
    assert model[0].generator is generator
    assert model[1][1].generator is generator


@pytest.mark.parametrize("p", [-0.1, 0.995, 1.0, math.nan])
def test_a_rate_out_of_range_is_refused(p):
    with pytest.raises(ValueError, match=r"p of Dropout .*must be "):
        Dropout(p)
