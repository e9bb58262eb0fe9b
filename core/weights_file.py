"""Files of trained weights: arrays under their names, and what they are as JSON.

Nothing in such a file can run: it is read without pickle.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from core.checks import RefusedError

MODELS = Path(__file__).parent.parent / "assets" / "models"
MAX_KEPT_PARAMETERS = 1_500_000  # 6 MB of float32
_UNREADABLE = (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile)
Model = TypeVar("Model", bound=nn.Module)
_ABOUT = "about"  # the entry that tells what the weights are


def write_weights(
    path: Path, weights: Mapping[str, Tensor], about: Mapping[str, Any]
) -> None:
    """Write weights as they are, with what they are beside them.

    Args:
        path: File to write, ending in ``.npz``.
        weights: Name to values, on the CPU.
        about: What JSON can hold.
    """
    arrays = {name: values.numpy() for name, values in weights.items()}
    arrays[_ABOUT] = np.array(json.dumps(about))
    np.savez(path, allow_pickle=False, **arrays)


def read_weights(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return what ``write_weights`` wrote: what the weights are, and the weights.

    Called inside ``readable``, for a file may be damaged or another.

    Args:
        path: The file.
    """
    with path.open("rb") as source, np.load(source, allow_pickle=False) as file:
        about = json.loads(str(file[_ABOUT]))
        names = [name for name in file.files if name != _ABOUT]
        return about, {name: torch.from_numpy(file[name]) for name in names}


@contextmanager
def readable(path: Path, command: str) -> Iterator[None]:
    """Say in one sentence where a file cannot be read, whatever is wrong with it.

    Args:
        path: The file; only its name is told.
        command: What writes such files.

    Raises:
        RefusedError: Where reading inside fails.
    """
    try:
        yield
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or error  # without the folder
        raise RefusedError(
            f"{path.name} must be a file of trained weights that {command} wrote; "
            f"it cannot be read: {reason}"
        ) from error


def load_weights(model: Model, weights: Mapping[str, Tensor]) -> Model:
    """Return the model with these weights, ready to answer.

    It drops nothing, and its weights ask for no gradient.

    Args:
        model: The model; it is changed.
        weights: Name to values.

    Raises:
        RefusedError: If the weights are not those of such a model.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise RefusedError(
            f"weights must have the names and shapes of the model of config: {error}"
        ) from error
    return model.eval().requires_grad_(False)


def copied_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of all weights of a model, on the CPU, float32.

    Raises:
        RefusedError: If it has more than ``MAX_KEPT_PARAMETERS`` parameters.
    """
    size = sum(parameter.numel() for parameter in model.parameters())
    if size > MAX_KEPT_PARAMETERS:
        raise RefusedError(
            f"the model of trainer has {size:,} parameters; at most "
            f"{MAX_KEPT_PARAMETERS:,} are kept"
        )
    return {
        name: values.detach().to("cpu", torch.float32, copy=True)
        for name, values in model.state_dict().items()
    }


def key_of(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> str:
    """Return a hash of configuration and weights: equal only for equal models."""
    text = hashlib.sha256(json.dumps(config).encode())
    for name, values in sorted(weights.items()):
        text.update(f"{name} {tuple(values.shape)}".encode())
        text.update(values.numpy().tobytes())
    return text.hexdigest()
