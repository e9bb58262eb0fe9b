"""What an encoder-decoder's maps and losses say in numbers, and how these are written.

Layers and heads are counted from 1, places of tokens from 0; head 0 is the mean of all
heads of a layer.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.captions import counted, unbroken
from core.decoding_walk import Moved, PositionLoss, Walk
from core.vocabulary import Vocabulary

MEAN = 0  # number of the "head" that is the mean of all
_SMALL = 1e-3  # numbers below are written with a power of ten


class Spread(NamedTuple):
    """Where the weights of a map lie.

    Attributes:
        entropies: (T,), of each row, in bits.
        largest: (T,), the largest weight of each row.
        peaks: (T,), the key that gets it.
        on_same: Share of all weight on source tokens that read as the token predicted;
            None where no such token stands in the source.
        repeated: Whether a token predicted stands in the source more than once.
    """

    entropies: Tensor
    largest: Tensor
    peaks: Tensor
    on_same: float | None
    repeated: bool


def percent(share: float) -> str:
    """Return a share with one decimal, "100 %" and "0 %" for exactly these alone."""
    if share in (0, 1):
        return unbroken(f"{100 * share:.0f} %")
    if share < 5e-4:
        return unbroken("<0.1 %")
    return unbroken(f"{100 * share:.1f} %" if share < 0.9995 else ">99.9 %")


def share(value: float) -> str:
    """Return a probability with three digits; only all of it is 1."""
    return ">0.999" if 0.9995 <= value < 1 else number(value)


def number(value: float) -> str:
    """Return a number with three digits, below 0.001 with a power of ten.

    Its minus is one at which no line is broken, and 0 has none.
    """
    small = 0 < abs(value) < _SMALL
    digits = f"{value:.2e}" if small else f"{value or 0.0:.3g}"
    return digits.replace("-", "−")


def probability(log_p: float) -> str:
    """Return p with three digits, or with three digits of what it lacks to 1."""
    missing = -math.expm1(log_p)
    near_1 = 0 < missing < 1e-3
    return unbroken(f"1 − {number(missing)}") if near_1 else number(math.exp(log_p))


def map_name(layer: int, head: int, num_heads: int) -> str:
    """Return whose map it is: of one head, or the mean of all heads of a layer."""
    if head != MEAN:
        return f"Layer {layer}, head {head}"
    return f"Layer {layer}, mean of {num_heads} heads"


def of_head(maps: Sequence[Tensor], layer: int, head: int) -> Tensor:
    """Return the map (T, S) of a layer's head, or the mean of them, of one example."""
    heads = maps[layer - 1][0]
    return heads.mean(dim=0) if head == MEAN else heads[head - 1]


def spread_of(weights: Tensor, source: Sequence[str], chosen: Sequence[str]) -> Spread:
    """Return where the weights of a cross-attention map lie.

    Args:
        weights: (T, S), rows sum to 1.
        source: The S tokens of the source.
        chosen: The T tokens that the decoder chose.
    """
    values = weights.double()
    entropies = _entropy_bits(values)
    largest, peaks = values.max(dim=-1)
    same = torch.tensor([[s == t for s in source] for t in chosen])
    rows = same.any(dim=-1)
    on_same = float((values * same)[rows].sum() / rows.sum()) if rows.any() else None
    repeated = bool((same.sum(dim=-1) > 1).any())
    return Spread(entropies, largest, peaks, on_same, repeated)


def spread_sentence(name: str, spread: Spread, num_keys: int) -> str:
    """Return entropy and largest weights of a map, over its rows.

    Args:
        name: Whose map it is.
        spread: From ``spread_of``.
        num_keys: Keys S of the map.
    """
    if num_keys == 1:
        return _one_key_sentence(name)
    said = (
        f"{name}: a row's largest weight is {percent(float(spread.largest.mean()))} on "
        f"average, its entropy {spread.entropies.mean():.2f} bits; spread evenly over "
        f"{num_keys} keys it would be {math.log2(num_keys):.2f}."
    )
    if spread.on_same is None:
        return said
    equal = " and on equal tokens" if spread.repeated else ""
    return (
        f"{said} Where the token predicted stands in the source, "
        f"{percent(spread.on_same)} of the weight lies on it{equal}."
    )


def mean_entropy_sentence(name: str, weights: Tensor) -> str:
    """Return how far the rows of a self-attention map spread, on average."""
    if weights.shape[-1] == 1:
        return _one_key_sentence(name)
    values = weights.double()
    entropy = float(_entropy_bits(values).mean())
    largest = float(values.max(dim=-1).values.mean())
    return (
        f"{name}: a row's largest weight is {percent(largest)} on average, its entropy "
        f"{entropy:.2f} bits."
    )


