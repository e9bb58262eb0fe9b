"""One walk through a block, from point to point, with what passes there."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.blocks import DecoderBlock, EncoderBlock
from core.checks import require_int
from core.initial import generator_from
from core.masks import causal_mask
from core.models import MAX_D_MODEL, MAX_LAYERS

MAX_TOKENS = 64


class Point(NamedTuple):
    """What leaves one part of the block.

    Attributes:
        name: The part: ``"x"``, ``"attention_norm"``, ``"attention"``,
            ``"attention_sum"``, ``"feed_forward_norm"``, ``"expand"``, ``"contract"``,
            ``"feed_forward_sum"`` or ``"last_norm"``; of a decoder block see
        ``walk_decoder_block``.
        value: The tokens there, (T, width).
    """

    name: str
    value: Tensor

    @property
    def rms(self) -> float:
        """Root mean square of all entries, ``√(Σ x² / count)``."""
        return float(self.value.square().mean().sqrt())


class Walk(NamedTuple):
    """One block of a stack and the points of it, in the order of the computation.

    Attributes:
        block: The block; its weights are random.
        points: From its input to its output; under pre-norm also what the norm after
            the last block of a stack makes of it.
    """

    block: EncoderBlock
    points: list[Point]


def size(value: float) -> str:
    """Return a root mean square with two decimals, or as a power of ten if smaller."""
    return f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.0e}"


def walk_block(block: EncoderBlock, x: Tensor) -> list[Point]:
    """Return what passes at every point of a block, worked with its own parts.

    Args:
        block: The block, at rest: nothing is dropped.
        x: Tokens, (T, d_model).

    Returns:
        The points from ``"x"`` to the output, which equals ``block(x)``. Where there
        are no shortcuts there are no sums.
    """
    order = _pre_norm if block.norm_first else _post_norm
    with torch.no_grad():
        return [Point("x", x), *order(block, x)]


def walk_decoder_block(block: DecoderBlock, x: Tensor, memory: Tensor) -> list[Point]:
    """Return what passes at every point of a decoder block, worked with its own parts.

    Args:
        block: The block, at rest: nothing is dropped.
        x: Target tokens, (T, d_model); none reads a later one.
        memory: What the encoder hands over, (S, d_model); all of it may be read.

    Returns:
        The points from ``"x"`` to the output: for ``"self_attention"``,
        ``"cross_attention"`` and ``"feed_forward"`` the part itself, its ``"_norm"``
        and its ``"_sum"``, in the order of the computation.
    """
    points = [Point("x", x)]
    with torch.no_grad():
        for name in ("self_attention", "cross_attention", "feed_forward"):
            points += _decoder_part(block, name, points[-1].value, memory)
    return points


def walk_stack(
    *,
    d_model: int,
    num_heads: int,
    seq_len: int,
    number: int,
    norm_first: bool,
    residual: bool,
    seed: int,
) -> Walk:
    """Send random tokens through a stack, and walk through one of its blocks.

    The same seed gives the same tokens and the same weights, whatever the order of the
    norms and with or without shortcuts.

    Args:
        d_model: Width of the tokens.
        num_heads: Number of heads; must divide ``d_model``.
        seq_len: Number of tokens T, 1 to ``MAX_TOKENS``.
        number: Which block to walk through, from 1, at most ``MAX_LAYERS``.
        norm_first: True for pre-norm, False for post-norm.
        residual: Whether there are shortcuts.
        seed: Seed of tokens and weights.

    Raises:
        ValueError: If a number is out of range.
    """
    require_int("d_model", d_model, 1, MAX_D_MODEL)
    require_int("seq_len", seq_len, 1, MAX_TOKENS)
    require_int("number", number, 1, MAX_LAYERS)
    source = generator_from(seed)
    x = torch.randn(seq_len, d_model, generator=source)
    for _ in range(number):
        block = EncoderBlock(
            d_model,
            num_heads,
            norm_first=norm_first,
            residual=residual,
            generator=source,
        ).eval()
        points = walk_block(block, x)
        x = points[-1].value
    if norm_first:
        last = nn.LayerNorm(d_model)(x).detach()
        points.append(Point("last_norm", last))
    return Walk(block, points)


def _pre_norm(block: EncoderBlock, x: Tensor) -> list[Point]:
    normed = block.attention_norm(x)
    attended = _attend(block, normed)
    between = x + attended if block.residual else attended
    normed_again = block.feed_forward_norm(between)
    hidden, fed = _feed_forward(block, normed_again)
    points = [Point("attention_norm", normed), Point("attention", attended)]
    if block.residual:
        points.append(Point("attention_sum", between))
    points += [Point("feed_forward_norm", normed_again), Point("expand", hidden)]
    points.append(Point("contract", fed))
    if block.residual:
        points.append(Point("feed_forward_sum", between + fed))
    return points


def _post_norm(block: EncoderBlock, x: Tensor) -> list[Point]:
    attended = _attend(block, x)
    points, summed = [Point("attention", attended)], attended
    if block.residual:
        summed = x + attended
        points.append(Point("attention_sum", summed))
    normed = block.attention_norm(summed)
    hidden, fed = _feed_forward(block, normed)
    points += [Point("attention_norm", normed), Point("expand", hidden)]
    points.append(Point("contract", fed))
    if block.residual:
        fed = normed + fed
        points.append(Point("feed_forward_sum", fed))
    return [*points, Point("feed_forward_norm", block.feed_forward_norm(fed))]


def _decoder_part(
    block: DecoderBlock, name: str, x: Tensor, memory: Tensor
) -> list[Point]:
    norm = getattr(block, f"{name}_norm")
    entered = norm(x) if block.norm_first else x
    given = _given_by(block, name, entered[None], memory[None])[0]
    added = [Point(name, given), Point(f"{name}_sum", x + given)]
    if block.norm_first:
        return [Point(f"{name}_norm", entered), *added]
    return [*added, Point(f"{name}_norm", norm(x + given))]


def _given_by(block: DecoderBlock, name: str, x: Tensor, memory: Tensor) -> Tensor:
    if name == "self_attention":
        return block.self_attention(x, x, x, mask=causal_mask(x.shape[1]))
    if name == "cross_attention":
        return block.cross_attention(x, memory, memory)
    return block.feed_forward(x)


def _attend(block: EncoderBlock, x: Tensor) -> Tensor:
    batch = x[None]
    return block.attention(batch, batch, batch)[0]


def _feed_forward(block: EncoderBlock, x: Tensor) -> tuple[Tensor, Tensor]:
    hidden = F.gelu(block.feed_forward.expand(x))  # (T, d_ff)
    return hidden, block.feed_forward.contract(hidden)


def change_when_idle(*, norm_first: bool, residual: bool, seed: int = 0) -> float:
    """Return how far a block moves its tokens when its two parts give only zeros.

    ``W_O`` and ``W_2`` are set to 0, so that attention and feed-forward add nothing.

    Args:
        norm_first: True for pre-norm, False for post-norm.
        residual: Whether there are shortcuts.
        seed: Seed of the tokens.

    Returns:
        The largest distance of an output from its input; exactly 0 where the tokens
        pass as they came.
    """
    block = EncoderBlock(8, 2, norm_first=norm_first, residual=residual).eval()
    x = 1 + 2 * torch.randn(1, 5, 8, generator=generator_from(seed))
    with torch.no_grad():
        for part in (block.attention.out_proj, block.feed_forward.contract):
            part.weight.zero_()
            part.bias.zero_()
        return float((block(x) - x).abs().max())
