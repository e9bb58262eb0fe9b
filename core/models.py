"""The classifier of the course lab: a Transformer encoder that reads a sequence."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from core.blocks import EncoderBlock
from core.checks import (
    MAX_SEED,
    RefusedError,
    require_choice,
    require_divisible,
    require_int,
    require_number,
)
from core.dropout import MAX_DROPOUT
from core.initial import generator_from, linear
from core.masks import causal_mask
from core.positional import LearnedPositionalEncoding, SinusoidalPositionalEncoding

POSITIONAL = ("sinusoidal", "learned", "none")
READOUTS = ("cls", "mean", "last", "first")

MAX_SEQ_LEN = 1024
MAX_D_MODEL = 512
MAX_D_FF = 2048
MAX_LAYERS = 24
MAX_PARAMETERS = 10_000_000

# Measured on two CPU cores with large batches: what one adds to a training step.
SECONDS_PER_WEIGHT = 1.6e-8
SECONDS_PER_ACTIVATION = 1e-8
SECONDS_PER_PRODUCT = 3e-11
FORWARD_SHARE = 0.2

_CLS_STD = 0.02
_POSITIONS_READ = {
    "cls": slice(0, 1),
    "mean": None,
    "last": slice(-1, None),
    "first": slice(0, 1),
}


@dataclass(frozen=True)
class ClassifierConfig:
    """What a ``TransformerClassifier`` is made of; the defaults are the lab's.

    Attributes:
        input_size: Numbers a time step brings.
        seq_len: Length of the sequences it is made for, without the CLS token.
        d_model: Width of the tokens.
        num_heads: Number of heads; must divide ``d_model``.
        num_layers: Number of encoder blocks.
        d_ff: Width of the feed-forward networks; None means ``4 * d_model``.
        dropout: Probability of dropping an entry while training.
        positional: ``"sinusoidal"``, ``"learned"`` or ``"none"``.
        causal: Whether a position may attend to itself and earlier ones alone.
        readout: What the answer is read from: a ``"cls"`` token before the sequence,
            the ``"mean"`` over all positions, the ``"last"`` or the ``"first"``.
        norm_first: True for pre-norm blocks, False for post-norm.
        residual: Whether attention and feed-forward stand beside a shortcut.
        seed: Seed of the initial weights.

    Raises:
        ValueError: If a value is out of range, or the model would grow too large.
    """

    input_size: int = 1
    seq_len: int = 60
    d_model: int = 32
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int | None = None
    dropout: float = 0.1
    positional: str = "sinusoidal"
    causal: bool = False
    readout: str = "cls"
    norm_first: bool = True
    residual: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be built, in one sentence."""
        require_int("input_size", self.input_size, 1, MAX_D_MODEL)
        require_int("seq_len", self.seq_len, 1, MAX_SEQ_LEN)
        require_int("d_model", self.d_model, 1, MAX_D_MODEL)
        require_int("num_heads", self.num_heads, 1, MAX_D_MODEL)
        require_divisible("d_model", self.d_model, "num_heads", self.num_heads)
        require_int("num_layers", self.num_layers, 1, MAX_LAYERS)
        require_int("d_ff", self.ff_width, 1, MAX_D_FF)
        require_number("dropout", self.dropout, 0, MAX_DROPOUT)
        require_choice("positional", self.positional, POSITIONAL)
        require_choice("readout", self.readout, READOUTS)
        require_int("seed", self.seed, 0, MAX_SEED)
        require_few_parameters(
            self.num_layers, self.d_model, self.ff_width, self.num_parameters
        )

    @property
    def ff_width(self) -> int:
        """Width of the feed-forward networks, with the default filled in."""
        return 4 * self.d_model if self.d_ff is None else self.d_ff

    @property
    def num_positions(self) -> int:
        """Positions the blocks see: the sequence, and the CLS token if there is one."""
        return self.seq_len + (self.readout == "cls")

    @property
    def positions_read(self) -> slice | None:
        """Positions that the answer is read from; None means all of them."""
        return _POSITIONS_READ[self.readout]

    @property
    def parameters_by_part(self) -> dict[str, int]:
        """Number of learned numbers in each part, counted without building the model.

        The parts of the blocks are counted over all layers.
        """
        d_model, d_ff, layers = self.d_model, self.ff_width, self.num_layers
        table = self.num_positions * d_model * (self.positional == "learned")
        return {
            "embedding": (self.input_size + 1) * d_model,
            "CLS token": d_model * (self.readout == "cls"),
            "positions": table,
            "attention: W_Q, W_K, W_V": layers * 3 * (d_model + 1) * d_model,
            "attention: W_O": layers * (d_model + 1) * d_model,
            "feed-forward: W_1": layers * (d_model + 1) * d_ff,
            "feed-forward: W_2": layers * (d_ff + 1) * d_model,
            "norms of the blocks": layers * 4 * d_model,
            "last norm": 2 * d_model,
            "head": d_model + 1,
        }

    @property
    def num_parameters(self) -> int:
        """Number of learned numbers, counted without building the model."""
        return sum(self.parameters_by_part.values())

    @property
    def step_seconds(self) -> float:
        """About how long one sequence of a training step keeps two CPU cores busy."""
        rows_of_last = self.num_positions if self.readout == "mean" else 1
        rows = (self.num_layers - 1) * self.num_positions + rows_of_last
        weights = self.num_heads * rows * self.num_positions
        activations = rows * (self.d_model + self.ff_width)
        products = self.num_positions * self.num_parameters
        return (
            SECONDS_PER_WEIGHT * weights
            + SECONDS_PER_ACTIVATION * activations
            + SECONDS_PER_PRODUCT * products
        )

    @property
    def test_seconds(self) -> float:
        """About how long one sequence of an evaluation keeps two CPU cores busy."""
        return FORWARD_SHARE * self.step_seconds


