"""What an encoder-decoder's steps, maps and losses say in numbers.

Layers and heads are counted from 1, places of tokens from 0; head 0 is the mean of all
heads of a layer.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.decoding import Hypothesis
from core.decoding_walk import Moved, PositionLoss, Walk, WalkStep
from core.vocabulary import END, Vocabulary

MEAN = 0  # number of the "head" that is the mean of all


class Spread(NamedTuple):
    """Where the weights of a map lie.

    Attributes:
        entropies: (T,), of each row, in bits.
        largest: (T,), the largest weight of each row.
        peaks: (T,), the key that gets it.
        on_same: Share of all weight on source tokens that read as the token predicted;
            None where no such token stands in the source.
    """

    entropies: Tensor
    largest: Tensor
    peaks: Tensor
    on_same: float | None


def percent(share: float) -> str:
    """Return a share with one decimal, "100 %" and "0 %" for exactly these alone."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    if share < 5e-4:
        return "<0.1 %"
    return f"{100 * share:.1f} %" if share < 0.9995 else ">99.9 %"


def share(value: float) -> str:
    """Return a probability with three digits; only all of it is 1."""
    return ">0.999" if 0.9995 <= value < 1 else number(value)


def number(value: float) -> str:
    """Return a number with three digits, and 0 without a sign."""
    return "0" if value == 0 else f"{value:.3g}"


def log_probability(value: float) -> str:
    """Return ln p with three digits and signs at which no line is broken."""
    return number(value).replace("-", "−")


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
    return Spread(entropies, largest, peaks, on_same)


def spread_sentence(name: str, spread: Spread, num_keys: int) -> str:
    """Return entropy and largest weights of a map, over its rows.

    Args:
        name: Whose map it is.
        spread: From ``spread_of``.
        num_keys: Keys S of the map.
    """
    said = (
        f"{name}: a row's largest weight is {percent(float(spread.largest.mean()))} on "
        f"average, its entropy {spread.entropies.mean():.2f} bits; spread evenly over "
        f"{num_keys} keys it would be {math.log2(num_keys):.2f}."
    )
    if spread.on_same is None:
        return said
    return (
        f"{said} Where the token predicted stands in the source, "
        f"{percent(spread.on_same)} of the weight lies on it."
    )


def mean_entropy_sentence(name: str, weights: Tensor) -> str:
    """Return how far the rows of a self-attention map spread, on average."""
    values = weights.double()
    entropy = float(_entropy_bits(values).mean())
    largest = float(values.max(dim=-1).values.mean())
    return (
        f"{name}: a row's largest weight is {percent(largest)} on average, its entropy "
        f"{entropy:.2f} bits."
    )


def row_sentence(name: str, row: Tensor, labels: Sequence[str]) -> str:
    """Return where one row of cross-attention lies: its peak and its entropy."""
    values = row.double()
    peak = int(values.argmax())
    entropy = float(_entropy_bits(values))
    return (
        f"{name}: this step reads most from source token '{labels[peak]}', "
        f"{percent(float(values[peak]))}; entropy {entropy:.2f} of at most "
        f"{math.log2(len(labels)):.2f} bits."
    )


def step_sentence(walk: Walk, at: int, vocabulary: Vocabulary) -> str:
    """Return what was fed at a step, and what the model gives to the next token."""
    step = walk.steps[at]
    top = step.distribution.argsort(descending=True).tolist()
    first, second = vocabulary.decode(top[:2])
    said = (
        f"Step {at + 1} of {len(walk.steps)}: after "
        f"'{vocabulary.decode([step.fed])[0]}' the model gives "
        f"{percent(float(step.distribution[top[0]]))} to '{first}' and "
        f"{percent(float(step.distribution[top[1]]))} to '{second}'."
    )
    if step.true is None:
        return f"{said} The right answer has ended before."
    if step.true == step.chosen:
        return said
    true = vocabulary.decode([step.true])[0]
    share = percent(float(step.distribution[step.true]))
    return f"{said} Right would be '{true}', which gets {share}."


