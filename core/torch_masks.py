"""PyTorch's two mask conventions, and the way from ours to each and back.

Here and in ``F.scaled_dot_product_attention`` True means "may attend". In
``nn.MultiheadAttention`` True means "may not attend". One boolean mask given to both
means opposite things, without an error.
"""

import math

import torch
from torch import Tensor

from core.checks import require_divisible, require_int

_TWO_CONVENTIONS = """\
import torch
import torch.nn.functional as F
from torch import nn

may_attend = torch.ones(3, 3, dtype=torch.bool).tril()  # True = may attend
x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]])  # 1 sequence, 3 tokens

# The function: True = may attend.
from_function = F.scaled_dot_product_attention(x, x, x, attn_mask=may_attend)

# The layer: True = may NOT attend. So the mask is inverted.
layer = nn.MultiheadAttention(2, num_heads=1, bias=False, batch_first=True)
with torch.no_grad():  # projections that change nothing
    layer.in_proj_weight.copy_(torch.eye(2).repeat(3, 1))
    layer.out_proj.weight.copy_(torch.eye(2))
from_layer, _ = layer(x, x, x, attn_mask=~may_attend)

# The same mask, not inverted: each token sees only the tokens after it.
opposite, _ = layer(x, x, x, attn_mask=may_attend)  # the last token sees none: NaN
"""


def two_conventions_code() -> str:
    """Return a program that gives one causal mask to PyTorch's function and layer.

    It leaves ``from_function`` and ``from_layer``, which agree, and ``opposite``,
    which shows what happens without the inversion.
    """
    return _TWO_CONVENTIONS


def to_torch_mha_mask(mask: Tensor, *, num_heads: int = 1) -> Tensor:
    """Return a mask for ``nn.MultiheadAttention(..., attn_mask=...)``.

    ``True = may NOT attend``: every value is inverted. A mask for each sequence is
    repeated for its heads, since that layer counts ``B · H`` of them. A padding mask
    ``(B, 1, S)`` alone goes through ``to_key_padding_mask``.

    Args:
        mask: Boolean ``(T, S)``, ``(B, T, S)`` or ``(B, H, T, S)``, True = may attend.
        num_heads: Number of heads H of that layer.

    Returns:
        Boolean ``(T, S)`` or ``(B · H, T, S)``, True = may not attend.

    Raises:
        ValueError: If ``mask`` is not boolean or its shape does not fit.
    """
    require_int("num_heads", num_heads, 1)
    _require_boolean(mask, (2, 3, 4))
    if mask.dim() == 2:
        return ~mask
    if mask.dim() == 3:
        return ~mask.repeat_interleave(num_heads, dim=0)
    if mask.shape[1] not in (1, num_heads):
        raise ValueError(
            f"mask {tuple(mask.shape)} must have 1 or num_heads ({num_heads}) heads"
        )
    batch, _, queries, keys = mask.shape
    return ~mask.expand(batch, num_heads, queries, keys).flatten(0, 1)


def to_key_padding_mask(mask: Tensor) -> Tensor:
    """Return a mask for ``nn.MultiheadAttention(..., key_padding_mask=...)``.

    Args:
        mask: Boolean padding mask ``(B, 1, S)``, True = may attend.

    Returns:
        Boolean ``(B, S)``, True = padding.

    Raises:
        ValueError: If ``mask`` is not boolean or not ``(B, 1, S)``.
    """
    _require_boolean(mask, (3,))
    if mask.shape[1] != 1:
        raise ValueError(f"mask must be (B, 1, S), got shape {tuple(mask.shape)}")
    return ~mask.squeeze(1)


def to_sdpa_mask(mask: Tensor) -> Tensor:
    """Return a mask for ``F.scaled_dot_product_attention(..., attn_mask=...)``.

    ``True = may attend``, as here. Only a dimension for the heads is added.

    Args:
        mask: Boolean ``(T, S)``, ``(B, T, S)`` or ``(B, H, T, S)``, True = may attend.

    Returns:
        Boolean ``(T, S)``, ``(B, 1, T, S)`` or ``(B, H, T, S)``, True = may attend.

    Raises:
        ValueError: If ``mask`` is not boolean or has not 2 to 4 dimensions.
    """
    _require_boolean(mask, (2, 3, 4))
    return mask.unsqueeze(1) if mask.dim() == 3 else mask


def to_additive_mask(mask: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the mask as numbers to add to the scores: 0 or -inf.

    Both of PyTorch's interfaces take this form and mean the same by it. A mask of
    zeros and ones would be added too, and hide nothing.

    Args:
        mask: Boolean of any shape, True = may attend.
        dtype: Type of the scores.

    Returns:
        0 where attending is allowed and -inf elsewhere, same shape.

    Raises:
        ValueError: If ``mask`` is not boolean.
    """
    _require_boolean(mask)
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -math.inf)


def from_torch_mha_mask(mask: Tensor, *, num_heads: int = 1) -> Tensor:
    """Return our mask from an ``attn_mask`` of ``nn.MultiheadAttention``.

    Args:
        mask: Boolean ``(T, S)`` or ``(B · H, T, S)``, True = may NOT attend.
        num_heads: Number of heads H of that layer.

    Returns:
        Boolean ``(T, S)`` or ``(B, H, T, S)``, True = may attend.

    Raises:
        ValueError: If ``mask`` is not boolean or H does not divide its first size.
    """
    require_int("num_heads", num_heads, 1)
    _require_boolean(mask, (2, 3), "True = may not attend")
    if mask.dim() == 2:
        return ~mask
    require_divisible("mask.shape[0]", mask.shape[0], "num_heads", num_heads)
    return ~mask.unflatten(0, (mask.shape[0] // num_heads, num_heads))


def from_sdpa_mask(mask: Tensor) -> Tensor:
    """Return our mask from an ``attn_mask`` of ``F.scaled_dot_product_attention``.

    Args:
        mask: Boolean ``(..., T, S)``, True = may attend.

    Returns:
        The same mask: the conventions agree.

    Raises:
        ValueError: If ``mask`` is not boolean.
    """
    _require_boolean(mask)
    return mask


def from_additive_mask(mask: Tensor) -> Tensor:
    """Return our mask from one that is added to the scores.

    Args:
        mask: Numbers 0 (may attend) or -inf (may not), any shape.

    Returns:
        Boolean of the same shape, True = may attend.

    Raises:
        ValueError: If ``mask`` is not floating point or holds any other number: it
            would be a bias, not a mask.
    """
    if not mask.is_floating_point():
        raise ValueError(f"an added mask must be floating point, got {mask.dtype}")
    hidden = mask == -math.inf
    other = mask[~hidden & (mask != 0)]
    if other.numel():
        raise ValueError(
            f"an added mask must hold 0 or -inf alone, got {other[0].item():g}"
        )
    return ~hidden


def _require_boolean(
    mask: Tensor, dims: tuple[int, ...] = (), meaning: str = "True = may attend"
) -> None:
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, {meaning}, got dtype {mask.dtype}")
    if dims and mask.dim() not in dims:
        listed = " or ".join(str(dim) for dim in dims)
        shape = tuple(mask.shape)
        raise ValueError(f"mask must have {listed} dimensions, got shape {shape}")
