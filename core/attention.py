"""Scaled dot-product attention, and many heads of it side by side."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.checks import RefusedError, require_divisible, require_int
from core.dropout import Dropout
from core.initial import linear, seeded


class AttentionOutput(NamedTuple):
    """What attention computes on its way, from last to first.

    Attributes:
        output: Weighted sums of the values, (..., T, d_v).
        attn_weights: Weights after the softmax, (..., T, S). Every row sums to 1, or is
            0 throughout where the query may attend to no key.
        scores: Scaled scores before the softmax, (..., T, S). They are finite and know
            nothing of the mask.
    """

    output: Tensor
    attn_weights: Tensor
    scores: Tensor


class KeysValues(NamedTuple):
    """Keys and values of every head, to be read as often as one likes.

    Attributes:
        keys: (B, H, S, d_k).
        values: (B, H, S, d_k).
    """

    keys: Tensor
    values: Tensor

    def followed_by(self, later: "KeysValues") -> "KeysValues":
        """Return these positions with the later ones after them."""
        keys, values = (
            torch.cat(pair, dim=-2) for pair in zip(self, later, strict=True)
        )
        return KeysValues(keys, values)

    def select(self, sequences: Tensor) -> "KeysValues":
        """Return those of the chosen sequences of the batch, in that order."""
        return KeysValues(*(part.index_select(0, sequences) for part in self))


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> AttentionOutput:
    """Let every query read a weighted sum of the values.

    ``Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V``

    Args:
        query: What each position looks for, (..., T, d_k).
        key: What each position offers to be found by, (..., S, d_k).
        value: What each position hands over, (..., S, d_v).
        mask: Boolean, broadcasts to (..., T, S). True means the query may attend to
            the key. None means every query may attend to every key.
        scale: Factor of the scores; None means 1/√d_k.
        dropout: Applied to the weights before they meet the values.

    Returns:
        Output (..., T, d_v), weights (..., T, S) before dropout, scores (..., T, S). A
        query that may attend to no key gets weights 0, output 0 and gradients 0.

    Raises:
        ValueError: If the shapes do not fit or the mask is not boolean.

    Reference:
        Vaswani et al., 2017, "Attention Is All You Need", section 3.2.1,
        arXiv:1706.03762.
    """
    _check_shapes(query, key, value)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)  # (..., T, S)
    attn_weights = masked_softmax(scores, mask)
    kept = attn_weights if dropout is None else dropout(attn_weights)
    return AttentionOutput(kept @ value, attn_weights, scores)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the last dimension into heads: (..., T, d_model) -> (..., H, T, d_k).

    Args:
        x: Projected tokens, (..., T, d_model).
        num_heads: Number of heads H; must divide d_model.

    Raises:
        ValueError: If num_heads does not divide d_model.
    """
    require_divisible("d_model", x.shape[-1], "num_heads", num_heads)
    return x.unflatten(-1, (num_heads, x.shape[-1] // num_heads)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads back side by side: (..., H, T, d_k) -> (..., T, d_model)."""
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """Attention in several subspaces at once: project, split, attend, merge, project.

    ``MultiHead(Q, K, V) = Concat(head_1, …, head_H) W_O`` with
    ``head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i)`` and d_k = d_v = d_model / H.

    The three input projections lie in one packed weight, as in
    ``nn.MultiheadAttention``, and start from the same distribution: Xavier uniform
    over the packed shape, biases 0.

    Reference:
        Vaswani et al., 2017, "Attention Is All You Need", section 3.2.2,
        arXiv:1706.03762.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        """Draw the initial weights.

        Args:
            d_model: Width of the tokens.
            num_heads: Number of heads H; must divide d_model.
            dropout: Probability of dropping a weight while training.
            bias: Whether the projections add a bias.
            generator: Source of the initial weights and then of dropout; None means a
                fresh one seeded 0.

        Raises:
            ValueError: If num_heads does not divide d_model.
        """
        super().__init__()
        self.d_model = require_int("d_model", d_model, 1)
        self.num_heads = require_int("num_heads", num_heads, 1)
        require_divisible("d_model", d_model, "num_heads", num_heads)
        source = seeded(generator)
        self.in_proj = linear(d_model, 3 * d_model, bias=bias, generator=source)
        self.out_proj = linear(d_model, d_model, bias=bias, generator=source)
        self.dropout = Dropout(dropout, generator=source)
        nn.init.xavier_uniform_(self.in_proj.weight, generator=source)
        for bias_of in (self.in_proj.bias, self.out_proj.bias):
            if bias_of is not None:
                nn.init.zeros_(bias_of)

    @classmethod
    def from_torch(cls, mha: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Return a layer with a copy of the weights of an ``nn.MultiheadAttention``.

        Raises:
            ValueError: If ``mha`` has keys or values of another width, learned extra
                keys (``add_bias_kv``) or an added zero key (``add_zero_attn``).
        """
        _check_convertible(mha)
        bias = mha.in_proj_bias is not None
        layer = cls(mha.embed_dim, mha.num_heads, dropout=mha.dropout, bias=bias)
        layer = layer.to(mha.in_proj_weight)
        weights = {
            name.replace("in_proj_", "in_proj."): tensor
            for name, tensor in mha.state_dict().items()
        }
        layer.load_state_dict(weights)
        return layer.train(mha.training)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
    ) -> Tensor:
        """Return the attended tokens alone: the fast path, equal to ``attend``.

        Args:
            query: Tokens that read, (B, T, d_model).
            key: Tokens that are read, (B, S, d_model).
            value: Tokens whose content is read, (B, S, d_model).
            mask: Boolean (T, S), (B, T, S) or (B, H, T, S); sizes of 1 broadcast. True
                means the query may attend to the key.

        Returns:
            (B, T, d_model).

        Raises:
            ValueError: If shapes do not fit or the mask is not boolean.
        """
        return self._fast(*self._project_and_split(query, key, value), mask)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
    ) -> AttentionOutput:
        """Return output, weights and scores of every head: the explained path.

        Takes what ``forward`` takes.

        Returns:
            Output (B, T, d_model), weights and scores (B, H, T, S), one map a head.

        Raises:
            ValueError: If shapes do not fit or the mask is not boolean.
        """
        return self._explained(*self._project_and_split(query, key, value), mask)

    def keys_values(self, tokens: Tensor) -> KeysValues:
        """Return what ``forward`` would read of these tokens, to read it repeatedly.

        Args:
            tokens: Tokens that are read, as key and as value, (B, S, d_model).

        Raises:
            ValueError: If the shape does not fit.
        """
        self._check_tokens(tokens=tokens)
        k, v = self._project(tokens, slice(self.d_model, None)).chunk(2, dim=-1)
        return KeysValues(
            split_heads(k, self.num_heads), split_heads(v, self.num_heads)
        )

    def read(
        self, query: Tensor, read: KeysValues, *, mask: Tensor | None = None
    ) -> Tensor:
        """Return the attended tokens alone, from keys and values worked out before.

        ``layer.read(x, layer.keys_values(y))`` is ``layer(x, y, y)``.

        Args:
            query: Tokens that read, (B, T, d_model).
            read: Keys and values of S tokens.
            mask: As in ``forward``; True means the query may attend to the key.

        Returns:
            (B, T, d_model).

        Raises:
            ValueError: If shapes do not fit or the mask is not boolean.
        """
        self._check_tokens(query=query)
        q = split_heads(self._project(query, slice(self.d_model)), self.num_heads)
        return self._fast(q, *read, mask)

    def _fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if self.dropout.active:  # the fused kernel would draw from the global generator
            return self._explained(q, k, v, mask).output
        attended = _fused_attention(q, k, v, _mask_of_heads(mask))
        return self.out_proj(merge_heads(attended))  # (B, T, d_model)

    def _explained(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> AttentionOutput:
        heads = scaled_dot_product_attention(
            q, k, v, mask=_mask_of_heads(mask), dropout=self.dropout
        )
        output = self.out_proj(merge_heads(heads.output))  # (B, T, d_model)
        return heads._replace(output=output)

    def _project(self, x: Tensor, rows: slice) -> Tensor:
        bias = None if self.in_proj.bias is None else self.in_proj.bias[rows]
        return F.linear(x, self.in_proj.weight[rows], bias)

    def _project_and_split(
        self, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        self._check_tokens(query=query, key=key, value=value)
        if query is key and key is value:
            q, k, v = self.in_proj(query).chunk(3, dim=-1)
        else:
            w_q, w_k, w_v = self.in_proj.weight.chunk(3)
            b_q, b_k, b_v = (
                (None,) * 3 if self.in_proj.bias is None else self.in_proj.bias.chunk(3)
            )
            q = F.linear(query, w_q, b_q)
            k = F.linear(key, w_k, b_k)
            v = F.linear(value, w_v, b_v)
        heads = self.num_heads
        return split_heads(q, heads), split_heads(k, heads), split_heads(v, heads)

    def _check_tokens(self, **tokens: Tensor) -> None:
        for name, x in tokens.items():
            if x.ndim != 3 or x.shape[-1] != self.d_model:
                raise RefusedError(
                    f"{name} {tuple(x.shape)} must have shape "
                    f"(batch, length, d_model) with d_model = {self.d_model}"
                )


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return weights over the keys that a query may attend to.

    Args:
        scores: One a query and key, (..., T, S).
        mask: Boolean, broadcasts to (..., T, S). True means the query may attend to
            the key. None means every query may attend to every key.

    Returns:
        Weights, (..., T, S). Every row sums to 1, or is 0 throughout where the query
        may attend to no key.

    Raises:
        ValueError: If the mask is not boolean or does not fit.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    _check_mask(mask, scores.shape)
    mask = torch.atleast_2d(mask)
    # -inf goes only into rows that keep a key: a row of -inf alone would become NaN.
    # Such a row goes in as zeros, whatever its scores are, and comes out as zeros.
    has_key = mask.any(dim=-1, keepdim=True)
    hidden = scores.masked_fill(~mask, -math.inf).masked_fill(~has_key, 0.0)
    return hidden.softmax(dim=-1).masked_fill(~has_key, 0.0)


def _fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    _check_shapes(q, k, v)
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v)
    leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    _check_mask(mask, torch.Size((*leading, q.shape[-2], k.shape[-2])))
    q, mask = q.expand(*leading, *q.shape[-2:]), torch.atleast_2d(mask)
    # Not every fused kernel treats a row without keys alike: let it read, then zero it.
    has_key = mask.any(dim=-1, keepdim=True)
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask | ~has_key)
    return attended.masked_fill(~has_key, 0.0)


