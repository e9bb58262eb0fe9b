"""What is said of a lookup: its stages, what an edit moves, hard beside soft.

Every number is read from the tensors of the page. Nothing is said about meaning: the
vectors of the words are random.
"""

from collections.abc import Sequence

from torch import Tensor

from core import captions
from core.arithmetic import NAMES, Cell, shown_number
from core.captions import percent
from core.checks import require_choice
from core.lookup import (
    STAGES,
    VECTORS,
    Edit,
    HardLookup,
    Lookup,
    Movement,
    TemperatureSweep,
    influence_of_keys,
)

_SAME = 1e-6
HARD_FORMULA = (
    r"a = \mathrm{softmax}\!\left(\frac{s}{\sqrt{d_k} \, \tau}\right)"
    r" \qquad \tau = \text{temperature; as } \tau \to 0 \text{ the lookup is hard}"
)
_FEW = 3  # keys of a tie that are named one by one
# What an edit moves: how many rows of weights and how many outputs.
MOVED = {
    ("one", "one"): "One row of weights, and its output",
    ("every", "every"): "Every row of weights, and every output",
    ("none", "every"): "No weight, but every output",
    ("none", "one"): "No weight, but one output",
}


def stage_formula(seen: Lookup, stage: str, vector: str) -> str:
    """Return a stage as a formula in LaTeX, with the shapes beside it.

    Args:
        seen: The lookup, T queries and S keys.
        stage: Name in ``STAGES``.
        vector: "q", "k" or "v": which projection the stage "project" shows.

    Raises:
        ValueError: If a name is unknown.
    """
    require_choice("stage", stage, STAGES)
    require_choice("vector", vector, VECTORS)
    rows, columns, d_v = seen.weighted.shape
    d_model, d_k = seen.w_q.shape
    own = rows if vector == "q" else columns
    pair = f"({rows}, {columns})"
    formula, shapes = {
        "project": (
            rf"{vector} = x \, W_{vector}",
            f"({own}, {d_k}) = ({own}, {d_model}) ({d_model}, {d_k})",
        ),
        "score": (r"s = q \, k^\top", f"{pair} = ({rows}, {d_k}) ({d_k}, {columns})"),
        "scale": (r"z = s / \sqrt{d_k}", f"{pair} = {pair}"),
        "softmax": (r"a = \mathrm{softmax}(z)", f"{pair} = {pair}"),
        "weigh": (r"a_{ij} \, v_j", f"({rows}, {columns}, {d_v})"),
        "sum": (
            r"o_i = \textstyle\sum_j a_{ij} \, v_j",
            f"({rows}, {d_v}) = {pair} ({columns}, {d_v})",
        ),
    }[stage]
    spaced = shapes.replace(" (", r" \, (")
    return rf"{formula} \qquad {spaced}"


def stage_sentence(seen: Lookup, stage: str, cell: Cell, vector: str) -> str:
    """Say what a stage did to the numbers that are drawn.

    Raises:
        ValueError: If a name is unknown.
    """
    require_choice("stage", stage, STAGES)
    query = seen.query_labels[cell.query]
    if stage == "project":
        return _project_sentence(seen, vector)
    if stage == "score":
        return _score_sentence(seen)
    if stage == "scale":
        ends = (shown_number(float(x.abs().max())) for x in (seen.scores, seen.scaled))
        fell = _fall(*ends)
        return f"divided by √{seen.q.shape[1]}, the largest size of a score {fell}"
    if stage == "softmax":
        return sums_sentence(seen.attn_weights)
    row, share = _row_sentence(seen, cell.query)
    if stage == "weigh":
        return f"{row}: {share}"
    return f'{row}; the output of "{query}" is {_vector_text(seen.output[cell.query])}'


def stage_words(seen: Lookup, stage: str) -> str:
    """Say what the names of a stage mean.

    Raises:
        ValueError: If the stage is unknown.
    """
    d_k = seen.q.shape[1]
    weighted = f"({len(seen.key_labels)}, {seen.v.shape[1]})"
    return {
        "project": "the vector of a token, its embedding, is called x; a query asks, a "
        "key answers, and a value is what is handed over",
        "score": "a score is the sum of the products of a query and a key: how well "
        "the key matches the query",
        "scale": f"a score sums {d_k} product{'s' if d_k > 1 else ''}; √d_k keeps "
        "it moderate however many there are",
        "softmax": "the exponentials make all scores positive, and division by the sum "
        "of their row makes them shares of 1: the weights",
        "weigh": "every value is multiplied by its weight: one "
        f"{weighted} matrix for each query",
        "sum": "the weighted values of a query add up to its output",
    }[require_choice("stage", stage, STAGES)]


