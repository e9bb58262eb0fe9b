"""What the page on the bottleneck says of one answer, its map and a change."""

import math
from collections import Counter

from torch import Tensor

from core.bottleneck_reading import END_SIGN, Change, Reading, spread_of
from core.bottleneck_story import percent
from core.captions import figure, listed, row_sentence
from core.text_tasks import TextTask
from core.tokens import token_labels

FAR = 0.01  # outputs that move further are counted
_TINY = 0.0005  # a movement below is only said to be small
_MOST_LISTED = 4  # new first choices


def answer_sentence(reading: Reading, task: TextTask) -> str:
    """Say what the model wrote and whether it is right.

    Args:
        reading: The answer.
        task: What the model was trained on.
    """
    ended = reading.answer[-1:] == (END_SIGN,)
    written = task.write(reading.answer[: len(reading.answer) - ended])
    stopped = "" if ended else ", cut off at the limit"
    said = f'From "{task.write(reading.source)}" the model writes "{written}"{stopped}'
    if not reading.wrong:
        return f"{said}: right."
    return f'{said}; right is "{task.write(reading.right[:-1])}".'


def step_sentence(reading: Reading, step: int) -> str:
    """Say where one step of the decoder puts most of its weight.

    Args:
        reading: Of a model with attention.
        step: The step, from 0.
    """
    assert reading.weights is not None
    keys, label = token_labels(reading.source), output_labels(reading)[step]
    said = row_sentence(reading.weights[step], label, keys)
    return f"Step {step}: {said}."


def output_labels(reading: Reading) -> list[str]:
    """Return a label for each output, no two equal."""
    return token_labels(reading.answer)


def alignment_sentences(reading: Reading) -> list[str]:
    """Say how spread the rows of the map are and where their mass lies.

    Args:
        reading: Of a model with attention.
    """
    assert reading.weights is not None
    spread = spread_of(reading.weights)
    num_keys = reading.weights.shape[1]
    if num_keys == 1:
        return [
            "With one letter there is one state, and every row puts all its weight on "
            "it by necessity: its entropy is 0 bits."
        ]
    offset, count = Counter(spread.offsets.tolist()).most_common(1)[0]
    low, high = float(spread.entropy.min()), float(spread.entropy.max())
    mean = float(spread.entropy.mean())
    end = ", that of the end counted in" if END_SIGN in reading.answer else ""
    return [
        f"Entropy of a row{end}: {figure(mean)} bits on average, {figure(low)} to "
        f"{figure(high)}; even weights would have log₂ {num_keys} = "
        f"{figure(math.log2(num_keys))}.",
        f"On the letter that an output has to write lies "
        f"{percent(float(spread.on_source.mean()))} of its weight on average, and "
        f"{percent(float(spread.near_source.mean()))} on it and its neighbours. "
        f"{_having(count, len(spread.on_source))} largest weight {_beside(offset)}.",
    ]


def row_numbers(reading: Reading) -> list[tuple[str, str, str, str]]:
    """Return output, entropy in bits, its first key and that weight, one row each."""
    assert reading.weights is not None
    spread = spread_of(reading.weights)
    keys = token_labels(reading.source)
    return [
        (label, figure(float(entropy)), keys[int(row.argmax())], _max_percent(row))
        for label, entropy, row in zip(
            output_labels(reading), spread.entropy, reading.weights, strict=True
        )
    ]


def state_words(reading: Reading, position: int, done: str) -> str:
    """Return which state was changed and how: ``state 3 (e) set to zeros``."""
    return f"state {position} ({reading.source[position]}) {done}"


def change_sentence(reading: Reading, change: Change, position: int, done: str) -> str:
    """Say which outputs moved, by how much, and which first choices changed.

    Args:
        reading: Before the change.
        change: What it moved.
        position: Which state was changed, from 0.
        done: What was done to it, such as ``set to zeros``.
    """
    moved = change.moved.double()
    state = state_words(reading, position, done).capitalize()
    if not bool((moved > 0).any()):
        return f"{state}: no output moves, all distances are exactly 0."
    most = int(moved.argmax())
    label, size = output_labels(reading)[most], float(moved[most])
    by = "less than 0.001" if size < _TINY else figure(size)
    read = ""
    if reading.weights is not None:
        weight = percent(float(reading.weights[most, position]))
        read = f' Before the change "{label}" put {weight} of its weight on that state.'
    return (
        f'{state}: output "{label}" moves most, by {by}; {_moving(moved)}.{read} '
        f"Of the first choices, {_new_choices(reading, change)}."
    )


def _moving(moved: Tensor) -> str:
    far, still = int((moved > FAR).sum()), int((moved == 0).sum())
    moves = "moves" if far == 1 else "move"
    said = f"{far} of {len(moved)} {moves} by more than {FAR:g}"
    if not still:
        return said
    return f"{said}; {still} {'does' if still == 1 else 'do'} not move"


def _new_choices(reading: Reading, change: Change) -> str:
    labels = output_labels(reading)
    new = [
        f'"{label}" becomes "{after}"'
        for label, before, after in zip(
            labels, reading.answer, change.choices, strict=True
        )
        if before != after
    ]
    more = len(new) - _MOST_LISTED
    if more > 0:
        new[_MOST_LISTED:] = [f"{more} more {'changes' if more == 1 else 'change'}"]
    return listed(new) if new else "every one stays"


def _having(count: int, rows: int) -> str:
    """Return how many outputs have something, up to the verb and "its"."""
    if rows == 1:
        return "The one output has its"
    have = "has its" if count == 1 else "have their"
    return f"Of the first {rows} outputs, each for one letter, {count} {have}"


def _beside(offset: int) -> str:
    """Return where a state lies beside the letter to be written, in words."""
    if offset == 0:
        return "on the state of that letter"
    count = f"{abs(offset)} {'letter' if abs(offset) == 1 else 'letters'}"
    if offset > 0:
        return f"{count} further right, on a state that has read that letter too"
    return f"{count} further left, on a state that has not read that letter yet"


def _max_percent(row: Tensor) -> str:
    return percent(float(row.max()))
