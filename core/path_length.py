"""How far a token's influence reaches: Jacobians over distance, and chains of steps.

A recurrent cell hands the first token on from state to state, so its influence is a
product of as many Jacobians as there are steps between. One attention layer reads it
directly, however far away it stands.
"""

import math
from collections import deque
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import Node

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
    run_steps,
    sums,
)

MODELS = (*CELLS, "attention")
MAX_SEQ_LEN = 400
MAX_WIDTH = 64
MAX_DRAWS = 32
NUM_DRAWS = 5
NUM_HEADS = 2


class Chains(NamedTuple):
    """Operations between the first token and the last output of a layer.

    Attributes:
        longest: The longest chain of operations that wait for each other.
        shortest: The shortest way from the first token to the last output.
    """

    longest: int
    shortest: int


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
        seq_len: Number of tokens n, 1 to 400; all are normal with variance 1.
        width: Width d of tokens and outputs, 1 to 64.
        forget_bias: Of an LSTM's forget gate; None leaves it as drawn.
        seed: Decides weights and tokens; all models read the same tokens.
        num_draws: Independent draws of weights and tokens.

    Returns:
        Norms in float64, (num_draws, seq_len); column t is distance t.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_choice("model", model, MODELS)
    require_int("seq_len", seq_len, 1, MAX_SEQ_LEN)
    require_int("width", width, 1, MAX_WIDTH)
    require_int("num_draws", num_draws, 1, MAX_DRAWS)
    generator = generator_from(seed)
    tokens = torch.randn(num_draws, seq_len, width, generator=generator).double()
    if model == "attention":
        _refuse_forget_bias(forget_bias)
        layers = [_attention_layer(width, generator) for _ in range(num_draws)]
        pairs = zip(layers, tokens, strict=True)
        jacobians = torch.stack([attention_jacobians(layer, x) for layer, x in pairs])
    else:
        drawn = [_draw(model, width, forget_bias, generator) for _ in range(num_draws)]
        weights = CellWeights(*map(torch.stack, zip(*drawn, strict=True)))
        jacobians = cell_jacobians(model, tokens, weights)
    return torch.linalg.matrix_norm(jacobians) / math.sqrt(width)


def cell_jacobians(cell: str, tokens: Tensor, weights: CellWeights) -> Tensor:
    """Return ``∂h_t/∂x_0`` of a recurrent cell for every position t.

    ``∂s_t/∂x_0 = J_t J_{t-1} … J_1 · ∂s_0/∂x_0`` of the states s, of which h is a part.

    Args:
        cell: "rnn", "gru" or "lstm".
        tokens: (draws, T, input).
        weights: Stacked, with a leading size of draws; biases (draws, 1, ·).

    Returns:
        (draws, T, hidden, input).
    """
    per_position = [x.unsqueeze(-2) for x in tokens.unbind(dim=1)]
    after = torch.cat(run_steps(cell, per_position, weights), dim=1)
    before = torch.cat([torch.zeros_like(after[:, :1]), after[:, :-1]], dim=1)
    by_input, by_state = step_jacobians(cell, tokens, before, weights)
    reached = [by_input[:, 0]]
    for jacobian in by_state.unbind(dim=1)[1:]:
        reached.append(jacobian @ reached[-1])  # (draws, state, input)
    hidden_size = weights.hidden_weight.shape[-1]
    return torch.stack(reached, dim=1)[:, :, :hidden_size]


def step_jacobians(
    cell: str, tokens: Tensor, states: Tensor, weights: CellWeights
) -> tuple[Tensor, Tensor]:
    """Return the Jacobians of single steps, for all positions at once.

    A unit's next state depends on its own sums and its own state alone, so one
    backward pass gives these derivatives of every unit; the weights lead further on.

    Args:
        cell: "rnn", "gru" or "lstm".
        tokens: What each step reads, (draws, T, input).
        states: The state before each step, (draws, T, state).
        weights: Stacked, with a leading size of draws; biases (draws, 1, ·).

    Returns:
        ``∂s_t/∂x_t`` (draws, T, state, input), ``∂s_t/∂s_{t-1}`` (draws, T, state,
        state).
    """
    hidden_size = weights.hidden_weight.shape[-1]
    parts = (*sums(tokens, states, weights), states)
    leaves = [part.detach().requires_grad_() for part in parts]
    by_input, by_state = [], []
    for part in UNITS[cell](*leaves).split(hidden_size, dim=-1):
        grads = torch.autograd.grad(
            part.sum(), leaves, retain_graph=True, materialize_grads=True
        )
        by_input.append(_through(grads[0], weights.input_weight, hidden_size))
        rows = torch.zeros(*part.shape, states.shape[-1], dtype=part.dtype)
        through = _through(grads[1], weights.hidden_weight, hidden_size)
        rows[..., :hidden_size] = through
        own = grads[2].split(hidden_size, dim=-1)
        rows += torch.cat([torch.diag_embed(diagonal) for diagonal in own], dim=-1)
        by_state.append(rows)
    return torch.cat(by_input, dim=-2), torch.cat(by_state, dim=-2)


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


