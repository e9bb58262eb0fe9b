"""The parity with PyTorch is measured: it is found, and its loss is found too."""

import ast
import itertools
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from core import head_parity
from core.attention import MultiHeadAttention
from core.head_parity import (
    COMPARED,
    GRADIENTS,
    OUTPUT,
    WEIGHTS,
    compared_rows,
    parity_script,
    parity_with_torch,
    torch_layer,
)
from core.heads import MASKS, attend_heads, head_counts
from core.initial import generator_from

ROOT = Path(__file__).parent.parent
WORDS = ["the", "cat", "sat", "on", "the", "mat", "."]


def layer_with_biases(*, bias: bool = True, dtype=torch.float64) -> MultiHeadAttention:
    source = generator_from(3)
    layer = MultiHeadAttention(15, 3, bias=bias, generator=source)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3, generator=source)
    return layer.to(dtype)


def tokens(count: int = 7, dtype=torch.float64) -> torch.Tensor:
    return torch.randn(count, 15, generator=generator_from(5)).to(dtype)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("d_model", [10, 64, 128])
def test_our_layer_agrees_with_pytorch_in_both_precisions(dtype, most, d_model):
    for num_heads, mask in itertools.product(head_counts(d_model), MASKS):
        seen = attend_heads(
            WORDS, d_model=d_model, num_heads=num_heads, mask=mask, seed=1, dtype=dtype
        )
        parity = parity_with_torch(seen.layer, seen.embeddings, seen.mask)
        assert tuple(parity.differences) == COMPARED
        assert parity.agrees, (num_heads, mask, parity)
        assert parity.tolerance == most
        assert parity.largest <= most


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", MASKS)
def test_a_layer_with_biases_of_its_own_agrees_too(bias, mask):
    layer = layer_with_biases(bias=bias)
    assert parity_with_torch(layer, tokens(), MASKS[mask](7)).agrees


def test_weights_are_copied_there_and_back_and_no_global_number_is_drawn():
    state, layer = torch.get_rng_state(), layer_with_biases()
    copy = torch_layer(layer)
    back = MultiHeadAttention.from_torch(copy)
    parity_with_torch(layer, tokens())
    assert torch.equal(torch.get_rng_state(), state)
    assert not copy.training
    for name, tensor in layer.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor)
        theirs = copy.state_dict()[name.replace("in_proj.", "in_proj_")]
        assert torch.equal(theirs, tensor)
        assert theirs.data_ptr() != tensor.data_ptr()


def test_a_query_without_a_key_is_nan_in_pytorch_and_left_out_here():
    layer, x, mask = layer_with_biases(), tokens(), MASKS["left padding"](7)
    theirs, _ = torch_layer(layer)(x[None], x[None], x[None], attn_mask=~mask)
    assert theirs[0].isnan().any(dim=-1).tolist() == [True] + [False] * 6
    assert compared_rows(7, mask).tolist() == [False] + [True] * 6
    assert compared_rows(7, None).all()
    parity = parity_with_torch(layer, x, mask)
    assert math.isfinite(parity.largest)
    assert parity.agrees


def test_where_no_query_has_a_key_there_is_nothing_to_compare():
    nothing = torch.zeros(7, 7, dtype=torch.bool)
    with pytest.raises(ValueError, match="no query has a key to attend to"):
        parity_with_torch(layer_with_biases(), tokens(), nothing)


def changed_torch_layer(monkeypatch, change) -> None:
    def other(layer: MultiHeadAttention) -> nn.MultiheadAttention:
        copy = torch_layer(layer)
        with torch.no_grad():
            change(copy)
        return copy

    monkeypatch.setattr(head_parity, "torch_layer", other)


