"""Two recurrent networks in series as a diagram, and what passes between them.

The encoder stands below and reads from left to right; the decoder stands above and
writes from left to right. Between them lies the context: one vector for all steps, or
with attention a new one for each step, mixed of all encoder states. It enters the state
of the step, or passes by it and joins it where the letter is written. The decoder
starts from the last encoder state, and one of its own states asks for the mixture.
"""

from collections.abc import Iterable, Sequence

from core.captions import percent
from core.charts.diagram import Edge, Node

_LOOKS = {"encoder": ("memory", "h"), "decoder": ("feed_forward", "s")}
Y_DOMAIN = (-0.55, 6.2)
_SOURCE, _ENCODER, _CONTEXT, _DECODER, _OUTPUT = 0.0, 1.15, 3.15, 4.7, 5.75
_WIDTH, _HEIGHT = 0.72, 0.62  # of a state
_CONTEXT_WIDTH = 4.6
_LEFT = -2.3  # where the names of the rows begin
_TURN = 3.92  # height at which the last encoder state turns to the decoder
_APART = 0.7  # between what asks and what is read, at the context
_PIXELS = 900  # width of the plane in a page, about
_NARROW, _WIDE = 4.5, 8.5  # pixels of a point and of another sign of a weight


def x_domain(source: Sequence[str], answer: Sequence[str]) -> tuple[float, float]:
    """Return the ends of the plane that so many letters take."""
    return _LEFT, max(len(source), len(answer), 6) - 0.4


def two_rnns(
    source: Sequence[str],
    answer: Sequence[str],
    *,
    hidden_size: int,
    context_size: int,
    step: int = 0,
    weights: Sequence[float] | None = None,
    joins_letter: bool = False,
    wrong: Sequence[int] = (),
) -> tuple[list[Node], list[Edge]]:
    """Return the nodes and edges of encoder, context and decoder.

    Args:
        source: Letters that the encoder reads, at least one.
        answer: Letters that the decoder writes, the end among them.
        hidden_size: Numbers in each state.
        context_size: Numbers that pass from the encoder to the decoder at a step.
        step: The step of the decoder whose context is drawn, for attention.
        weights: Its weight on each encoder state, (S,); None for a decoder without
            attention, which reads the last state alone.
        joins_letter: Whether what is read passes the state by and joins its letter;
            that state asks then, and the one before it if not.
        wrong: Steps of the decoder that get a frame round their letter.
    """
    left, right = x_domain(source, answer)
    middle, pixel = right / 2 - 0.3, (right - left) / _PIXELS
    nodes = [
        *_row(source, _SOURCE, "tokens", "reads"),
        *_states("encoder", len(source), _ENCODER, hidden_size),
        _context(middle, context_size, step, weights is not None),
        *_states("decoder", len(answer), _DECODER, hidden_size),
        *_row(answer, _OUTPUT, "output", "writes"),
        *_frames(step for step in wrong if step < len(answer)),
    ]
    edges = [
        *_upward(len(source), _SOURCE, _ENCODER),
        *_chain(len(source), _ENCODER),
        *_chain(len(answer), _DECODER),
        *_upward(len(answer), _DECODER, _OUTPUT),
    ]
    if weights is None:
        return nodes, [*edges, *_between(len(source) - 1, middle, 0)]
    shares = [_share(at, weight, pixel) for at, weight in enumerate(weights)]
    edges += [
        *(edge for at in range(len(source)) for edge in _into(at, middle)),
        *_asks(step if joins_letter else step - 1, middle),
        _past_state(middle, step) if joins_letter else _out_of(middle, step, _APART),
        _start(len(source) - 1, middle),
    ]
    return [*nodes, *shares], edges


def _row(letters: Sequence[str], y: float, kind: str, does: str) -> list[Node]:
    label = Node("heading", _LEFT + 0.4, y, does, width=0.8, height=_HEIGHT)
    boxes = [
        Node(kind, float(at), y, letter, "", f"{does} {letter}", _WIDTH, _HEIGHT)
        for at, letter in enumerate(letters)
    ]
    return [label, *boxes]


def _frames(steps: Iterable[int]) -> list[Node]:
    sizes = _WIDTH + 0.08, _HEIGHT + 0.12
    return [Node("mark", float(at), _OUTPUT, "", "", "", *sizes) for at in steps]


