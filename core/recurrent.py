"""Recurrent cells, one position after the other, and a classifier that reads the last.

A cell carries a state from position to position: whatever the first token leaves in the
last state has gone through every step between them.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from core.checks import RefusedError, require_choice, require_int, require_number
from core.initial import linear, seeded

CELLS = ("rnn", "gru", "lstm")
MAX_HIDDEN = 512
MAX_INPUT = 512
MAX_FORGET_BIAS = 10.0
_BLOCKS = {"rnn": 1, "gru": 3, "lstm": 4}  # rows of the weights, in hidden sizes
_MODULES: dict[str, Callable[..., nn.RNNBase]] = {
    "rnn": nn.RNN,
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}


class CellWeights(NamedTuple):
    """The weights of a cell, its gates stacked in PyTorch's order.

    Attributes:
        input_weight: From the input, (..., blocks · hidden, input).
        hidden_weight: From the hidden state, (..., blocks · hidden, hidden).
        input_bias: Added to the first product, (..., blocks · hidden).
        hidden_bias: Added to the second, (..., blocks · hidden).
    """

    input_weight: Tensor
    hidden_weight: Tensor
    input_bias: Tensor
    hidden_bias: Tensor


def rnn_units(from_input: Tensor, from_hidden: Tensor, state: Tensor) -> Tensor:
    """Return the next state of a plain recurrent cell, ``h' = tanh(a_x + a_h)``.

    Each unit sees its own numbers alone; units meet only in the products before.

    Args:
        from_input: ``a_x = W_x x + b_x``, (..., blocks · hidden).
        from_hidden: ``a_h = W_h h + b_h``, (..., blocks · hidden).
        state: State before the step, (..., state).

    Returns:
        State after it, (..., state).

    Reference:
        Elman, 1990, "Finding Structure in Time", Cognitive Science 14.
    """
    return torch.tanh(from_input + from_hidden)


def gru_units(from_input: Tensor, from_hidden: Tensor, state: Tensor) -> Tensor:
    """Return the next state of a gated recurrent unit.

    ``r, z = σ(a_x + a_h)``, ``n = tanh(a_x + r ⊙ a_h)``, ``h' = (1 - z) ⊙ n + z ⊙ h``,
    each with its own block. Takes and returns what ``rnn_units`` does.

    Reference:
        Cho et al., 2014, section 2.3, arXiv:1406.1078.
    """
    reset_x, update_x, new_x = from_input.chunk(3, dim=-1)
    reset_h, update_h, new_h = from_hidden.chunk(3, dim=-1)
    reset = torch.sigmoid(reset_x + reset_h)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + reset * new_h)
    return (1 - update) * new + update * state


def lstm_units(from_input: Tensor, from_hidden: Tensor, state: Tensor) -> Tensor:
    """Return the next state of a long short-term memory cell.

    ``i, f, o = σ(a_x + a_h)``, ``g = tanh(a_x + a_h)``, ``c' = f ⊙ c + i ⊙ g`` and
    ``h' = o ⊙ tanh(c')``. A forget gate f near 1 hands c on as it is. The state is h
    and c side by side.

    Reference:
        Hochreiter and Schmidhuber, 1997; the forget gate: Gers et al., 2000.
    """
    memory = state.chunk(2, dim=-1)[1]
    write, forget, new, show = (from_input + from_hidden).chunk(4, dim=-1)
    kept = torch.sigmoid(forget) * memory
    memory = kept + torch.sigmoid(write) * torch.tanh(new)
    return torch.cat([torch.sigmoid(show) * torch.tanh(memory), memory], dim=-1)


UNITS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "rnn": rnn_units,
    "gru": gru_units,
    "lstm": lstm_units,
}


def step(cell: str, x: Tensor, state: Tensor, weights: CellWeights) -> Tensor:
    """Return the state of a cell after one more token.

    Args:
        cell: "rnn", "gru" or "lstm".
        x: The token, (..., input).
        state: State before it, (..., state).
        weights: Of the cell.

    Returns:
        State after it, (..., state).
    """
    return UNITS[cell](*sums(x, state, weights), state)


def sums(x: Tensor, state: Tensor, weights: CellWeights) -> tuple[Tensor, Tensor]:
    """Return what a step adds up from the token and from the hidden state.

    ``W_x x + b_x`` and ``W_h h + b_h``, each (..., blocks · hidden). Takes what
    ``step`` does.
    """
    hidden = state[..., : weights.hidden_weight.shape[-1]]
    from_input = x @ weights.input_weight.mT + weights.input_bias
    return from_input, hidden @ weights.hidden_weight.mT + weights.hidden_bias


def state_size(cell: str, hidden_size: int) -> int:
    """Return how many numbers the state of a cell has: an LSTM carries two a unit."""
    return (2 if cell == "lstm" else 1) * hidden_size


def run_steps(
    cell: str, tokens: Sequence[Tensor], weights: CellWeights
) -> list[Tensor]:
    """Return the state after every position, beginning from zeros.

    Args:
        cell: "rnn", "gru" or "lstm".
        tokens: One a position, (..., input).
        weights: Of the cell.

    Returns:
        One state a position, (..., state).
    """
    if not tokens:
        return []
    hidden_size = weights.hidden_weight.shape[-1]
    state = tokens[0].new_zeros(*tokens[0].shape[:-1], state_size(cell, hidden_size))
    states = []
    for x in tokens:  # each step waits for the one before
        state = step(cell, x, state, weights)
        states.append(state)
    return states


def run_over(cell: str, tokens: Tensor, weights: CellWeights) -> Tensor:
    """Return what ``run_steps`` does for several draws at once, without a graph.

    What the tokens add is worked out for all positions beforehand; only the hidden
    state has to wait.

    Args:
        cell: "rnn", "gru" or "lstm".
        tokens: (draws, T, input).
        weights: Stacked, with a leading size of draws; biases (draws, 1, ·).

    Returns:
        The state after every position, (draws, T, state).
    """
    hidden_size = weights.hidden_weight.shape[-1]
    state = tokens.new_zeros(len(tokens), 1, state_size(cell, hidden_size))
    rows, states = weights.hidden_weight.mT.contiguous(), []
    with torch.no_grad():
        from_input = tokens @ weights.input_weight.mT + weights.input_bias
        for row in from_input.split(1, dim=1):
            hidden = state[..., :hidden_size]
            from_hidden = torch.baddbmm(weights.hidden_bias, hidden, rows)
            state = UNITS[cell](row, from_hidden, state)
            states.append(state)
    return torch.cat(states, dim=1)


def initial_weights(
    cell: str,
    *,
    input_size: int,
    hidden_size: int,
    forget_bias: float | None = None,
    generator: torch.Generator | None = None,
) -> CellWeights:
    """Draw the weights that PyTorch would start a cell from: uniform on ±1/√hidden.

    Args:
        cell: "rnn", "gru" or "lstm".
        input_size: Width of the tokens.
        hidden_size: Width of the hidden state.
        forget_bias: What the two biases of an LSTM's forget gate add up to; None
            leaves them as drawn, so that their sum lies within ±2/√hidden.
        generator: Source of the numbers; None means a fresh one seeded 0.

    Raises:
        ValueError: If a number is out of range, or a cell without a forget gate is
            given a bias for it.
    """
    require_choice("cell", cell, CELLS)
    require_int("input_size", input_size, 1, MAX_INPUT)
    require_int("hidden_size", hidden_size, 1, MAX_HIDDEN)
    rows, source = _BLOCKS[cell] * hidden_size, seeded(generator)
    shapes = ((rows, input_size), (rows, hidden_size), (rows,), (rows,))
    bound = 1 / math.sqrt(hidden_size)
    drawn = (torch.empty(s).uniform_(-bound, bound, generator=source) for s in shapes)
    weights = CellWeights(*drawn)
    if forget_bias is not None:
        _set_forget_bias(cell, weights, forget_bias)
    return weights


class RecurrentClassifier(nn.Module):
    """A recurrent layer that reads a sequence; the answer comes from its last state.

    ``logit = w · h_T + b``. It computes with PyTorch's own layer, whose kernels are
    faster than single steps and equal to them.
    """

    def __init__(
        self,
        cell: str = "lstm",
        *,
        hidden_size: int = 32,
        input_size: int = 1,
        forget_bias: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Draw the initial weights.

        Args:
            cell: "rnn", "gru" or "lstm".
            hidden_size: Width of the hidden state.
            input_size: Numbers a time step brings.
            forget_bias: As for ``initial_weights``.
            generator: Source of the numbers; None means a fresh one seeded 0.

        Raises:
            ValueError: As ``initial_weights``.
        """
        super().__init__()
        source = seeded(generator)
        weights = initial_weights(
            cell,
            input_size=input_size,
            hidden_size=hidden_size,
            forget_bias=forget_bias,
            generator=source,
        )
        self.cell = cell
        self.recurrent = torch_layer(cell, weights)
        self.output = linear(hidden_size, 1, generator=source)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of the classes, (B, T, input) -> (B, 1).

        Raises:
            ValueError: If the shape does not fit or the sequence is empty.
        """
        return self.output(self.hidden_states(x)[:, -1])

    def hidden_states(self, x: Tensor) -> Tensor:
        """Return the hidden state after every position, (B, T, hidden).

        Raises:
            ValueError: If the shape does not fit or the sequence is empty.
        """
        width = self.recurrent.input_size
        if x.ndim != 3 or x.shape[-1] != width or x.shape[1] == 0:
            raise RefusedError(
                f"x {tuple(x.shape)} must have shape (batch, length, {width}) with a "
                "length of at least 1"
            )
        if x.shape[0] == 0:  # PyTorch's layers take no empty batch
            return x.new_zeros(0, x.shape[1], self.recurrent.hidden_size)
        return self.recurrent(x)[0]


def torch_layer(cell: str, weights: CellWeights) -> nn.RNNBase:
    """Return PyTorch's layer of a cell with these weights, batch first."""
    rows, input_size = weights.input_weight.shape
    layer = _MODULES[cell](
        input_size, rows // _BLOCKS[cell], batch_first=True, device="meta"
    ).to_empty(device="cpu")
    with torch.no_grad():
        for parameter, values in zip(layer.parameters(), weights, strict=True):
            parameter.copy_(values)
    return layer


def _set_forget_bias(cell: str, weights: CellWeights, forget_bias: float) -> None:
    if cell != "lstm":
        raise RefusedError(
            f"forget_bias ({forget_bias}) needs a forget gate: of "
            f"{', '.join(CELLS)} only lstm has one, got cell {cell!r}"
        )
    require_number("forget_bias", forget_bias, -MAX_FORGET_BIAS, MAX_FORGET_BIAS)
    hidden_size = weights.hidden_weight.shape[-1]
    gate = slice(hidden_size, 2 * hidden_size)  # second of the four blocks
    weights.input_bias[gate] = forget_bias
    weights.hidden_bias[gate] = 0.0