def index_sentence(seen: Lookup, stage: str, cell: Cell, vector: str) -> str:
    """Say which tokens the indices of the arithmetic of a cell mean.

    Raises:
        ValueError: If a name is unknown.
    """
    require_choice("stage", stage, STAGES)
    require_choice("vector", vector, VECTORS)
    query = f'query "{seen.query_labels[cell.query]}" is {cell.query}'
    key = f'key "{seen.key_labels[cell.key]}" is {cell.key}'
    named = [query, key]
    if stage == "project":
        named = [query if vector == "q" else key.replace("key", "token", 1)]
    if stage == "sum":
        named = [query]
    return f"indices count from 0: {captions.listed(named)}"


def sums_sentence(attn_weights: Tensor) -> str:
    """Say that rows of weights sum to 1, and what the columns sum to.

    Args:
        attn_weights: One map, (T, S), with a key for every query.
    """
    columns = attn_weights.sum(dim=0)
    low, high = float(columns.min()), float(columns.max())
    found = f"from {shown_number(low)} to {shown_number(high)}"
    if high - low < _SAME:
        found = f"all {shown_number(low)}"
    return f"every row sums to 1 over the keys; columns need not, here {found}"


def influence_sentence(seen: Lookup, query: int) -> str:
    """Say whether the key with the most weight is also the one missed most.

    Args:
        seen: A lookup of two keys or more.
        query: Which of the T queries.
    """
    weights, moves = seen.attn_weights[query], influence_of_keys(seen, query)
    heavy, missed = int(weights.argmax()), int(moves.argmax())
    share = captions.percent(float(weights[heavy]))
    far = shown_number(float(moves[missed]))
    first = (
        f'query "{seen.query_labels[query]}" gives its largest weight, {share}, to '
        f'"{seen.key_labels[heavy]}"'
    )
    if float(moves[missed] - moves[heavy]) < _SAME:
        return f"{first}; hiding that key moves the output most, by {far}"
    less = captions.percent(float(weights[missed]))
    return (
        f'{first}, yet hiding "{seen.key_labels[missed]}" ({less}) moves the output '
        f"further, by {far} against {shown_number(float(moves[heavy]))}: weight is not "
        "influence"
    )


def edit_sentence(before: Lookup, edit: Edit, moved: Movement) -> str:
    """Say which number was edited, what moved and what did not move at all.

    Args:
        before: The lookup as it was.
        edit: What was edited in it.
        moved: What the edit moved.
    """
    labels = before.query_labels if edit.which == "q" else before.key_labels
    old = float(getattr(before, edit.which)[edit.token, edit.dimension])
    changed = (
        f'{NAMES[edit.which]} of "{labels[edit.token]}", dimension {edit.dimension}, '
        f"from {shown_number(old)} to {shown_number(edit.value)}"
    )
    if old == edit.value:
        changed = f"{changed}, the same number"
    rows = _moved_text(moved.weight_rows, "rows of weights", before.query_labels)
    outputs = _moved_text(moved.output_rows, "outputs", before.query_labels)
    return f"{changed}: {rows}; {outputs}"


def value_sentence(before: Lookup, edit: Edit, moved: Movement) -> str:
    """Say that an edited value reaches an output by its weight; of a value only."""
    shares = before.attn_weights[:, edit.token]
    reader = int(shares.argmax())
    change = edit.value - float(before.v[edit.token, edit.dimension])
    factor = shown_number(change)
    factor = f"({factor})" if change < 0 else factor
    return (
        f'output "{before.query_labels[reader]}" moves by its weight times the change, '
        f"{shown_number(float(shares[reader]))} · {factor} = "
        f"{shown_number(float(moved.outputs[reader, edit.dimension]))}"
    )


def what_moves(moved: Movement) -> tuple[str, str]:
    """Return how many rows of weights and outputs move: none, one, some or every."""
    return _how_many(moved.weight_rows), _how_many(moved.output_rows)


def moved_sentence(moved: Movement) -> str:
    """Say how many rows of weights and how many outputs moved."""
    weights, outputs = (
        f"{int((rows != 0).sum())} of {len(rows)}"
        for rows in (moved.weight_rows, moved.output_rows)
    )
    return f"{weights} rows of weights and {outputs} outputs moved"