def _states(name: str, count: int, y: float, size: int) -> list[Node]:
    kind, sign = _LOOKS[name]
    label = Node("heading", _LEFT + 0.4, y, name, width=0.8, height=_HEIGHT)
    boxes = [
        Node(
            kind,
            float(at),
            y,
            f"{sign}{at}".translate(_LOWERED),
            "",
            f"{name} state after position {at}: {size} numbers",
            _WIDTH,
            _HEIGHT,
        )
        for at in range(count)
    ]
    return [label, *boxes]


def _context(middle: float, size: int, step: int, attends: bool) -> Node:
    word = "number" if size == 1 else "numbers"
    label, words = f"context: {size} {word}", f"all that passes on: {size} {word}"
    if attends:
        label = f"context of step {step}: {size} {word}"
        words = f"a weighted mean of all encoder states, anew at each step: {size}"
    return Node("attention", middle, _CONTEXT, label, "", words, _CONTEXT_WIDTH, 0.7)


def _share(at: int, weight: float, pixel: float) -> Node:
    """Return a weight in the middle over its state; ``pixel`` is one in units."""
    said, label = f"{percent(weight)} of the context is h", _short(weight)
    said += str(at).translate(_LOWERED)
    width = pixel * sum(_NARROW if sign == "." else _WIDE for sign in label)
    return Node("heading", float(at), _ENCODER + 0.64, label, "", said, width)


def _short(weight: float) -> str:
    """Return a weight with two decimals that never rounds to 0 or to 1."""
    if weight in (0.0, 1.0):
        return f"{weight:.0f}"
    if weight < 0.005:
        return "<.01"
    return ">.99" if weight >= 0.995 else f"{weight:.2f}".removeprefix("0")


def _chain(count: int, y: float) -> list[Edge]:
    half = _WIDTH / 2
    return [Edge(((at + half, y), (at + 1 - half, y))) for at in range(count - 1)]


def _upward(count: int, low: float, high: float) -> list[Edge]:
    half = _HEIGHT / 2
    return [Edge(((at, low + half), (at, high - half))) for at in range(count)]


def _between(last: int, middle: float, first: int) -> list[Edge]:
    return [*_into(last, middle, low=_ENCODER + _HEIGHT / 2), _out_of(middle, first)]


def _into(at: int, middle: float, *, low: float = _ENCODER + 0.93) -> list[Edge]:
    """Return the line from an encoder state to the nearest place of the context."""
    half = _CONTEXT_WIDTH / 2 - 0.15
    end = min(max(float(at), middle - half), middle + half)
    return [Edge(((float(at), low), (end, _CONTEXT - 0.35)))]


def _asks(asker: int, middle: float) -> list[Edge]:
    """Return the line from the state that asks; none before the first of them."""
    if asker < 0:
        return []
    half = _CONTEXT_WIDTH / 2 - 0.15
    end = min(max(float(asker), middle - half), middle + half - _APART)
    return [Edge(((float(asker), _DECODER - _HEIGHT / 2), (end, _CONTEXT + 0.35)))]


def _start(last: int, middle: float) -> Edge:
    """Return the line from the last encoder state, round the context, to the first."""
    side = max(last + 0.5, middle + _CONTEXT_WIDTH / 2 + 0.25)
    under = -_WIDTH / 4  # what is read enters in the middle
    corners = (side, _ENCODER), (side, _TURN), (under, _TURN)
    return Edge(
        ((last + _WIDTH / 2, _ENCODER), *corners, (under, _DECODER - _HEIGHT / 2))
    )


def _out_of(middle: float, step: int, inset: float = 0.0) -> Edge:
    half = _CONTEXT_WIDTH / 2 - 0.15
    start = min(max(float(step), middle - half + inset), middle + half)
    return Edge(((start, _CONTEXT + 0.35), (float(step), _DECODER - _HEIGHT / 2)))


def _past_state(middle: float, step: int) -> Edge:
    """Return the line from the context, past the state of a step, to its letter."""
    half = _CONTEXT_WIDTH / 2 - 0.15
    beside = step + 0.5
    start = min(max(beside, middle - half + _APART), middle + half)
    corners = (
        (start, _CONTEXT + 0.35),
        (beside, _DECODER - _HEIGHT / 2 - 0.25),
        (beside, _OUTPUT),
    )
    return Edge((*corners, (step + _WIDTH / 2, _OUTPUT)))


_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
