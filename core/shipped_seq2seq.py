"""Encoder-decoders that were trained before, and copies of those in training.

``python -m core.shipped_seq2seq`` trains a Transformer on every text task and writes
its weights, so that the page on the encoder-decoder opens on models that work.
They are written in half precision and tested as they are read back.
"""

import argparse
import functools
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from core.captions import counted
from core.charts.records import record_points, thin
from core.checks import require_choice
from core.seq2seq import make_model
from core.seq2seq_training import (
    Model,
    Seq2SeqConfig,
    Seq2SeqTrainer,
    held_out_pairs,
    preset,
    score_pairs,
)
from core.shipped import made_here, origin_of
from core.text_tasks import TASKS, make_batch
from core.weights_file import (
    MODELS,
    copied_weights,
    key_of,
    load_weights,
    read_weights,
    readable,
    write_weights,
)

NUM_TESTED = 1000
SHIPPED = {task: preset(task) for task in TASKS} | {
    "copy": preset("copy", max_steps=600)  # learned sooner
}
_CURVE_POINTS = 200
_ASKED = 64  # held-out sources that tell whether a model answers in numbers
_COMMAND = "python -m core.shipped_seq2seq"


class TrainedSeq2Seq(NamedTuple):
    """An encoder-decoder Transformer at the end of a run, and what made it.

    Attributes:
        config: All numbers of the run.
        weights: Name to values, copies on the CPU, float32.
        origin: What made it, as a sentence.
        steps: Training steps it has behind it.
        exact: Share of held-out sources answered right in full; None if not measured.
        num_tested: Held-out sources that the share is of.
        curves: "loss" and "accuracy" to thinned (step, value) pairs of a shipped run;
            none of a copy.
    """

    config: Seq2SeqConfig
    weights: dict[str, Tensor]
    origin: str
    steps: int
    exact: float | None
    num_tested: int
    curves: dict[str, list[tuple[int, float]]]

    @property
    def key(self) -> str:
        """Hash of configuration and weights: equal only for equal models."""
        return key_of(asdict(self.config), self.weights)


def copied_from(trainer: Seq2SeqTrainer) -> TrainedSeq2Seq:
    """Return a copy of what a run has learned so far; later steps leave it alone.

    Args:
        trainer: A run whose model is a Transformer.

    Raises:
        RefusedError: If the model is another one, or has more than
            ``MAX_KEPT_PARAMETERS`` parameters.
    """
    config = trainer.config
    require_choice("model of trainer", config.model, ["transformer"])
    steps = len(trainer.records)
    measured = trainer.records[-1].exact if steps else None
    return TrainedSeq2Seq(
        config=config,
        weights=copied_weights(trainer.model),
        origin=f"Your run of this page, seed {config.seed}, after "
        f"{counted(steps, 'step')}.",
        steps=steps,
        exact=trainer.evaluate().exact if measured is None else measured,
        num_tested=config.test_pairs,
        curves={},
    )


def build(trained: TrainedSeq2Seq) -> Model:
    """Return the model with these weights, ready to answer.

    Each call builds one of its own, on the CPU; its weights ask for no gradient.

    Raises:
        RefusedError: If the weights are not those of a model of this configuration.
    """
    require_choice("model of config", trained.config.model, ["transformer"])
    model = make_model(trained.config.model_config)
    return load_weights(model, trained.weights)


@torch.no_grad()
def answers_in_numbers(model: Model, config: Seq2SeqConfig) -> bool:
    """Return whether a model answers held-out sources with finite numbers.

    One that has diverged does not, even where each of its weights is a number.

    Args:
        model: The model.
        config: What it was trained by.
    """
    task = config.text_task
    pairs = held_out_pairs(replace(config, test_pairs=_ASKED))
    batch = make_batch(task, pairs)
    return bool(model(batch.source, batch.target_in).isfinite().all())


@functools.cache
def read_shipped(task: str) -> TrainedSeq2Seq:
    """Return the model of a task that ships with the project.

    Args:
        task: A name in ``SHIPPED``.

    Raises:
        RefusedError: If the name is unknown, or its file is missing or damaged.
    """
    require_choice("task", task, SHIPPED)
    return read_trained(path_of(task))


def path_of(task: str) -> Path:
    """Return where the shipped model of a task lies."""
    return MODELS / f"encoder_decoder_{task}.npz"


def read_trained(path: Path) -> TrainedSeq2Seq:
    """Return the model that ``write_trained`` wrote.

    Raises:
        RefusedError: If the file is damaged or holds something else.
    """
    with readable(path, _COMMAND):
        about, halves = read_weights(path)
        trained = TrainedSeq2Seq(
            config=Seq2SeqConfig(**about["config"]),
            weights={name: values.float() for name, values in halves.items()},
            origin=origin_of(about["made_by"]),
            steps=about["steps"],
            exact=about["exact"],
            num_tested=about["num_tested"],
            curves=about["curves"],
        )
        build(trained)
    return trained


def write_trained(path: Path, trainer: Seq2SeqTrainer) -> None:
    """Write the weights of a run in half precision, tested as they are written.

    Args:
        path: File to write, ending in ``.npz``.
        trainer: The run; it is left as it was.

    Raises:
        RefusedError: As in ``copied_from``.
    """
    kept = copied_from(trainer)
    halves = {name: values.to(torch.float16) for name, values in kept.weights.items()}
    rounded = kept._replace(weights={n: v.float() for n, v in halves.items()})
    pairs = held_out_pairs(replace(kept.config, test_pairs=NUM_TESTED))
    score = score_pairs(build(rounded), trainer.task, pairs)
    about = {
        "made_by": made_here(_COMMAND, str(kept.config.seed)),
        "config": asdict(kept.config),
        "steps": kept.steps,
        "exact": score.exact,
        "num_tested": NUM_TESTED,
        "curves": {
            kind: thin(record_points(trainer.records, kind), _CURVE_POINTS)
            for kind in ("loss", "accuracy")
        },
    }
    write_weights(path, halves, about)


def main() -> None:
    """Train every shipped model to its end and write its weights."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("tasks", nargs="*", metavar="task", help="all where none is")
    MODELS.mkdir(parents=True, exist_ok=True)
    for task in parser.parse_args().tasks or SHIPPED:
        trainer = Seq2SeqTrainer(SHIPPED[task])
        while not trainer.finished:
            trainer.step()
        write_trained(path_of(task), trainer)


if __name__ == "__main__":
    main()
