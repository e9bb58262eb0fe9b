"""What the pictures of positional encodings say in numbers, one sentence a picture.

Each sentence is made from the tensors that are drawn. It says what was measured and
nothing about what a trained model would do.
"""

from collections.abc import Sequence
from enum import StrEnum

from torch import Tensor

from core.positional import Shift
from core.probes import OrderProbe, PermutationDistances

ROUNDING = 1e-6  # a distance below this is a rounding error
_SIMILARITY_ENDS = (1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0, 64.0)


def encoding_sentence(table: Tensor, waves: Tensor) -> str:
    """Say how position 1 starts, and how fast first and last dimension turn.

    Args:
        table: Sinusoids, ``(T, d_model)``, T at least 1.
        waves: Wavelengths in positions, ``(d_model,)``.
    """
    position = min(1, len(table) - 1)
    numbers = " ".join(_sign(f"{value:#.5g}") for value in table[position, :4].tolist())
    verb = "begins" if len(waves) > 4 else "is"
    return (
        f"Position {position} {verb} {numbers}. {wavelength_sentence(waves, [0, -1])}"
    )


def wavelength_sentence(waves: Tensor, dimensions: Sequence[int]) -> str:
    """Say after how many positions each of the named dimensions repeats.

    Args:
        waves: Wavelengths in positions, ``(d_model,)``.
        dimensions: Which of them, at least one; a negative one counts from the end.
    """
    named = dict.fromkeys(range(len(waves))[index] for index in dimensions)
    parts = [
        f"dimension {index} every {_count(float(waves[index]))}" for index in named
    ]
    first, *rest = parts
    first = first.replace(" every ", " repeats every ").capitalize() + " positions"
    return ", ".join([first, *rest]) + "."


def similarity_sentence(similarity: Tensor, position: int) -> str:
    """Say what one position has with itself, its neighbour and the farthest position.

    Args:
        similarity: ``PE · PEᵀ``, ``(T, T)``.
        position: Row looked at, between 0 and T - 1.
    """
    row, length = similarity[position], len(similarity)
    near = position + 1 if position + 1 < length else max(position - 1, 0)
    far = 0 if position > length // 2 else length - 1
    said = [f"{_fixed(row[position])} with itself"]
    said += [
        f"{_fixed(row[other])} with position {other}"
        for other in dict.fromkeys([near, far])
        if other != position
    ]
    return f"The dot product of position {position} is {', '.join(said)}."


def similarity_ends(similarity: Tensor) -> tuple[float, float]:
    """Return the ends of an axis for dot products: one of few, so it seldom jumps.

    Args:
        similarity: ``PE · PEᵀ``, ``(T, T)``, of a width of at most 128.
    """
    largest = float(similarity.abs().max())
    end = next(end for end in _SIMILARITY_ENDS if end >= largest - 1e-3)
    return (0.0 if float(similarity.min()) >= 0 else -end), end


def shift_sentence(shift: Shift, offset: int, num_positions: int) -> str:
    """Say by how much the one matrix of a shift misses.

    Args:
        shift: The shift and its misses.
        offset: How many positions it moves on; negative moves back.
        num_positions: How many positions were compared.
    """
    width = len(shift.missed)
    way = f"on by {offset}" if offset >= 0 else f"back by {-offset}"
    said = f"One matrix moves all {num_positions} positions {way}"
    last = float(shift.missed[-1])
    if width % 2 == 0 or last == 0:
        return f"{said} {_rounding(float(shift.missed.max()))}."
    if width == 1:
        return (
            "A sine without its cosine cannot be shifted: the best factor, "
            f"{_fixed(shift.matrix[0, 0])}, misses by up to {last:.2g}."
        )
    return (
        f"{said}, but for dimension {width - 1}: a sine without its cosine, it misses "
        f"by up to {last:.2g}."
    )


def shift_title(width: int, drawn: int) -> str:
    """Return the title of the matrix of a shift, of which a corner is drawn.

    Args:
        width: Dimensions of the encoding.
        drawn: Dimensions in the picture.
    """
    if width == 1:
        return "No matrix shifts a lone sine: the best factor"
    what = "every dimension but the last" if width % 2 else "every position"
    corner = f", its first {drawn} of {width} dimensions" if drawn < width else ""
    return f"The matrix that shifts {what}{corner}"


def shift_numbers(shift: Shift) -> dict[str, str]:
    """Return the numbers of a shift by name: angles of turning, largest misses."""
    width = len(shift.missed)
    paired = width - width % 2
    numbers = {"Dimension 0 turns by": f"{_sign(f'{float(shift.angles[0]):.2f}')} rad"}
    if paired:
        numbers["Miss, sine-cosine pairs"] = f"{float(shift.missed[:paired].max()):.1e}"
    if width % 2:
        numbers["Miss, lone sine"] = f"{float(shift.missed[-1]):.2g}"
    return numbers