def answer_sentence(walk: Walk, vocabulary: Vocabulary, separator: str) -> str:
    """Return the whole answer, and where it goes wrong or comes nearest to it."""
    kept = [token for token in walk.chosen if token != END]
    answer = separator.join(vocabulary.decode(kept))
    end = "" if walk.ended else " It did not end: the limit of tokens was reached."
    fed = "Fed the true tokens" if walk.forced else "Fed its own tokens"
    if walk.first_wrong is None and not walk.right:
        return f"{fed} it answers '{answer}', right so far.{end}"
    if walk.first_wrong is None:
        at = walk.least_sure
        top = walk.steps[at].distribution.topk(2)
        token, second = vocabulary.decode(top.indices.tolist())
        return (
            f"{fed} it answers '{answer}', which is right. Least sure at step "
            f"{at + 1}: '{token}' {percent(float(top.values[0]))} before '{second}' "
            f"{percent(float(top.values[1]))}."
        )
    at = walk.first_wrong
    step = walk.steps[at]
    chosen = vocabulary.decode([step.chosen])[0]
    share = percent(float(step.distribution[step.chosen]))
    return (
        f"{fed} it answers '{answer}', which is wrong: first at step {at + 1}, "
        f"'{chosen}' with {share}.{end}"
    )


def beam_rows(
    hypotheses: Sequence[Hypothesis],
    vocabulary: Vocabulary,
    separator: str,
    walk: Walk,
) -> list[tuple[str, str, str, str]]:
    """Return rank, text, log-probability and verdict of what a beam holds.

    Args:
        hypotheses: What the beam holds, best first.
        vocabulary: Of the target.
        separator: What stands between two tokens of an answer.
        walk: The greedy walk; what it answered is named.
    """
    rows = []
    for rank, found in enumerate(hypotheses, start=1):
        tokens = found.tokens
        kept = [token for token in tokens if token != END]
        text = separator.join(vocabulary.decode(kept))
        text += "" if found.ended else "…"
        right = tokens == walk.true[: len(tokens)]
        said = "wrong" if not right else "right" if found.ended else "right so far"
        if tokens == walk.chosen[: len(tokens)] and not walk.forced:
            said += ", greedy's"
        rows.append((str(rank), text, log_probability(found.log_probability), said))
    return rows


def beam_sentence(hypotheses: Sequence[Hypothesis], walk: Walk) -> str:
    """Return whether the beam ends with the greedy answer, and the two sums."""
    best = hypotheses[0]
    tokens = best.tokens
    greedy = sum(float(s.distribution[s.chosen].log()) for s in walk.steps)
    best_sum, greedy_sum = map(log_probability, (best.log_probability, greedy))
    if tokens == walk.chosen:
        return f"The best of the beam is the greedy answer: ln p = {best_sum}."
    right = " and is right" if tokens == walk.true else ""
    return (
        f"The best of the beam, ln p = {best_sum}, is not the greedy answer, "
        f"ln p = {greedy_sum}{right}."
    )


def role_of(token: int, step: WalkStep) -> str:
    """Return what a token is at a step, as the chart of the next token names it."""
    if token == step.chosen:
        return "most probable"
    return "right one" if token == step.true else "other"


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
    return [*rows, (f"{int(left.sum())} others", *sums), ("sum", *whole)]


def sequence_loss_sentence(losses: Sequence[PositionLoss]) -> str:
    """Return the mean loss of all positions of a target, and the largest of them."""
    sizes = [loss.cross_entropy for loss in losses]
    most = max(range(len(sizes)), key=sizes.__getitem__)
    return (
        f"Mean over the {len(sizes)} positions of this target: "
        f"{number(sum(sizes) / len(sizes))} nats; the largest, {number(sizes[most])}, "
        f"stands at position {most + 1}."
    )


def loss_sentence(loss: PositionLoss, true: int, vocabulary: Vocabulary) -> str:
    """Return the loss of one position worked out, and its relation to KL."""
    name = vocabulary.decode([true])[0]
    log_p = float(loss.log_probabilities[true])
    said = f"p('{name}') = {math.exp(log_p):.6f}, so −ln p = {number(-log_p)} nats. "
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
        f"before it move by at most {float(earlier.max()):.3g}, from there on by up to "
        f"{float(later.max()):.3g}."
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


def _entropy_bits(rows: Tensor) -> Tensor:
    return torch.special.entr(rows).sum(dim=-1) / math.log(2)