def row_sentence(name: str, row: Tensor, labels: Sequence[str]) -> str:
    """Return where one row of cross-attention lies: its peak and its entropy."""
    if len(labels) == 1:
        return _one_key_sentence(name)
    values = row.double()
    peak = int(values.argmax())
    entropy = float(_entropy_bits(values))
    return (
        f"{name}: this step reads most from source token '{labels[peak]}', "
        f"{percent(float(values[peak]))}; entropy {entropy:.2f} of at most "
        f"{math.log2(len(labels)):.2f} bits."
    )


def loss_rows(
    loss: PositionLoss, tokens: Sequence[int], vocabulary: Vocabulary
) -> list[tuple[str, ...]]:
    """Return token, p, q and its part of the cross-entropy; the others as one row."""
    p, q = loss.log_probabilities.exp(), loss.target
    parts = -loss.target * loss.log_probabilities
    rows = [
        (name, share(float(p[at])), *(number(float(v[at])) for v in (q, parts)))
        for at, name in zip(tokens, vocabulary.decode(tokens), strict=True)
    ]
    left = torch.ones(len(p), dtype=torch.bool)
    left[list(tokens)] = False
    sums = (number(float(values[left].sum())) for values in (p, q, parts))
    whole = (number(float(values.sum())) for values in (p, q, parts))
    return [
        *rows,
        (unbroken(counted(int(left.sum()), "other")), *sums),
        ("sum", *whole),
    ]


def sequence_loss_sentence(losses: Sequence[PositionLoss]) -> str:
    """Return the mean loss of all positions of a target, and the largest of them."""
    sizes = [loss.cross_entropy for loss in losses]
    most = max(range(len(sizes)), key=sizes.__getitem__)
    return (
        f"Mean over the {counted(len(sizes), 'position')} of this target: "
        f"{number(sum(sizes) / len(sizes))} nats; the largest, {number(sizes[most])}, "
        f"stands at position {most + 1}."
    )


def loss_sentence(loss: PositionLoss, true: int, vocabulary: Vocabulary) -> str:
    """Return the loss of one position worked out, and its relation to KL."""
    name = vocabulary.decode([true])[0]
    log_p = float(loss.log_probabilities[true])
    said = f"p('{name}') = {probability(log_p)}, so −ln p = {number(-log_p)} nats. "
    cross, entropy, divergence = map(
        number, (loss.cross_entropy, loss.target_entropy, loss.divergence)
    )
    sums = f"{cross} = {entropy} + {divergence}"
    if loss.target_entropy == 0:
        return (
            f"{said}The target is one-hot, its entropy is 0: cross-entropy = entropy "
            f"of the target + KL, {sums}."
        )
    return (
        f"{said}With a smoothed target: cross-entropy = entropy of the target + KL, "
        f"{sums}; no model gets below the entropy of the target."
    )


def moved_sentence(moved: Moved, vocabulary: Vocabulary) -> str:
    """Return which logits another token fed at one place moves, and how far."""
    before, after = vocabulary.decode([moved.before, moved.after])
    earlier, later = moved.moves[: moved.place], moved.moves[moved.place :]
    return (
        f"With '{after}' in the place of '{before}' at place {moved.place}, logits "
        f"before it move by at most {number(float(earlier.max()))}, from there on by "
        f"up to {number(float(later.max()))}."
    )


def moved_answer(moved: Moved) -> int:
    """Return which answer is right: 0 later places alone, 1 its own, 2 all, 3 none."""
    places = {at for at, move in enumerate(moved.moves.tolist()) if move > 0}
    if not places:
        return 3
    if places == {moved.place}:
        return 1
    return 2 if min(places) < moved.place else 0


def other_token(walk: Walk, vocabulary: Vocabulary, place: int) -> int:
    """Return a token of the task that is not the one fed at a place."""
    number = vocabulary.encode([vocabulary.own[0]])[0]
    last = vocabulary.encode([vocabulary.own[-1]])[0]
    return last if walk.target_in[place] == number else number


def _one_key_sentence(name: str) -> str:
    return (
        f"{name}: there is one key alone, so every query gives it {percent(1)}; the "
        "entropy is 0 by necessity."
    )


def _entropy_bits(rows: Tensor) -> Tensor:
    """Return the entropy of rows; one that rounding moved past 1 has none, not −0."""
    nats = torch.special.entr(rows).sum(dim=-1)
    return nats.clamp_min(0.0).abs() / math.log(2)
