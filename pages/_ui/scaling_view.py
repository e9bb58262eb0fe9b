"""The scaling page's own pieces: its pictures, one a tab, and the lab's table."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import parts

_RECIPE = """
Largest of 16 weights, to four decimals. One generator, seeded 0:

1. `Q`, `K`, `V` of shape (4, 8), the worked example, come first;
2. then for each d_k in order `q` (1, d_k) and `k` (16, d_k), all standard normal.

No control of this page moves these numbers.
"""


class Shown(NamedTuple):
    """What the controls say, as far as the pictures need it."""

    d_k: int
    divisor: str
    num_keys: int
    spread: float

    @property
    def divisors(self) -> list[str]:
        """Raw first, then the chosen divisor where it is another one."""
        return list(dict.fromkeys(["nothing", self.divisor]))

    @property
    def beside(self) -> str:
        """The divisor drawn dashed, for comparison."""
        return "d_k" if self.divisor == "sqrt_d_k" else "sqrt_d_k"


class Measure(NamedTuple):
    """One statistic of the sweep and how its axis is drawn."""

    field: str
    words: str
    title: str
    y_title: str
    top: float | None = None  # of the axis from 0; None: the bits of all keys alike


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
        "variance over the keys (log scale)",
    ),
}  # fmt: skip
_HEADROOM = 1.1  # of a linear axis, for the words at the rule
_VARIANCES = (1e-5, 1e5)


VIEWS = [*MEASURES, "One row", "Lab table"]


@st.cache_resource(max_entries=32, show_spinner=False)
def sweep(seed: int, num_keys: int, num_trials: int, spread: float) -> dict[str, Any]:
    """Return the sweep over d_k; kept, so that moving d_k draws nothing anew."""
    from core import scaling

    return scaling.saturation_sweep(
        num_keys=num_keys,
        num_trials=num_trials,
        generator=scaling.generator_from(seed),
        spread=spread,
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def measured_divisor(d_model: int, num_heads: int, seq_len: int) -> float:
    """Return what a real layer of that size divides its scores by; kept."""
    from core import scaling

    return scaling.measured_divisor(d_model, num_heads, seq_len=seq_len)


def draw(measured: dict[str, Any], rows: dict[str, Any], shown: Shown) -> None:
    """Draw the tabs, and the picture of the open one."""
    tabs = st.tabs(VIEWS, key="scaling_view", bind="query-params")
    for tab, view in zip(tabs, VIEWS, strict=True):
        if not tab.open:
            continue
        with tab, parts.loading(400):
            if view in MEASURES:
                draw_sweep(view, measured, shown)
            elif view == "One row":
                draw_row(rows, shown)
            else:
                draw_lab_table()


def draw_sweep(name: str, measured: dict[str, Any], shown: Shown) -> None:
    """Draw one statistic against d_k: raw, the chosen divisor, a dashed reference."""
    from core import charts, scaling
    from core.charts import tidy

    measure = MEASURES[name]
    series = {
        scaling.DIVISOR_NAMES[key]: getattr(measured[key], measure.field)
        for key in shown.divisors
    }
    reference = _reference(measure.field, measured, shown)
    parts.picture(
        charts.sweep,
        tidy.sweep_frame(
            scaling.POWERS_OF_TWO, series, references=reference, chosen=shown.d_k
        ),
        key=f"scaling_{measure.field}",
        caption=_sweep_caption(measure, series, shown),
        series=tuple(series),
        references=tuple(reference),
        title=f"{measure.title}: median and 10–90 % of trials",
        y_title=measure.y_title,
        y_domain=_domain(measure, shown.num_keys),
        log_y=measure.field == "score_variance",
        chosen_label="chosen d_k",
        height=400,
    )


def draw_row(rows: dict[str, Any], shown: Shown) -> None:
    """Draw the weights of one query and the gradient of the largest, as bars."""
    from core import captions, charts, scaling
    from core.charts import tidy

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


def _domain(measure: Measure, num_keys: int) -> tuple[float, float]:
    if measure.field == "score_variance":
        return _VARIANCES
    top = measure.top or (num_keys - 1).bit_length()  # log2 of the keys, rounded up
    return 0.0, _HEADROOM * top


def _reference(field: str, measured: dict[str, Any], shown: Shown) -> dict[str, Any]:
    from core import scaling

    if field == "score_variance":
        name = "expected: d_k" if shown.spread == 1 else "expected: d_k · spread⁴"
        line = scaling.expected_variance(scaling.POWERS_OF_TWO, shown.spread)
        return {name: line}
    values = getattr(measured[shown.beside], field)
    return {scaling.DIVISOR_NAMES[shown.beside]: scaling.trial_band(values).median}


def _sweep_caption(measure: Measure, series: dict[str, Any], shown: Shown) -> str:
    from core import captions, scaling

    at = scaling.POWERS_OF_TWO.index(shown.d_k)
    bands = {name: scaling.trial_band(values[at]) for name, values in series.items()}
    medians = {name: float(band.median) for name, band in bands.items()}
    said = captions.sweep_sentence("d_k", shown.d_k, measure.words, medians)
    if measure.field == "score_variance":
        (expected,) = scaling.expected_variance([shown.d_k], shown.spread).tolist()
        mean = captions.figure(float(bands["raw"].mean))
        said += f"; the raw mean is {mean}, expected {captions.figure(expected)}"
    return f"With {shown.num_keys} keys, {said}."
