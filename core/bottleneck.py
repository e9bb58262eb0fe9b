"""The bottleneck: an encoder–decoder on strings of growing length.

``python -m core.bottleneck`` trains every model of the page with every seed, writes how
they answer at each length to ``assets/tables/bottleneck.csv``, and the weights of one
seed of each kind of attention to ``assets/models``.
"""

import argparse
import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from core.checks import require_choice, require_int
from core.recurrent_seq2seq import RecurrentConfig, RecurrentEncoderDecoder
from core.seq2seq_training import (
    STRAIGHT_DOWN,
    Model,
    Seq2SeqConfig,
    Seq2SeqTrainer,
    score_pairs,
)
from core.shipped import TABLES, made_here, origin_of, read_table, write_table
from core.text_tasks import Pair, TextTask, letter_task
from core.threads import one_thread
from core.weights_file import (
    MODELS,
    copied_weights,
    load_weights,
    read_weights,
    readable,
    write_weights,
)

BOTTLENECK = TABLES / "bottleneck.csv"
ATTENTIONS = ("none", "additive", "dot")
LENGTHS = tuple(range(2, 17, 2))
SEEDS = (0, 1, 2)
HIDDEN_SIZE = 64
CONTEXTS = (4, 8, 16, 32)  # and HIDDEN_SIZE, with nothing in between
NUM_TESTED = 300  # strings of each length
NUM_TRAINED = 16_000  # strings to train on; making them takes part of a step
STEPS = 1600
_TEST_SEED = 1_000
_ROUNDS = 4  # of tests while a run is watched
_COMMAND = "python -m core.bottleneck"
_COLUMNS = (
    "attention", "context_size", "seed", "steps", "length", "exact", "letters",
)  # fmt: skip


