"""The encoder block: attention and a feed-forward network, each beside a shortcut."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.attention import AttentionOutput, MultiHeadAttention
from core.checks import require_int
from core.dropout import Dropout
from core.initial import linear, seeded


class FeedForward(nn.Module):
    """Two linear layers around a GELU, the same at every position.

    ``FFN(x) = GELU(x W_1 + b_1) W_2 + b_2``, with the exact GELU, ``x · Φ(x)``.

    Reference:
        Vaswani et al., 2017, "Attention Is All You Need", section 3.3,
        arXiv:1706.03762; Hendrycks and Gimpel, 2016, arXiv:1606.08415.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        """Draw the initial weights.

        Args:
            d_model: Width of the tokens.
            d_ff: Width between the two layers.
            dropout: Probability of dropping an entry between the layers.
            generator: Source of the initial weights and then of dropout; None means a
                fresh one seeded 0.

        Raises:
            ValueError: If a width is below 1 or ``dropout`` is not in
                [0, ``MAX_DROPOUT``].
        """
        super().__init__()
        require_int("d_model", d_model, 1)
        require_int("d_ff", d_ff, 1)
        source = seeded(generator)
        self.expand = linear(d_model, d_ff, generator=source)
        self.contract = linear(d_ff, d_model, generator=source)
        self.dropout = Dropout(dropout, generator=source)

    def forward(self, x: Tensor) -> Tensor:
        """Return the transformed tokens, (B, T, d_model) -> (B, T, d_model)."""
        hidden = F.gelu(self.expand(x))  # (B, T, d_ff)
        return self.contract(self.dropout(hidden))  # (B, T, d_model)


class EncoderBlock(nn.Module):
    """Self-attention, then a feed-forward network, each beside a shortcut.

    Pre-norm: ``x + Attention(LN(x))``, then ``x + FFN(LN(x))``.
    Post-norm: ``LN(x + Attention(x))``, then ``LN(x + FFN(x))``.

    Without shortcuts the tokens are what each part gives, and nothing is added to it:
    ``Attention(LN(x))``, or ``LN(Attention(x))``.

    Dropout acts on the attention weights, after attention, between the two layers of
    the feed-forward network and after it.

    Reference:
        Post-norm: Vaswani et al., 2017, section 3.1, arXiv:1706.03762. Pre-norm: Xiong
        et al., 2020, "On Layer Normalization in the Transformer Architecture",
        arXiv:2002.04745.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_ff: int | None = None,
        dropout: float = 0.0,
        norm_first: bool = True,
        residual: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        """Draw the initial weights.

        Args:
            d_model: Width of the tokens.
            num_heads: Number of heads; must divide ``d_model``.
            d_ff: Width of the feed-forward network; None means ``4 * d_model``.
            dropout: Probability of dropping an entry, at all four places.
            norm_first: True for pre-norm, False for post-norm.
            residual: Whether each part stands beside a shortcut; the weights drawn are
                the same.
            generator: Source of the initial weights and then of dropout; None means a
                fresh one seeded 0.

        Raises:
            ValueError: If a size is out of range or ``num_heads`` does not divide
                ``d_model``.
        """
        super().__init__()
        source = seeded(generator)
        self.norm_first = norm_first
        self.residual = residual
        self.attention = MultiHeadAttention(
            d_model, num_heads, dropout=dropout, generator=source
        )
        self.feed_forward = FeedForward(
            d_model,
            4 * d_model if d_ff is None else d_ff,
            dropout=dropout,
            generator=source,
        )
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout, generator=source)

    def forward(
        self, x: Tensor, *, mask: Tensor | None = None, positions: slice | None = None
    ) -> Tensor:
        """Return the tokens after the block: the fast path, equal to ``attend``.

        Args:
            x: Tokens, (B, T, d_model).
            mask: Boolean (T, T), (B, T, T) or (B, H, T, T); sizes of 1 broadcast. True
                means the query may attend to the key.
            positions: The positions to compute; None means all. Every position is still
                read as a key and a value, so the result is ``forward(x)[:, positions]``
                without the work for the rest.

        Returns:
            (B, T, d_model), or only the chosen positions of it.

        Raises:
            ValueError: If the shapes do not fit or the mask is not boolean.
        """
        keys = self.attention_norm(x) if self.norm_first else x
        queries = keys
        if positions is not None:
            x, queries = x[:, positions], keys[:, positions]
            mask = _rows_of_mask(mask, positions)
        attended = self.attention(queries, keys, keys, mask=mask)
        return self._after_attention(x, attended)

    def attend(self, x: Tensor, *, mask: Tensor | None = None) -> AttentionOutput:
        """Return the tokens after the block with its weights and scores.

        Args:
            x: Tokens, (B, T, d_model).
            mask: As in ``forward``; True means the query may attend to the key.

        Returns:
            Output of the block (B, T, d_model); weights and scores (B, H, T, T).

        Raises:
            ValueError: If the shapes do not fit or the mask is not boolean.
        """
        tokens = self.attention_norm(x) if self.norm_first else x
        attended = self.attention.attend(tokens, tokens, tokens, mask=mask)
        return attended._replace(output=self._after_attention(x, attended.output))

    def _after_attention(self, x: Tensor, attended: Tensor) -> Tensor:
        x = self._beside_shortcut(x, attended)
        if self.norm_first:
            fed = self.feed_forward(self.feed_forward_norm(x))
            return self._beside_shortcut(x, fed)
        x = self.attention_norm(x)
        return self.feed_forward_norm(self._beside_shortcut(x, self.feed_forward(x)))

    def _beside_shortcut(self, x: Tensor, part: Tensor) -> Tensor:
        return x + self.dropout(part) if self.residual else self.dropout(part)


def _rows_of_mask(mask: Tensor | None, positions: slice) -> Tensor | None:
    if mask is None or mask.ndim < 2 or mask.shape[-2] == 1:
        return mask
    return mask[..., positions, :]
