"""Checks of arguments: one clear sentence with the name, the rule and the values."""

import math
from collections.abc import Collection


def require_int(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return ``value`` if it is an integer in ``[low, high]``.

    Args:
        name: Name of the argument, as the caller knows it.
        value: What was passed.
        low: Smallest value allowed.
        high: Largest value allowed; None means no upper bound.

    Raises:
        ValueError: If ``value`` is not an integer (a bool is not) or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} ({value}) must be {_range_text(low, high)}")
    return value


def require_number(
    name: str, value: object, low: float, high: float | None = None
) -> float:
    """Return ``value`` as a float if it is finite and in ``[low, high]``.

    Raises:
        ValueError: If ``value`` is not a finite number or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} ({value:g}) must be {_range_text(low, high)}")
    return float(value)


def require_choice(name: str, value: object, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Raises:
        ValueError: If it is not; the message lists the choices.
    """
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
    return value


def require_divisible(name: str, value: int, by_name: str, by: int) -> None:
    """Check that ``by`` divides ``value``.

    Raises:
        ValueError: If it does not; the message gives both names and numbers.
    """
    if by < 1 or value % by:
        raise ValueError(f"{name} ({value}) must be divisible by {by_name} ({by})")


def _range_text(low: float, high: float | None) -> str:
    if high is None:
        return f"at least {low:g}" if isinstance(low, float) else f"at least {low}"
    return f"between {low} and {high}"
