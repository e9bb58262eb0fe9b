"""The blocks: attention and a feed-forward network, each beside a shortcut."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.attention import AttentionOutput, KeysValues, MultiHeadAttention
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


class DecoderAttention(NamedTuple):
    """A decoder block's tokens and both of its attentions.

    Attributes:
        output: Tokens after the block, (B, T, d_model).
        self_attention: Over the target; weights and scores (B, H, T, T).
        cross_attention: Over the memory; weights and scores (B, H, T, S).
    """

    output: Tensor
    self_attention: AttentionOutput
    cross_attention: AttentionOutput


class DecoderCache(NamedTuple):
    """What a decoder block need not work out again at the next token.

    Attributes:
        past: Keys and values of the target so far; one position longer every step.
        memory: Keys and values of the memory, the same at every step.
    """

    past: KeysValues
    memory: KeysValues

    def select(self, sequences: Tensor) -> "DecoderCache":
        """Return the chosen sequences of the batch, in that order."""
        return DecoderCache(*(part.select(sequences) for part in self))


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention, a feed-forward network, with shortcuts.

    Pre-norm: ``x + Attention(LN(x))``, then ``x + Attention(LN(x), memory)``, then
    ``x + FFN(LN(x))``. Post-norm: the same with ``LN(x + part(x))`` each time.

    In cross-attention the queries come from the target, keys and values from the
    memory: its map is T×S. Dropout acts on the weights of both attentions, after each
    part and between the two layers of the feed-forward network.

    Reference:
        Vaswani et al., 2017, section 3.1, arXiv:1706.03762.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_ff: int | None = None,
        dropout: float = 0.0,
        norm_first: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        """Draw the initial weights; takes what ``EncoderBlock`` takes.

        Raises:
            ValueError: If a size is out of range or ``num_heads`` does not divide
                ``d_model``.
        """
        super().__init__()
        source = seeded(generator)
        self.norm_first = norm_first
        self.self_attention, self.cross_attention = (
            MultiHeadAttention(d_model, num_heads, dropout=dropout, generator=source)
            for _ in range(2)
        )
        width = 4 * d_model if d_ff is None else d_ff
        self.feed_forward = FeedForward(
            d_model, width, dropout=dropout, generator=source
        )
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout, generator=source)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the tokens after the block: the fast path, equal to ``attend``.

        Args:
            x: Target tokens, (B, T, d_model).
            memory: What the encoder hands over, (B, S, d_model).
            mask: Of the target: boolean (T, T), (B, T, T) or (B, H, T, T); sizes of 1
                broadcast. True means the query may attend to the key. None hides
                nothing, not even later tokens.
            memory_mask: Of the memory: boolean (T, S), (B, T, S) or (B, H, T, S).

        Returns:
            (B, T, d_model).

        Raises:
            ValueError: If the shapes do not fit or a mask is not boolean.
        """
        tokens = self._enter(self.self_attention_norm, x)
        attended = self.self_attention(tokens, tokens, tokens, mask=mask)
        x = self._leave(self.self_attention_norm, x, attended)
        read = self.cross_attention.keys_values(memory)
        return self._after_self_attention(x, read, memory_mask)

    def attend(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> DecoderAttention:
        """Return the tokens after the block with both attentions: the explained path.

        Takes what ``forward`` takes.
        """
        tokens = self._enter(self.self_attention_norm, x)
        own = self.self_attention.attend(tokens, tokens, tokens, mask=mask)
        x = self._leave(self.self_attention_norm, x, own.output)
        tokens = self._enter(self.cross_attention_norm, x)
        cross = self.cross_attention.attend(tokens, memory, memory, mask=memory_mask)
        x = self._leave(self.cross_attention_norm, x, cross.output)
        return DecoderAttention(self._feed(x), own, cross)

    def begin(self, memory: Tensor) -> DecoderCache:
        """Return the cache of a target without tokens.

        Args:
            memory: What the encoder hands over, (B, S, d_model).

        Raises:
            ValueError: If the shape does not fit.
        """
        none = memory[:, :0]
        return DecoderCache(
            self.self_attention.keys_values(none),
            self.cross_attention.keys_values(memory),
        )

    def advance(
        self,
        x: Tensor,
        cache: DecoderCache,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> tuple[Tensor, DecoderCache]:
        """Return the next token after the block, and the cache that holds it too.

        Under a causal mask the result is the last position of ``forward`` over the
        whole target.

        Args:
            x: The next target token, (B, 1, d_model).
            cache: Of all before it.
            mask: Of the target, this token among it: boolean (B, 1, t + 1). True means
                the query may attend to the key.
            memory_mask: Of the memory: boolean (B, 1, S).

        Returns:
            (B, 1, d_model) and the cache for the token after it.

        Raises:
            ValueError: If the shapes do not fit or a mask is not boolean.
        """
        tokens = self._enter(self.self_attention_norm, x)
        past = cache.past.followed_by(self.self_attention.keys_values(tokens))
        attended = self.self_attention.read(tokens, past, mask=mask)
        x = self._leave(self.self_attention_norm, x, attended)
        output = self._after_self_attention(x, cache.memory, memory_mask)
        return output, cache._replace(past=past)

    def _after_self_attention(
        self, x: Tensor, memory: KeysValues, memory_mask: Tensor | None
    ) -> Tensor:
        tokens = self._enter(self.cross_attention_norm, x)
        attended = self.cross_attention.read(tokens, memory, mask=memory_mask)
        return self._feed(self._leave(self.cross_attention_norm, x, attended))

    def _feed(self, x: Tensor) -> Tensor:
        fed = self.feed_forward(self._enter(self.feed_forward_norm, x))
        return self._leave(self.feed_forward_norm, x, fed)

    def _enter(self, norm: nn.Module, x: Tensor) -> Tensor:
        return norm(x) if self.norm_first else x

    def _leave(self, norm: nn.Module, x: Tensor, part: Tensor) -> Tensor:
        x = x + self.dropout(part)
        return x if self.norm_first else norm(x)


def _rows_of_mask(mask: Tensor | None, positions: slice) -> Tensor | None:
    if mask is None or mask.ndim < 2 or mask.shape[-2] == 1:
        return mask
    return mask[..., positions, :]
