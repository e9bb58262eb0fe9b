"""The device that models compute on: CUDA, then Apple's MPS, then the CPU."""

from typing import NamedTuple

import torch

from core.checks import RefusedError, require_choice

DEVICES = ("cuda", "mps", "cpu")  # the preferred one first
PREFERENCES = ("auto", *DEVICES)


class DeviceChoice(NamedTuple):
    """A device and the reason it was taken.

    Attributes:
        device: Where tensors go.
        sentence: One line for the reader, such as "cpu: no CUDA and no MPS device
            was found (2 threads)".
    """

    device: torch.device
    sentence: str


def present_devices() -> list[str]:
    """Return the kinds of device this machine has, the preferred one first.

    Returns:
        Some of "cuda" and "mps", and always "cpu" at the end.
    """
    present = ["cpu"]
    if torch.backends.mps.is_available():
        present.insert(0, "mps")
    if torch.cuda.is_available():
        present.insert(0, "cuda")
    return present


def pick_device(preferred: str = "auto") -> torch.device:
    """Return the preferred device, or the best one present.

    Args:
        preferred: "auto" takes CUDA, then MPS, then the CPU; "cuda", "mps" and "cpu"
            ask for that kind and nothing else.

    Raises:
        ValueError: If ``preferred`` is no such word, or that device is absent; the
            message names what is present.
    """
    require_choice("preferred", preferred, PREFERENCES)
    present = present_devices()
    if preferred == "auto":
        return torch.device(present[0])
    if preferred not in present:
        raise RefusedError(
            f"preferred ({preferred!r}) must be a device that is present: "
            + ", ".join(present)
        )
    return torch.device(preferred)


def explain_device(preferred: str = "auto") -> DeviceChoice:
    """Return the device ``pick_device`` takes, with the reason in one sentence.

    Args:
        preferred: As for ``pick_device``.

    Raises:
        ValueError: As ``pick_device``.
    """
    device = pick_device(preferred)
    reason = _reason(device.type, preferred, present_devices())
    return DeviceChoice(device, f"{device.type}: {reason} ({_size(device.type)})")


def _reason(kind: str, preferred: str, present: list[str]) -> str:
    better = [other.upper() for other in present[: present.index(kind)]]
    if better:
        return f"asked for, though {' and '.join(better)} could be used"
    if kind == "cpu":
        return "no CUDA and no MPS device was found"
    return "asked for" if preferred == kind else "the fastest device found"


def _size(kind: str) -> str:
    if kind == "cuda":
        return torch.cuda.get_device_name()
    if kind == "mps":
        return "the graphics processor of this Mac"
    threads = torch.get_num_threads()
    return "1 thread" if threads == 1 else f"{threads} threads"
