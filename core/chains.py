"""How many operations lie between two tokens: chains in the graph of a real pass."""

from collections import deque
from typing import NamedTuple

import torch
from torch.autograd.graph import Node

from core.checks import require_choice, require_int
from core.initial import generator_from
from core.path_length import (
    MAX_SEQ_LEN,
    MAX_WIDTH,
    MODELS,
    draw_attention,
    draw_cell,
)
from core.recurrent import run_steps


class Chains(NamedTuple):
    """Operations between the first token and the last output of a layer.

    Attributes:
        longest: The longest chain of operations that wait for each other.
        shortest: The shortest way from the first token to the last output.
    """

    longest: int
    shortest: int


def chains(model: str, *, seq_len: int, width: int = 4) -> Chains:
    """Count the operations between the first token and the last output.

    They are counted in the graph that autograd records of a real pass, in which every
    operation waits for its inputs. Views such as a transpose count like the others.

    Args:
        model: "rnn", "gru", "lstm" or "attention".
        seq_len: Number of tokens n, 1 to 128.
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
        output = draw_attention(width, generator).attend(x, x, x).output[0, -1]
    else:
        output = run_steps(model, tokens, draw_cell(model, width, None, generator))[-1]
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


def _inputs(node: Node) -> list[Node]:
    return [part for part, _ in node.next_functions if part is not None]
