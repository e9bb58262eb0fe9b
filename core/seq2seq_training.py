"""Training from text to text in single steps: configuration in, one record a step out.

As in ``core.training`` the numbers depend on the configuration alone.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from core.checks import require_int
from core.decoding import greedy_decode
from core.encoder_decoder import EncoderDecoderTransformer
from core.recurrent_seq2seq import RecurrentEncoderDecoder
from core.seq2seq import make_model
from core.seq2seq_config import (
    CONSTANT,
    MODELS,
    PAPER,
    PRESETS,
    SCHEDULES,
    STRAIGHT_DOWN,
    Seq2SeqConfig,
    preset,
)
from core.stepping import SteppedTraining
from core.text_tasks import Batch, Pair, TextTask, make_batch, pad_ids
from core.vocabulary import PAD, START

__all__ = [
    "CONSTANT", "MODELS", "PAPER", "PRESETS", "SCHEDULES", "STRAIGHT_DOWN", "Sample",
    "Score", "Seq2SeqConfig", "Seq2SeqRecord", "Seq2SeqSnapshot", "Seq2SeqTrainer",
    "held_out_pairs", "preset", "score_pairs", "target_loss", "training_data",
    "translate",
]  # fmt: skip

Model = EncoderDecoderTransformer | RecurrentEncoderDecoder

TRAIN_SEED = 0
TEST_SEED = 1
BETAS = (0.9, 0.98)  # of Adam: the paper's
NUM_SAMPLES = 8
_SCORED_TOGETHER = 256


class Seq2SeqRecord(NamedTuple):
    """What one step of training brought.

    Attributes:
        step: Number of the step, from 1.
        epoch: Number of the epoch it belongs to, from 1.
        loss: Mean cross-entropy of the batch's target tokens, in nats, before the
            update; ln V for a model that knows nothing.
        rate: Learning rate of the update.
        gradient_norm: Length of the gradient before clipping; nan if there was none.
        token_accuracy: Share of held-out target tokens that are the most probable after
            the true earlier ones; None where not measured.
        exact: Share of held-out sources whose greedy answer is right in full; None
            where not measured.
    """

    step: int
    epoch: int
    loss: float
    rate: float
    gradient_norm: float
    token_accuracy: float | None
    exact: float | None

    @property
    def accuracy(self) -> float | None:
        """The share of exact answers, under the name that live curves draw."""
        return self.exact


class Score(NamedTuple):
    """How well a model answers.

    Attributes:
        exact: Share of sources whose greedy answer is right in full, in [0, 1].
        token_accuracy: Share of target tokens, END among them, that are the most
            probable after the true earlier ones.
    """

    exact: float
    token_accuracy: float


class Sample(NamedTuple):
    """A held-out source and what the model makes of it.

    Attributes:
        source: Its tokens.
        answer: Tokens of the greedy answer.
        right: Whether that is the right one.
        ended: Whether the model said END before the limit.
    """

    source: tuple[str, ...]
    answer: tuple[str, ...]
    right: bool
    ended: bool


class Seq2SeqSnapshot(NamedTuple):
    """What the model makes of a few held-out sources.

    Attributes:
        samples: The same sources in every run of a task.
        mapped: Which of them ``cross_maps`` shows: the longest.
        cross_maps: Its cross-attention, one (H, T, S) a layer, while the model reads
            its own answer: row t is the query that gives token t of the answer, the
            last row gives END. Empty for a model without attention.
    """

    samples: tuple[Sample, ...]
    mapped: int
    cross_maps: tuple[Tensor, ...]


class Seq2SeqTrainer(SteppedTraining[Seq2SeqRecord]):
    """An encoder–decoder and its training on a text task, one step at a time.

    Teacher forcing, cross-entropy without the padding, gradient clipping, Adam with the
    paper's β = (0.9, 0.98). Batches are shuffled over all lengths: batches of like
    lengths hold less padding, but each pulls towards its own length.

    Attributes:
        config: The configuration it was made from.
        task: The task.
        model: The model in training.
        records: One record a step so far.
        stop_reason: Why the run is over, as a sentence; None while it goes on.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        """Build model, data and optimizer.

        Args:
            config: All numbers of the run.

        Raises:
            RefusedError: If the device is absent.
        """
        self.task: TextTask = config.text_task
        self.model: Model = make_model(config.model_config)
        super().__init__(config, self.model, config.train_pairs, betas=BETAS)
        self._data = training_data(config).to(self._device)
        self._held_out = held_out_pairs(config)

    def evaluate(self) -> Score:
        """Return the score on the held-out pairs of the configuration."""
        return score_pairs(self.model, self.task, self._held_out)

    def snapshot(self) -> Seq2SeqSnapshot:
        """Return what the model makes of the first held-out sources."""
        return translate(
            self.model, self.task, [p.source for p in self._held_out[:NUM_SAMPLES]]
        )

    def _loss(self, chosen: Tensor) -> Tensor:
        batch = self._data.rows(chosen)
        self.model.train()
        logits = self.model(batch.source, batch.target_in)
        smoothing = self.config.label_smoothing
        return target_loss(logits, batch.target_out, label_smoothing=smoothing)

    def _record(
        self, number: int, rate: float, loss: float, norm: float, due: bool
    ) -> Seq2SeqRecord:
        score = self.evaluate() if due else None
        return Seq2SeqRecord(
            step=number,
            epoch=(number - 1) // self.config.steps_per_epoch + 1,
            loss=loss,
            rate=rate,
            gradient_norm=norm,
            token_accuracy=score and score.token_accuracy,
            exact=score and score.exact,
        )

    def _goal_reached(self, record: Seq2SeqRecord) -> str | None:
        target, exact = self.config.target_exact, record.exact
        if exact is None or target is None or exact < target:
            return None
        return f"{exact:.1%} of the held-out answers are right in full."


