"""Positional encodings: how an order-blind layer is told where a token stands.

Sinusoids are fixed and defined at every position; a learned table is a parameter and
ends at its ``max_len``. Both are added to the tokens.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from core.checks import RefusedError, require_int, require_number
from core.initial import seeded


def sinusoidal_encoding(
    seq_len: int,
    d_model: int,
    *,
    base: float = 10_000.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the sinusoids of positions 0 to ``seq_len - 1``.

    ``PE[pos, 2i] = sin(pos / base^(2i/d_model))`` and
    ``PE[pos, 2i + 1] = cos(pos / base^(2i/d_model))``. An odd ``d_model`` has one more
    sine than cosine. Angles are computed in float64 and rounded once at the end, so
    that far positions are right too.

    Args:
        seq_len: Number of positions T; 0 gives an empty table.
        d_model: Width of a token, at least 1.
        base: Ratio of the longest wavelength, which is never quite reached, to the
            shortest; at least 1.
        dtype: Type of the result.

    Returns:
        Table ``(T, d_model)``, all values in [-1, 1].

    Raises:
        ValueError: If a size is too small or ``base`` is below 1.

    Reference:
        Vaswani et al. 2017, section 3.5, arXiv:1706.03762.
    """
    require_int("seq_len", seq_len, 0)
    position = torch.arange(seq_len, dtype=torch.float64)
    angles = position[:, None] * angular_frequencies(d_model, base=base)
    table = torch.empty_like(angles)  # (T, d_model)
    table[:, 0::2] = angles[:, 0::2].sin()
    table[:, 1::2] = angles[:, 1::2].cos()
    return table.to(dtype)


def angular_frequencies(d_model: int, *, base: float = 10_000.0) -> Tensor:
    """Return how fast each dimension turns, in radians a position.

    ``ω[2i] = ω[2i + 1] = base^(-2i/d_model)``: a sine and its cosine share one.

    Args:
        d_model: Width of a token, at least 1.
        base: Ratio of the longest wavelength to the shortest, at least 1.

    Returns:
        Frequencies ``(d_model,)`` in float64, 1 first and falling.

    Raises:
        ValueError: If ``d_model`` or ``base`` is below 1.
    """
    require_int("d_model", d_model, 1)
    require_number("base", base, 1.0)
    pair = torch.arange(d_model) // 2  # 0 0 1 1 2 2 ...
    return float(base) ** (-2.0 * pair.double() / d_model)


def wavelengths(d_model: int, *, base: float = 10_000.0) -> Tensor:
    """Return after how many positions each dimension repeats.

    ``λ[2i] = λ[2i + 1] = 2π · base^(2i/d_model)``.

    Args:
        d_model: Width of a token, at least 1.
        base: Ratio of the longest wavelength to the shortest, at least 1.

    Returns:
        Wavelengths ``(d_model,)`` in positions, float64, 2π first and growing.

    Raises:
        ValueError: If ``d_model`` or ``base`` is below 1.
    """
    return 2 * math.pi / angular_frequencies(d_model, base=base)


