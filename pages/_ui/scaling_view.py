"""The scaling page's own pieces: its pictures, one a tab, and the lab's table."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts

_RECIPE = """
Largest of 16 weights, to four decimals. One generator, seeded 0:

1. `Q`, `K`, `V` of shape (4, 8), the worked example, come first;
2. then for each d_k in order `q` (1, d_k) and `k` (16, d_k), all standard normal.

These numbers are fixed, so this view has no controls.
"""


class Shown(NamedTuple):
    """What the controls say, as far as the pictures need it."""

    d_k: int
    divisor: str
    num_keys: int
    spread: float
    seed: int

    @property
    def divisors(self) -> list[str]:
        """Raw first, then the chosen divisor where it is another one."""
        return list(dict.fromkeys(["nothing", self.divisor]))


class Measure(NamedTuple):
    """One statistic of the sweep and how its axis is drawn."""

    field: str
    words: str
    title: str
    y_title: str
    top: float | None = None  # of the axis from 0; None: the bits of all keys alike
    centre: str = "median"  # of the trials; the mean where a mean is expected


MEASURES = {
    "Largest weight": Measure(
        "largest_weight", "largest weight", "Largest of the weights",
        "largest weight", 1.0,
    ),
    "Entropy": Measure(
        "entropy", "entropy in bits", "Entropy of the weights", "entropy (bits)"
    ),
    "Gradient": Measure(
        "jacobian_norm", "norm of the Jacobian", "Gradient that passes the softmax",
        "norm of the Jacobian", 0.5,
    ),
    "Score variance": Measure(
        "score_variance", "score variance", "Variance of the scores",
        "variance over the keys (log scale)", centre="mean",
    ),
}  # fmt: skip
_HEADROOM = 1.1  # of a linear axis, for the words at the rule
_VARIANCES = (1e-5, 1e5)
_FEW_KEYS = 8  # what the score variance is compared with
ROOTS = {  # what a layer of width 64 with 8 heads over 100 tokens may divide by
    64: parts.Choice(
        "√64 = 8.00", "64 is d_model; one head compares only its own share of it."
    ),
    8: parts.Choice("√8 = 2.83", ""),
    100: parts.Choice(
        "√100 = 10.00",
        "100 is the sequence length: it adds scores, not terms to a score.",
    ),
}
VIEWS = [*MEASURES, "One row", "Lab table"]


@st.cache_resource(max_entries=32, show_spinner=False)
def sweep(seed: int, num_keys: int, num_trials: int, spread: float) -> dict[str, Any]:
    """Return the sweep over d_k; kept, so that moving d_k draws nothing anew."""
    from core import initial, scaling

    return scaling.saturation_sweep(
        num_keys=num_keys,
        num_trials=num_trials,
        generator=initial.generator_from(seed),
        spread=spread,
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def measured_divisor(d_model: int, num_heads: int, seq_len: int) -> Any:
    """Return what a real layer of that size divides its scores by; kept."""
    from core import scaling

    return scaling.measured_divisor(d_model, num_heads, seq_len=seq_len)


def draw_sweep(name: str, shown: Shown, num_trials: int) -> None:
    """Draw one statistic against d_k: raw, the chosen divisor, dotted references."""
    from core import charts, scaling
    from core.charts import tidy

    measure = MEASURES[name]
    measured = sweep(shown.seed, shown.num_keys, num_trials, shown.spread)
    caption = _sweep_caption(measure, measured, shown)
    if measure.field == "score_variance":
        fewer = sweep(shown.seed, _FEW_KEYS, num_trials, shown.spread)
        caption += f" {_expected_sentence(fewer, shown)}"
    series = {
        scaling.DIVISOR_NAMES[key]: getattr(measured[key], measure.field)
        for key in shown.divisors
    }
    reference = _reference(measure.field, measured, shown)
    parts.picture(
        charts.sweep,
        tidy.sweep_frame(
            scaling.POWERS_OF_TWO,
            series,
            references=reference,
            chosen=shown.d_k,
            centre=measure.centre,
        ),
        key=f"scaling_{measure.field}",
        caption=caption,
        series=tuple(series),
        references=tuple(reference),
        title=f"{measure.title}: {measure.centre} and 10–90 % of trials",
        centre=measure.centre,
        x_domain=scaling.ALL_WIDTHS,
        y_title=measure.y_title,
        y_domain=_domain(measure, shown.num_keys),
        log_y=measure.field == "score_variance",
        chosen_label="chosen d_k",
        height=400,
    )
    parts.random_weights_badge("Queries and keys")
    parts.look_inside(
        "scaling",
        [scaling.saturation_sweep, scaling.saturation_of_scores, scaling.jacobian_norm],
        {
            "widths d_k": len(scaling.POWERS_OF_TWO),
            measure.field: getattr(measured[shown.divisor], measure.field),
        },
    )


def draw_row(shown: Shown) -> None:
    """Draw the weights of one query and the gradient of the largest, as bars."""
    from core import captions, charts, initial, scaling
    from core.charts import tidy

    rows = scaling.softmax_row(
        shown.d_k,
        num_keys=shown.num_keys,
        generator=initial.generator_from(shown.seed),
        spread=shown.spread,
    )
    drawn = {scaling.DIVISOR_NAMES[key]: rows[key] for key in shown.divisors}
    kinds = {
        "weight": {name: row.attn_weights for name, row in drawn.items()},
        "gradient": {name: row.gradient for name, row in drawn.items()},
    }
    looks = {
        "weight": {
            "height": 210,
            "x_title": "",
            "title": "Weights of one query",
        },
        "gradient": {
            "height": 250,
            "limit": 0.25,
            "title": "Gradient of its largest weight by each score",
        },
    }
    said = captions.softmax_row_sentence(shown.d_k, drawn)
    sentence = f"With {shown.num_keys} keys, {said}."
    for kind, numbers in kinds.items():
        parts.bare_chart(
            charts.bars,
            tidy.bars_frame(numbers, range(shown.num_keys), value=kind),
            key=f"scaling_row_{kind}",
            alt=sentence,
            kind=kind,
            series=tuple(drawn),
            **looks[kind],
        )
    parts.sentence(sentence)
    parts.random_weights_badge("Queries and keys")
    row = rows[shown.divisor]
    parts.look_inside(
        "scaling",
        [scaling.softmax_row],
        {"scores of one row": row.scores, "gradient": row.gradient},
    )


def draw_lab_table() -> None:
    """Show the table of the course lab, and how to get it again."""
    from core import scaling

    table, recipe = st.columns([3, 2], gap="large")
    table.dataframe(
        [row._asdict() for row in scaling.lab_table()],
        hide_index=True,
        column_config={
            "d_k": st.column_config.NumberColumn("d_k", format="%d"),
            "unscaled": st.column_config.NumberColumn("raw", format="%.4f"),
            "scaled": st.column_config.NumberColumn("÷ √d_k", format="%.4f"),
        },
    )
    recipe.markdown(_RECIPE)
    parts.look_inside("scaling", [scaling.lab_table], {"rows": 4})


def _domain(measure: Measure, num_keys: int) -> tuple[float, float]:
    if measure.field == "score_variance":
        return _VARIANCES
    top = measure.top or (num_keys - 1).bit_length()  # log2 of the keys, rounded up
    return 0.0, _HEADROOM * top


def _reference(field: str, measured: dict[str, Any], shown: Shown) -> dict[str, Any]:
    from core import scaling

    if field == "score_variance":
        power = "" if shown.spread == 1 else " · spread⁴"
        name = f"expected: d_k{power}"
        line = scaling.expected_variance(scaling.POWERS_OF_TWO, shown.spread)
        return {name: line}
    return {
        scaling.DIVISOR_NAMES[key]: scaling.trial_band(getattr(part, field)).median
        for key, part in measured.items()
        if key not in shown.divisors
    }


def _sweep_caption(measure: Measure, measured: dict[str, Any], shown: Shown) -> str:
    from core import captions, scaling

    at = scaling.POWERS_OF_TWO.index(shown.d_k)
    middles = {
        scaling.DIVISOR_NAMES[key]: float(
            getattr(
                scaling.trial_band(getattr(measured[key], measure.field)[at]),
                measure.centre,
            )
        )
        for key in shown.divisors
    }
    what = f"{measure.centre} {measure.words}"
    said = captions.sweep_sentence("d_k", shown.d_k, what, middles)
    return f"With {shown.num_keys} keys, {said}."


def _expected_sentence(fewer: dict[str, Any], shown: Shown) -> str:
    """Say what the raw score variance is expected to be, and what few keys give."""
    from core import captions, scaling

    at = scaling.POWERS_OF_TWO.index(shown.d_k)
    (expected,) = scaling.expected_variance([shown.d_k], shown.spread).tolist()
    other = captions.figure(float(fewer["nothing"].score_variance[at].mean()))
    beside = f"; with {_FEW_KEYS} keys it has {other}"
    return (
        f"Raw is expected to have {captions.figure(expected)}"
        f"{beside if shown.num_keys != _FEW_KEYS else ''}."
    )
