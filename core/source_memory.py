"""What an encoder hands to a decoder, and what both kinds of model have in common."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from core.checks import RefusedError, require_int
from core.vocabulary import SPECIALS

MAX_VOCAB = 10_000


class Memory(NamedTuple):
    """All that a decoder gets to know of a source.

    Attributes:
        states: One vector a source token, (B, S, d); what attention reads.
        mask: Boolean (B, S), True = a real token, which may be attended to.
        final: The context vector of a recurrent encoder, (B, number of entries), from
            which its decoder starts; None for a Transformer.
    """

    states: Tensor
    mask: Tensor
    final: Tensor | None


class Explained(NamedTuple):
    """What a model computes on its way from source and target to the logits.

    Every map has queries as rows and keys as columns. A model without a part has an
    empty tuple there.

    Attributes:
        logits: One a target position and token of the vocabulary, (B, T, V).
        source_embedded: What enters the encoder, (B, S, d).
        memory: What the encoder hands over.
        target_embedded: What enters the decoder, (B, T, d).
        encoder_maps: Weights of self-attention over the source, one (B, H, S, S) a
            layer.
        self_maps: Weights of self-attention over the target, one (B, H, T, T) a layer.
        cross_maps: Weights of cross-attention, one (B, H, T, S) a layer.
        encoder_states: The source after each layer, (B, S, d).
        decoder_states: The target after each layer, (B, T, d).
    """

    logits: Tensor
    source_embedded: Tensor
    memory: Memory
    target_embedded: Tensor
    encoder_maps: tuple[Tensor, ...]
    self_maps: tuple[Tensor, ...]
    cross_maps: tuple[Tensor, ...]
    encoder_states: tuple[Tensor, ...]
    decoder_states: tuple[Tensor, ...]


def require_vocabularies(source_vocab: int, target_vocab: int) -> None:
    """Check the sizes of two vocabularies.

    Raises:
        ValueError: If one is out of range; each holds the special tokens at least.
    """
    require_int("source_vocab", source_vocab, len(SPECIALS), MAX_VOCAB)
    require_int("target_vocab", target_vocab, len(SPECIALS), MAX_VOCAB)


def embedding(
    num_tokens: int, width: int, *, std: float, generator: torch.Generator
) -> nn.Embedding:
    """Return a table of embeddings with normal numbers.

    Args:
        num_tokens: Number of rows.
        width: Numbers in a row.
        std: Standard deviation of the numbers.
        generator: Source of the numbers.
    """
    weight = std * torch.randn(num_tokens, width, generator=generator)
    return nn.Embedding.from_pretrained(weight, freeze=False)


def check_tokens(name: str, tokens: Tensor, num_tokens: int) -> None:
    """Check that a tensor holds token numbers, (B, length), of a vocabulary.

    Raises:
        ValueError: If the shape or type does not fit, a sequence has no position, or a
            number is not below ``num_tokens``.
    """
    if tokens.ndim != 2 or tokens.shape[1] < 1 or tokens.dtype != torch.int64:
        raise RefusedError(
            f"{name} must hold int64 token numbers, (batch, length) with length >= 1, "
            f"got shape {tuple(tokens.shape)} of {tokens.dtype}"
        )
    if tokens.numel():
        low, high = (int(end) for end in tokens.aminmax())
        require_int(f"lowest token of {name}", low, 0)
        require_int(f"highest token of {name}", high, 0, num_tokens - 1)
