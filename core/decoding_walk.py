"""One answer of an encoder-decoder, token by token, and the loss of one position.

The decoder is fed either its own tokens, as when it answers, or the true ones, as when
it is trained (teacher forcing). Both are one pass over the tokens fed, for the causal
mask keeps later ones out of every earlier position.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from core.checks import RefusedError, require_int, require_number
from core.decoding import Hypothesis, beam_search, greedy_decode
from core.vocabulary import END, START


class WalkStep(NamedTuple):
    """One step of the decoder.

    Attributes:
        fed: The token fed last.
        logits: (V,), what the linear layer gives to each token.
        distribution: (V,), the softmax of the logits.
        chosen: The most probable token; neither padding nor the start can be one.
        true: The right token at this place; None behind the end of the right answer.
    """

    fed: int
    logits: Tensor
    distribution: Tensor
    chosen: int
    true: int | None


class Walk(NamedTuple):
    """The steps of an answer, and the tensors inside the model on the way.

    Attributes:
        source: Numbers of the source's tokens.
        target_in: Numbers of the tokens fed, the start token first.
        true: Numbers of the right answer, the end token last.
        forced: Whether the true tokens were fed.
        ended: Whether the last token chosen is the end token.
        steps: One a token fed.
        explained: What ``explain`` of the model returned, for a batch of one.
    """

    source: tuple[int, ...]
    target_in: tuple[int, ...]
    true: tuple[int, ...]
    forced: bool
    ended: bool
    steps: tuple[WalkStep, ...]
    explained: Any

    @property
    def chosen(self) -> tuple[int, ...]:
        """The most probable token of every step."""
        return tuple(step.chosen for step in self.steps)

    @property
    def right(self) -> bool:
        """Whether the most probable tokens are the right answer in full."""
        return self.chosen == self.true

    @property
    def first_wrong(self) -> int | None:
        """The first step whose token is not the right one; None where all are right."""
        wrong = (at for at, step in enumerate(self.steps) if step.chosen != step.true)
        return next(wrong, None)

    @property
    def least_sure(self) -> int:
        """The step whose most probable token has the least probability."""
        largest = [float(step.distribution.max()) for step in self.steps]
        return largest.index(min(largest))


class Moved(NamedTuple):
    """What another token fed at one place does to the logits.

    Attributes:
        place: Where the other token was fed; the start token is at 0.
        before: The token that was fed there.
        after: The other token.
        moves: (T,), the largest change of a logit at each place.
    """

    place: int
    before: int
    after: int
    moves: Tensor


class PositionLoss(NamedTuple):
    """The loss of one position and what it is made of, in nats.

    ``cross_entropy = target_entropy + divergence``.

    Attributes:
        log_probabilities: (V,), the logarithm of the softmax of the logits.
        target: (V,), the target distribution; sums to 1.
        cross_entropy: ``-sum q ln p``.
        target_entropy: ``-sum q ln q``, 0 of a one-hot target.
        divergence: ``sum q ln(q / p)``, the Kullback-Leibler divergence of p from q.
    """

    log_probabilities: Tensor
    target: Tensor
    cross_entropy: float
    target_entropy: float
    divergence: float


def walk_decoding(
    model: Any,
    source: Sequence[int],
    answer: Sequence[int],
    *,
    forced: bool,
    max_len: int,
) -> Walk:
    """Return every step of the decoder for one source.

    Args:
        model: An encoder-decoder with ``explain``.
        source: Numbers of the source's tokens, at least one.
        answer: Numbers of the right answer, without start and end.
        forced: Whether the true tokens are fed; else the model's own.
        max_len: Most tokens of an own answer, the end token counted.

    Raises:
        RefusedError: If the source is empty or ``max_len`` is below 1.
    """
    if not source:
        raise RefusedError("source must have at least 1 token, got 0")
    require_int("max_len", max_len, 1)
    rows = torch.tensor([list(source)])
    true = (*answer, END)
    follows = true if forced else _own_answer(model, rows, max_len)
    target_in = (START, *follows[:-1])
    with torch.no_grad():
        explained = model.explain(rows, torch.tensor([target_in]))
    logits = explained.logits[0]
    steps = tuple(
        WalkStep(
            fed=fed,
            logits=row,
            distribution=row.softmax(dim=-1),
            chosen=_likeliest(row) if forced else follows[at],
            true=true[at] if at < len(true) else None,
        )
        for at, (fed, row) in enumerate(zip(target_in, logits, strict=True))
    )
    ended = steps[-1].chosen == END
    return Walk(tuple(source), target_in, true, forced, ended, steps, explained)


def feed_another(model: Any, walk: Walk, place: int, token: int) -> Moved:
    """Return how far the logits move where another token is fed at one place.

    Args:
        model: The model of the walk.
        walk: A walk through it.
        place: Which of the tokens fed is replaced; the start token is at 0.
        token: Number of the token fed instead.

    Raises:
        RefusedError: If the place is none of the walk.
    """
    require_int("place", place, 0, len(walk.target_in) - 1)
    source, fed = torch.tensor([walk.source]), torch.tensor([walk.target_in])
    other = fed.clone()
    other[0, place] = token
    with torch.no_grad():
        # Both through one path of the model, so that equal inputs give equal numbers.
        before, after = (model.explain(source, rows).logits[0] for rows in (fed, other))
    moves = (after - before).abs().amax(dim=-1)
    return Moved(place, walk.target_in[place], token, moves)


def position_loss(logits: Tensor, true: int, smoothing: float = 0.0) -> PositionLoss:
    """Return the cross-entropy of one position against its target, taken apart.

    ``q = (1 - smoothing) one_hot(true) + smoothing / V``.

    Args:
        logits: (V,).
        true: Number of the right token.
        smoothing: Share of the target spread over all V tokens alike, in [0, 1].

    Raises:
        RefusedError: If the token is out of range or the share is.

    Reference: Szegedy et al. (2016), section 7, arXiv:1512.00567.
    """
    size = logits.shape[-1]
    require_int("true", true, 0, size - 1)
    require_number("smoothing", smoothing, 0.0, 1.0)
    log_p = logits.double().log_softmax(dim=-1)
    target = torch.full_like(log_p, smoothing / size)
    target[true] += 1 - smoothing
    log_q = target.clamp_min(torch.finfo(target.dtype).tiny).log()  # 0 ln 0 is 0
    cross = -(target * log_p).sum()
    entropy = -(target * log_q).sum() + 0.0  # no -0
    divergence = (target * (log_q - log_p)).sum()
    return PositionLoss(log_p, target, float(cross), float(entropy), float(divergence))


def most_probable(step: WalkStep, count: int) -> list[int]:
    """Return the tokens with the largest probabilities of a step, largest first.

    The token chosen and the right one are among them.
    """
    order = step.distribution.argsort(descending=True).tolist()
    wanted = {token for token in (step.chosen, step.true) if token is not None}
    others = [token for token in order if token not in wanted]
    return sorted([*wanted, *others[: count - len(wanted)]], key=order.index)


def search(
    model: Any, source: Sequence[int], *, beam_size: int, max_len: int
) -> tuple[list[list[Hypothesis]], list[Hypothesis]]:
    """Return what a beam holds after each step, and with what it ends, best first.

    Args:
        model: An encoder-decoder.
        source: Numbers of the source's tokens.
        beam_size: Hypotheses kept a step.
        max_len: Most tokens of an answer, the end token counted.
    """
    held: list[list[Hypothesis]] = []
    best = beam_search(
        model,
        torch.tensor([list(source)]),
        beam_size=beam_size,
        max_len=max_len,
        on_step=held.append,
    )
    return held, best


def _likeliest(logits: Tensor) -> int:
    return int(logits[END:].argmax()) + END  # padding and start come before the end


def _own_answer(model: Any, source: Tensor, max_len: int) -> tuple[int, ...]:
    """Return the tokens the model goes on with; the end token where it ends."""
    decoded = greedy_decode(model, source, max_len=max_len)
    (tokens,), (ended,) = decoded.tokens, decoded.ended
    return (*tokens, END) if ended else tuple(tokens)
