"""How far a token's influence reaches: Jacobians over distance.

A recurrent cell hands the first token on from state to state, so its influence is a
product of as many Jacobians as there are steps between. One attention layer reads it
directly, however far away it stands.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from core.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
    split_heads,
)
from core.checks import RefusedError, require_choice, require_int
from core.initial import generator_from
from core.recurrent import (
    CELLS,
    UNITS,
    CellWeights,
    initial_weights,
    run_over,
    sums,
)
from core.threads import one_thread

MODELS = (*CELLS, "attention")
MAX_SEQ_LEN = 128
MAX_WIDTH = 64
MAX_DRAWS = 32
NUM_DRAWS = 5
NUM_HEADS = 2


class Slopes(NamedTuple):
    """Derivatives of one block of a state after a step, unit by unit.

    Attributes:
        by_input: By the sums from the token, (draws, T, blocks · hidden).
        by_hidden: By the sums from the hidden state, (draws, T, blocks · hidden).
        own: By the unit's own last block of the state, (draws, T, hidden): h in a GRU,
            c in an LSTM, whose own h acts through the sums alone.
    """

    by_input: Tensor
    by_hidden: Tensor
    own: Tensor


def jacobian_norms(
    model: str,
    *,
    seq_len: int,
    width: int,
    forget_bias: float | None = None,
    seed: int = 0,
    num_draws: int = NUM_DRAWS,
) -> Tensor:
    """Return how strongly output t of an untrained layer depends on the first token.

    ``‖∂h_t/∂x_0‖ / √d`` with the Frobenius norm: the length, as root mean square, by
    which output t moves for a step of length 1 of token 0 in a random direction. In
    a recurrent cell ``∂h_t/∂x_0 = J_t J_{t-1} … J_1 · ∂h_0/∂x_0``.

    Args:
        model: "rnn", "gru", "lstm", or "attention" for one layer of
            ``MultiHeadAttention`` with two heads (one where the width is odd).
        seq_len: Number of tokens n, 1 to 128; all are normal with variance 1.
        width: Width d of tokens and outputs, 1 to 64.
        forget_bias: Of an LSTM's forget gate; None leaves it as drawn.
        seed: Decides weights and tokens; all models read the same tokens.
        num_draws: Independent draws of weights and tokens.

    Returns:
        Norms in float64, (num_draws, seq_len); column t is distance t. Tokens and
        weights are the same at every length, so a shorter one of a recurrent cell
        brings the first columns of a longer one.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_choice("model", model, MODELS)
    require_int("seq_len", seq_len, 1, MAX_SEQ_LEN)
    require_int("width", width, 1, MAX_WIDTH)
    require_int("num_draws", num_draws, 1, MAX_DRAWS)
    generator = generator_from(seed)
    longest = torch.randn(num_draws, MAX_SEQ_LEN, width, generator=generator)
    tokens = longest[:, :seq_len].double()
    with one_thread():
        jacobians = _jacobians(model, tokens, forget_bias, generator)
        return torch.linalg.matrix_norm(jacobians) / math.sqrt(width)


def _jacobians(
    model: str,
    tokens: Tensor,
    forget_bias: float | None,
    generator: torch.Generator,
) -> Tensor:
    """Return ``∂output_t/∂x_0`` of freshly drawn layers, (draws, T, d, d)."""
    num_draws, _, width = tokens.shape
    if model == "attention":
        _refuse_forget_bias(forget_bias)
        layers = [draw_attention(width, generator) for _ in range(num_draws)]
        pairs = zip(layers, tokens, strict=True)
        return torch.stack([attention_jacobians(layer, x) for layer, x in pairs])
    drawn = [draw_cell(model, width, forget_bias, generator) for _ in range(num_draws)]
    weights = CellWeights(*map(torch.stack, zip(*drawn, strict=True)))
    return cell_jacobians(model, tokens, weights)


