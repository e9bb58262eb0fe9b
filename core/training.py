"""Training in single steps: configuration in, one record a step out.

The numbers of a ``Trainer`` depend on its configuration alone.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.models import TransformerClassifier
from core.stepping import SteppedTraining
from core.tasks import marker_task
from core.train_config import TrainConfig

TRAIN_SEED = 0
TEST_SEED = 1
_EVALUATION_CHUNK = 64


class TrainRecord(NamedTuple):
    """What one step of training brought.

    Attributes:
        step: Number of the step, from 1.
        epoch: Number of the epoch it belongs to, from 1.
        loss: Binary cross-entropy of the batch before the update; ln 2 = 0.693 where
            every answer is p = 1/2.
        gradient_norm: Length of the gradient before clipping; nan if there was none.
        accuracy: Test accuracy in [0, 1] after the update; None where not measured.
    """

    step: int
    epoch: int
    loss: float
    gradient_norm: float
    accuracy: float | None


class TrainSnapshot(NamedTuple):
    """What the model attends to in one test sequence.

    Attributes:
        readout_rows: Weights of the readout, (num_layers, H, S); None for a model that
            is no Transformer.
    """

    readout_rows: Tensor | None


class Trainer(SteppedTraining[TrainRecord]):
    """A classifier and its training on the marker task, one step at a time.

    The recipe of the lab: shuffled epochs, binary cross-entropy, gradient clipping,
    Adam.

    Attributes:
        config: The configuration it was made from.
        model: The model in training.
        records: One record a step so far.
        stop_reason: Why the run is over, as a sentence; None while it goes on.
    """

    def __init__(self, config: TrainConfig, *, model: nn.Module | None = None) -> None:
        """Build model, data and optimizer.

        Args:
            config: All numbers of the run.
            model: Another model to train by the same recipe, (B, T, 1) -> logits
                (B, 1); None means the Transformer that ``config`` describes.

        Raises:
            ValueError: If the device is absent.
        """
        self.model = TransformerClassifier(config.model) if model is None else model
        super().__init__(config, self.model, config.train_samples)
        samples = marker_task(
            config.train_samples, config.seq_len, seed=TRAIN_SEED, noise=config.noise
        )
        self._inputs, self._targets = (values.to(self._device) for values in samples)
        self._test_data = self._make_test_data(config.seq_len, position=0)

    def evaluate(self, *, position: int = 0, seq_len: int | None = None) -> float:
        """Return the accuracy on the first ``config.num_tested`` test sequences.

        Args:
            position: Where their marker stands; in training it stands at 0.
            seq_len: Their length; None means that of training.

        Returns:
            Share of right answers, in [0, 1].

        Raises:
            ValueError: If a number is out of range, or the sequences are longer than
                the learned positions reach.
        """
        inputs, targets = self._test_sequences(position, seq_len)
        right = (self._logits(inputs) > 0) == (targets > 0)
        return right.sum().item() / len(right)

    def snapshot(self, *, position: int = 0) -> TrainSnapshot:
        """Return the attention that the model pays to one test sequence.

        The sequence is the first of the test data, the same in every run.

        Args:
            position: Where its marker stands; in training it stands at 0.

        Raises:
            ValueError: If the position is not one of the sequence.
        """
        inputs, _ = self._test_sequences(position, None)
        return TrainSnapshot(self._readout_rows(inputs[:1]))

    def _loss(self, chosen: Tensor) -> Tensor:
        inputs = self._inputs.index_select(0, chosen)
        targets = self._targets.index_select(0, chosen)
        self.model.train()
        return F.binary_cross_entropy_with_logits(self.model(inputs), targets)

    def _record(
        self, number: int, rate: float, loss: float, norm: float, due: bool
    ) -> TrainRecord:
        return TrainRecord(
            step=number,
            epoch=(number - 1) // self.config.steps_per_epoch + 1,
            loss=loss,
            gradient_norm=norm,
            accuracy=self.evaluate() if due else None,
        )

    def _goal_reached(self, record: TrainRecord) -> str | None:
        if record.accuracy is None or not self._target_is_held():
            return None
        config = self.config
        held = f"the test accuracy is at least {config.target_accuracy:.1%}"
        return f"{held} in {config.target_hold} evaluations running."

    def _target_is_held(self) -> bool:
        target, hold = self.config.target_accuracy, self.config.target_hold
        measured = [r.accuracy for r in self.records if r.accuracy is not None]
        held = [target is not None and a >= target for a in measured[-hold:]]
        return len(held) == hold and all(held)

    def _test_sequences(
        self, position: int, seq_len: int | None
    ) -> tuple[Tensor, Tensor]:
        length = self.config.seq_len if seq_len is None else seq_len
        if (length, position) == (self.config.seq_len, 0):
            return self._test_data
        return self._make_test_data(length, position=position)

    def _make_test_data(self, seq_len: int, *, position: int) -> tuple[Tensor, Tensor]:
        count = self.config.num_tested_at(seq_len)
        samples = marker_task(
            self.config.test_samples,
            seq_len,
            seed=TEST_SEED,
            position=position,
            noise=self.config.noise,
        )
        inputs, targets = (values[:count].to(self._device) for values in samples)
        return inputs, targets

    @torch.inference_mode()
    def _logits(self, inputs: Tensor) -> Tensor:
        self.model.eval()
        return torch.cat([self.model(x) for x in inputs.split(_EVALUATION_CHUNK)])

    @torch.inference_mode()
    def _readout_rows(self, inputs: Tensor) -> Tensor | None:
        if not isinstance(self.model, TransformerClassifier):
            return None
        self.model.eval()
        return self.model.readout_rows(inputs)[0].cpu()


def train(config: TrainConfig) -> Iterator[TrainRecord]:
    """Yield the records of a whole run, one a step.

    Args:
        config: All numbers of the run.
    """
    trainer = Trainer(config)
    while not trainer.finished:
        yield trainer.step()