class TransformerClassifier(nn.Module):
    """Embed, add positions, run the blocks, read one vector out, classify it.

    With the readout ``"cls"`` a learned token stands at position 0. Under a causal
    mask that token may attend to itself alone, so a causal model with this readout
    answers every sequence alike; ``"last"`` and ``"mean"`` read what came before.

    Reference:
        Devlin et al., 2019, BERT, section 3 (the CLS token), arXiv:1810.04805.
    """

    def __init__(self, config: ClassifierConfig) -> None:
        """Draw all initial weights from one generator seeded ``config.seed``.

        Args:
            config: Sizes and choices, already checked.
        """
        super().__init__()
        self.config = config
        source = generator_from(config.seed)
        d_model = config.d_model
        self.embed = linear(config.input_size, d_model, generator=source)
        self.cls: nn.Parameter | None = None
        if config.readout == "cls":
            noise = torch.randn(1, 1, d_model, generator=source)
            self.cls = nn.Parameter(_CLS_STD * noise)
        self.positions = _positional_encoding(config, source)
        self.blocks = nn.ModuleList(
            EncoderBlock(
                d_model,
                config.num_heads,
                d_ff=config.ff_width,
                dropout=config.dropout,
                norm_first=config.norm_first,
                residual=config.residual,
                generator=source,
            )
            for _ in range(config.num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = linear(d_model, 1, generator=source)

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a sequence; above 0 means class 1.

        The last block computes only the position that is read out. The others reach
        the answer as its keys and values, so nothing is lost.

        Args:
            x: Sequences, (B, T, input_size). T may differ from ``seq_len`` unless the
                positions are learned and T is larger.

        Returns:
            Logits, (B, 1).

        Raises:
            ValueError: If the shape does not fit, or T outruns the learned positions.
        """
        tokens = self.tokens_of(x)  # (B, T, d_model), T with the CLS token
        mask = self.mask_of(tokens)
        *first, last = self.blocks
        for block in first:
            tokens = block(tokens, mask=mask)
        return self.answer(
            last(tokens, mask=mask, positions=self.config.positions_read)
        )

    def attention_maps(self, x: Tensor) -> list[Tensor]:
        """Return the weights of every layer and head: the explained path.

        Args:
            x: Sequences, (B, T, input_size).

        Returns:
            One (B, H, T, T) a layer; T counts the CLS token, at position 0, if there is
            one. Rows are queries, columns keys.

        Raises:
            ValueError: As in ``forward``.
        """
        tokens = self.tokens_of(x)
        mask = self.mask_of(tokens)
        maps = []
        for block in self.blocks:
            attended = block.attend(tokens, mask=mask)  # type: ignore[operator]
            tokens = attended.output
            maps.append(attended.attn_weights)
        return maps

    def readout_rows(self, x: Tensor) -> Tensor:
        """Return what the readout attends to, in every layer and head.

        The row of the CLS token, of the last or of the first position; for the mean
        readout the mean over all queries.

        Args:
            x: Sequences, (B, T, input_size).

        Returns:
            Weights (B, num_layers, H, S), each row summing to 1.

        Raises:
            ValueError: As in ``forward``.
        """
        read = self.config.positions_read or slice(None)
        rows = [weights[:, :, read].mean(dim=2) for weights in self.attention_maps(x)]
        return torch.stack(rows, dim=1)

    def tokens_of(self, x: Tensor) -> Tensor:
        """Return what enters the first block: embedded, with CLS and positions.

        Args:
            x: Sequences, (B, T, input_size).

        Returns:
            (B, T, d_model), T with the CLS token.

        Raises:
            ValueError: As in ``forward``.
        """
        if x.ndim != 3 or x.shape[-1] != self.config.input_size or x.shape[1] < 1:
            raise RefusedError(
                f"x {tuple(x.shape)} must have shape (batch, length, input_size) with "
                f"length >= 1 and input_size = {self.config.input_size}"
            )
        tokens = self.embed(x)  # (B, T, d_model)
        if self.cls is not None:
            tokens = torch.cat([self.cls.expand(len(x), -1, -1), tokens], dim=1)
        return self.positions(tokens)

    def mask_of(self, tokens: Tensor) -> Tensor | None:
        """Return the mask of the blocks, (T, T), True = may attend; None hides none."""
        if not self.config.causal:
            return None
        return causal_mask(tokens.shape[1], device=tokens.device)

    def answer(self, read: Tensor) -> Tensor:
        """Return the logits, (B, 1), from the positions read, (B, T_read, d_model)."""
        return self.head(self.norm(read).mean(dim=1))


def require_few_parameters(
    num_layers: int, d_model: int, d_ff: int, num_parameters: int
) -> None:
    """Refuse a model of blocks that would grow too large.

    Raises:
        ValueError: If it has more than ``MAX_PARAMETERS`` parameters.
    """
    if num_parameters > MAX_PARAMETERS:
        raise RefusedError(
            f"num_layers ({num_layers}), d_model ({d_model}) and d_ff ({d_ff}) make "
            f"{num_parameters:,} parameters; at most {MAX_PARAMETERS:,} are allowed"
        )


def _positional_encoding(
    config: ClassifierConfig, generator: torch.Generator
) -> nn.Module:
    if config.positional == "sinusoidal":
        return SinusoidalPositionalEncoding(config.num_positions, config.d_model)
    if config.positional == "learned":
        return LearnedPositionalEncoding(
            config.num_positions, config.d_model, generator=generator
        )
    return nn.Identity()
