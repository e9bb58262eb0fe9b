"""What a trained model attends to: its maps and rows over test sequences."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from core.checks import RefusedError, require_int
from core.models import ClassifierConfig, TransformerClassifier
from core.tasks import marker_task
from core.threads import one_thread
from core.training import TEST_SEED

NUM_SEQUENCES = 1000  # as many as a run of the marker task is tested on
MAX_MAP_CELLS = 10_000_000  # of all maps of one sequence
_TOKENS_AT_ONCE = 4096
_ASKED = 8  # sequences that tell whether a model answers with numbers


class Reading(NamedTuple):
    """One test sequence as a model reads it.

    S counts the CLS token, at position 0, where the model has one.

    Attributes:
        sequence: Number of the test sequence.
        inputs: Its numbers, (T,).
        target: Its class, 0 or 1.
        logit: Answer of the model; above 0 means class 1.
        probability: The same as the probability of class 1, in [0, 1].
        maps: Weights, (L, H, S, S); rows are queries, columns keys.
        rows: Weights of the readout, (L, H, S), each row summing to 1; for the mean
            readout the mean over all queries.
        marker_at: Place of the marker among the S positions.
        labels: Name of each of the S positions: ``"CLS"``, then numbers from 0.
    """

    sequence: int
    inputs: Tensor
    target: int
    logit: float
    probability: float
    maps: Tensor
    rows: Tensor
    marker_at: int
    labels: tuple[str, ...]


class ManyReadings(NamedTuple):
    """Maps over several test sequences: their mean and their spread.

    Attributes:
        count: Number of sequences.
        mean: Mean of the maps, (L, H, S, S).
        spread: Standard deviation of each weight over the sequences, (L, H, S, S); 0
            where there is one sequence.
        rows_mean: Mean of the rows of the readout, (L, H, S).
        rows_spread: Standard deviation of each of their weights, (L, H, S).
        marker_at: Place of the marker among the S positions.
    """

    count: int  # type: ignore[assignment]
    mean: Tensor
    spread: Tensor
    rows_mean: Tensor
    rows_spread: Tensor
    marker_at: int


@one_thread()
def read_sequence(
    model: TransformerClassifier, *, sequence: int, position: int = 0
) -> Reading:
    """Return what a model attends to in one test sequence.

    Args:
        model: A model of the marker task that drops nothing.
        sequence: Number of the test sequence, below ``NUM_SEQUENCES``.
        position: Where its marker stands; in training it stands at 0.

    Raises:
        ValueError: If a number is out of range, or the maps would hold more than
            ``MAX_MAP_CELLS`` weights.
    """
    require_int("sequence", sequence, 0, NUM_SEQUENCES - 1)
    inputs, targets = marker_sequences(model.config, NUM_SEQUENCES, position=position)
    x = inputs[sequence : sequence + 1]
    maps = _maps(model, x)
    logit = logits_of(model, x)
    return Reading(
        sequence=sequence,
        inputs=x[0, :, 0],
        target=int(targets[sequence]),
        logit=logit.item(),
        probability=logit.sigmoid().item(),
        maps=maps[0],
        rows=_rows(model.config, maps)[0],
        marker_at=_marker_at(model.config, position),
        labels=_labels(model.config),
    )


@one_thread()
def read_many(
    model: TransformerClassifier, *, count: int, position: int = 0
) -> ManyReadings:
    """Return mean and spread of the maps over the first test sequences.

    Args:
        model: A model of the marker task that drops nothing.
        count: Number of sequences, 1 to ``NUM_SEQUENCES``.
        position: Where their marker stands; in training it stands at 0.

    Raises:
        ValueError: As in ``read_sequence``.
    """
    inputs, _ = marker_sequences(model.config, count, position=position)
    size = max(1, MAX_MAP_CELLS // max(1, _map_cells(model.config)))
    maps, rows = _Moments(), _Moments()
    for x in inputs.split(min(size, _chunk_size(inputs))):
        seen = _maps(model, x)
        maps.add(seen)
        rows.add(_rows(model.config, seen))
    return ManyReadings(
        count=count,
        mean=maps.mean,
        spread=maps.spread,
        rows_mean=rows.mean,
        rows_spread=rows.spread,
        marker_at=_marker_at(model.config, position),
    )


def marker_sequences(
    config: ClassifierConfig, count: int, *, position: int = 0
) -> tuple[Tensor, Tensor]:
    """Return the first test sequences of the marker task, as long as a model reads.

    Args:
        config: Configuration of the model.
        count: Number of sequences, 1 to ``NUM_SEQUENCES``.
        position: Where their marker stands.

    Returns:
        Inputs (count, T, 1) and targets (count, 1).

    Raises:
        ValueError: If a number is out of range.
    """
    require_int("count", count, 1, NUM_SEQUENCES)
    samples = marker_task(
        NUM_SEQUENCES, config.seq_len, seed=TEST_SEED, position=position
    )
    inputs, targets = (values[:count] for values in samples)
    return inputs, targets


@one_thread()
def answers_in_numbers(model: TransformerClassifier) -> bool:
    """Return whether a model answers the first test sequences with numbers.

    A model that has diverged does not, even where each of its weights is a number.
    """
    inputs, _ = marker_sequences(model.config, _ASKED)
    return bool(logits_of(model, inputs).isfinite().all())


@torch.no_grad()
def logits_of(model: nn.Module, inputs: Tensor) -> Tensor:
    """Return the answers of a model, (B, T, input_size) -> (B, 1), a part at a time."""
    return torch.cat([model(x) for x in inputs.split(_chunk_size(inputs))])


class _Moments:
    """Mean and standard deviation over a first dimension that comes in parts.

    Reference:
        Chan, Golub and LeVeque, 1983, "Algorithms for Computing the Sample Variance",
        The American Statistician 37.
    """

    def __init__(self) -> None:
        self._count = 0
        self.mean = torch.zeros(())
        self._squares = torch.zeros(())  # summed squared distances from the mean

    def add(self, values: Tensor) -> None:
        count, total = len(values), self._count + len(values)
        mean = values.mean(dim=0)
        apart = mean - self.mean
        between = apart**2 * (self._count * count / total)
        self._squares = self._squares + ((values - mean) ** 2).sum(dim=0) + between
        self.mean = self.mean + apart * (count / total)
        self._count = total

    @property
    def spread(self) -> Tensor:
        return (self._squares / self._count).sqrt()


@torch.no_grad()
def _maps(model: TransformerClassifier, x: Tensor) -> Tensor:
    cells = _map_cells(model.config)
    if cells > MAX_MAP_CELLS:
        raise RefusedError(
            f"seq_len ({model.config.seq_len}), num_heads ({model.config.num_heads}) "
            f"and num_layers ({model.config.num_layers}) make maps of {cells:,} "
            f"weights; at most {MAX_MAP_CELLS:,} are read"
        )
    return torch.stack(model.attention_maps(x), dim=1)


def _map_cells(config: ClassifierConfig) -> int:
    return config.num_layers * config.num_heads * config.num_positions**2


def _rows(config: ClassifierConfig, maps: Tensor) -> Tensor:
    # (B, L, H, S, S) -> (B, L, H, S)
    return maps[..., config.positions_read or slice(None), :].mean(dim=-2)


def _marker_at(config: ClassifierConfig, position: int) -> int:
    return position + config.num_positions - config.seq_len


def _labels(config: ClassifierConfig) -> tuple[str, ...]:
    numbers = tuple(str(position) for position in range(config.seq_len))
    return ("CLS", *numbers) if config.readout == "cls" else numbers


def _chunk_size(inputs: Tensor) -> int:
    return max(1, _TOKENS_AT_ONCE // inputs.shape[1])
