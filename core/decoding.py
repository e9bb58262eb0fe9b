"""Decoding: from a source to an answer, one token after the other.

The search knows a model only by ``encode``, ``decode``, ``begin`` and ``advance``; see
``Decodable``. PAD and START are no answers and are never chosen; probabilities are the
model's own all the same.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from core.checks import RefusedError, require_int
from core.vocabulary import END, PAD, START

MAX_BEAM = 1000
MAX_ANSWER = 256


class Decodable(Protocol):
    """An encoder–decoder, as decoding sees it."""

    def encode(self, source: Tensor) -> Any:
        """Return what the decoder reads of sources (B, S)."""

    def decode(self, memory: Any, target_in: Tensor) -> Tensor:
        """Return the logits (B, T, V) of all positions of a target at once."""

    def begin(self, memory: Any) -> Any:
        """Return the state before the first token, with ``select`` of its rows."""

    def advance(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Read one token a row, (B,); return logits (B, V) and the next state."""


class Decoded(NamedTuple):
    """An answer for each source.

    Attributes:
        tokens: Numbers of the tokens, without START and END.
        ended: Whether the model said END; otherwise the limit cut it off.
        log_probability: Sum of ln p over the tokens, END among them.
    """

    tokens: list[list[int]]
    ended: list[bool]
    log_probability: list[float]


class Step(NamedTuple):
    """One step of decoding one source.

    Attributes:
        read: The token that the decoder read last.
        distribution: Probability of every token to come next, (V,); sums to 1.
        chosen: The most probable one.
    """

    read: int
    distribution: Tensor
    chosen: int


class Hypothesis(NamedTuple):
    """One answer that a beam holds.

    Attributes:
        tokens: Its tokens so far; END stands last where it is reached.
        log_probability: Sum of ln p over them.
        ended: Whether END is reached.
    """

    tokens: tuple[int, ...]
    log_probability: float
    ended: bool


@torch.inference_mode()
def greedy_decode(
    model: Decodable, source: Tensor, *, max_len: int, cached: bool = True
) -> Decoded:
    """Return the answers that take the most probable token at every step.

    Args:
        model: An encoder–decoder, in evaluation mode.
        source: Sources, (B, S), int64, PAD where they end.
        max_len: Most tokens of an answer, END counted.
        cached: True keeps keys and values (or the recurrent state) of earlier tokens;
            False reads the whole target again at every step. The answers are the same.

    Raises:
        RefusedError: If ``max_len`` is out of range or ``source`` is no (B, S).
    """
    _check(source, max_len)
    reader = (_CachedReader if cached else _PlainReader)(model, source)
    tokens = source.new_full((len(source),), START)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    chosen, gains = [], []
    for _ in range(max_len if len(source) else 0):
        log_p = reader.read(tokens).log_softmax(dim=-1)
        tokens = _choosable(log_p).argmax(dim=-1).where(~ended, END)
        gain = log_p.gather(1, tokens[:, None]).squeeze(1)
        gains.append(gain.masked_fill(ended, 0.0))
        chosen.append(tokens)
        ended = ended | (tokens == END)
        if ended.all():
            break
    return _decoded(chosen, gains, ended)


@torch.inference_mode()
def decode_steps(
    model: Decodable,
    source: Tensor,
    *,
    max_len: int,
    forced: Sequence[int] | None = None,
) -> list[Step]:
    """Return every step of decoding one source.

    Args:
        model: An encoder–decoder, in evaluation mode.
        source: One source, (1, S).
        max_len: Most steps; a step that chooses END is the last.
        forced: Tokens that the decoder reads instead of its own choices (teacher
            forcing): after START one a step, so there is one step more than these are,
            whatever is chosen.

    Raises:
        RefusedError: If ``max_len`` is out of range or ``source`` is no (1, S).
    """
    _check(source, max_len, single=True)
    reader, steps = _CachedReader(model, source), list[Step]()
    given = None if forced is None else [START, *forced][:max_len]
    for number in range(max_len if given is None else len(given)):
        own = steps[-1].chosen if steps else START
        read = own if given is None else given[number]
        distribution = reader.read(source.new_tensor([read]))[0].softmax(dim=-1)
        chosen = int(_choosable(distribution).argmax())
        steps.append(Step(read, distribution, chosen))
        if given is None and chosen == END:
            break
    return steps


