"""The terms of a race on the marker task: who runs, how large, on what.

Everything but the model is the same for all: data, order, batch, optimizer, steps.
"""

import functools
from bisect import bisect_left
from dataclasses import dataclass, replace

from core.checks import RefusedError, require_choice, require_int
from core.grid_cell import Cell
from core.recurrent import CELLS, MAX_HIDDEN, RecurrentClassifier
from core.training import TrainConfig

TRANSFORMER = "transformer"
WIDTH = 32  # of tokens, and of hidden states where parameters may differ
MIN_SEQ_LEN, MAX_SEQ_LEN = 10, 300
MAX_SEEDS = 10
MAX_STEPS = 1000
MAX_SECONDS = 1800.0
LOOK_EVERY = 20  # steps from one evaluation, and reading of the ruler, to the next
NUM_TESTED = 500  # sequences of an evaluation: at 300 tokens 52 % are of one class
_STEPS_A_LOOK = 4  # a look takes about as long as so many steps


@dataclass(frozen=True)
class Contender:
    """One model of the race.

    Attributes:
        name: Its name on the page.
        model: "transformer", "rnn", "gru" or "lstm".
        forget_bias: Of an LSTM's forget gate at the start; None is PyTorch's default.
    """

    name: str
    model: str
    forget_bias: float | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown model, and a forget bias without a forget gate."""
        require_choice("model", self.model, (TRANSFORMER, *CELLS))
        if self.forget_bias is not None and self.model != "lstm":
            raise RefusedError(
                f"forget_bias ({self.forget_bias:g}) needs a forget gate: only lstm "
                f"has one, got {self.model!r}"
            )


def contenders(forget_bias: float = 3.0) -> tuple[Contender, ...]:
    """Return all five, the last an LSTM that starts from a chosen forget bias."""
    opened = Contender(f"LSTM {forget_bias:+g}", "lstm", float(forget_bias))
    return (
        Contender("Transformer", TRANSFORMER),
        Contender("RNN", "rnn"),
        Contender("LSTM", "lstm"),
        Contender("GRU", "gru"),
        opened,
    )


@dataclass(frozen=True)
class FightConfig:
    """All numbers of a race.

    Attributes:
        contenders: Who runs.
        seq_len: Length of the sequences, 10 to 300.
        steps: Steps of training each.
        num_seeds: Each runs with the seeds 0 to ``num_seeds - 1``.
        equal_parameters: Whether hidden states are as wide as brings the parameters
            nearest to the Transformer's; else they have its width.
        batch_size: Sequences in a batch.
        learning_rate: Step size of Adam.

    Raises:
        ValueError: If a number is out of range, or the race would take too long or too
            much memory.
    """

    contenders: tuple[Contender, ...] = contenders()
    seq_len: int = 60
    steps: int = 300
    num_seeds: int = 1
    equal_parameters: bool = False
    batch_size: int = 64
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        """Refuse what cannot be run, in one sentence."""
        require_int("seq_len", self.seq_len, MIN_SEQ_LEN, MAX_SEQ_LEN)
        require_int("steps", self.steps, 1, MAX_STEPS)
        require_int("num_seeds", self.num_seeds, 1, MAX_SEEDS)
        if not self.contenders:
            raise RefusedError("contenders must be at least one, got none")
        if self.seconds > MAX_SECONDS:
            raise RefusedError(
                f"contenders ({len(self.contenders)}) × seeds ({self.num_seeds}) × "
                f"steps ({self.steps}) with seq_len ({self.seq_len}) would take about "
                f"{self.seconds / 60:.0f} min; it must be at most "
                f"{MAX_SECONDS / 60:.0f} min"
            )

    @property
    def seconds(self) -> float:
        """About how long the race keeps one thread of a CPU busy."""
        return self.num_seeds * sum(map(self._seconds_of, self.contenders))

    @property
    def num_results(self) -> int:
        """How many results ``watch_fight`` brings."""
        each = self.steps + len(look_steps(self.steps))
        return len(self.contenders) * self.num_seeds * each

    def cell(self, model: str = TRANSFORMER) -> Cell:
        """Return the recipe as a cell of the bench, which checks time and memory."""
        return Cell(
            model=model,
            d_model=WIDTH,
            seq_len=self.seq_len,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_steps=self.steps,
        )

    def training(self, seed: int) -> TrainConfig:
        """Return the training of every contender with a seed: one recipe for all.

        It would end one step after the race, so that no timed step evaluates.
        """
        return replace(
            self.cell().config(seed),
            max_steps=self.steps + 1,
            eval_every=self.steps + 1,
            test_samples=NUM_TESTED,
        )

    def hidden_size(self, contender: Contender) -> int:
        """Return the width of a contender: of its tokens or of its hidden state."""
        if contender.model == TRANSFORMER or not self.equal_parameters:
            return WIDTH
        return hidden_size_for(self.cell().config(0).model.num_parameters, contender)

    def num_parameters(self, contender: Contender) -> int:
        """Return how many numbers a contender learns."""
        if contender.model == TRANSFORMER:
            return self.cell().config(0).model.num_parameters
        return cell_parameters(contender.model, self.hidden_size(contender))

    def _seconds_of(self, contender: Contender) -> float:
        steps = self.steps + _STEPS_A_LOOK * len(look_steps(self.steps))
        seconds = self.cell(contender.model).seconds * steps / self.steps
        if contender.model == TRANSFORMER:
            return seconds
        usual = cell_parameters(contender.model, WIDTH)
        # Time grows more slowly than the parameters: about as their root.
        return seconds * (self.num_parameters(contender) / usual) ** 0.5


def look_steps(steps: int) -> list[int]:
    """Return after which steps of a race its models are looked at."""
    return sorted({*range(0, steps + 1, LOOK_EVERY), steps})


@functools.lru_cache(maxsize=128)
def cell_parameters(cell: str, hidden_size: int) -> int:
    """Return how many numbers a recurrent classifier learns."""
    model = RecurrentClassifier(cell, hidden_size=hidden_size)
    return sum(parameter.numel() for parameter in model.parameters())


@functools.lru_cache(maxsize=64)
def _nearest_size(parameters: int, cell: str) -> int:
    count = functools.partial(cell_parameters, cell)
    above = 1 + bisect_left(range(1, MAX_HIDDEN), parameters, key=count)
    below = max(1, above - 1)
    return min(below, above, key=lambda size: abs(count(size) - parameters))


def hidden_size_for(parameters: int, contender: Contender | str) -> int:
    """Return the hidden size whose number of parameters is nearest to a given one.

    Args:
        parameters: Number of parameters to come near to, at least 1.
        contender: A recurrent one, or the name of its cell.

    Raises:
        ValueError: If the number is out of range, or there is no such cell.
    """
    cell = contender if isinstance(contender, str) else contender.model
    require_choice("cell", cell, CELLS)
    require_int("parameters", parameters, 1)
    return _nearest_size(parameters, cell)