def _mask_of_heads(mask: Tensor | None) -> Tensor | None:
    per_sequence = isinstance(mask, Tensor) and mask.ndim == 3
    return mask.unsqueeze(1) if mask is not None and per_sequence else mask


def _check_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value "
    shapes += f"{tuple(value.shape)}"
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RefusedError(f"query, key and value need a length and a width: {shapes}")
    if query.shape[-1] != key.shape[-1] or query.shape[-1] < 1:
        raise RefusedError(f"query and key must share one width d_k >= 1: {shapes}")
    if key.shape[-2] != value.shape[-2]:
        raise RefusedError(f"key and value must share one length S: {shapes}")
    try:
        torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except RuntimeError as error:
        raise RefusedError(
            f"query, key and value must share their leading sizes: {shapes}"
        ) from error


def _check_mask(mask: Tensor, shape: torch.Size) -> None:
    if not isinstance(mask, Tensor):
        raise RefusedError(f"mask must be a boolean tensor, got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise RefusedError(
            f"mask must be boolean, True = may attend, got dtype {mask.dtype}"
        )
    fits = mask.ndim <= len(shape) and all(
        size in (1, full)
        for size, full in zip(mask.shape[::-1], shape[::-1], strict=False)
    )
    if not fits:
        raise RefusedError(
            f"mask {tuple(mask.shape)} must broadcast to the scores {tuple(shape)}"
        )


def _check_convertible(mha: nn.MultiheadAttention) -> None:
    if mha.kdim != mha.embed_dim or mha.vdim != mha.embed_dim:
        raise RefusedError(
            f"kdim ({mha.kdim}) and vdim ({mha.vdim}) must equal embed_dim "
            f"({mha.embed_dim})"
        )
    if mha.bias_k is not None or mha.add_zero_attn:
        raise RefusedError(
            "an nn.MultiheadAttention with add_bias_kv or add_zero_attn adds keys that "
            "stand for no token; neither may be set"
        )