def target_loss(
    logits: Tensor, target_out: Tensor, *, label_smoothing: float = 0.0
) -> Tensor:
    """Return the mean cross-entropy of the target tokens, in nats.

    ``-Σ_v q(v) ln p(v)`` at each position that is not PAD, where ``q`` is 1 on the
    right token; with smoothing ε it is ``1 - ε`` there, and ``ε/V`` more on every one.

    Args:
        logits: (B, T, V).
        target_out: Right tokens, (B, T); PAD does not count.
        label_smoothing: ε, in [0, 1).

    Returns:
        A scalar; nan if there is nothing but PAD.

    Reference:
        Szegedy et al., 2016, section 7 (label smoothing), arXiv:1512.00567.
    """
    return F.cross_entropy(
        logits.flatten(0, 1),
        target_out.flatten(),
        ignore_index=PAD,
        label_smoothing=label_smoothing,
    )


@torch.inference_mode()
def score_pairs(model: Model, task: TextTask, pairs: Sequence[Pair]) -> Score:
    """Return how well a model answers pairs; it is left in evaluation mode.

    Args:
        model: An encoder–decoder of the task's vocabularies.
        task: The task.
        pairs: At least one pair.

    Raises:
        RefusedError: If there is no pair.
    """
    require_int("number of pairs", len(pairs), 1)
    model.eval()
    exact, right_tokens, tokens = 0, 0, 0
    for start in range(0, len(pairs), _SCORED_TOGETHER):
        chunk = pairs[start : start + _SCORED_TOGETHER]
        batch = make_batch(task, chunk).to(next(model.parameters()).device)
        best = model(batch.source, batch.target_in).argmax(dim=-1)
        real = batch.target_out != PAD
        right_tokens += int(((best == batch.target_out) & real).sum())
        tokens += int(real.sum())
        answers = _answers(model, task, batch.source)
        exact += sum(
            task.is_right(pair.source, answer)
            for pair, (answer, ended) in zip(chunk, answers, strict=True)
            if ended
        )
    return Score(exact / len(pairs), right_tokens / tokens)


@torch.inference_mode()
def translate(
    model: Model, task: TextTask, sources: Sequence[tuple[str, ...]]
) -> Seq2SeqSnapshot:
    """Return the greedy answers to sources, and what the model attends to in one.

    Args:
        model: An encoder–decoder of the task's vocabularies; left in evaluation mode.
        task: The task.
        sources: At least one source, in tokens.
    """
    model.eval()
    device = next(model.parameters()).device
    table = pad_ids([task.source.encode(source) for source in sources]).to(device)
    samples = tuple(
        Sample(tuple(source), answer, task.is_right(source, answer) and ended, ended)
        for source, (answer, ended) in zip(
            sources, _answers(model, task, table), strict=True
        )
    )
    mapped = max(range(len(samples)), key=lambda n: len(samples[n].source))
    ids = task.source.encode(samples[mapped].source)
    answer = task.target.encode(samples[mapped].answer)
    target_in = [START, *answer][: task.max_target]
    explained = model.explain(
        torch.tensor([ids], device=device), torch.tensor([target_in], device=device)
    )
    maps = tuple(weights[0].cpu() for weights in explained.cross_maps)
    return Seq2SeqSnapshot(samples, mapped, maps)


def held_out_pairs(config: Seq2SeqConfig) -> list[Pair]:
    """Return the held-out pairs on which a run is measured; the seed plays no part.

    Args:
        config: All numbers of the run.
    """
    return _pairs(config, config.test_pairs, seed=TEST_SEED, held_out=True)


def training_data(config: Seq2SeqConfig) -> Batch:
    """Return all training pairs of a run as one batch; the seed plays no part.

    Args:
        config: All numbers of the run.
    """
    lengths = config.min_length, config.max_length
    return _training_data(config.task, *lengths, config.train_pairs)


@functools.lru_cache(maxsize=4)
def _training_data(
    task: str, min_length: int, max_length: int | None, count: int
) -> Batch:
    config = Seq2SeqConfig(task=task, min_length=min_length, max_length=max_length)
    pairs = _pairs(config, count, seed=TRAIN_SEED, held_out=False)
    return make_batch(config.text_task, pairs)


def _pairs(
    config: Seq2SeqConfig, count: int, *, seed: int, held_out: bool
) -> list[Pair]:
    return config.text_task.pairs(
        count, seed=seed, held_out=held_out, min_length=config.min_length
    )


def _answers(
    model: Model, task: TextTask, source: Tensor
) -> list[tuple[tuple[str, ...], bool]]:
    decoded = greedy_decode(model, source, max_len=task.max_target)
    texts = (tuple(task.target.decode(ids)) for ids in decoded.tokens)
    return list(zip(texts, decoded.ended, strict=True))
