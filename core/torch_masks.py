"""PyTorch's two mask conventions, and the way from ours to each.

Here and in ``F.scaled_dot_product_attention`` True means "may attend". In
``nn.MultiheadAttention`` True means "may not attend". One boolean mask given to both
means opposite things, without an error.
"""

import torch
from torch import Tensor

from core.checks import RefusedError, require_int

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
    repeated for its heads, since that layer counts ``B · H`` of them.

    Args:
        mask: Boolean ``(T, S)``, ``(B, T, S)`` or ``(B, H, T, S)``, True = may attend.
        num_heads: Number of heads H of that layer.

    Returns:
        Boolean ``(T, S)`` or ``(B · H, T, S)``, True = may not attend.

    Raises:
        ValueError: If ``mask`` is not boolean or its shape does not fit.
    """
    require_int("num_heads", num_heads, 1)
    _require_boolean(mask)
    if mask.dim() == 2:
        return ~mask
    if mask.dim() == 3:
        return ~mask.repeat_interleave(num_heads, dim=0)
    if mask.shape[1] not in (1, num_heads):
        raise RefusedError(
            f"mask {tuple(mask.shape)} must have 1 or num_heads ({num_heads}) heads"
        )
    batch, _, queries, keys = mask.shape
    return ~mask.expand(batch, num_heads, queries, keys).flatten(0, 1)


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
    _require_boolean(mask)
    return mask.unsqueeze(1) if mask.dim() == 3 else mask


def _require_boolean(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise RefusedError(
            f"mask must be boolean, True = may attend, got dtype {mask.dtype}"
        )
    if mask.dim() not in (2, 3, 4):
        shape = tuple(mask.shape)
        raise RefusedError(f"mask must have 2 to 4 dimensions, got shape {shape}")
