"""How something measured grows with length: its power, and where two curves cross."""

import math
import statistics
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

_FEWEST = 3  # points of a fit
_SETTLED = 0.25  # local exponents that differ less belong to one power
_BEND = 0.5  # slopes that differ more have not settled
_WIDER = 1.3  # how much longer a narrow recurrence may take than a wide one
_WIDER_HEADS = 2.0  # of attention, whose kernel is really slower for very narrow heads
_STEEPEST = 1.4  # local exponent of a recurrence, within the range of its fit
_FARTHEST = 8  # times the longest length that fits are carried on to


class Curve(NamedTuple):
    """Seconds or bytes against length, lengths ascending."""

    lengths: tuple[int, ...]
    values: tuple[float, ...]


class Fit(NamedTuple):
    """``seconds = coefficient · n ** exponent`` over the longest lengths.

    Attributes:
        exponent: Slope on logarithmic axes.
        coefficient: Seconds at n = 1, if the power held there.
        low: Shortest length of the fit.
        high: Longest length of the fit.
    """

    exponent: float
    coefficient: float
    low: int
    high: int

    def at(self, seq_len: float) -> float:
        """Return the fitted seconds at a length."""
        return self.coefficient * seq_len**self.exponent


class Crossing(NamedTuple):
    """Where attention's time passes the recurrence's.

    Attributes:
        seq_len: The length.
        measured: Whether it lies among the measured lengths; if not, the fits were
            carried on to it.
    """

    seq_len: float
    measured: bool


def local_exponents(curve: Curve) -> list[float]:
    """Return the slope on logarithmic axes from each length to the next."""
    steps = pairwise(zip(*curve, strict=True))
    return [math.log(t2 / t1) / math.log(n2 / n1) for (n1, t1), (n2, t2) in steps]


def fit_exponent(curve: Curve) -> Fit | None:
    """Fit a power of the length to the longest lengths, where the power has settled.

    The fit starts from the three longest lengths and takes in shorter ones as long as
    the slope towards them differs by at most 0.25 from the slope fitted so far.

    Args:
        curve: Seconds against length.

    Returns:
        The fit; None for fewer than three lengths, or where the slopes among the three
        longest differ by more than 0.5: no power holds there yet.
    """
    count = len(curve.lengths)
    slopes = local_exponents(curve)
    if count < _FEWEST or abs(slopes[-1] - slopes[-2]) > _BEND:
        return None
    start = count - _FEWEST
    fit = _line(curve, start)
    while start > 0 and abs(slopes[start - 1] - fit.exponent) <= _SETTLED:
        start -= 1
        fit = _line(curve, start)
    return fit


def crossing(attention: Curve, recurrence: Curve) -> Crossing | None:
    """Return the length from which attention takes longer than the recurrence.

    Args:
        attention: Its seconds.
        recurrence: The other's.

    Returns:
        The crossing, between two measured lengths where it lies there, else by the
        fits, where both have settled, up to eight times the longest one; None where
        none is found.
    """
    lengths = sorted(set(attention.lengths) & set(recurrence.lengths))
    ahead = [_gap(attention, recurrence, n) for n in lengths]
    for (n1, g1), (n2, g2) in pairwise(zip(lengths, ahead, strict=True)):
        if g1 < 0 <= g2:
            return Crossing(n1 * (n2 / n1) ** (g1 / (g1 - g2)), measured=True)
    fits = fit_exponent(attention), fit_exponent(recurrence)
    if fits[0] is None or fits[1] is None or not ahead or ahead[-1] >= 0:
        return None
    steeper = fits[0].exponent - fits[1].exponent
    if steeper <= 0:
        return None
    apart = math.log(fits[1].coefficient / fits[0].coefficient) / steeper  # log n
    if apart > math.log(_FARTHEST * lengths[-1]):
        return None
    return Crossing(max(math.exp(apart), lengths[-1]), measured=False)


def doubts(curves: Mapping[tuple[int, str], Mapping[str, Curve]]) -> list[str]:
    """Return what cannot be true of layers, so that something else was measured too.

    A wider layer is not clearly faster, and a recurrence's time does not grow clearly
    faster than its length.

    Args:
        curves: (width, what) -> model -> its shortest seconds.
    """
    found = []
    settings = ((key, *one) for key, by in curves.items() for one in by.items())
    for (width, what), model, curve in settings:
        name = f"{model}, {what}, d = {width}"
        most = _WIDER_HEADS if model == "attention" else _WIDER
        for wider in (w for w, kind in curves if kind == what and w > width):
            other = dict(zip(*curves[wider, what][model], strict=True))
            found += [
                f"{name}: n = {n} takes {seconds / other[n]:.2f} times what it takes "
                f"at d = {wider}"
                for n, seconds in zip(*curve, strict=True)
                if n in other and seconds > most * other[n]
            ]
        if model != "attention":
            found += [f"{name}: {words}" for words in _steep(curve)]
    return found


def _steep(curve: Curve) -> list[str]:
    fit = fit_exponent(curve)
    if fit is None:
        return ["the slope has not settled"]
    return [
        f"the local exponent is {slope:.2f} up to n = {n}"
        for n, slope in zip(curve.lengths[1:], local_exponents(curve), strict=True)
        if n > fit.low and slope > _STEEPEST
    ]


def _line(curve: Curve, start: int) -> Fit:
    """Return the least-squares line through the logarithms from a point on."""
    x = [math.log(n) for n in curve.lengths[start:]]
    y = [math.log(t) for t in curve.values[start:]]
    slope, offset = statistics.linear_regression(x, y)
    return Fit(slope, math.exp(offset), curve.lengths[start], curve.lengths[-1])


def _gap(attention: Curve, recurrence: Curve, seq_len: int) -> float:
    first, second = (
        math.log(curve.values[curve.lengths.index(seq_len)])
        for curve in (attention, recurrence)
    )
    return first - second
