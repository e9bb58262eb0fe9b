"""Checks of arguments: one clear sentence with the name, the rule and the values."""

import math
from collections.abc import Collection

_MOST_DIGITS = 30
MAX_SEED = 2**31 - 1  # of everything random that a caller can choose


class RefusedError(ValueError):
    """An argument that breaks a rule; the message is a sentence for the reader."""


def require_int(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return ``value`` if it is an integer in ``[low, high]``.

    Args:
        name: Name of the argument, as the caller knows it.
        value: What was passed.
        low: Smallest value allowed.
        high: Largest value allowed; None means no upper bound.

    Raises:
        RefusedError: If ``value`` is not an integer (a bool is not) or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise RefusedError(f"{name} must be a whole number, got {value!r}")
    if value < low or (high is not None and value > high):
        raise RefusedError(_out_of_range(name, value, low, high))
    return value


def require_number(
    name: str, value: object, low: float, high: float | None = None
) -> float:
    """Return ``value`` as a float if it is finite and in ``[low, high]``.

    Raises:
        RefusedError: If ``value`` is not a finite number or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError(f"{name} must be a number, got {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise RefusedError(f"{name} must be finite, got {value}")
    if value < low or (high is not None and value > high):
        raise RefusedError(_out_of_range(name, value, low, high))
    return float(value)


def require_choice(name: str, value: object, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Raises:
        RefusedError: If it is not; the message lists the choices.
    """
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise RefusedError(f"{name} must be one of {listed}, got {value!r}")
    return value


def require_divisible(name: str, value: int, by_name: str, by: int) -> None:
    """Check that ``by`` divides ``value``.

    Raises:
        RefusedError: If it does not; the message gives both names and numbers.
    """
    if by < 1 or value % by:
        raise RefusedError(f"{name} ({value}) must be divisible by {by_name} ({by})")


def _out_of_range(name: str, value: float, low: float, high: float | None) -> str:
    rule = f"must be {_range_text(low, high)}"
    digits = int(math.log10(abs(value))) + 1 if isinstance(value, int) and value else 1
    if digits > _MOST_DIGITS:
        return f"{name} {rule}, got a number of {digits} digits"
    return f"{name} ({str(value).removesuffix('.0')}) {rule}"


def _range_text(low: float, high: float | None) -> str:
    if high is None:
        return f"at least {low:g}" if isinstance(low, float) else f"at least {low}"
    return f"between {low} and {high}"