def table_sentence(held: int, num_tokens: int) -> str:
    """Say how many of the tokens get a vector from a table."""
    return f"{held} of {num_tokens} tokens get a vector."


def overflow_sentence(max_len: int, num_tokens: int) -> str:
    """Say why a learned table refuses more tokens than it has positions."""
    return (
        f"A table of {max_len} position{'s' * (max_len > 1)}, {num_tokens} tokens: the "
        "layer refuses them. "
        "No vector was ever learned for a later position; the formula of the sinusoids "
        "has one for each."
    )


def order_sentence(probe: OrderProbe) -> str:
    """Say what a new order does to the outputs, without and with positions."""
    plain = probe.plain
    miss = float(plain.after_undoing.max())
    moved = float(probe.placed.after_undoing.max())
    if not follows(plain):
        return f"Without positions the output of a token moves by up to {miss:.0e}."
    if stays(plain):
        apart = f"; they tell equal words apart by up to {moved:.2f}" if moved else ""
        return (
            "Each place keeps its word, so every output stays, without and with "
            f"sinusoids{apart}."
        )
    changed = int((plain.moved > ROUNDING).sum())
    return (
        f"Without positions the output changes at {changed} of {plain.moved.numel()} "
        f"places: each follows its token, and the mean stays {_rounding(miss)}. "
        f"With sinusoids the output of a token moves by up to {moved:.2f}."
    )


def order_numbers(probe: OrderProbe) -> dict[str, dict[str, float]]:
    """Return the largest distances of a new order, by what is compared and by case."""
    cases = {"no positions": probe.plain, "sinusoids added": probe.placed}
    compared = {
        "output at the same place": "moved",
        "output of the same token": "after_undoing",
        "mean of all outputs": "pooled",
    }
    return {
        label: {name: float(getattr(case, field).max()) for name, case in cases.items()}
        for label, field in compared.items()
    }


class OrderFate(StrEnum):
    """What a new order of the tokens does to the outputs."""

    FOLLOW = "each output follows its token"
    STAY = "every output stays at its place"
    CHANGE = "outputs change"


def fate_of_outputs(distances: PermutationDistances) -> OrderFate:
    """Return what became of the outputs; one that stays put is not said to follow."""
    if not follows(distances):
        return OrderFate.CHANGE
    return OrderFate.STAY if stays(distances) else OrderFate.FOLLOW


def swap_sentence(plain: PermutationDistances) -> str:
    """Say how far outputs moved, each beside its token and at its place."""
    return (
        f"The output of a word moved {float(plain.after_undoing.max()):.0e} at most; "
        f"at one place, outputs moved by up to {float(plain.moved.max()):.2f}."
    )


def leak_sentence(causal: PermutationDistances) -> str:
    """Say how far a causal mask alone moved the output of a token."""
    farthest = float(causal.after_undoing.max())
    return f"Under the mask the output of a token moved by up to {farthest:.2g}."


def follows(distances: PermutationDistances) -> bool:
    """Return whether every output went exactly where its token went."""
    return float(distances.after_undoing.max()) < ROUNDING


def stays(distances: PermutationDistances) -> bool:
    """Return whether every output is what it was at its place."""
    return float(distances.moved.max()) < ROUNDING


def counter_sentence(digits: Tensor, table: Tensor, position: int) -> str:
    """Say the digits and the first sines of one position.

    Args:
        digits: Binary counter, ``(T, bits)``, fastest digit first.
        table: Sinusoids of the same positions, ``(T, d_model)``.
        position: Row looked at, between 0 and T - 1.
    """
    bits = " ".join(str(digit) for digit in digits[position].tolist())
    sines = table[position, 0::2][: digits.shape[1]]
    values = " ".join(_fixed(value) for value in sines)
    verb = "sine is" if len(sines) == 1 else "first sines are"
    return (
        f"Position {position} is {bits} in binary, fastest digit first; its {verb} "
        f"{values}."
    )


def _rounding(miss: float) -> str:
    return f"(rounding: {miss:.0e})" if miss else "exactly"


def _count(positions: float) -> str:
    return f"{positions:.3g}" if positions < 1000 else f"{positions:,.0f}"


def _fixed(value: Tensor) -> str:
    return _sign(f"{round(float(value), 2) + 0.0:.2f}")  # never −0.00


def _sign(number: str) -> str:
    return number.replace("-", "−")
