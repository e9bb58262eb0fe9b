"""What all training in single steps shares: one record a step, until it is over.

A training knows no thread and no screen. Order of the data and dropout have a generator
each, so runs that take turns in one process train as if alone.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from core.checks import MAX_SEED
from core.device import pick_device
from core.dropout import use_generator

Record = TypeVar("Record")
ADAM_BETAS = (0.9, 0.999)


class SteppedTraining(ABC, Generic[Record]):
    """A model and its training, one step at a time: the part no task changes.

    Shuffled epochs, gradient clipping, Adam.

    Attributes:
        config: All numbers of the run.
        model: The model in training.
        records: One record a step so far.
        stop_reason: Why the run is over, as a sentence; None while it goes on.
    """

    def __init__(
        self,
        config: Any,
        model: nn.Module,
        num_rows: int,
        *,
        betas: tuple[float, float] = ADAM_BETAS,
    ) -> None:
        """Put the model on its device, with order, dropout and optimizer.

        Args:
            config: All numbers of the run; among them ``seed``, ``device``,
                ``batch_size``, ``clip_norm``, ``eval_every`` and ``max_steps``.
            model: The model to train.
            num_rows: Number of training examples.
            betas: Of Adam.

        Raises:
            ValueError: If the device is absent.
        """
        order_seed, dropout_seed = _derived_seeds(config.seed)
        self.config = config
        self.records: list[Record] = []
        self.stop_reason: str | None = None
        self._device = pick_device(config.device)
        model.to(self._device)
        use_generator(model, _dropout_generator(self._device, dropout_seed))
        self._batches = _shuffled_batches(num_rows, config.batch_size, order_seed)
        self._optimizer = FlatAdam(model, clip_norm=config.clip_norm, betas=betas)

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self.stop_reason is not None

    def step(self) -> Record:
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
        config, number = self.config, len(self.records) + 1
        rate = config.rate_at(number)
        loss = self._loss(next(self._batches).to(self._device))
        loss_value, norm = self._optimizer.update(loss, rate)
        blown_up = _what_is_not_finite(loss_value, norm)
        due = number % config.eval_every == 0 or number == config.max_steps
        record = self._record(number, rate, loss_value, norm, due and blown_up is None)
        self.records.append(record)
        reason = self._reason_to_stop(number, blown_up, record)
        if reason is not None:
            self.stop_reason = f"Training stopped at step {number}: {reason}"
        return record

    @abstractmethod
    def _loss(self, chosen: Tensor) -> Tensor:
        """Return the loss, a scalar, of the training examples of these numbers."""

    @abstractmethod
    def _record(
        self, number: int, rate: float, loss: float, norm: float, due: bool
    ) -> Record:
        """Return what a step brought, measured where that is due."""

    @abstractmethod
    def _goal_reached(self, record: Record) -> str | None:
        """Return in words which goal of the run is reached; None while none is."""

    def _reason_to_stop(
        self, number: int, blown_up: str | None, record: Record
    ) -> str | None:
        if blown_up:
            rate = f"learning rate ({self.config.learning_rate:g})"
            return f"{blown_up}; {rate} is likely too large."
        if (goal := self._goal_reached(record)) is not None:
            return goal
        if number == self.config.max_steps:
            return f"the cap of {number} steps is reached."
        return None


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
        betas: tuple[float, float] = ADAM_BETAS,
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


def _what_is_not_finite(loss: float, gradient_norm: float) -> str | None:
    """Return which of the two is no finite number, in words; None if both are."""
    for name, value in (("loss", loss), ("gradient", gradient_norm)):
        if not math.isfinite(value):
            return f"the {name} is no finite number"
    return None


def _derived_seeds(seed: int) -> tuple[int, int]:
    """Return a seed for the order of the data and one for dropout."""
    source = torch.Generator().manual_seed(seed)
    order_seed, dropout_seed = torch.randint(MAX_SEED, (2,), generator=source).tolist()
    return order_seed, dropout_seed


def _dropout_generator(device: torch.device, seed: int) -> torch.Generator:
    # Drawn where the model computes on CUDA; elsewhere on the CPU and carried over.
    home = device if device.type == "cuda" else torch.device("cpu")
    return torch.Generator(home).manual_seed(seed)


def _shuffled_batches(count: int, batch_size: int, seed: int) -> Iterator[Tensor]:
    """Yield the rows of one batch after the other, in newly shuffled epochs."""
    generator = torch.Generator().manual_seed(seed)
    while True:  # one epoch each
        yield from torch.randperm(count, generator=generator).split(batch_size)