def cell_jacobians(cell: str, tokens: Tensor, weights: CellWeights) -> Tensor:
    """Return ``∂h_t/∂x_0`` of a recurrent cell for every position t.

    ``∂s_t/∂x_0 = J_t J_{t-1} … J_1 · ∂s_0/∂x_0`` with ``J_t = ∂s_t/∂s_{t-1}``. The
    output h_t is part of the state s_t, which in an LSTM is h and c, else h alone.

    Args:
        cell: "rnn", "gru" or "lstm".
        tokens: (draws, T, input).
        weights: Stacked, with a leading size of draws; biases (draws, 1, ·).

    Returns:
        (draws, T, hidden, input).
    """
    after = run_over(cell, tokens, weights)
    before = torch.cat([torch.zeros_like(after[:, :1]), after[:, :-1]], dim=1)
    blocks = step_slopes(cell, tokens, before, weights)
    w_x, w_h, size = (*weights[:2], weights.hidden_weight.shape[-1])
    reached = [_through(b.by_input[:, :1], w_x, size)[:, 0] for b in blocks]
    moves = [
        (_through(b.by_hidden, w_h, size).unbind(1), b.own[..., None].unbind(1))
        for b in blocks
    ]
    outputs = [reached[0]]
    for t in range(1, tokens.shape[1]):
        hidden, carried = reached[0], reached[-1]
        reached = [torch.addcmul(m[t] @ hidden, own[t], carried) for m, own in moves]
        outputs.append(reached[0])
    return torch.stack(outputs, dim=1)


def step_slopes(
    cell: str, tokens: Tensor, states: Tensor, weights: CellWeights
) -> list[Slopes]:
    """Return how each unit's next state moves with what it sees, at all positions.

    A unit's next state depends on its own sums and its own state alone, so one
    backward pass a block of the state gives the derivatives of all units.

    Args:
        cell: "rnn", "gru" or "lstm".
        tokens: What each step reads, (draws, T, input).
        states: The state before each step, (draws, T, state).
        weights: Stacked, with a leading size of draws; biases (draws, 1, ·).

    Returns:
        One a block of the state: h, and in an LSTM c.
    """
    hidden_size = weights.hidden_weight.shape[-1]
    parts = (*sums(tokens, states, weights), states)
    leaves = [part.detach().requires_grad_() for part in parts]
    found = []
    for block in UNITS[cell](*leaves).split(hidden_size, dim=-1):
        by_input, by_hidden, by_state = torch.autograd.grad(
            block.sum(), leaves, retain_graph=True, materialize_grads=True
        )
        found.append(Slopes(by_input, by_hidden, by_state[..., -hidden_size:]))
    return found


def attention_jacobians(layer: MultiHeadAttention, tokens: Tensor) -> Tensor:
    """Return ``∂output_t/∂x_0`` of one attention layer for every position t.

    Token 0 reaches output t in one step, in two ways: as a value, ``p_t0 W_V``, and as
    a key, whose score moves the weights, ``p_t0 (v_0 - o_t) q_tᵀ W_K / √d_k``. Its own
    output it moves as a query too. W_O adds up the heads.

    Args:
        layer: The layer; its width is that of the tokens.
        tokens: (T, d_model).

    Returns:
        (T, d_model, d_model).
    """
    num_heads = layer.num_heads
    packed = layer.in_proj(tokens).detach().chunk(3, dim=-1)
    q, k, v = (split_heads(part, num_heads) for part in packed)  # (H, T, d_k)
    output, weights, _ = scaled_dot_product_attention(q, k, v)
    stacked = layer.in_proj.weight.detach().chunk(3)
    w_q, w_k, w_v = (w.unflatten(0, (num_heads, -1)) for w in stacked)  # (H, d_k, ·)
    read = weights[:, :, :1]  # what each output takes of token 0, (H, T, 1)
    by_score = read * (v[:, :1] - output) / math.sqrt(q.shape[-1])
    moved = read[..., None] * w_v[:, None]
    moved = moved + by_score[..., None] * (q @ w_k)[..., None, :]
    moved[:, 0] += _as_query(k, v, output, weights) @ w_q
    w_o = layer.out_proj.weight.detach().unflatten(1, (num_heads, -1))
    return torch.einsum("ohv,htvd->tod", w_o, moved)


