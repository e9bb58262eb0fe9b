"""Weights of a finished run, kept apart from the trainer that made them.

``python -m core.trained`` trains the preset of the marker task to its end and writes
its weights, so that the page on attention maps opens on a trained model.
"""

import argparse
import functools
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn

from core.checks import RefusedError, require_choice
from core.models import ClassifierConfig, TransformerClassifier
from core.shipped import made_here, origin_of
from core.training import TrainConfig, Trainer
from core.weights_file import (
    MODELS,
    copied_weights,
    key_of,
    load_weights,
    read_weights,
    readable,
    write_weights,
)

SHIPPED = {"marker": TrainConfig()}
_COMMAND = "python -m core.trained"
_NOISE = "uniform"  # of all test sequences that a kept model is read on


class TrainedModel(NamedTuple):
    """A model at the end of a run: what to build, its weights, and what made them.

    Attributes:
        config: Sizes and choices.
        weights: Name to values, copies on the CPU, float32.
        origin: What made it, as a sentence.
        steps: Training steps it has behind it.
        accuracy: Its accuracy on the test sequences, in [0, 1]; None if not measured.
    """

    config: ClassifierConfig
    weights: dict[str, Tensor]
    origin: str
    steps: int
    accuracy: float | None

    @property
    def key(self) -> str:
        """Hash of configuration and weights: equal only for equal models."""
        return key_of(asdict(self.config), self.weights)


def copied_from(trainer: Trainer) -> TrainedModel:
    """Return a copy of what a run has learned so far.

    Later steps of the run leave the copy alone. The accuracy is that of the last step
    where it was measured there, and is measured now where it was not.

    Args:
        trainer: A run of the marker task whose model is a ``TransformerClassifier``.

    Raises:
        ValueError: If the model is another one, has more than
            ``MAX_KEPT_PARAMETERS`` parameters, or was trained on other noise than the
            sequences it would be read on.
    """
    require_choice("noise of trainer", trainer.config.noise, [_NOISE])
    steps = len(trainer.records)
    measured = trainer.records[-1].accuracy if steps else None
    seed = trainer.config.seed
    return TrainedModel(
        config=_config_of(trainer.model),
        weights=copied_weights(trainer.model),
        origin=f"Your run of the marker page, seed {seed}, after {steps} steps.",
        steps=steps,
        accuracy=trainer.evaluate() if measured is None else measured,
    )


def build(trained: TrainedModel) -> TransformerClassifier:
    """Return the model with these weights, ready to answer.

    Each call builds one of its own. It drops nothing, and its weights ask for no
    gradient.

    Raises:
        ValueError: If the weights are not those of a model of this configuration.
    """
    model = TransformerClassifier(trained.config)
    return load_weights(model, trained.weights)


@functools.cache
def read_shipped(name: str = "marker") -> TrainedModel:
    """Return a model that ships with the project.

    Args:
        name: Name in ``SHIPPED``.

    Raises:
        ValueError: If the name is unknown, or its file is damaged.
    """
    require_choice("name", name, SHIPPED)
    return read_trained(path_of(name))


def path_of(name: str) -> Path:
    """Return where the shipped model of this name lies."""
    return MODELS / f"{name}_preset.npz"


def read_trained(path: Path) -> TrainedModel:
    """Return the model that ``write_trained`` wrote.

    Raises:
        ValueError: If the file is damaged or holds something else.
    """
    with readable(path, _COMMAND):
        about, weights = read_weights(path)
        trained = TrainedModel(
            config=ClassifierConfig(**about["config"]),
            weights=weights,
            origin=origin_of(about["made_by"]),
            steps=about["steps"],
            accuracy=about["accuracy"],
        )
        build(trained)
    return trained


def made_by(path: Path) -> dict[str, str]:
    """Return what made the weights of a file: command, seed, versions, machine."""
    return read_weights(path)[0]["made_by"]


def write_trained(path: Path, trainer: Trainer) -> None:
    """Write the weights of a run, with what made them beside them.

    Args:
        path: File to write, ending in ``.npz``.
        trainer: The run.

    Raises:
        ValueError: As in ``copied_from``.
    """
    trained = copied_from(trainer)
    about = {
        "made_by": made_here(_COMMAND, str(trainer.config.seed)),
        "config": asdict(trained.config),
        "steps": trained.steps,
        "accuracy": trained.accuracy,
    }
    write_weights(path, trained.weights, about)


def _config_of(model: nn.Module) -> ClassifierConfig:
    if not isinstance(model, TransformerClassifier):
        kind = type(model).__name__
        raise RefusedError(
            f"the model of trainer must be a TransformerClassifier, got {kind}"
        )
    return model.config


def main() -> None:
    """Train every shipped model to its end and write its weights."""
    argparse.ArgumentParser(description=main.__doc__).parse_args()
    MODELS.mkdir(parents=True, exist_ok=True)
    for name, config in SHIPPED.items():
        trainer = Trainer(config)
        while not trainer.finished:
            trainer.step()
        write_trained(path_of(name), trainer)


if __name__ == "__main__":
    main()