def test_a_bias_that_is_off_by_a_half_shows_as_a_half(monkeypatch):
    changed_torch_layer(monkeypatch, lambda copy: copy.out_proj.bias.add_(0.5))
    parity = parity_with_torch(layer_with_biases(), tokens())
    assert not parity.agrees
    assert parity.differences[OUTPUT] == pytest.approx(0.5)
    assert parity.differences[WEIGHTS] < 1e-12


def test_heads_that_change_places_show_though_their_mean_does_not(monkeypatch):
    order = torch.tensor([5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 10, 11, 12, 13, 14])

    def swap(copy: nn.MultiheadAttention) -> None:
        packed = torch.cat([order + third * 15 for third in range(3)])
        copy.in_proj_weight.copy_(copy.in_proj_weight[packed].clone())
        copy.in_proj_bias.copy_(copy.in_proj_bias[packed].clone())
        copy.out_proj.weight.copy_(copy.out_proj.weight[:, order].clone())

    changed_torch_layer(monkeypatch, swap)
    parity = parity_with_torch(layer_with_biases(), tokens())
    assert parity.differences[OUTPUT] < 1e-12
    assert parity.differences[WEIGHTS] > 0.05
    assert not parity.agrees


def test_a_gradient_that_is_lost_shows_though_the_output_does_not(monkeypatch):
    class Detached(MultiHeadAttention):
        def attend(self, query, key, value, *, mask=None):
            return super().attend(query, key.detach(), value.detach(), mask=mask)

    layer = Detached(15, 3).double()
    layer.load_state_dict(layer_with_biases().state_dict())
    parity = parity_with_torch(layer, tokens())
    assert parity.differences[OUTPUT] < 1e-12
    assert parity.differences[GRADIENTS[0]] > 0.01
    assert not parity.agrees


@pytest.mark.parametrize("seq_len", [1, 2])
def test_one_and_two_tokens_are_compared(seq_len):
    assert parity_with_torch(layer_with_biases(), tokens(seq_len)).agrees


@pytest.mark.parametrize(
    ("d_model", "num_heads", "mask", "seed", "dtype"),
    [
        (64, 8, "causal", 0, "float32"),
        (64, 8, "causal", 0, "float64"),
        (10, 5, "left padding", 3, "float32"),
        (48, 1, "none", 7, "float64"),
    ],
)
def test_the_script_prints_the_numbers_of_the_page(
    d_model, num_heads, mask, seed, dtype
):
    settings = {
        "d_model": d_model, "num_heads": num_heads, "mask": mask, "seed": seed,
        "dtype": dtype,
    }  # fmt: skip
    seen = attend_heads(WORDS, **settings)
    parity = parity_with_torch(seen.layer, seen.embeddings, seen.mask)
    done = subprocess.run(
        [sys.executable, "-c", parity_script(WORDS, **settings)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    of_parts, largest = done.stdout.splitlines()
    assert largest == f"largest difference {parity.largest:.1e}"
    gradients = max(parity.differences[name] for name in GRADIENTS)
    assert of_parts == (
        f"output {parity.differences[OUTPUT]:.1e}, "
        f"weights {parity.differences[WEIGHTS]:.1e}, gradients {gradients:.1e}"
    )
    assert not done.stderr


def test_hostile_words_stay_words_in_the_script():
    words = ["\"]; import os; x=['", "{seed}", "\u202e\x00", "'''", "\\"]
    script = parity_script(
        words, d_model=8, num_heads=2, mask="none", seed=0, dtype="float32"
    )
    assert script.isascii()
    (assigned,) = (
        node.value
        for node in ast.parse(script).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "words"
    )
    assert ast.literal_eval(assigned) == words


def test_a_script_of_an_unknown_mask_or_precision_is_refused():
    settings = {"d_model": 8, "num_heads": 2, "seed": 0}
    with pytest.raises(ValueError, match="mask must be one of"):
        parity_script(["a"], mask="x", dtype="float32", **settings)
    with pytest.raises(ValueError, match="dtype must be one of"):
        parity_script(["a"], mask="none", dtype="x", **settings)