def shift_matrix(
    offset: int,
    d_model: int,
    *,
    base: float = 10_000.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the matrix that moves every sinusoid on by ``offset`` positions.

    ``PE[pos + offset] = PE[pos] @ shift_matrix.T`` at every ``pos``. Each pair of a
    sine and its cosine turns by the angle ``ω · offset``, whatever ``pos`` is:
    ``[[cos, sin], [-sin, cos]]``. In an odd ``d_model`` the last sine has no cosine to
    turn with, and no matrix can shift it; its entry is ``cos(ω · offset)``, the best
    one over many positions, and ``measure_shift`` tells by how much it misses.

    Args:
        offset: How many positions to move on; negative moves back.
        d_model: Width of a token, at least 1; even for an exact shift.
        base: The base of the encoding, at least 1.
        dtype: Type of the result; it is computed in float64.

    Returns:
        Rotation ``(d_model, d_model)``, block diagonal. It is orthogonal where
        ``d_model`` is even.

    Raises:
        ValueError: If ``offset`` is not a whole number, or a size is too small.

    Reference:
        Vaswani et al. 2017, section 3.5, arXiv:1706.03762.
    """
    _require_offset(offset)
    angle = offset * angular_frequencies(d_model, base=base)
    sine_row = torch.arange(0, d_model - 1, 2)  # the sines that have a cosine
    matrix = torch.diag(angle.cos())
    matrix[sine_row, sine_row + 1] = angle[sine_row].sin()
    matrix[sine_row + 1, sine_row] = -angle[sine_row].sin()
    return matrix.to(dtype)


class Shift(NamedTuple):
    """A shift of the sinusoids, and by how much it misses.

    Attributes:
        matrix: The linear map, ``(d_model, d_model)``.
        angles: How far each dimension turns, in radians, ``(d_model,)``.
        missed: Largest miss of each dimension over the positions compared,
            ``(d_model,)``: rounding alone, but for the last sine of an odd width.
    """

    matrix: Tensor
    angles: Tensor
    missed: Tensor


def measure_shift(
    offset: int,
    d_model: int,
    *,
    num_positions: int,
    base: float = 10_000.0,
    dtype: torch.dtype = torch.float32,
) -> Shift:
    """Return the shift by ``offset`` and how far it lands from the encodings there.

    ``missed = max over pos of |PE[pos + offset] - PE[pos] @ shift_matrix.T|``.

    Args:
        offset: How many positions to move on; negative moves back.
        d_model: Width of a token, at least 1.
        num_positions: How many positions to compare, at least 1.
        base: The base of the encoding, at least 1.
        dtype: Type in which table and matrix are held and multiplied.

    Raises:
        ValueError: If an argument is not a whole number or too small.
    """
    _require_offset(offset)
    require_int("num_positions", num_positions, 1)
    length = num_positions + abs(offset)
    table = sinusoidal_encoding(length, d_model, base=base, dtype=dtype)
    early, late = table[:num_positions], table[abs(offset) :]
    start, goal = (early, late) if offset >= 0 else (late, early)
    matrix = shift_matrix(offset, d_model, base=base, dtype=dtype)
    angles = offset * angular_frequencies(d_model, base=base)
    return Shift(matrix, angles, missed=(start @ matrix.T - goal).abs().amax(dim=0))


def position_similarity(encoding: Tensor) -> Tensor:
    """Return the dot product of every position with every other.

    ``PE · PEᵀ``. For sinusoids of an even ``d_model`` it depends on the distance
    alone: ``Σ cos(ω_i · (t - s))``, which is ``d_model / 2`` on the diagonal.

    Args:
        encoding: Table of positions ``(T, d_model)``.

    Returns:
        Symmetric matrix ``(T, T)``.

    Raises:
        ValueError: If ``encoding`` is not a matrix.
    """
    if encoding.dim() != 2:
        shape = tuple(encoding.shape)
        raise RefusedError(f"encoding must be (T, d_model), got shape {shape}")
    return encoding @ encoding.T


def binary_counter(num_positions: int, bits: int) -> Tensor:
    """Return the positions as binary numbers, the fastest digit first.

    ``digit[pos, i] = ⌊pos / 2^i⌋ mod 2``. A digit turns over after ``2^(i + 1)``
    positions, as dimension ``2i`` of the sinusoids does after its wavelength: fast on
    the left, slow on the right. Past ``2^bits`` the count starts again.

    Args:
        num_positions: Number of positions T; 0 gives an empty table.
        bits: Number of digits, between 1 and 62.

    Returns:
        Table ``(T, bits)`` of the whole numbers 0 and 1.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_int("num_positions", num_positions, 0)
    require_int("bits", bits, 1, 62)
    position = torch.arange(num_positions)
    return (position[:, None] >> torch.arange(bits)) & 1


class SinusoidalPositionalEncoding(nn.Module):
    """Add the sinusoids to the tokens; nothing here is learned.

    Args:
        max_len: Positions held ready, at least 1; longer inputs still work.
        d_model: Width of a token, at least 1.
        base: Ratio of the longest wavelength to the shortest, at least 1.

    Raises:
        ValueError: If an argument is below 1.

    Reference:
        Vaswani et al. 2017, section 3.5, arXiv:1706.03762.
    """

    def __init__(self, max_len: int, d_model: int, *, base: float = 10_000.0) -> None:
        """Compute the table of the first ``max_len`` positions."""
        super().__init__()
        self.max_len = require_int("max_len", max_len, 1)
        self.d_model = d_model
        self.base = base
        table = sinusoidal_encoding(max_len, d_model, base=base)
        self.register_buffer("table", table, persistent=False)
        self.table: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x + PE``.

        Args:
            x: Tokens ``(B, T, d_model)``; T may exceed ``max_len``.

        Returns:
            Tokens that know their position, ``(B, T, d_model)``.

        Raises:
            ValueError: If the width of ``x`` is not ``d_model``.
        """
        seq_len = _checked_length(x, self.d_model)
        table = self.table
        if seq_len > self.max_len:  # the formula goes on where the table ends
            table = sinusoidal_encoding(seq_len, self.d_model, base=self.base)
        return x + table[:seq_len].to(x)


class LearnedPositionalEncoding(nn.Module):
    """Add a learned vector for each position; the table ends at ``max_len``.

    The vectors start as small normal numbers, standard deviation 0.02.

    Args:
        max_len: Number of positions, at least 1.
        d_model: Width of a token, at least 1.
        generator: Source of the first vectors; None means a fresh one seeded 0.

    Raises:
        ValueError: If an argument is below 1.

    Reference:
        Devlin et al. 2019, BERT, arXiv:1810.04805 (the initial 0.02).
    """

    def __init__(
        self,
        max_len: int,
        d_model: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        """Draw the first vectors."""
        super().__init__()
        self.max_len = require_int("max_len", max_len, 1)
        self.d_model = require_int("d_model", d_model, 1)
        noise = torch.randn(max_len, d_model, generator=seeded(generator))
        self.table = nn.Parameter(0.02 * noise)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` plus the learned vector of each position.

        Args:
            x: Tokens ``(B, T, d_model)``, T at most ``max_len``.

        Returns:
            Tokens that know their position, ``(B, T, d_model)``.

        Raises:
            ValueError: If T exceeds ``max_len`` or the width is not ``d_model``.
        """
        seq_len = _checked_length(x, self.d_model)
        if seq_len > self.max_len:
            raise RefusedError(
                f"seq_len ({seq_len}) must be at most max_len ({self.max_len}): "
                "a learned table has no vector for later positions"
            )
        return x + self.table[:seq_len]


def _checked_length(x: Tensor, d_model: int) -> int:
    """Return T of ``x`` ``(..., T, d_model)``."""
    if x.dim() < 2 or x.shape[-1] != d_model:
        shape = tuple(x.shape)
        raise RefusedError(f"x must be (B, T, d_model = {d_model}), got shape {shape}")
    return x.shape[-2]


def _require_offset(offset: object) -> None:
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise RefusedError(f"offset must be a whole number, got {offset!r}")
