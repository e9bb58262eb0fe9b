"""The encoder-decoder Transformer: a source becomes a memory that a decoder reads."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.blocks import DecoderBlock, DecoderCache, EncoderBlock
from core.checks import (
    MAX_SEED,
    RefusedError,
    require_divisible,
    require_int,
    require_number,
)
from core.dropout import MAX_DROPOUT, Dropout
from core.initial import generator_from, linear
from core.masks import causal_mask
from core.models import (
    MAX_D_FF,
    MAX_D_MODEL,
    MAX_LAYERS,
    MAX_SEQ_LEN,
    require_few_parameters,
)
from core.positional import SinusoidalPositionalEncoding
from core.source_memory import (
    Explained,
    Memory,
    check_tokens,
    embedding,
    require_vocabularies,
)
from core.vocabulary import PAD


@dataclass(frozen=True)
class EncoderDecoderConfig:
    """What an ``EncoderDecoderTransformer`` is made of.

    Attributes:
        source_vocab: Number of tokens in the source vocabulary.
        target_vocab: Number of tokens in the target vocabulary, V.
        d_model: Width of the tokens.
        num_heads: Number of heads; must divide ``d_model``.
        num_layers: Number of encoder blocks, and of decoder blocks.
        d_ff: Width of the feed-forward networks; None means ``4 * d_model``.
        dropout: Probability of dropping an entry while training.
        norm_first: True for pre-norm blocks, False for post-norm.
        last_norm: Whether a LayerNorm follows the last encoder block and the last
            decoder block; None means with pre-norm blocks alone, as post-norm blocks
            end in one already.
        shared_embeddings: Whether source and target share one table of embeddings;
            both vocabularies must be the same.
        max_len: Positions held ready; longer sequences still work.
        seed: Seed of the initial weights.

    Raises:
        ValueError: If a value is out of range, or the model would grow too large.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int | None = None
    dropout: float = 0.0
    norm_first: bool = True
    last_norm: bool | None = None
    shared_embeddings: bool = False
    max_len: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be built, in one sentence."""
        require_vocabularies(self.source_vocab, self.target_vocab)
        require_int("d_model", self.d_model, 1, MAX_D_MODEL)
        require_int("num_heads", self.num_heads, 1, MAX_D_MODEL)
        require_divisible("d_model", self.d_model, "num_heads", self.num_heads)
        require_int("num_layers", self.num_layers, 1, MAX_LAYERS)
        require_int("d_ff", self.ff_width, 1, MAX_D_FF)
        require_number("dropout", self.dropout, 0, MAX_DROPOUT)
        require_int("max_len", self.max_len, 1, MAX_SEQ_LEN)
        require_int("seed", self.seed, 0, MAX_SEED)
        if self.shared_embeddings and self.source_vocab != self.target_vocab:
            raise RefusedError(
                f"source_vocab ({self.source_vocab}) must equal target_vocab "
                f"({self.target_vocab}) where shared_embeddings is True"
            )
        require_few_parameters(
            self.num_layers, self.d_model, self.ff_width, self.num_parameters
        )

    @property
    def ff_width(self) -> int:
        """Width of the feed-forward networks, with the default filled in."""
        return 4 * self.d_model if self.d_ff is None else self.d_ff

    @property
    def ends_in_norm(self) -> bool:
        """Whether a norm follows the last block, with the default filled in."""
        return self.norm_first if self.last_norm is None else self.last_norm

    @property
    def parameters_by_part(self) -> dict[str, int]:
        """Number of learned numbers in each part, counted without building the model.

        The parts of the blocks are counted over all layers.
        """
        d_model, d_ff, layers = self.d_model, self.ff_width, self.num_layers
        attention = layers * 4 * (d_model + 1) * d_model
        feed_forward = layers * ((d_model + 1) * d_ff + (d_ff + 1) * d_model)
        target_table = self.target_vocab * d_model * (not self.shared_embeddings)
        last_norm = 2 * d_model * self.ends_in_norm
        return {
            "source embedding": self.source_vocab * d_model,
            "target embedding": target_table,
            "encoder: self-attention": attention,
            "encoder: feed-forward": feed_forward,
            "encoder: norms": layers * 4 * d_model + last_norm,
            "decoder: self-attention": attention,
            "decoder: cross-attention": attention,
            "decoder: feed-forward": feed_forward,
            "decoder: norms": layers * 6 * d_model + last_norm,
            "output": (d_model + 1) * self.target_vocab,
        }

    @property
    def num_parameters(self) -> int:
        """Number of learned numbers, counted without building the model."""
        return sum(self.parameters_by_part.values())


class DecoderState(NamedTuple):
    """How far a target has come, and what need not be worked out again.

    Attributes:
        caches: Keys and values, one cache a decoder block.
        target_mask: Boolean (B, t), True = a real token; t tokens are done.
        memory_mask: Boolean (B, S), True = a real token.
    """

    caches: tuple[DecoderCache, ...]
    target_mask: Tensor
    memory_mask: Tensor

    def select(self, sequences: Tensor) -> "DecoderState":
        """Return the chosen sequences of the batch, in that order.

        Args:
            sequences: Their indices, (number chosen,); one may be chosen again and
                again.
        """
        return DecoderState(
            tuple(cache.select(sequences) for cache in self.caches),
            self.target_mask.index_select(0, sequences),
            self.memory_mask.index_select(0, sequences),
        )


class EncoderDecoderTransformer(nn.Module):
    """Embed both sides, encode the source, let the decoder read it, score the tokens.

    Embeddings are multiplied by ``√d_model`` before the sinusoids are added. They
    start as normal numbers of standard deviation ``1/√d_model``, so that they enter
    the sum with 1. Sources and targets are numbers of tokens, padded with ``PAD``;
    padding is never attended to.

    Reference:
        Vaswani et al., 2017, sections 3.1 and 3.4, arXiv:1706.03762. There the last
        linear layer shares its weights with the embeddings; here it has its own.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        """Draw all initial weights from one generator seeded ``config.seed``.

        Args:
            config: Sizes and choices, already checked.
        """
        super().__init__()
        self.config = config
        source, d_model = generator_from(config.seed), config.d_model
        self.source_embedding = embedding(
            config.source_vocab, d_model, std=d_model**-0.5, generator=source
        )
        self.target_embedding = (
            self.source_embedding
            if config.shared_embeddings
            else embedding(
                config.target_vocab, d_model, std=d_model**-0.5, generator=source
            )
        )
        self.positions = SinusoidalPositionalEncoding(config.max_len, d_model)
        self.dropout = Dropout(config.dropout, generator=source)
        self.encoder, self.decoder = (
            nn.ModuleList(
                block(
                    d_model,
                    config.num_heads,
                    d_ff=config.ff_width,
                    dropout=config.dropout,
                    norm_first=config.norm_first,
                    generator=source,
                )
                for _ in range(config.num_layers)
            )
            for block in (EncoderBlock, DecoderBlock)
        )
        self.encoder_norm = _last_norm(config)
        self.decoder_norm = _last_norm(config)
        self.output = linear(d_model, config.target_vocab, generator=source)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Return the logits of the next token at every position: the fast path.

        Args:
            source: Token numbers, (B, S).
            target_in: Token numbers from ``START`` on, (B, T).

        Returns:
            (B, T, V). Position t has read the target up to t and the whole source.

        Raises:
            ValueError: If a shape does not fit or a token is not of its vocabulary.
        """
        return self.decode(self.encode(source), target_in)

    def encode(self, source: Tensor) -> Memory:
        """Return what the decoder reads of the source.

        Args:
            source: Token numbers, (B, S).

        Raises:
            ValueError: As in ``forward``.
        """
        tokens = self._embed("source", source)
        mask = source != PAD
        for block in self.encoder:
            tokens = block(tokens, mask=mask[:, None])  # (B, S, d_model)
        return Memory(self.encoder_norm(tokens), mask, None)

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        """Return the logits, (B, T, V), of a target that reads this memory.

        Args:
            memory: Of the encoder, or changed since.
            target_in: Token numbers from ``START`` on, (B, T).

        Raises:
            ValueError: As in ``forward``.
        """
        tokens = self._embed("target_in", target_in)
        mask, memory_mask = _target_mask(target_in), memory.mask[:, None]
        for block in self.decoder:
            tokens = block(tokens, memory.states, mask=mask, memory_mask=memory_mask)
        return self.output(self.decoder_norm(tokens))

    def explain(self, source: Tensor, target_in: Tensor) -> Explained:
        """Return everything on the way to the logits: the explained path.

        Takes what ``forward`` takes; its logits are equal.
        """
        source_embedded, mask = self._embed("source", source), source != PAD
        tokens, encoded = source_embedded, []
        for block in self.encoder:
            encoded.append(block.attend(tokens, mask=mask[:, None]))  # type: ignore[operator]
            tokens = encoded[-1].output
        memory = Memory(self.encoder_norm(tokens), mask, None)
        tokens = target_embedded = self._embed("target_in", target_in)
        masks = {"mask": _target_mask(target_in), "memory_mask": mask[:, None]}
        decoded = []
        for block in self.decoder:
            decoded.append(block.attend(tokens, memory.states, **masks))  # type: ignore[operator]
            tokens = decoded[-1].output
        return Explained(
            logits=self.output(self.decoder_norm(tokens)),
            source_embedded=source_embedded,
            memory=memory,
            target_embedded=target_embedded,
            encoder_maps=tuple(layer.attn_weights for layer in encoded),
            self_maps=tuple(layer.self_attention.attn_weights for layer in decoded),
            cross_maps=tuple(layer.cross_attention.attn_weights for layer in decoded),
            encoder_states=tuple(layer.output for layer in encoded),
            decoder_states=tuple(layer.output for layer in decoded),
        )

    def begin(self, memory: Memory) -> DecoderState:
        """Return the state of a target without tokens, for ``advance``.

        Args:
            memory: Of the encoder, or changed since.
        """
        caches = tuple(block.begin(memory.states) for block in self.decoder)  # type: ignore[operator]
        return DecoderState(caches, memory.mask[:, :0], memory.mask)

    def advance(
        self, tokens: Tensor, state: DecoderState
    ) -> tuple[Tensor, DecoderState]:
        """Return the logits after one more token, and the state that holds it too.

        Equal to the last position of ``decode`` over the whole target; but the keys
        and values of the tokens before are read from the state, not worked out anew.

        Args:
            tokens: The next token of every target, (B,); ``START`` first.
            state: Of ``begin``, or of the step before.

        Returns:
            Logits (B, V) and the next state.

        Raises:
            ValueError: If a shape does not fit or a token is not of the vocabulary.
        """
        place = state.target_mask.shape[1]
        x = self._embed("tokens", tokens[:, None], place)  # (B, 1, d_model)
        target_mask = torch.cat([state.target_mask, tokens[:, None] != PAD], dim=1)
        masks = {
            "mask": target_mask[:, None],
            "memory_mask": state.memory_mask[:, None],
        }
        caches = []
        for block, cache in zip(self.decoder, state.caches, strict=True):
            x, cache = block.advance(x, cache, **masks)  # type: ignore[operator]
            caches.append(cache)
        logits = self.output(self.decoder_norm(x[:, 0]))
        return logits, DecoderState(tuple(caches), target_mask, state.memory_mask)

    def _embed(self, name: str, tokens: Tensor, place: int = 0) -> Tensor:
        table = self.source_embedding if name == "source" else self.target_embedding
        check_tokens(name, tokens, table.num_embeddings)
        x = math.sqrt(self.config.d_model) * table(tokens)  # (B, T, d_model)
        placed = self.positions(F.pad(x, (0, 0, place, 0)))[:, place:]
        return self.dropout(placed)


def _target_mask(target_in: Tensor) -> Tensor:
    real = target_in != PAD
    causal = causal_mask(target_in.shape[1], device=target_in.device)
    return causal & real[:, None]  # (B, T, T)


def _last_norm(config: EncoderDecoderConfig) -> nn.Module:
    return nn.LayerNorm(config.d_model) if config.ends_in_norm else nn.Identity()
