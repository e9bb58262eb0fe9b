"""The configuration of one training run from text to text: plain, checked numbers."""

import math
from dataclasses import dataclass, replace

from core.checks import (
    MAX_SEED,
    RefusedError,
    require_choice,
    require_int,
    require_number,
)
from core.device import DEVICES
from core.encoder_decoder import EncoderDecoderConfig
from core.models import (
    SECONDS_PER_ACTIVATION,
    SECONDS_PER_PRODUCT,
    SECONDS_PER_WEIGHT,
)
from core.recurrent_config import RecurrentConfig
from core.text_tasks import (
    LEAST_HELD_OUT,
    MAX_LETTERS,
    TASKS,
    TextTask,
    letter_task,
)
from core.train_config import MAX_BATCH_SIZE, MAX_LEARNING_RATE, MAX_SECONDS, MAX_STEPS

MODELS = ("transformer", "none", "additive", "dot")
CONSTANT = "warm-up then constant"
STRAIGHT_DOWN = "warm-up then straight down"
PAPER = "warm-up then inverse square root (paper)"
SCHEDULES = (CONSTANT, STRAIGHT_DOWN, PAPER)
MAX_TRAIN_PAIRS = 40_000
MAX_TEST_PAIRS = 1000
MAX_MEGABYTES = 1000

# Measured on two CPU cores: what a step takes however small its batch is.
SECONDS_PER_LAYER = 2.5e-3
SECONDS_PER_CELL = 5e-4
_COPIES = 4  # how often a number that a layer hands on is kept for the gradient
_BYTES = 4


