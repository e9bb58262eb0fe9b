"""PyTorch's two mask conventions give what core gives, once converted."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.attention import MultiHeadAttention, scaled_dot_product_attention
from core.masks import causal_mask, padding_mask
from core.torch_masks import (
    to_sdpa_mask,
    to_torch_mha_mask,
    two_conventions_code,
)

BATCH, HEADS, LENGTH, D_MODEL = 2, 3, 5, 21


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def pytorch_layer() -> nn.MultiheadAttention:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    return layer.double().eval()


def masks_without_empty_rows() -> dict[str, Tensor]:
    by_head = draw(BATCH, HEADS, LENGTH, LENGTH, seed=1) > 0
    return {
        "(T, S)": causal_mask(LENGTH),
        "(B, T, S)": causal_mask(LENGTH) & padding_mask([3, 5], LENGTH),
        "(B, H, T, S)": by_head | torch.eye(LENGTH, dtype=torch.bool),
        "(B, 1, T, S)": (causal_mask(LENGTH) & padding_mask([2, 4], LENGTH))[:, None],
    }


@pytest.mark.parametrize("shape", masks_without_empty_rows())
def test_the_layer_of_pytorch_agrees_once_the_mask_is_converted(shape: str) -> None:
    mask = masks_without_empty_rows()[shape]
    theirs = pytorch_layer()
    ours = MultiHeadAttention.from_torch(theirs)
    x = draw(BATCH, LENGTH, D_MODEL)
    converted = to_torch_mha_mask(mask, num_heads=HEADS)
    expected, weights = theirs(x, x, x, attn_mask=converted, average_attn_weights=False)
    seen = ours.attend(x, x, x, mask=mask)
    torch.testing.assert_close(seen.output, expected)
    torch.testing.assert_close(seen.attn_weights, weights)


@pytest.mark.parametrize("shape", masks_without_empty_rows())
def test_the_function_of_pytorch_agrees_once_the_mask_is_converted(shape: str) -> None:
    mask = to_sdpa_mask(masks_without_empty_rows()[shape])
    q, k, v = (draw(BATCH, HEADS, LENGTH, 7, seed=seed) for seed in range(3))
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    seen = scaled_dot_product_attention(q, k, v, mask=mask).output
    torch.testing.assert_close(seen, expected)


def test_one_mask_means_the_opposite_to_the_layer_of_pytorch() -> None:
    causal = causal_mask(3)
    assert torch.equal(to_torch_mha_mask(causal), ~causal)
    assert torch.equal(to_sdpa_mask(causal), causal)


def test_the_shown_program_runs_and_both_conventions_give_what_core_gives() -> None:
    scope: dict[str, Tensor] = {}
    with torch.random.fork_rng():
        exec(compile(two_conventions_code(), "shown", "exec"), scope)
    x = scope["x"]
    expected = scaled_dot_product_attention(x, x, x, mask=causal_mask(3)).output
    assert torch.equal(scope["may_attend"], causal_mask(3))
    torch.testing.assert_close(scope["from_function"], expected)
    torch.testing.assert_close(scope["from_layer"], expected)
    # Not inverted: token 0 reads tokens 1 and 2, token 1 reads 2, token 2 nothing.
    opposite = scaled_dot_product_attention(x, x, x, mask=~causal_mask(3)).output
    torch.testing.assert_close(scope["opposite"][:, :2], opposite[:, :2])
    assert scope["opposite"][:, 2].isnan().all()


def test_the_shown_program_fits_a_projector() -> None:
    assert all(len(line) <= 88 for line in two_conventions_code().splitlines())


@pytest.mark.parametrize("batch", [0, 1])
def test_conversions_keep_small_batches(batch: int) -> None:
    mask = causal_mask(1) & padding_mask([1] * batch, 1)
    converted = to_torch_mha_mask(mask, num_heads=HEADS)
    assert converted.shape == (batch * HEADS, 1, 1)


def test_a_float_mask_of_zeros_and_ones_is_refused_by_every_conversion() -> None:
    ones = torch.ones(3, 3)
    sentence = r"mask must be boolean, True = may attend, got dtype torch\.float32"
    for convert in (to_torch_mha_mask, to_sdpa_mask):
        with pytest.raises(ValueError, match=sentence):
            convert(ones)


def test_shapes_that_do_not_fit_are_refused_with_the_shape() -> None:
    with pytest.raises(ValueError, match=r"mask must have 2 to 4 dimensions"):
        to_sdpa_mask(torch.ones(3, dtype=torch.bool))
    two_heads = torch.ones(5, 2, 3, 3, dtype=torch.bool)
    sentence = r"mask \(5, 2, 3, 3\) must have 1 or num_heads \(3\) heads"
    with pytest.raises(ValueError, match=sentence):
        to_torch_mha_mask(two_heads, num_heads=3)
    with pytest.raises(ValueError, match=r"num_heads \(0\) must be at least 1"):
        to_torch_mha_mask(causal_mask(3), num_heads=0)