def hard_sentence(seen: Lookup, hard: HardLookup, query: int) -> str:
    """Say what a hard and a soft lookup of one query return, and how far apart.

    Args:
        seen: The soft lookup, with its temperature.
        hard: The hard lookup of the same scores.
        query: Which of the T queries.
    """
    best = hard.best[query]
    quoted = captions.listed([f'"{seen.key_labels[key]}"' for key in best])
    keys = quoted if len(best) <= _FEW else f"{len(best)} keys"
    share = float(seen.attn_weights[query, best[0]])
    apart = float((seen.output[query] - hard.weights[query] @ seen.v).norm())
    tied = len(best) > 1
    returned = (
        f"finds a tie of {keys} and returns the mean of their values"
        if tied
        else f"returns the value of {keys} alone"
    )
    return (
        f'a hard lookup of "{seen.query_labels[query]}" {returned}; at temperature '
        f"{seen.temperature:g} the soft one gives {'each' if tied else 'it'} "
        f"{percent(share)} and its output lies {shown_number(apart)} away"
    )


def sweep_sentence(swept: TemperatureSweep, num_keys: int) -> str:
    """Say what the lookup of one query is at both ends of the temperature."""
    cold, hot = float(swept.temperatures[0]), float(swept.temperatures[-1])
    first, last = (percent(float(swept.largest_weight[end])) for end in (0, -1))
    told = f"from temperature {cold:g} to {hot:g} the largest weight"
    told = f"{told} {_fall(first, last)}"
    if num_keys == 1:
        return f"{told}: there is one key"
    return f"{told}; an even share of {num_keys} keys is {percent(1 / num_keys)}"


def _score_sentence(seen: Lookup) -> str:
    low, high = float(seen.scores.min()), float(seen.scores.max())
    if high - low < _SAME:
        count = seen.scores.numel()
        what = "the score is" if count == 1 else f"all {count} scores are"
        return f"{what} {shown_number(low)}, before scaling and softmax"
    row, column = divmod(int(seen.scores.argmax()), seen.scores.shape[1])
    return (
        f"scores from {shown_number(low)} to {shown_number(high)}, before scaling and "
        f'softmax; the highest is of query "{seen.query_labels[row]}" and key '
        f'"{seen.key_labels[column]}"'
    )


def _row_sentence(seen: Lookup, query: int) -> tuple[str, str]:
    """Return where a query puts its weight, and what that takes of the values."""
    weights = seen.attn_weights[query]
    name = seen.query_labels[query]
    if len(weights) == 1:
        row = f'query "{name}" gives all its weight to "{seen.key_labels[0]}", the only'
        return f"{row} key", "all of its value"
    row = captions.row_sentence(weights, name, seen.key_labels)
    tied = int((weights > weights.max() - _SAME).sum())
    if tied == len(weights):
        return row, "the same share of every value"
    whose = "its value" if tied == 1 else "each of their values"
    return row, f"that share of {whose}, and less of every other"


def _fall(before: str, after: str) -> str:
    """Return how a number that cannot rise changes, as it is shown."""
    return f"stays at {after}" if before == after else f"falls from {before} to {after}"


def _project_sentence(seen: Lookup, vector: str) -> str:
    own = (seen.x_query, seen.query_labels) if vector == "q" else (
        seen.x_key, seen.key_labels
    )  # fmt: skip
    d_model, d_k = seen.w_q.shape
    made = (
        f"one W_{vector} for every token turns its {d_model} numbers into "
        f"{d_k}, its {NAMES[vector]}"
    )
    twins = _twins(*own)
    if not twins:
        return made
    return f"{made}; {captions.listed(twins)} are one word, so they are equal here"


def _twins(x: Tensor, labels: Sequence[str]) -> list[str]:
    """Return the labels of the first word that stands more than once."""
    for row in x:
        same = (x == row).all(dim=1)
        if int(same.sum()) > 1:
            return [
                f'"{label}"' for label, one in zip(labels, same, strict=True) if one
            ]
    return []


def _moved_text(rows: Tensor, what: str, labels: Sequence[str]) -> str:
    moving = [label for label, row in zip(labels, rows, strict=True) if row != 0]
    if not moving:
        return f"0 of {len(rows)} {what} move, all exactly 0"
    still = len(rows) - len(moving)
    verb = f'moves, that of "{moving[0]}"' if len(moving) == 1 else "move"
    rest = f" ({still} exactly 0)" if still else ""
    return f"{len(moving)} of {len(rows)} {what} {verb}{rest}"


def _how_many(rows: Tensor) -> str:
    count = int((rows != 0).sum())
    if count == 0:
        return "none"
    if count == len(rows):
        return "every"
    return "one" if count == 1 else "some"


def _vector_text(vector: Tensor) -> str:
    return f"({', '.join(shown_number(number) for number in vector.tolist())})"
