"""Training in single steps: configuration in, one record a step out.

A ``Trainer`` knows no thread and no screen. Its numbers depend on its configuration
alone: initial weights, order of the data and dropout each have a generator of their
own, so runs that take turns in one process train as if alone.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.device import pick_device
from core.dropout import use_generator
from core.models import MAX_SEED, TransformerClassifier
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


class Trainer:
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
        order_seed, dropout_seed = derived_seeds(config.seed)
        device = pick_device(config.device)
        self.config = config
        self.model = TransformerClassifier(config.model) if model is None else model
        self.model.to(device)
        self.records: list[TrainRecord] = []
        self.stop_reason: str | None = None
        self._device = device
        use_generator(self.model, dropout_generator(device, dropout_seed))
        samples = marker_task(
            config.train_samples, config.seq_len, seed=TRAIN_SEED, noise=config.noise
        )
        self._inputs, self._targets = (values.to(device) for values in samples)
        self._test_data = self._make_test_data(config.seq_len, position=0)
        self._batches = shuffled_batches(
            config.train_samples, config.batch_size, order_seed
        )
        self._optimizer = FlatAdam(self.model, clip_norm=config.clip_norm)

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self.stop_reason is not None

    def step(self) -> TrainRecord:
        """Take one step on the next batch, and evaluate where that is due.

        A loss or a gradient that is not finite ends the run and leaves the parameters
        as they were.

        Returns:
            What the step brought; also the last of ``records``.

        Raises:
            RuntimeError: If the run is over.
        """
        if self.finished:
            raise RuntimeError(f"the run is over. {self.stop_reason}")
        number = len(self.records) + 1
        loss, gradient_norm = self._update(self.config.rate_at(number))
        healthy = math.isfinite(loss) and math.isfinite(gradient_norm)
        due = number % self.config.eval_every == 0 or number == self.config.max_steps
        record = TrainRecord(
            step=number,
            epoch=(number - 1) // self.config.steps_per_epoch + 1,
            loss=loss,
            gradient_norm=gradient_norm,
            accuracy=self.evaluate() if due and healthy else None,
        )
        self.records.append(record)
        self.stop_reason = self._reason_to_stop(record)
        return record

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

    def _update(self, rate: float) -> tuple[float, float]:
        chosen = next(self._batches).to(self._device)
        inputs = self._inputs.index_select(0, chosen)
        targets = self._targets.index_select(0, chosen)
        self.model.train()
        loss = F.binary_cross_entropy_with_logits(self.model(inputs), targets)
        return self._optimizer.update(loss, rate)

    def _reason_to_stop(self, record: TrainRecord) -> str | None:
        config = self.config
        start = f"Training stopped at step {record.step}:"
        blown_up = what_is_not_finite(record.loss, record.gradient_norm)
        if blown_up:
            rate = f"learning rate ({config.learning_rate:g})"
            return f"{start} {blown_up}; {rate} is likely too large."
        if record.accuracy is not None and self._target_is_held():
            held = f"the test accuracy is at least {config.target_accuracy:.1%}"
            return f"{start} {held} in {config.target_hold} evaluations running."
        if record.step == config.max_steps:
            return f"{start} the cap of {config.max_steps} steps is reached."
        return None

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


class FlatAdam:
    """Adam over all parameters of a model at once, each gradient clipped before.

    Reference:
        Kingma and Ba, 2015, arXiv:1412.6980.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        clip_norm: float,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        """Lay the parameters of the model side by side.

        Args:
            model: The model, already on its device.
            clip_norm: The gradient is scaled down to this norm where it is longer.
            betas: Decay of the running means of gradients and of their squares.
        """
        self._parameters = flatten_parameters(model)
        self._adam = torch.optim.Adam([self._parameters], betas=betas, fused=True)
        self._clip_norm = clip_norm

    def update(self, loss: Tensor, rate: float) -> tuple[float, float]:
        """Take a step down a loss, unless it or its gradient is not finite.

        Args:
            loss: A scalar that the model gave.
            rate: Learning rate of the step.

        Returns:
            The loss, and the length of the gradient before clipping; nan if there was
            none.
        """
        if not math.isfinite(loss.item()):
            return loss.item(), math.nan
        self._adam.zero_grad(set_to_none=False)  # the gradients are views
        loss.backward()
        norm = nn.utils.clip_grad_norm_([self._parameters], self._clip_norm)
        if math.isfinite(norm.item()):
            self._adam.param_groups[0]["lr"] = rate
            self._adam.step()
        return loss.item(), norm.item()


def what_is_not_finite(loss: float, gradient_norm: float) -> str | None:
    """Return which of the two is no finite number, in words; None if both are.

    Args:
        loss: Loss of a step.
        gradient_norm: Length of its gradient.
    """
    for name, value in (("loss", loss), ("gradient", gradient_norm)):
        if not math.isfinite(value):
            return f"the {name} is no finite number"
    return None


def flatten_parameters(model: nn.Module) -> nn.Parameter:
    """Lay all parameters of a model side by side in one, and their gradients too.

    Each parameter becomes a view of its stretch, so clipping and the optimizer handle
    one tensor instead of dozens of small ones.

    Args:
        model: The model, already on its device.

    Returns:
        All parameters, (number of parameters,); its ``grad`` holds all gradients.
    """
    parameters = list(model.parameters())
    sizes = [parameter.numel() for parameter in parameters]
    flat = nn.Parameter(torch.cat([p.detach().flatten() for p in parameters]))
    flat.grad = torch.zeros_like(flat)
    stretches = zip(flat.detach().split(sizes), flat.grad.split(sizes), strict=True)
    for parameter, (values, gradient) in zip(parameters, stretches, strict=True):
        parameter.data = values.view_as(parameter)
        parameter.grad = gradient.view_as(parameter)
    return flat


def derived_seeds(seed: int) -> tuple[int, int]:
    """Return a seed for the order of the data and one for dropout.

    Args:
        seed: The seed of the run.
    """
    source = torch.Generator().manual_seed(seed)
    order_seed, dropout_seed = torch.randint(MAX_SEED, (2,), generator=source).tolist()
    return order_seed, dropout_seed


def dropout_generator(device: torch.device, seed: int) -> torch.Generator:
    """Return the source of the dropout masks of a model.

    Args:
        device: Where the model is.
        seed: Seed of the masks.
    """
    # Drawn where the model computes on CUDA; elsewhere on the CPU and carried over.
    home = device if device.type == "cuda" else torch.device("cpu")
    return torch.Generator(home).manual_seed(seed)


def shuffled_batches(count: int, batch_size: int, seed: int) -> Iterator[Tensor]:
    """Yield the rows of one batch after the other, in newly shuffled epochs, for ever.

    Args:
        count: Number of rows.
        batch_size: Rows in a batch; the last of an epoch may have fewer.
        seed: Decides the order.
    """
    generator = torch.Generator().manual_seed(seed)
    while True:  # one epoch each
        yield from torch.randperm(count, generator=generator).split(batch_size)
