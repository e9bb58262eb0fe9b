"""The configuration of one training run: plain numbers, checked when they are set."""

import math
from dataclasses import dataclass, fields, replace

from core.checks import (
    MAX_SEED,
    RefusedError,
    require_choice,
    require_int,
    require_number,
)
from core.device import DEVICES
from core.models import ClassifierConfig
from core.tasks import NOISES

MAX_LEARNING_RATE = 1e6
MAX_BATCH_SIZE = 1024
MAX_STEPS = 20_000
MAX_SAMPLES = 20_000
MAX_DATA_VALUES = 4_000_000
MAX_SECONDS = 0.3


@dataclass(frozen=True)
class TrainConfig:
    """One run of the marker task in plain numbers; the defaults are the lab's.

    The fields from ``seq_len`` to ``residual`` are those of ``ClassifierConfig``.

    Attributes:
        learning_rate: Step size of Adam, at most ``MAX_LEARNING_RATE``.
        batch_size: Sequences in a batch.
        train_samples: Sequences to train on; every epoch shows each of them once.
        test_samples: Other sequences, on which the accuracy is measured; fewer where
            they would take too long, see ``num_tested``.
        noise: What lies around the marker, ``"uniform"`` or ``"normal"``.
        clip_norm: The gradient is scaled down to this norm where it is longer.
        warmup_steps: The learning rate grows in a straight line over so many steps
            until it is ``learning_rate``; 0 means that it stands there from the start.
        max_steps: The run ends after so many steps.
        eval_every: Steps from one evaluation to the next.
        target_accuracy: The run ends once this test accuracy, in [0, 1], is held; None
            means it never ends early.
        target_hold: Consecutive evaluations that must hold it.
        seed: Decides initial weights, order and dropout; the data stay the same.
        device: ``"cpu"``, ``"cuda"`` or ``"mps"``.

    Raises:
        ValueError: If a value is out of range, or if one step would keep two CPU cores
            busy for too long.
    """

    seq_len: int = 60
    d_model: int = 32
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int | None = None
    dropout: float = 0.1
    positional: str = "sinusoidal"
    causal: bool = False
    readout: str = "cls"
    norm_first: bool = True
    residual: bool = True
    learning_rate: float = 1e-3
    batch_size: int = 64
    train_samples: int = 4000
    test_samples: int = 1000
    noise: str = "uniform"
    clip_norm: float = 1.0
    warmup_steps: int = 0
    max_steps: int = 756
    eval_every: int = 42
    target_accuracy: float | None = None
    target_hold: int = 1
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse what cannot be run, in one sentence."""
        require_int("seed", self.seed, 0, MAX_SEED)
        require_number("learning_rate", self.learning_rate, 0, MAX_LEARNING_RATE)
        require_number("clip_norm", self.clip_norm, 0)
        require_int("batch_size", self.batch_size, 1, MAX_BATCH_SIZE)
        require_int("train_samples", self.train_samples, 1, MAX_SAMPLES)
        require_int("test_samples", self.test_samples, 1, MAX_SAMPLES)
        require_choice("noise", self.noise, NOISES)
        require_int("warmup_steps", self.warmup_steps, 0, MAX_STEPS)
        require_int("max_steps", self.max_steps, 1, MAX_STEPS)
        require_int("eval_every", self.eval_every, 1, MAX_STEPS)
        require_int("target_hold", self.target_hold, 1, MAX_STEPS)
        if self.target_accuracy is not None:
            require_number("target_accuracy", self.target_accuracy, 0, 1)
        require_choice("device", self.device, DEVICES)
        _check_size(self)

    @property
    def model(self) -> ClassifierConfig:
        """The part of the configuration that makes the model."""
        shared = {field.name for field in fields(ClassifierConfig)} - {"input_size"}
        return ClassifierConfig(**{name: getattr(self, name) for name in shared})

    @property
    def steps_per_epoch(self) -> int:
        """Batches that show every training sequence once; the last may be smaller."""
        return math.ceil(self.train_samples / self.batch_size)

    @property
    def num_tested(self) -> int:
        """Test sequences an evaluation takes: all, or the first that it can afford."""
        return self.num_tested_at(self.seq_len)

    def rate_at(self, step: int) -> float:
        """Learning rate of a step, counted from 1: the full one after the warm-up."""
        if step >= self.warmup_steps:
            return self.learning_rate
        return self.learning_rate * step / self.warmup_steps

    def num_tested_at(self, seq_len: int) -> int:
        """Test sequences an evaluation takes where they have another length."""
        model = replace(self.model, seq_len=seq_len)
        return min(self.test_samples, max(1, int(MAX_SECONDS / model.test_seconds)))


def _check_size(config: TrainConfig) -> None:
    values = (config.train_samples + config.test_samples) * config.model.seq_len
    if values > MAX_DATA_VALUES:
        raise RefusedError(
            f"train_samples ({config.train_samples}) and test_samples "
            f"({config.test_samples}) of seq_len ({config.seq_len}) make {values:,} "
            f"numbers; at most {MAX_DATA_VALUES:,} are allowed"
        )
    model, seconds = config.model, config.batch_size * config.model.step_seconds
    if seconds > MAX_SECONDS:
        raise RefusedError(
            f"batch_size ({config.batch_size}) with seq_len ({model.seq_len}), d_model "
            f"({model.d_model}), num_heads ({model.num_heads}) and num_layers "
            f"({model.num_layers}) would take about {seconds:.2g} s a step on two CPU "
            f"cores; it must be at most {MAX_SECONDS:g} s"
        )