def fade_with_length(
    short: int, long: int, *, distance: int, width: int, seed: int = 0
) -> float:
    """Return what is left of attention's norm at a distance when a sequence grows.

    The longer sequence begins with the shorter one, under the same layers; the median
    over 32 draws of the norm's ratio to that in the shorter one.

    Args:
        short: Number of tokens, at least 2.
        long: Number of tokens of the longer sequence.
        distance: The distance, within the shorter one.
        width: Width of the layer.
        seed: Seed of weights and tokens.

    Raises:
        ValueError: If a number is out of range.
    """
    require_int("short", short, 2, MAX_SEQ_LEN)
    require_int("long", long, short, MAX_SEQ_LEN)
    require_int("distance", distance, 0, short - 1)
    before, after = (
        jacobian_norms(
            "attention", seq_len=n, width=width, seed=seed, num_draws=MAX_DRAWS
        )[:, distance]
        for n in (short, long)
    )
    return float((after / before).median())


def first_below(norms: Tensor, limit: float) -> int | None:
    """Return the first distance at which norms lie below a limit, and stay there.

    Args:
        norms: One number a distance, (T,).
        limit: The limit.

    Returns:
        The distance; None where the last norm is not below.
    """
    above = (norms >= limit).nonzero()
    start = int(above[-1]) + 1 if len(above) else 0
    return start if start < len(norms) else None


def decay_a_step(norms: Tensor) -> float | None:
    """Return the factor by which the norms shrink a step, from the second half on.

    ``(norm_last / norm_half) ** (1 / steps)``

    Args:
        norms: One positive number a distance, (T,).

    Returns:
        The factor; None for fewer than three distances, or where a norm is 0.
    """
    if len(norms) < 3:
        return None
    half = len(norms) // 2
    start, end = float(norms[half]), float(norms[-1])
    if start == 0 or end == 0:
        return None
    return (end / start) ** (1 / (len(norms) - 1 - half))


def draw_cell(
    cell: str, width: int, forget_bias: float | None, generator: torch.Generator
) -> CellWeights:
    """Return an untrained cell in float64, biases as rows (1, ·)."""
    weights = initial_weights(
        cell,
        input_size=width,
        hidden_size=width,
        forget_bias=forget_bias,
        generator=generator,
    )
    rows = (values.double() for values in weights)
    return CellWeights(*(row if row.ndim == 2 else row[None] for row in rows))


def draw_attention(width: int, generator: torch.Generator) -> MultiHeadAttention:
    """Return an untrained layer in float64: two heads, or one where d is odd."""
    heads = NUM_HEADS if width % NUM_HEADS == 0 else 1
    return MultiHeadAttention(width, heads, generator=generator).double()


def _refuse_forget_bias(forget_bias: float | None) -> None:
    if forget_bias is not None:
        raise RefusedError(
            f"forget_bias ({forget_bias}) must be left out: attention has no gate"
        )


def _as_query(k: Tensor, v: Tensor, output: Tensor, weights: Tensor) -> Tensor:
    """Return how the first output of each head moves with its query, (H, d_v, d_k)."""
    by_scores = weights[:, 0, :, None] * (v - output[:, :1])  # (H, S, d_v)
    return by_scores.mT @ k / math.sqrt(k.shape[-1])


def _through(by_sums: Tensor, weight: Tensor, hidden_size: int) -> Tensor:
    """Lead derivatives by the sums of each block on through the weights.

    Args:
        by_sums: (draws, T, blocks · hidden).
        weight: (draws, blocks · hidden, columns).
        hidden_size: Units of a block.

    Returns:
        (draws, T, hidden, columns).
    """
    by_block = by_sums.unflatten(-1, (-1, hidden_size))[..., None].unbind(2)
    first, *others = weight.unflatten(-2, (-1, hidden_size))[:, None].unbind(2)
    led = by_block[0] * first
    for slopes, rows in zip(by_block[1:], others, strict=True):
        led.addcmul_(slopes, rows)
    return led