def chains(model: str, *, seq_len: int, width: int = 4) -> Chains:
    """Count the operations between the first token and the last output.

    They are counted in the graph that autograd records of a real pass, in which every
    operation waits for its inputs. Views such as a transpose count like the others.

    Args:
        model: "rnn", "gru", "lstm" or "attention".
        seq_len: Number of tokens n, 1 to 400.
        width: Width of the layer, 1 to 64.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_choice("model", model, MODELS)
    require_int("seq_len", seq_len, 1, MAX_SEQ_LEN)
    require_int("width", width, 1, MAX_WIDTH)
    generator = generator_from(0)
    first, *others = torch.randn(seq_len, width, generator=generator).double()
    tokens = [first.requires_grad_(), *others]
    if model == "attention":
        x = torch.stack(tokens)[None]
        output = _attention_layer(width, generator).attend(x, x, x).output[0, -1]
    else:
        output = run_steps(model, tokens, _draw(model, width, None, generator))[-1]
    return Chains(longest_chain(output.grad_fn), shortest_chain(output.grad_fn))


def longest_chain(root: Node | None) -> int:
    """Return the length of the longest chain that ends at a node of the graph."""
    lengths: dict[Node, int] = {}
    stack = [] if root is None else [root]
    while stack:  # a depth-first walk without recursion: chains are long
        node = stack[-1]
        inputs = _inputs(node)
        waiting = [part for part in inputs if part not in lengths]
        if waiting:
            stack.extend(waiting)
        else:
            lengths[stack.pop()] = 1 + max(
                (lengths[part] for part in inputs), default=-1
            )
    return lengths[root] if root is not None else 0


def shortest_chain(root: Node | None) -> int:
    """Return the number of operations on the shortest way back to the leaf."""
    waiting = deque([] if root is None else [(root, 0)])
    seen = set()
    while waiting:
        node, length = waiting.popleft()
        if not node.next_functions:  # the leaf: the first token
            return length
        for part in _inputs(node):
            if part not in seen:
                seen.add(part)
                waiting.append((part, length + 1))
    return 0


def fade_with_length(short: int, long: int, *, width: int, seed: int = 0) -> float:
    """Return what is left of attention's norms when a sequence grows longer.

    The median over draws and all distances but 0 of the long sequence, divided by that
    of the short one.

    Args:
        short: Number of tokens, at least 2.
        long: Another number of tokens.
        width: Width of the layer.
        seed: Seed of weights and tokens.

    Raises:
        ValueError: If a number is out of range.
    """
    require_int("short", short, 2, MAX_SEQ_LEN)
    require_int("long", long, 2, MAX_SEQ_LEN)
    before, after = (
        jacobian_norms("attention", seq_len=n, width=width, seed=seed)[:, 1:].median()
        for n in (short, long)
    )
    return float(after / before)


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


def _draw(
    cell: str, width: int, forget_bias: float | None, generator: torch.Generator
) -> CellWeights:
    weights = initial_weights(
        cell,
        input_size=width,
        hidden_size=width,
        forget_bias=forget_bias,
        generator=generator,
    )
    rows = (values.double() for values in weights)
    return CellWeights(*(row if row.ndim == 2 else row[None] for row in rows))


def _attention_layer(width: int, generator: torch.Generator) -> MultiHeadAttention:
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


def _inputs(node: Node) -> list[Node]:
    return [part for part, _ in node.next_functions if part is not None]


def _through(by_sums: Tensor, weight: Tensor, hidden_size: int) -> Tensor:
    """Lead derivatives by the sums of each block on through the weights.

    Args:
        by_sums: (draws, T, blocks · hidden).
        weight: (draws, blocks · hidden, columns).
        hidden_size: Units of a block.

    Returns:
        (draws, T, hidden, columns).
    """
    by_block = by_sums.unflatten(-1, (-1, hidden_size))
    blocks = weight.unflatten(-2, (-1, hidden_size))
    return torch.einsum("dtbh,dbhc->dthc", by_block, blocks)
