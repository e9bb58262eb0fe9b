"""The predictions of the bench: each asks for the ranking of a preset's cells.

The right answer is worked out from the runs, whatever they are.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import NamedTuple

from core.grid_presets import Preset, short_words
from core.grid_story import HALF, LEARNED, Summary

_ALIKE = 0.02  # means closer than this rank alike
Levels = tuple[str, ...]
Runs = Mapping[Levels, tuple[float, ...]]  # accuracy of every seed
Means = Mapping[Levels, float]


class Question(NamedTuple):
    """A prediction of a ranking.

    Attributes:
        text: The question.
        choices: Each answer, and the idea behind it where it is wrong.
        answer: From the accuracies, by levels in the order of the factors, to the
            place of the right choice.
    """

    text: str
    choices: tuple[tuple[str, str], ...]
    answer: Callable[[Runs], int]


def right_choice(preset: Preset, cells: Sequence[Summary]) -> int:
    """Return the place of the right answer to the question of a preset."""
    runs = {
        tuple(short_words(summary.cell, name) for name in preset.factors): (
            summary.values("accuracy")
        )
        for summary in cells
    }
    return QUESTIONS[preset.name].answer(runs)


def _of_means(answer: Callable[[Means], int]) -> Callable[[Runs], int]:
    """Return the answer from all seeds, of one from the means over them."""

    @wraps(answer)
    def from_runs(runs: Runs) -> int:
        return answer({levels: sum(v) / len(v) for levels, v in runs.items()})

    return from_runs


def _spread(means: Sequence[float]) -> float:
    return max(means) - min(means)


@_of_means
def _answer_order(means: Means) -> int:
    first = min(means["none", mask, "first"] for mask in ("no", "yes"))
    masked, plain = means["none", "yes", "mean"], means["none", "no", "mean"]
    lasts = [means["none", mask, "last"] for mask in ("no", "yes")]
    blind = max(plain, *lasts)
    if _spread([first, masked, plain, *lasts]) < _ALIKE:
        return 1
    if first >= masked > blind:
        return 0
    return 2 if min(plain, masked) >= max(first, *lasts) else 3


@_of_means
def _answer_order_normal(means: Means) -> int:
    masks, names = ("no", "yes"), ("mean", "last", "first")
    blind = {(m, r): means["none", m, r] for m in masks for r in names}
    found = {levels for levels, mean in blind.items() if mean > HALF[1]}
    first = {(mask, "first") for mask in masks}
    if found == first | {("yes", "mean")}:
        return 0
    return 1 if found == first else 2 if len(found) == len(blind) else 3


def _answer_heads(runs: Runs) -> int:
    means = [sum(v) / len(v) for v in runs.values()]
    if _spread(means) < max(map(_spread, runs.values())):
        return 0
    return 1 if means[-1] == max(means) else 2 if means[0] == max(means) else 3


@_of_means
def _answer_pooling(means: Means) -> int:
    worst = min(means, key=lambda levels: means[levels])
    lost = [levels for levels, mean in means.items() if mean < LEARNED]
    if not lost:
        return 3
    return 0 if worst == ("cls", "yes") else 1 if worst[0] == "mean" else 2


@_of_means
def _answer_length(means: Means) -> int:
    drops = {
        model: means[model, "60"] - means[model, "300"]
        for model in ("transformer", "lstm bias +3")
    }
    falls = {model for model, drop in drops.items() if drop > 0.05}
    if falls == {"lstm bias +3"}:
        return 0
    return 1 if len(falls) == 2 else 2 if not falls else 3


@_of_means
def _answer_positions(means: Means) -> int:
    mean = {
        name: (means[name, "cls"] + means[name, "mean"]) / 2
        for name in ("sinusoidal", "learned", "none")
    }
    if abs(mean["sinusoidal"] - mean["learned"]) < _ALIKE:
        return 0 if mean["none"] < min(mean.values()) + _ALIKE else 3
    return 1 if mean["learned"] > mean["sinusoidal"] else 2


@_of_means
def _answer_moved(means: Means) -> int:
    order = sorted(means, key=lambda levels: -means[levels])
    learned = {levels[0] for levels, mean in means.items() if mean >= LEARNED}
    if learned == {"transformer", "lstm bias +3"}:
        return 0
    if learned == {"transformer"}:
        return 1
    return 2 if order[-1] == ("transformer",) else 3


@_of_means
def _answer_depth(means: Means) -> int:
    deep = {key[1:]: mean for key, mean in means.items() if key[0] == "12"}
    pre = min(deep["pre", steps] for steps in ("0", "75"))
    post, warmed = deep["post", "0"], deep["post", "75"]
    if _spread(list(deep.values())) < _ALIKE:
        return 1
    if pre >= warmed > post:
        return 0
    return 2 if post >= pre else 3


_OTHERWISE = ("Another ranking", "The runs show one of the rankings above.")
QUESTIONS = {
    "order": Question(
        "Without positions, how do the readouts rank?",
        (
            (
                "Best: position 0. Second: the mean under a causal mask. Behind: the "
                "mean without a mask, and the last position",
                "",
            ),
            (
                "All alike: no positions, no order",
                "A causal mask leaks order, and position 0 holds the marker.",
            ),
            (
                "Best: the mean, with a mask or without. It reads every token",
                "The mean gives the marker the same share as every noise token.",
            ),
            _OTHERWISE,
        ),
        _answer_order,
    ),
    "order_normal": Question(
        "Now noise is normal, often beyond ±1. Without positions, who beats 60 %?",
        (
            ("The readout at position 0, and the mean under a causal mask", ""),
            (
                "The readout at position 0 alone",
                "Under a causal mask position 0 sees itself alone: it stands out.",
            ),
            (
                "All six: the marker's size gives it away",
                "Normal noise is often as large as the marker.",
            ),
            ("Another set", "The runs show one of the sets above."),
        ),
        _answer_order_normal,
    ),
    "heads": Question(
        "Width 32 as 1 to 16 heads, stopped on the way, at step 30: which is ahead?",
        (
            (
                "No number of heads: seeds differ more",
                "One number of heads is ahead by more than its seeds differ.",
            ),
            (
                "16 heads: more heads see more",
                "More heads at one width are narrower; one marker needs one of them.",
            ),
            ("1 head: it is the widest", "A width of 2 is enough to find one marker."),
            _OTHERWISE,
        ),
        _answer_heads,
    ),
    "pooling": Question(
        "Four readouts, with and without a causal mask: which cell is worst?",
        (
            ("CLS under a causal mask", "CLS stands first: a mask leaves it itself."),
            ("The mean", "The marker's share of the mean is small but always there."),
            ("The last or the first", "With positions both find the marker."),
            ("None: all learn", "One cell never sees the marker."),
        ),
        _answer_pooling,
    ),
    "length": Question(
        "From length 60 to 300: who loses more than 5 points?",
        (
            (
                "The LSTM only, even with bias +3",
                "Attention reaches position 0 in one step.",
            ),
            ("Both", "The path of attention is one step at any length."),
            ("Neither", "An LSTM carries the marker through every step between."),
            ("The Transformer only", "Its path to the marker stays one step long."),
        ),
        _answer_length,
    ),
    "positions": Question(
        "Sinusoidal, learned or no positions: how do they rank?",
        (
            ("Sinusoidal and learned alike, none behind", "They differ."),
            ("Learned first", "The marker needs one position to differ, no more."),
            ("Sinusoidal first", "A learned table is free to take any shape."),
            ("All three alike", "Without positions no token is the first."),
        ),
        _answer_positions,
    ),
    "moved": Question(
        "Marker at position 0 of 60: who learns it with every seed?",
        (
            (
                "The Transformer and the LSTM with bias +3",
                "An open forget gate is needed, and it is enough.",
            ),
            ("The Transformer only", "A forget gate that begins open can hold it."),
            ("All but the Transformer", "A recurrence must carry it through 59 steps."),
            _OTHERWISE,
        ),
        _answer_moved,
    ),
    "depth": Question(
        "Twelve layers: pre-norm, post-norm, with and without warm-up?",
        (
            (
                "Pre-norm, then post-norm with warm-up, then without",
                "These runs rank otherwise; with other seeds they may not.",
            ),
            ("All alike", "A deep stack of post-norm blocks may stall."),
            (
                "Post-norm first",
                "Its gradient goes through every norm; it is the more delicate one.",
            ),
            _OTHERWISE,
        ),
        _answer_depth,
    ),
}
