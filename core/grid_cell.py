"""One cell of a grid of experiments: every factor as a plain value, and its runs.

A run of a cell trains on the marker task with one seed and is measured twice: with the
marker where it stood in training, and with the marker moved to the middle.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from core.checks import RefusedError, require_choice
from core.initial import generator_from
from core.recurrent import RecurrentClassifier
from core.train_config import TrainConfig
from core.training import Trainer

MODELS = ("transformer", "rnn", "gru", "lstm", "lstm bias +3")
NORMS = ("pre", "post")
MAX_BYTES = 1_000_000_000
_FORGET_BIAS = {"lstm bias +3": 3.0}
_LAST_STEPS = 10  # the final loss is the mean over them
_OF_TRANSFORMERS = (
    "positional", "causal", "readout", "num_heads", "num_layers", "dropout", "norm",
)  # fmt: skip

# Measured with one thread of a CPU under load: what a step of training takes.
_SECONDS_PER_STEP = 3e-3
_SHARE_OF_ONE_THREAD = 1.5
_SECONDS_PER_POSITION = {"rnn": 1e-4, "gru": 2.2e-4, "lstm": 1.5e-4}


@dataclass(frozen=True)
class Cell:
    """All factors of a run but its seed; what a recurrence has not is at its preset.

    Attributes:
        model: One of ``MODELS``; the recurrent ones have one layer of ``d_model``.
        positional: ``"sinusoidal"``, ``"learned"`` or ``"none"``.
        causal: Whether a position attends to itself and earlier ones alone.
        readout: ``"cls"``, ``"mean"``, ``"last"`` or ``"first"``.
        num_heads: Number of heads.
        num_layers: Number of encoder blocks.
        d_model: Width of the tokens, or of the hidden state.
        seq_len: Length of the sequences.
        noise: What lies around the marker, ``"uniform"`` or ``"normal"``.
        dropout: Probability of dropping an entry while training.
        norm: ``"pre"`` or ``"post"``.
        warmup_steps: Steps over which the learning rate grows to its full size.
        learning_rate: Step size of Adam.
        batch_size: Sequences in a batch.
        train_samples: Sequences to train on.
        max_steps: Steps of training.

    Raises:
        ValueError: If a value is out of range, or a step would take too long or too
            much memory.
    """

    model: str = "transformer"
    positional: str = "sinusoidal"
    causal: bool = False
    readout: str = "cls"
    num_heads: int = 4
    num_layers: int = 1
    d_model: int = 32
    seq_len: int = 60
    noise: str = "uniform"
    dropout: float = 0.0
    norm: str = "pre"
    warmup_steps: int = 0
    learning_rate: float = 3e-3
    batch_size: int = 64
    train_samples: int = 4000
    max_steps: int = 400

    def __post_init__(self) -> None:
        """Refuse what cannot be run, in one sentence."""
        require_choice("model", self.model, MODELS)
        require_choice("norm", self.norm, NORMS)
        needed = step_bytes(self.config(seed=0))
        if needed > MAX_BYTES:
            raise RefusedError(
                f"batch_size ({self.batch_size}) with seq_len ({self.seq_len}), d_model"
                f" ({self.d_model}), num_heads ({self.num_heads}) and num_layers "
                f"({self.num_layers}) would take about {needed / 1e9:.1f} GB of memory;"
                f" it must be at most {MAX_BYTES / 1e9:g} GB"
            )

    @property
    def is_transformer(self) -> bool:
        """Whether the factors of a Transformer mean anything here."""
        return self.model == "transformer"

    @property
    def plain(self) -> "Cell":
        """The same run with every factor that the model has not at its preset."""
        if self.is_transformer:
            return self
        presets: dict[str, Any] = {name: PRESET[name] for name in _OF_TRANSFORMERS}
        return replace(self, **presets)

    def has(self, factor: str) -> bool:
        """Return whether the model has this factor."""
        return self.is_transformer or factor not in _OF_TRANSFORMERS

    def config(self, seed: int) -> TrainConfig:
        """Return the training of this cell with a seed; it is measured at its end."""
        values = asdict(self)
        del values["model"]
        norm_first = values.pop("norm") == "pre"
        steps = self.max_steps
        return TrainConfig(**values, norm_first=norm_first, seed=seed, eval_every=steps)

    def trainer(self, seed: int) -> Trainer:
        """Return a fresh model of this cell and its training."""
        config = self.config(seed)
        if self.is_transformer:
            return Trainer(config)
        model = RecurrentClassifier(
            self.model.split()[0],
            hidden_size=self.d_model,
            forget_bias=_FORGET_BIAS.get(self.model),
            generator=generator_from(seed),
        )
        return Trainer(config, model=model)

    @property
    def seconds(self) -> float:
        """About how long one run keeps one thread of a CPU busy."""
        return self.max_steps * self._seconds_per_step

    @property
    def _seconds_per_step(self) -> float:
        if not self.is_transformer:
            return self.seq_len * _SECONDS_PER_POSITION[self.model.split()[0]]
        of_batch = self.batch_size * self.config(seed=0).model.step_seconds
        return _SECONDS_PER_STEP + _SHARE_OF_ONE_THREAD * of_batch


class Result(NamedTuple):
    """How one run of a cell ended.

    Attributes:
        cell: Its cell.
        seed: Its seed.
        steps: Steps it took.
        loss: Mean loss over its last steps; nan where it was no finite number.
        accuracy: Share of right answers on the test sequences, in [0, 1].
        moved: The same with the marker in the middle of the sequence.
    """

    cell: Cell
    seed: int
    steps: int
    loss: float
    accuracy: float
    moved: float


class GridStep(NamedTuple):
    """One step of a grid that is watched: a step of training, or a measurement.

    Attributes:
        cell: The cell in training.
        seed: Its seed.
        step: Steps it has taken.
        result: How the run ended, once it is measured; None before.
    """

    cell: Cell
    seed: int
    step: int
    result: Result | None


def step_bytes(config: TrainConfig) -> int:
    """Return about how much memory data, model and one step of training take at most.

    The weights of all heads are counted as if every layer kept them for the gradient,
    which a fused kernel does not do: an upper bound.
    """
    model = config.model
    samples = (config.train_samples + config.test_samples) * config.seq_len
    weights = model.num_heads * model.num_positions**2
    tokens = model.num_positions * (12 * model.d_model + 3 * model.ff_width)
    kept = config.batch_size * model.num_layers * (3 * weights + tokens)
    return 4 * (samples + 4 * model.num_parameters + kept)


def middle(seq_len: int) -> int:
    """Return where a marker stands that is moved to the middle."""
    return seq_len // 2


def watch_cell(cell: Cell, seed: int) -> Iterator[GridStep]:
    """Train one cell with one seed, step by step, and measure it at the end."""
    trainer = cell.trainer(seed)
    while not trainer.finished:
        record = trainer.step()
        yield GridStep(cell, seed, record.step, None)
    yield GridStep(cell, seed, len(trainer.records), measure(cell, seed, trainer))


def run_cell(cell: Cell, seed: int) -> Result:
    """Train one cell with one seed to its end, and measure it."""
    *_, last = watch_cell(cell, seed)
    assert last.result is not None
    return last.result


def measure(cell: Cell, seed: int, trainer: Trainer) -> Result:
    """Return how a run ended, with the marker at its place and in the middle."""
    losses = [record.loss for record in trainer.records[-_LAST_STEPS:]]
    last = trainer.records[-1].accuracy
    return Result(
        cell,
        seed,
        steps=len(trainer.records),
        loss=sum(losses) / len(losses),
        accuracy=trainer.evaluate() if last is None else last,
        moved=trainer.evaluate(position=middle(cell.seq_len)),
    )


PRESET = {field.name: field.default for field in fields(Cell)}