@dataclass(frozen=True)
class BottleneckConfig:
    """One model of the page.

    Attributes:
        attention: "none", "additive" or "dot".
        context_size: Numbers that pass from encoder to decoder without attention; None
            for all that the hidden state has.
        max_steps: Steps of training.
        seed: Decides initial weights and data.

    Raises:
        ValueError: If a value is out of range.
    """

    attention: str = "none"
    context_size: int | None = None
    max_steps: int = STEPS
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be trained, in one sentence."""
        require_choice("attention", self.attention, ATTENTIONS)
        require_int("max_steps", self.max_steps, _ROUNDS, 5_000)
        self.recipe  # noqa: B018 - it checks the rest

    @property
    def recipe(self) -> Seq2SeqConfig:
        """How the model is trained."""
        return Seq2SeqConfig(
            task="reverse",
            model=self.attention,
            min_length=LENGTHS[0],
            max_length=LENGTHS[-1],
            hidden_size=HIDDEN_SIZE,
            context_size=self.context_size,
            learning_rate=5e-3,
            schedule=STRAIGHT_DOWN,
            warmup_steps=100,
            batch_size=64,
            max_steps=self.max_steps,
            train_pairs=NUM_TRAINED,
            test_pairs=1,
            eval_every=self.max_steps,  # the page tests by length instead
            seed=self.seed,
        )

    @property
    def passed_on(self) -> int:
        """Numbers that pass from the encoder to the decoder at one step."""
        return HIDDEN_SIZE if self.context_size is None else self.context_size

    @property
    def total(self) -> int:
        """Number of records that ``watch`` brings."""
        return self.max_steps + _ROUNDS * len(LENGTHS)


class LengthResult(NamedTuple):
    """How a model answers held-out strings of one length.

    Attributes:
        length: Letters of each string.
        exact: Share of strings whose whole answer is right, with its end, in [0, 1].
        letters: Share of letters, the end among them, that are the likeliest ones
            after the true earlier ones, in [0, 1].
    """

    length: int
    exact: float
    letters: float


class LengthRun(NamedTuple):
    """One trained model, tested at every length.

    Attributes:
        attention: "none", "additive" or "dot".
        passed_on: Numbers that pass from the encoder to the decoder at one step.
        seed: Its seed.
        results: One a length, ascending.
    """

    attention: str
    passed_on: int
    seed: int
    results: tuple[LengthResult, ...]


class WatchRecord(NamedTuple):
    """One step of training, or one length tested in between.

    Attributes:
        step: Steps of training so far.
        loss: Loss of the last step.
        result: What was tested; None for a step of training.
    """

    step: int
    loss: float
    result: LengthResult | None


class ShippedRuns(NamedTuple):
    """Runs made before, and what made them, as a sentence."""

    origin: str
    runs: tuple[LengthRun, ...]

    def by_attention(self) -> list[LengthRun]:
        """Return the runs of all kinds of attention at the full width."""
        return [run for run in self.runs if run.passed_on == HIDDEN_SIZE]

    def by_context(self) -> list[LengthRun]:
        """Return the runs without attention, of every width, widths ascending."""
        plain = [run for run in self.runs if run.attention == "none"]
        return sorted(plain, key=lambda run: (run.passed_on, run.seed))


@functools.cache
def text_task() -> TextTask:
    """Return the task: reverse a string of up to 16 letters."""
    return letter_task("reverse", max_length=LENGTHS[-1])


def score_at(model: Model, length: int) -> LengthResult:
    """Return how a model answers ``NUM_TESTED`` held-out strings of one length.

    Args:
        model: The model.
        length: Letters of each string.
    """
    score = score_pairs(model, text_task(), _tested(length))
    return LengthResult(length, score.exact, score.token_accuracy)


def watch(config: BottleneckConfig) -> Iterator[WatchRecord]:
    """Train a model and test it at every length, four times on the way.

    Args:
        config: Which model.

    Yields:
        ``config.total`` records, each of a short time.
    """
    trainer = Seq2SeqTrainer(config.recipe)
    stops = {config.max_steps * done // _ROUNDS for done in range(1, _ROUNDS + 1)}
    for step in range(1, config.max_steps + 1):
        loss = trainer.step().loss
        yield WatchRecord(step, loss, None)
        if step in stops:
            for length in LENGTHS:
                yield WatchRecord(step, loss, score_at(trainer.model, length))


def latest_results(records: Sequence[WatchRecord]) -> list[LengthResult]:
    """Return the last result at each length, lengths ascending."""
    found = {r.result.length: r.result for r in records if r.result is not None}
    return [found[length] for length in sorted(found)]


def train_model(config: BottleneckConfig) -> RecurrentEncoderDecoder:
    """Return a model trained to its last step, ready to answer."""
    trainer = Seq2SeqTrainer(config.recipe)
    while not trainer.finished:
        trainer.step()
    assert isinstance(trainer.model, RecurrentEncoderDecoder)
    return trainer.model.eval().requires_grad_(False)


@functools.cache
def read_shipped(path: Path = BOTTLENECK) -> ShippedRuns:
    """Return the shipped runs.

    Args:
        path: A file that ``write_runs`` wrote.
    """
    made_by, rows = read_table(path)
    found: dict[tuple[str, int, int], list[LengthResult]] = {}
    for row in rows:
        key = row["attention"], int(row["context_size"]), int(row["seed"])
        shares = float(row["exact"]), float(row["letters"])
        found.setdefault(key, []).append(LengthResult(int(row["length"]), *shares))
    runs = (LengthRun(*key, tuple(results)) for key, results in found.items())
    return ShippedRuns(origin_of(made_by), tuple(runs))


def write_runs(path: Path, runs: Sequence[LengthRun]) -> None:
    """Write runs as CSV, one row a length, below lines on their origin.

    Args:
        path: File to write.
        runs: Runs of ``STEPS`` steps with the seeds ``SEEDS``.
    """
    rows = (
        (
            run.attention,
            run.passed_on,
            run.seed,
            STEPS,
            r.length,
            f"{r.exact:.4f}",
            f"{r.letters:.4f}",
        )
        for run in runs
        for r in run.results
    )
    seeds = f"{SEEDS[0]} to {SEEDS[-1]}"
    write_table(path, _COLUMNS, rows, command=_COMMAND, seed=seeds)


@functools.cache
def read_model(attention: str) -> tuple[RecurrentEncoderDecoder, str]:
    """Return a shipped model, ready to answer, and what made it as a sentence.

    Args:
        attention: "none", "additive" or "dot".

    Raises:
        ValueError: If the name is unknown, or its file is damaged.
    """
    require_choice("attention", attention, ATTENTIONS)
    path = model_path(attention)
    with readable(path, _COMMAND):
        about, weights = read_weights(path)
        model = RecurrentEncoderDecoder(RecurrentConfig(**about["config"]))
        return load_weights(model, weights), origin_of(about["made_by"])


def model_path(attention: str) -> Path:
    """Return where the shipped model of this kind lies."""
    return MODELS / f"bottleneck_{attention}.npz"


def write_model(path: Path, model: RecurrentEncoderDecoder, *, seed: int) -> None:
    """Write the weights of a model, with what made them beside them."""
    about = {
        "made_by": made_here(_COMMAND, str(seed)),
        "config": asdict(model.config),
        "steps": STEPS,
    }
    write_weights(path, copied_weights(model), about)


def configs() -> list[BottleneckConfig]:
    """Return every model of the shipped table with every seed."""
    kinds: list[tuple[str, int | None]] = [(name, None) for name in ATTENTIONS]
    kinds += [("none", size) for size in CONTEXTS]
    return [
        BottleneckConfig(attention, size, seed=seed)
        for attention, size in kinds
        for seed in SEEDS
    ]


@functools.cache
def _tested(length: int) -> list[Pair]:
    return text_task().pairs(
        NUM_TESTED,
        seed=_TEST_SEED,
        held_out=True,
        min_length=length,
        max_length=length,
    )


def _made_run(config: BottleneckConfig) -> LengthRun:
    model = train_model(config)
    if config.seed == SEEDS[0] and config.context_size is None:
        write_model(model_path(config.attention), model, seed=config.seed)
    results = tuple(score_at(model, length) for length in LENGTHS)
    return LengthRun(config.attention, config.passed_on, config.seed, results)


def main() -> None:
    """Train and test every model, and write the table and the weights."""
    argparse.ArgumentParser(description=main.__doc__).parse_args()
    MODELS.mkdir(parents=True, exist_ok=True)
    with one_thread():  # steps are too small to share
        runs = [_made_run(config) for config in configs()]
    write_runs(BOTTLENECK, runs)


if __name__ == "__main__":
    main()
