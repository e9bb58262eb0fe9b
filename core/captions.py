"""One sentence with its numbers under each picture, made from the numbers drawn.

A caption is also the text that stands for the picture where it cannot be seen. It says
what was measured and nothing about meaning. It starts in lower case and ends without a
full stop, so that a page can put it into a sentence of its own.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from core.checks import RefusedError
from core.scaling import SoftmaxRow

_SMALL = 1e-3  # distances below are written with a power of ten
_WHOLE_FROM = 999.5  # three figures of more would be written 1e+03
_NO_BREAK = "\u00a0"  # a space at which no line ends
_JOINER = "\u2060"  # has no width; no line ends at it
_TIE = 1e-6  # weights closer than this are called equal


def percent(share: float) -> str:
    """Return a share as a whole percentage that never rounds to none or to all.

    0.624 is "62 %", 0.003 is "under 1 %", 0.998 is "over 99 %"; only 0 is "0 %" and
    only 1 (to a millionth) is "100 %".

    Args:
        share: Between 0 and 1.
    """
    if 0 < share < 0.005:
        return "under 1 %"
    if 0.995 <= share < 1 - _TIE:
        return "over 99 %"
    return f"{100 * share:.0f} %"


def figure(value: float) -> str:
    """Return a number with three figures, or as a whole number from 1000 on.

    A number just below 1 is "over 0.999": it never rounds to 1.
    """
    value = value or 0.0  # never -0
    if 0.9995 <= value < 1:
        return "over 0.999"
    return f"{value:.3g}" if abs(value) < _WHOLE_FROM else f"{value:.0f}"


def distance(found: float) -> str:
    """Return how far two results lie apart; what is small has a power of ten."""
    if found == 0:
        return "exactly 0"
    return f"{found:.1e}" if found < _SMALL else figure(found)


def row_sentence(
    attn_weights: Tensor,
    query_label: str,
    key_labels: Sequence[str],
    *,
    allowed: Tensor | None = None,
) -> str:
    """Say where one query puts most of its weight.

    Args:
        attn_weights: Row of one query, (S,); it sums to 1, or to 0 where the query may
            read no key.
        query_label: Label of the query.
        key_labels: S labels of the keys.
        allowed: Boolean row of the mask, (S,); True = may attend.

    Returns:
        For instance ``query "it·3" gives 62 % to key "street·2"``.

    Raises:
        ValueError: If there are more or fewer labels than weights.
    """
    _require_labels("key_labels", key_labels, attn_weights)
    weights = attn_weights.detach().double().cpu()
    open_keys = (
        torch.ones_like(weights, dtype=torch.bool) if allowed is None else allowed
    )
    num_open = int(open_keys.sum())
    query = f'query "{query_label}"'
    if num_open == 0 or float(weights.sum()) == 0:
        return f"{query} has nothing to attend to: every key is masked"
    largest = float(weights.max())
    top = [index for index, weight in enumerate(weights) if weight > largest - _TIE]
    if num_open == 1:
        return (
            f'{query} puts all its weight on key "{key_labels[top[0]]}" by necessity: '
            "nothing else is allowed"
        )
    if len(top) == num_open:
        return f"{query} gives the same {percent(largest)} to each of {num_open} keys"
    return f"{query} gives {_shared(largest, [key_labels[index] for index in top])}"


def map_sentence(
    attn_weights: Tensor, query_labels: Sequence[str], key_labels: Sequence[str]
) -> str:
    """Say which query of a map puts most weight on a single key.

    Args:
        attn_weights: One map, (T, S); row = query, column = key. Rows of
            NaN are counted apart.
        query_labels: T labels of the queries.
        key_labels: S labels of the keys.

    Returns:
        For instance ``the largest weight of the map: query "it" gives 81 % to key
        "cat"``.

    Raises:
        ValueError: If labels and map do not fit.
    """
    _require_labels("query_labels", query_labels, attn_weights)
    nan_rows = int(attn_weights.isnan().any(dim=-1).sum())
    rest = f"; {nan_rows} of {len(attn_weights)} rows NaN" if nan_rows else ""
    weights = attn_weights.detach().nan_to_num(0.0)
    if weights.numel() == 0 or float(weights.max()) == 0:
        return f"no query of the map has anything to attend to{rest}"
    _require_labels("key_labels", key_labels, weights[0])
    row, column = divmod(int(weights.argmax()), weights.shape[1])
    weight = percent(float(weights[row, column]))
    return (
        f'the largest weight of the map: query "{query_labels[row]}" gives {weight} to '
        f'key "{key_labels[column]}"{rest}'
    )


def scores_sentence(
    scores: Tensor, query_labels: Sequence[str], key_labels: Sequence[str]
) -> str:
    """Say between which numbers the scores lie, and where the highest stands.

    Args:
        scores: Scores before mask and softmax, (T, S), at least one.
        query_labels: T labels of the queries.
        key_labels: S labels of the keys.

    Raises:
        ValueError: If labels and scores do not fit.
    """
    _require_labels("query_labels", query_labels, scores)
    _require_labels("key_labels", key_labels, scores[0])
    row, column = divmod(int(scores.argmax()), scores.shape[1])
    return (
        f"scores from {float(scores.min()):.2f} to {float(scores.max()):.2f}, before "
        f'mask and softmax; the highest is of query "{query_labels[row]}" and key '
        f'"{key_labels[column]}"'
    )


def mask_sentence(mask: Tensor) -> str:
    """Say how many cells of a mask, (T, S), True = may attend, are masked."""
    return f"{int((~mask).sum())} of {mask.numel()} cells are masked (grey, ×)"


def sums_sentence(blocked: Tensor) -> str:
    """Say what the rows of masked weights sum to.

    Args:
        blocked: Boolean, (T,), True = the query may attend to no key.
    """
    count = int(blocked.sum())
    if not count:
        return "every row of weights still sums to 1"
    others = "" if count == len(blocked) else ", the others to 1"
    return f"{count} of {len(blocked)} rows sum to 0{others}"


def readers_sentence(mask: Tensor, index: int, labels: Sequence[str]) -> str:
    """Say how many queries of a mask, (T, T), may read the token at ``index``.

    Raises:
        ValueError: If labels and mask do not fit.
    """
    _require_labels("labels", labels, mask)
    readers = int(mask[:, index].sum())
    return f'{readers} of {len(mask)} queries may read key "{labels[index]}"'


def sweep_sentence(x: str, at: float, what: str, middles: Mapping[str, float]) -> str:
    """Say what the series of a sweep are at the chosen value.

    Args:
        x: Name of what is swept, such as "d_k".
        at: The chosen value.
        what: Name of what is measured, such as "median largest weight".
        middles: Series -> that middle of the trials.

    Returns:
        For instance ``at d_k = 64 the median largest weight is 0.88 (raw) and 0.35
        (÷ √d_k)``.
    """
    numbers = [f"{figure(middle)} ({name})" for name, middle in middles.items()]
    return f"at {x} = {at:g} the {what} is {listed(numbers)}"


def softmax_row_sentence(d_k: int, rows: Mapping[str, SoftmaxRow]) -> str:
    """Say what the largest weight of one query is, and what gradient it leaves.

    Args:
        d_k: Width of the query and its keys.
        rows: Series -> the row; all rows come from the same raw scores.

    Returns:
        For instance ``at d_k = 64 key 5 gets 97 % (raw) and 34 % (÷ √d_k), with a
        gradient of 0.0295 (raw) and 0.224 (÷ √d_k)``.
    """
    top = int(next(iter(rows.values())).scores.argmax())
    weights, slopes = [], []
    for name, row in rows.items():
        weights.append(f"{percent(float(row.attn_weights[top]))} ({name})")
        slopes.append(f"{figure(float(row.gradient[top]))} ({name})")
    return (
        f"at d_k = {d_k} key {top} gets {listed(weights)}, with a gradient of "
        f"{listed(slopes)}"
    )


def movement_sentence(moved: Tensor, labels: Sequence[str]) -> str:
    """Say how many outputs stayed exactly where they were, and which moved most.

    Args:
        moved: Distances, (T,), at least 0.
        labels: T labels of the positions.

    Raises:
        ValueError: If there are more or fewer labels than distances.
    """
    _require_labels("labels", labels, moved)
    distances = moved.detach().double().cpu()
    still = int((distances == 0).sum())
    if still == len(distances):
        return "no output moved: all distances are exactly 0"
    most = int(distances.argmax())
    stayed = f"{still} of {len(distances)} outputs did not move at all"
    return f'{stayed}; "{labels[most]}" moved most, by {float(distances[most]):.3g}'


def counted(count: int, noun: str) -> str:
    """Return how many there are of something: "1 step", "2 steps"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def unbroken(words: str) -> str:
    """Return words at whose spaces and hyphens no line ends."""
    return words.replace(" ", _NO_BREAK).replace("-", f"-{_JOINER}")


def listed(words: Sequence[str]) -> str:
    """Return words as they stand in a sentence: ``a, b and c``."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + f" and {words[-1]}"


def _shared(weight: float, labels: Sequence[str]) -> str:
    quoted = [f'"{label}"' for label in labels]
    if len(quoted) == 1:
        return f"{percent(weight)} to key {quoted[0]}"
    if len(quoted) <= 3:
        return f"{percent(weight)} each to keys {listed(quoted)}"
    return f"its largest weight, {percent(weight)}, to each of {len(quoted)} keys"


def _require_labels(name: str, labels: Sequence[str], numbers: Tensor) -> None:
    if len(labels) != len(numbers):
        raise RefusedError(f"{name} ({len(labels)}) must be as many as {len(numbers)}")