@torch.inference_mode()
def beam_search(
    model: Decodable,
    source: Tensor,
    *,
    beam_size: int,
    max_len: int,
    on_step: Callable[[list[Hypothesis]], None] | None = None,
) -> list[Hypothesis]:
    """Return the most probable answers that a beam finds, best first.

    At every step each answer in the beam is continued by every token, and the
    ``beam_size`` most probable continuations stay. Those that end leave the beam and
    are kept; the search is over when no answer in the beam can still overtake them.
    A beam of 1 is greedy decoding. There is no bonus for length.

    Args:
        model: An encoder–decoder, in evaluation mode.
        source: One source, (1, S).
        beam_size: Answers in the beam.
        max_len: Most tokens of an answer, END counted.
        on_step: Called after every step with what is held then, best first.

    Returns:
        At most ``beam_size`` answers; those that the limit cut off have not ended.

    Raises:
        RefusedError: If a number is out of range or ``source`` is no (1, S).
    """
    require_int("beam_size", beam_size, 1, MAX_BEAM)
    _check(source, max_len, single=True)
    beam, done = [Hypothesis((), 0.0, False)], list[Hypothesis]()
    state = model.begin(model.encode(source))
    for _ in range(max_len):
        last = [held.tokens[-1] if held.tokens else START for held in beam]
        logits, state = model.advance(source.new_tensor(last), state)
        grown, parents = _best_continuations(beam, logits, beam_size)
        done = _best([*done, *(held for held in grown if held.ended)], beam_size)
        living = [n for n, held in enumerate(grown) if not held.ended]
        beam = [grown[n] for n in living]
        if on_step is not None:
            on_step(_best([*done, *beam], beam_size))
        if not beam or _is_settled(done, beam, beam_size):
            return done
        state = state.select(source.new_tensor([parents[n] for n in living]))
    return _best([*done, *beam], beam_size)


def beam_steps(
    model: Decodable, source: Tensor, *, beam_size: int, max_len: int
) -> list[list[Hypothesis]]:
    """Return what a beam search holds after each of its steps, best first.

    Args:
        model: An encoder–decoder, in evaluation mode.
        source: One source, (1, S).
        beam_size: Answers in the beam.
        max_len: Most tokens of an answer, END counted.
    """
    held: list[list[Hypothesis]] = []
    beam_search(
        model, source, beam_size=beam_size, max_len=max_len, on_step=held.append
    )
    return held


class _CachedReader:
    """Reads token after token and keeps the state in between."""

    def __init__(self, model: Decodable, source: Tensor) -> None:
        self._model = model
        self._state = model.begin(model.encode(source))

    def read(self, tokens: Tensor) -> Tensor:
        """Return the logits (B, V) after one more token a row, (B,)."""
        logits, self._state = self._model.advance(tokens, self._state)
        return logits


class _PlainReader:
    """Keeps the tokens alone and reads all of them again each time."""

    def __init__(self, model: Decodable, source: Tensor) -> None:
        self._model = model
        self._memory = model.encode(source)
        self._target = source.new_empty(len(source), 0)

    def read(self, tokens: Tensor) -> Tensor:
        """Return the logits (B, V) after one more token a row, (B,)."""
        self._target = torch.cat([self._target, tokens[:, None]], dim=1)
        return self._model.decode(self._memory, self._target)[:, -1]


def _choosable(values: Tensor) -> Tensor:
    blocked = values.new_zeros(values.shape[-1], dtype=torch.bool)
    blocked[[PAD, START]] = True
    return values.masked_fill(blocked, -torch.inf)


def _decoded(chosen: list[Tensor], gains: list[Tensor], ended: Tensor) -> Decoded:
    columns = torch.stack(chosen, dim=1).tolist() if chosen else [[]] * len(ended)
    tokens = [row[: row.index(END)] if END in row else row for row in columns]
    sums = torch.stack(gains).sum(dim=0).tolist() if gains else [0.0] * len(ended)
    return Decoded(tokens, ended.tolist(), sums)


def _best_continuations(
    beam: list[Hypothesis], logits: Tensor, count: int
) -> tuple[list[Hypothesis], list[int]]:
    """Return the best ways to continue, and which of the beam each continues."""
    before = logits.new_tensor([held.log_probability for held in beam])
    totals = _choosable(before[:, None] + logits.log_softmax(dim=-1))
    order = totals.flatten().sort(descending=True, stable=True)
    grown, parents = [], []
    places = order.indices[:count].tolist()
    for total, place in zip(order.values[:count].tolist(), places, strict=True):
        parent, token = divmod(place, logits.shape[-1])
        if total > -torch.inf:
            tokens = (*beam[parent].tokens, token)
            grown.append(Hypothesis(tokens, total, token == END))
            parents.append(parent)
    return grown, parents


def _best(held: list[Hypothesis], count: int) -> list[Hypothesis]:
    return sorted(held, key=lambda one: -one.log_probability)[:count]


def _is_settled(done: list[Hypothesis], beam: list[Hypothesis], beam_size: int) -> bool:
    """Return whether no answer in the beam can still come among the best."""
    highest = max(held.log_probability for held in beam)
    return len(done) == beam_size and done[-1].log_probability >= highest


def _check(source: Tensor, max_len: int, *, single: bool = False) -> None:
    require_int("max_len", max_len, 1, MAX_ANSWER)
    if source.ndim != 2 or (single and len(source) != 1):
        wanted = "(1, S)" if single else "(B, S)"
        raise RefusedError(f"source {tuple(source.shape)} must be {wanted}")
