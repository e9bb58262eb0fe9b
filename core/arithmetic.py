r"""The arithmetic of one cell, in full: a sentence, LaTeX and Python that runs.

In LaTeX numbers have three decimals, or three figures where they are below 0.1, and
``\approx`` stands wherever a shown number is rounded; an exponent has as many decimals
as its exponential needs. In Python numbers have all their digits.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from core.captions import percent
from core.checks import require_choice, require_int
from core.lookup import STAGES, VECTORS, Lookup

NAMES = {"q": "query", "k": "key", "v": "value"}
_DECIMALS, _MOST_DECIMALS = 3, 15
_A_LINE = 4  # terms of a long sum on one line
_LARGE, _SMALL = 1e5, 0.5 * 10**-_DECIMALS  # beyond these a power of ten is shown
_SAFE = 100.0  # exponents beyond this could leave the range of a float
_SAME = 1e-12
_COMMA = r",\; "


class Cell(NamedTuple):
    """Which cell of a stage is meant; a stage reads the places it has.

    Attributes:
        query: Position of the token that reads.
        key: Position of the token that is read.
        dimension: Which number of a vector.
    """

    query: int
    key: int
    dimension: int


class CellArithmetic(NamedTuple):
    """How one number of one stage came about.

    Attributes:
        value: The number.
        sentence: The step in words, without a full stop.
        latex: The step in LaTeX, an ``aligned`` block.
        python: A program that prints the number and keeps it as ``cell``.
    """

    value: float
    sentence: str
    latex: str
    python: str


class _Sum(NamedTuple):
    """A sum of products as it is to be written down."""

    name: str  # of the sum, in LaTeX
    formula: str  # in LaTeX
    left: list[float]
    right: list[float]


def cell_arithmetic(
    seen: Lookup, stage: str, cell: Cell, *, vector: str = "q"
) -> CellArithmetic:
    """Return how one cell of a stage is computed from the stage before.

    Args:
        seen: The lookup, T queries and S keys.
        stage: Name in ``STAGES``.
        cell: The cell; positions count from 0.
        vector: "q", "k" or "v", for the stage "project": which projection. The row is
            the query's for "q", else the key's. An edited number is no projection; its
            arithmetic is that of the number it replaced.

    Raises:
        ValueError: If a name is unknown or the cell does not exist.
    """
    require_choice("stage", stage, STAGES)
    require_choice("vector", vector, VECTORS)
    num_queries, num_keys, d_v = seen.weighted.shape
    require_int("query", cell.query, 0, num_queries - 1)
    require_int("key", cell.key, 0, num_keys - 1)
    require_int("dimension", cell.dimension, 0, d_v - 1)
    if stage == "project":
        return _project(seen, cell, vector)
    return _STAGES[stage](seen, cell)


def _project(seen: Lookup, cell: Cell, vector: str) -> CellArithmetic:
    of_query = vector == "q"
    row = cell.query if of_query else cell.key
    x = (seen.x_query if of_query else seen.x_key)[row].tolist()
    w = getattr(seen, f"w_{vector}")[:, cell.dimension].tolist()
    label = (seen.query_labels if of_query else seen.key_labels)[row]
    place = f"{{{row},{cell.dimension}}}"
    formula = rf"\sum_m x_{{{row},m}} \, (W_{vector})_{{m,{cell.dimension}}}"
    total = _Sum(f"{vector}_{place}", formula, x, w)
    what = f'{NAMES[vector]} of "{label}", dimension {cell.dimension}: '
    return _of_products(total, what + f"{_products(x)}")


def _score(seen: Lookup, cell: Cell) -> CellArithmetic:
    q, k = seen.q[cell.query].tolist(), seen.k[cell.key].tolist()
    formula = rf"q_{{{cell.query}}} \cdot k_{{{cell.key}}}"
    total = _Sum(f"s_{_pair(cell)}", formula, q, k)
    what = f"{_named_pair(seen, cell)}: {_products(q)} the score"
    return _of_products(total, what)


def _scale(seen: Lookup, cell: Cell) -> CellArithmetic:
    score, d_k = float(seen.scores[cell.query, cell.key]), seen.q.shape[1]
    divisors = [(rf"\sqrt{{{d_k}}}", f"math.sqrt({d_k})", math.sqrt(d_k), f"√{d_k}")]
    if seen.temperature != 1:
        number = _number(seen.temperature)
        words = f"the temperature {shown_number(seen.temperature)}"
        divisors.append((number, repr(seen.temperature), seen.temperature, words))
    signs, code, numbers, names = zip(*divisors, strict=True)
    divisor = math.prod(numbers)
    value = score / divisor
    below = r" \cdot ".join(signs)
    fraction = rf"\frac{{{_number(score)}}}{{{below}}}"
    worked = rf"\frac{{{_number(score)}}}{{{_number(divisor)}}}"
    relations = _relations([score], [divisor], [value])
    parts = zip(relations, (fraction, worked, _number(value)), strict=True)
    steps = [rf"\frac{{s_{_pair(cell)}}}{{{_divisor_name(seen)}}}"]
    latex = _aligned(
        f"z_{_pair(cell)}", steps, [f"{sign} {text}" for sign, text in parts]
    )
    program = f"import math\n\ncell = {score!r} / {' / '.join(code)}\nprint(cell)"
    sentence = (
        f"{_named_pair(seen, cell)}: the score {shown_number(score)} divided by "
        f"{' and by '.join(names)} is {shown_number(value)}"
    )
    return _told(value, sentence, latex, program)


def _softmax(seen: Lookup, cell: Cell) -> CellArithmetic:
    scaled = seen.scaled[cell.query].tolist()
    shift = max(scaled) if max(map(abs, scaled)) > _SAFE else 0.0
    exponents = [score - shift for score in scaled]
    exponentials = [math.exp(exponent) for exponent in exponents]
    total = sum(exponentials)
    top = exponentials[cell.key]
    value = top / total
    sentence = (
        f'query "{seen.query_labels[cell.query]}" gives key '
        f'"{seen.key_labels[cell.key]}" {shown_number(top)} of a row sum of '
        f"{shown_number(total)}: {percent(value)}"
    )
    latex = _softmax_latex(cell, exponents, exponentials, shifted=shift != 0)
    lines = [f"    math.exp({_minus(score, shift)})," for score in scaled]
    program = "\n".join(
        [
            "import math\n",
            "exponentials = [",
            *lines,
            "]",
            f"cell = exponentials[{cell.key}] / sum(exponentials)",
            "print(cell)",
        ]
    )
    return _told(value, sentence, latex, program)


def _weigh(seen: Lookup, cell: Cell) -> CellArithmetic:
    weight = float(seen.attn_weights[cell.query, cell.key])
    value = float(seen.v[cell.key, cell.dimension])
    product = weight * value
    place = f"{{{cell.key},{cell.dimension}}}"
    steps = [rf"a_{_pair(cell)} \cdot v_{place}"]
    first, _, last = _relations([weight, value], [], [product])
    shown = [f"{first} {_number(weight)} \\cdot {_factor(value)}"]
    shown += [f"{last} {_number(product)}"]
    latex = _aligned(
        f"(a v)_{{{cell.query},{cell.key},{cell.dimension}}}", steps, shown
    )
    sentence = (
        f'query "{seen.query_labels[cell.query]}" takes {percent(weight)} of '
        f'{shown_number(value)}, the value of "{seen.key_labels[cell.key]}" in '
        f"dimension {cell.dimension}: {shown_number(product)}"
    )
    return _told(
        product, sentence, latex, f"cell = {weight!r} * {value!r}\nprint(cell)"
    )


def _sum(seen: Lookup, cell: Cell) -> CellArithmetic:
    weights = seen.attn_weights[cell.query].tolist()
    values = seen.v[:, cell.dimension].tolist()
    place = f"{{{cell.query},{cell.dimension}}}"
    formula = rf"\sum_j a_{{{cell.query},j}} \, v_{{j,{cell.dimension}}}"
    total = _Sum(f"o_{place}", formula, weights, values)
    many = len(values) > 1
    count = "weighted values sum" if many else "weighted value sums"
    what = f'the output of "{seen.query_labels[cell.query]}", dimension '
    return _of_products(total, f"{what}{cell.dimension}: {len(values)} {count} to")


_STAGES: dict[str, Callable[[Lookup, Cell], CellArithmetic]] = {
    "score": _score,
    "scale": _scale,
    "softmax": _softmax,
    "weigh": _weigh,
    "sum": _sum,
}


def _of_products(total: _Sum, words: str) -> CellArithmetic:
    """Return the arithmetic of a sum of products; ``words`` end before its value."""
    pairs = list(zip(total.left, total.right, strict=True))
    products = [left * right for left, right in pairs]
    value = sum(products)
    first, second, last = _relations([*total.left, *total.right], products, [value])
    terms = [rf"{_factor(left)} \cdot {_factor(right)}" for left, right in pairs]
    shown = [f"{first} {_broken(terms)}"]
    if len(pairs) > 1:
        shown.append(f"{second} {_broken([_factor(product) for product in products])}")
    shown.append(f"{last} {_number(value)}")
    latex = _aligned(total.name, [total.formula], shown)
    lines = [f"{left!r} * {right!r}" for left, right in pairs]
    body = "\n    + ".join(lines)
    program = f"cell = (\n    {body}\n)\nprint(cell)"
    return _told(value, f"{words} {shown_number(value)}", latex, program)


def _softmax_latex(
    cell: Cell, exponents: list[float], exponentials: list[float], *, shifted: bool
) -> str:
    row, total = cell.query, sum(exponentials)
    minus = r" - \max z" if shifted else ""
    power = f"e^{{z_{{{row},j}}{minus}}}"
    own = power.replace("j", str(cell.key))
    terms = [
        rf"e^{{{_exponent(exponent)}}} \approx {_number(exponential)}"
        for exponent, exponential in zip(exponents, exponentials, strict=True)
    ]
    name = f"a_{_pair(cell)}"
    sums = _broken([_number(exponential) for exponential in exponentials])
    lines = [
        rf"{name} &= \frac{{{own}}}{{\sum_j {power}}}",
        rf"{power} &: \; {_broken(terms, joint=_COMMA)}",
        rf"\sum_j {power} &\approx {sums}",
        rf"&\approx {_number(total)}",
        rf"{name} &\approx \frac{{{_number(exponentials[cell.key])}}}"
        rf"{{{_number(total)}}} \approx {_number(exponentials[cell.key] / total)}",
    ]
    return _block(lines)


def _told(value: float, sentence: str, latex: str, program: str) -> CellArithmetic:
    return CellArithmetic(value, sentence, latex, f"# {sentence}\n{program}")


def _aligned(name: str, steps: Sequence[str], shown: Sequence[str]) -> str:
    first = f"{name} &= {steps[0]}"
    return _block([first, *(f"&{line}" for line in shown)])


def _block(lines: Sequence[str]) -> str:
    joint = " \\\\\n"
    return f"\\begin{{aligned}}\n{joint.join(lines)}\n\\end{{aligned}}"


def _broken(terms: Sequence[str], *, joint: str = " + ") -> str:
    """Return joined terms, broken over lines so that a long sum is not cut."""
    lines = [
        joint.join(terms[start : start + _A_LINE])
        for start in range(0, len(terms), _A_LINE)
    ]
    # A comma ends its line; a plus begins one, with room kept by the empty group.
    ended, begun = (joint, "") if joint == _COMMA else ("", f"{{}}{joint}")
    return f"{ended} \\\\\n&\\quad {begun}".join(lines)


def _relations(*parts: Sequence[float]) -> list[str]:
    """Return for each part whether it equals what stands before, as it is shown."""
    exact, signs = True, []
    for numbers in parts:
        exact = exact and all(map(_is_exact, numbers))
        signs.append("=" if exact else r"\approx")
    return signs


def shown_number(value: float) -> str:
    """Return a number for a sentence, rounded as in the LaTeX."""
    if value and not _SMALL <= abs(value) < _LARGE and not _is_exact(value):
        text = f"{value:.2e}"
    else:
        text = _rounded(value, _decimals(value))
    return text.replace("-", "\N{MINUS SIGN}")


def _decimals(value: float) -> int:
    """Return the decimals that a number is shown with: three figures below 0.1."""
    if not value or not _SMALL <= abs(value) < 0.1:
        return _DECIMALS
    return 2 - math.floor(math.log10(abs(value)))


def _is_exact(value: float) -> bool:
    rounded = round(value, _decimals(value))
    return abs(rounded - value) < _SAME and abs(value) < _LARGE


def _number(value: float) -> str:
    if value and not _SMALL <= abs(value) < _LARGE and not _is_exact(value):
        mantissa, power = f"{value:.2e}".split("e")
        return rf"{mantissa} \cdot 10^{{{int(power)}}}"
    return _rounded(value, _decimals(value))


def _rounded(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _exponent(value: float) -> str:
    """Return an exponent with the decimals that give its exponential as shown."""
    wanted = _number(math.exp(value))
    for decimals in range(_DECIMALS, _MOST_DECIMALS):
        text = _rounded(value, decimals)
        if _number(math.exp(float(text))) == wanted:
            return text
    return repr(value)


def _factor(value: float) -> str:
    number = _number(value)
    return f"({number})" if number.startswith("-") or "10^" in number else number


def _minus(score: float, shift: float) -> str:
    return f"{score!r} - {shift!r}" if shift else repr(score)


def _divisor_name(seen: Lookup) -> str:
    return r"\sqrt{d_k}" if seen.temperature == 1 else r"\sqrt{d_k} \, \tau"


def _products(vector: Sequence[float]) -> str:
    return f"{len(vector)} products give" if len(vector) > 1 else "1 product gives"


def _pair(cell: Cell) -> str:
    return f"{{{cell.query},{cell.key}}}"


def _named_pair(seen: Lookup, cell: Cell) -> str:
    query, key = seen.query_labels[cell.query], seen.key_labels[cell.key]
    return f'query "{query}" and key "{key}"'
