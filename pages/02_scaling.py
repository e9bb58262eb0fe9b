"""Scaling by √d_k

Raw scores grow as √d_k: one key takes ever more weight, ever less gradient passes.

Section: The mechanism
Icon: balance
"""

import streamlit as st

from pages._ui import controls, frame, parts, scaling_view

page = frame.guard(__file__)
parts.head(
    page,
    r"\mathrm{Var}(q \cdot k) \propto d_k, \quad "
    r"\mathrm{softmax}(q K^\top / \sqrt{d_k})",
)
tabs = st.tabs(scaling_view.VIEWS, key="scaling_view", bind="query-params")
*swept, one_row, lab = tabs
with controls.sidebar("scaling") as c:
    if not lab.open:
        shown = scaling_view.Shown(
            d_k=c.listed(
                "Width of q and k, d_k",
                "d_k",
                [2**exponent for exponent in range(13)],
                64,
                help_text="Numbers in one query and in one key. "
                "Not the sequence length.",
            ),
            divisor=c.choice(
                "Scores are divided by",
                "divisor",
                ["sqrt_d_k", "nothing", "d_k"],
                shown={"sqrt_d_k": "√d_k", "nothing": "nothing", "d_k": "d_k"}.get,
            ),
            num_keys=c.whole("Keys a query reads", "keys", 2, 64, 8),
            spread=c.listed(
                "Spread of q and k",
                "spread",
                [0.5, 0.75, 1.0, 1.25, 1.5, 2.0],
                1.0,
                help_text="Standard deviation of every entry of q and k.",
            ),
            seed=c.seed(7),
        )
    if not (lab.open or one_row.open):
        num_trials = c.listed(
            "Trials at each d_k",
            "trials",
            [20, 50, 100, 200, 500],
            200,
            help_text="Independent queries, each with keys of its own.",
        )

for tab, name in zip(swept, scaling_view.MEASURES, strict=True):
    if tab.open:
        with tab, parts.explained(), parts.loading(400):
            scaling_view.draw_sweep(name, shown, num_trials)
if one_row.open:
    with one_row, parts.explained(), parts.loading(460):
        scaling_view.draw_row(shown)
if lab.open:
    with lab, parts.explained(), parts.loading(200):
        scaling_view.draw_lab_table()

measured = scaling_view.measured_divisor(64, 8, 100)
parts.predict(
    "scaling_predict",
    "A layer has d_model = 64 in 8 heads and reads 100 tokens. "
    "What does it divide its scores by?",
    list(scaling_view.ROOTS.values()),
    list(scaling_view.ROOTS).index(measured.width),
    f"Measured on such a layer: {measured.divisor:.2f}. One head has d_k = 64 / 8.",
)

parts.try_it(
    "scaling",
    {
        "Open one row at d_k = 1024: raw, one key has it all": {
            "view": "One row",
            "d_k": 1024,
            "divisor": "sqrt_d_k",
            "keys": 8,
            "spread": 1.0,
            "seed": 0,
        },
        "Double the spread of q and k: even after ÷ √d_k one key takes most": {
            "view": "Largest weight",
            "d_k": 64,
            "divisor": "sqrt_d_k",
            "keys": 8,
            "spread": 2.0,
            "trials": 200,
            "seed": 0,
        },
        "Take 64 keys: the raw mean stays near d_k, whatever the sequence length": {
            "view": "Score variance",
            "d_k": 64,
            "divisor": "sqrt_d_k",
            "keys": 64,
            "spread": 1.0,
            "trials": 200,
            "seed": 0,
        },
    },
)
parts.limits(
    "Queries and keys are drawn independent and normal, as at the start of training; "
    "trained ones are neither. The gradient is followed through the softmax only: on "
    "its way to q and k it also meets the size of the keys and the divisor."
)
