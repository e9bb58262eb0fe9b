"""What a recurrent encoder-decoder is made of, checked before anything is built."""

from dataclasses import dataclass

from core.checks import MAX_SEED, RefusedError, require_choice, require_int
from core.models import MAX_PARAMETERS, MAX_SEQ_LEN
from core.recurrent import MAX_HIDDEN
from core.source_memory import require_vocabularies

ATTENTIONS = ("none", "additive", "dot")
CELLS = {"gru": 3, "rnn": 1}  # rows of the weights, in hidden sizes


@dataclass(frozen=True)
class RecurrentConfig:
    """What a ``RecurrentEncoderDecoder`` is made of.

    Attributes:
        source_vocab: Number of tokens in the source vocabulary.
        target_vocab: Number of tokens in the target vocabulary, V.
        attention: ``"none"``, ``"additive"`` or ``"dot"``.
        hidden_size: Width of both hidden states and of the embeddings.
        context_size: Numbers in the context vector between the two networks, without
            attention; None means ``hidden_size``. A smaller one is squeezed out of the
            last state and widened again by a linear layer each.
        cell: ``"gru"`` or ``"rnn"``.
        max_len: Longest source and target it is meant for.
        seed: Seed of the initial weights.

    Raises:
        ValueError: If a value is out of range, ``context_size`` meets attention, or
            the model would grow too large.
    """

    source_vocab: int
    target_vocab: int
    attention: str = "none"
    hidden_size: int = 64
    context_size: int | None = None
    cell: str = "gru"
    max_len: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be built, in one sentence."""
        require_vocabularies(self.source_vocab, self.target_vocab)
        require_choice("attention", self.attention, ATTENTIONS)
        require_int("hidden_size", self.hidden_size, 1, MAX_HIDDEN // 2)
        require_int("context_size", self.context_width, 1, self.hidden_size)
        require_choice("cell", self.cell, CELLS)
        require_int("max_len", self.max_len, 1, MAX_SEQ_LEN)
        require_int("seed", self.seed, 0, MAX_SEED)
        if self.squeezes and self.attention != "none":
            raise RefusedError(
                f"context_size ({self.context_size}) below hidden_size "
                f"({self.hidden_size}) needs attention 'none', got {self.attention!r}: "
                "attention reads every state past the context vector"
            )
        if self.num_parameters > MAX_PARAMETERS:
            raise RefusedError(
                f"hidden_size ({self.hidden_size}) makes {self.num_parameters:,} "
                f"parameters; at most {MAX_PARAMETERS:,} are allowed"
            )

    @property
    def context_width(self) -> int:
        """Numbers in the context vector, with the default filled in."""
        return self.hidden_size if self.context_size is None else self.context_size

    @property
    def squeezes(self) -> bool:
        """Whether the context vector is smaller than the state it is taken from."""
        return self.context_width < self.hidden_size

    @property
    def decoder_input(self) -> int:
        """Numbers that enter the decoder at a step: the token, perhaps a context."""
        return self.hidden_size * (2 if self.attention == "additive" else 1)

    @property
    def parameters_by_part(self) -> dict[str, int]:
        """Number of learned numbers in each part, counted without building one."""
        hidden, rows = self.hidden_size, CELLS[self.cell] * self.hidden_size
        squeeze = (hidden + 1) * self.context_width
        widen = (self.context_width + 1) * hidden
        contexts = hidden * (self.attention != "none")
        return {
            "source embedding": self.source_vocab * hidden,
            "target embedding": self.target_vocab * hidden,
            "encoder": rows * (2 * hidden + 2),
            "context vector": (squeeze + widen) * self.squeezes,
            "attention": (2 * hidden + 1) * hidden * (self.attention == "additive"),
            "decoder": rows * (self.decoder_input + hidden + 2),
            "combine": (hidden + contexts + 1) * hidden,
            "output": (hidden + 1) * self.target_vocab,
        }

    @property
    def num_parameters(self) -> int:
        """Number of learned numbers, counted without building the model."""
        return sum(self.parameters_by_part.values())