@dataclass(frozen=True)
class Seq2SeqConfig:
    """One run of a text task in plain numbers; the defaults reach the goal on reverse.

    Attributes:
        task: Name of the task, a key of ``TASKS``.
        model: ``"transformer"``, or a recurrent model with ``"none"``, ``"additive"``
            or ``"dot"`` attention.
        min_length: Fewest letters of a source, in the tasks on letters.
        max_length: Most letters, there, at least 2; None means the task's own limit.
        d_model: Width of the Transformer's tokens.
        num_heads: Its heads.
        num_layers: Its encoder blocks, and its decoder blocks.
        d_ff: Width of its feed-forward networks; None means ``4 * d_model``.
        dropout: Probability that it drops an entry while training.
        norm_first: True for pre-norm blocks, False for post-norm.
        shared_embeddings: Whether its source and target share one table.
        hidden_size: Width of a recurrent model's state.
        context_size: Numbers that pass from its encoder to its decoder where it has no
            attention; None means ``hidden_size``.
        cell: Its cell.
        learning_rate: Step size of Adam where the schedule is highest.
        schedule: How the rate goes on after the warm-up, see ``rate_at``.
        warmup_steps: Steps in which it grows from 0 in a straight line.
        batch_size: Pairs in a batch.
        max_steps: The run ends after so many steps.
        label_smoothing: Share of the target that is spread over all tokens.
        clip_norm: The gradient is scaled down to this norm where it is longer.
        train_pairs: Pairs to train on; every epoch shows each of them once.
        test_pairs: Held-out pairs on which the run is measured.
        eval_every: Steps from one evaluation to the next.
        target_exact: The run ends once this share of exact answers, in [0, 1], is
            reached; None means it never ends early.
        seed: Decides initial weights, order and dropout; the data stay the same.
        device: ``"cpu"``, ``"cuda"`` or ``"mps"``.

    Raises:
        RefusedError: If a value is out of range, or if one step would take too long or
            too much memory.
    """

    task: str = "reverse"
    model: str = "transformer"
    min_length: int = 1
    max_length: int | None = None
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int | None = None
    dropout: float = 0.0
    norm_first: bool = True
    shared_embeddings: bool = False
    hidden_size: int = 64
    context_size: int | None = None
    cell: str = "gru"
    learning_rate: float = 3e-3
    schedule: str = STRAIGHT_DOWN
    warmup_steps: int = 100
    batch_size: int = 128
    max_steps: int = 1000
    label_smoothing: float = 0.0
    clip_norm: float = 1.0
    train_pairs: int = 40_000
    test_pairs: int = 256
    eval_every: int = 50
    target_exact: float | None = None
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse what cannot be run, in one sentence."""
        require_choice("task", self.task, TASKS)
        require_choice("model", self.model, MODELS)
        self._check_lengths()
        require_number("learning_rate", self.learning_rate, 0, MAX_LEARNING_RATE)
        require_choice("schedule", self.schedule, SCHEDULES)
        require_int("warmup_steps", self.warmup_steps, 0, MAX_STEPS)
        require_int("batch_size", self.batch_size, 1, MAX_BATCH_SIZE)
        require_int("max_steps", self.max_steps, 1, MAX_STEPS)
        require_number("label_smoothing", self.label_smoothing, 0, 0.9)
        require_number("clip_norm", self.clip_norm, 0)
        require_int("train_pairs", self.train_pairs, 1, MAX_TRAIN_PAIRS)
        require_int("test_pairs", self.test_pairs, 1, MAX_TEST_PAIRS)
        require_int("eval_every", self.eval_every, 1, MAX_STEPS)
        if self.target_exact is not None:
            require_number("target_exact", self.target_exact, 0, 1)
        require_int("seed", self.seed, 0, MAX_SEED)
        require_choice("device", self.device, DEVICES)
        self._check_cost()

    @property
    def text_task(self) -> TextTask:
        """The task, with the limit on its length."""
        task = TASKS[self.task]
        if not task.lengths_vary:
            return task
        return letter_task(self.task, max_length=self.max_length or task.max_source)

    @property
    def model_config(self) -> EncoderDecoderConfig | RecurrentConfig:
        """The part of the configuration that makes the model."""
        task = self.text_task
        vocabularies = len(task.source), len(task.target)
        if self.model != "transformer":
            return RecurrentConfig(
                *vocabularies,
                attention=self.model,
                hidden_size=self.hidden_size,
                context_size=self.context_size,
                cell=self.cell,
                max_len=self._longest,
                seed=self.seed,
            )
        return EncoderDecoderConfig(
            *vocabularies,
            d_model=self.d_model,
            num_heads=self.num_heads,
            num_layers=self.num_layers,
            d_ff=self.d_ff,
            dropout=self.dropout,
            norm_first=self.norm_first,
            shared_embeddings=self.shared_embeddings,
            max_len=self._longest,
            seed=self.seed,
        )

    @property
    def steps_per_epoch(self) -> int:
        """Batches that show every pair once; the last may be smaller."""
        return math.ceil(self.train_pairs / self.batch_size)

    @property
    def step_seconds(self) -> float:
        """About how long a step on the longest pairs keeps two CPU cores busy."""
        per_pair = (
            SECONDS_PER_WEIGHT * self._weights
            + SECONDS_PER_ACTIVATION * self._activations
            + SECONDS_PER_PRODUCT * self._longest * self.model_config.num_parameters
        )
        if self.model == "transformer":
            least = SECONDS_PER_LAYER * 2 * self.num_layers
        else:
            least = SECONDS_PER_CELL * 2 * self._longest
        return least + self.batch_size * per_pair

    @property
    def step_megabytes(self) -> float:
        """About how much memory the parameters and a step on the longest pairs take."""
        task = self.text_task
        per_pair = (
            self._weights
            + _COPIES * self._activations
            + _COPIES * task.max_target * len(task.target)
        )
        numbers = 4 * self.model_config.num_parameters + self.batch_size * per_pair
        return _BYTES * numbers / 1e6

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step.

        All schedules grow in a straight line to ``learning_rate``, which stands at step
        w = ``warmup_steps``. Then the rate stays there; or falls in a straight line,
        and would be 0 one step after the last; or falls as ``√(w / step)``. The last is
        the paper's ``d_model^-0.5 · min(step^-0.5, step · w^-1.5)`` times a number, and
        equal to it where ``learning_rate`` is ``paper_rate``.

        Args:
            step: Number of the step, from 1.

        Reference:
            Vaswani et al., 2017, section 5.3, arXiv:1706.03762.
        """
        warmup = max(self.warmup_steps, 1)
        if step < warmup:
            return self.learning_rate * step / warmup
        if self.schedule == PAPER:
            return self.learning_rate * math.sqrt(warmup / step)
        if self.schedule == STRAIGHT_DOWN:
            end = max(self.max_steps, warmup) + 1
            return self.learning_rate * max(end - step, 0) / (end - warmup)
        return self.learning_rate

    @property
    def paper_rate(self) -> float:
        """The highest rate in the paper's own formula, ``1 / √(d_model · w)``."""
        return 1 / math.sqrt(self.d_model * max(self.warmup_steps, 1))

    @property
    def _longest(self) -> int:
        return max(self.text_task.max_source, self.text_task.max_target)

    @property
    def _weights(self) -> int:
        """Attention weights of the longest pair."""
        length = self._longest**2
        if self.model == "transformer":
            return 3 * self.num_layers * self.num_heads * length
        return length * {"none": 0, "dot": 1, "additive": self.hidden_size}[self.model]

    @property
    def _activations(self) -> int:
        """Numbers that the layers hand on for the longest pair, roughly."""
        if self.model != "transformer":
            return 2 * self._longest * 4 * self.hidden_size
        widths = self.d_model + (self.d_ff or 4 * self.d_model)
        return 2 * self._longest * self.num_layers * widths

    def _check_lengths(self) -> None:
        if self.max_length is not None:
            require_int("max_length", self.max_length, LEAST_HELD_OUT, MAX_LETTERS)
        task = self.text_task
        require_int("min_length", self.min_length, 1, task.max_source)
        fixed = self.min_length == 1 and self.max_length is None
        if not (task.lengths_vary or fixed):
            raise RefusedError(
                f"min_length ({self.min_length}) and max_length ({self.max_length}) "
                f"cannot be chosen for {self.task}"
            )

    def _check_cost(self) -> None:
        sizes = f"batch_size ({self.batch_size}) with {self._sizes_in_words()}"
        if self.step_seconds > MAX_SECONDS:
            raise RefusedError(
                f"{sizes} would take about {self.step_seconds:.2g} s a step on two CPU "
                f"cores; it must be at most {MAX_SECONDS:g} s"
            )
        if self.step_megabytes > MAX_MEGABYTES:
            raise RefusedError(
                f"{sizes} would take about {self.step_megabytes:,.0f} MB; it must be "
                f"at most {MAX_MEGABYTES:,} MB"
            )

    def _sizes_in_words(self) -> str:
        longest = f"sources of up to {self.text_task.max_source} tokens"
        if self.model == "transformer":
            return (
                f"{longest}, d_model ({self.d_model}) and num_layers "
                f"({self.num_layers})"
            )
        return f"{longest} and hidden_size ({self.hidden_size})"


PRESETS: dict[str, Seq2SeqConfig] = {
    "reverse": Seq2SeqConfig(),
    "dates": Seq2SeqConfig(task="dates", max_steps=500),
    "numbers": Seq2SeqConfig(task="numbers", max_steps=500),
}


def preset(task: str, **changes: object) -> Seq2SeqConfig:
    """Return the configuration that was found to solve a task, with changes.

    Args:
        task: Name of the task; one without a preset of its own takes that of reverse.
        changes: Fields of the configuration.
    """
    require_choice("task", task, TASKS)
    config = PRESETS.get(task) or replace(PRESETS["reverse"], task=task)
    return replace(config, **changes)  # type: ignore[arg-type]
