"""Scaling by √d_k

Undivided scores grow as √d_k: one key takes all the weight and no gradient passes.

Section: The mechanism
Icon: balance
"""

from pages._ui import controls, frame, parts, scaling_view

page = frame.guard(__file__)
parts.head(
    page,
    r"\mathrm{Var}(q \cdot k) \propto d_k, \quad "
    r"\mathrm{softmax}(q K^\top / \sqrt{d_k})",
)
with controls.sidebar("scaling") as c:
    d_k = c.listed(
        "Width of q and k, d_k",
        "d_k",
        [2**exponent for exponent in range(13)],
        64,
        help_text="Numbers in one query and in one key. Not the sequence length.",
    )
    divisor = c.choice(
        "Scores are divided by",
        "divisor",
        ["sqrt_d_k", "nothing", "d_k"],
        shown={"sqrt_d_k": "√d_k", "nothing": "nothing", "d_k": "d_k"}.get,
    )
    num_keys = c.whole("Keys a query reads", "keys", 2, 64, 8)
    spread = c.listed(
        "Spread of q and k",
        "spread",
        [0.5, 0.75, 1.0, 1.25, 1.5, 2.0],
        1.0,
        help_text="Standard deviation of every entry of q and k.",
    )
    num_trials = c.listed(
        "Trials at each d_k",
        "trials",
        [20, 50, 100, 200, 500],
        200,
        help_text="Independent queries, each with keys of its own.",
    )
    seed = c.seed()

with parts.loading(430):
    from core import scaling

with parts.explained():
    sweep = scaling_view.sweep(seed, num_keys, num_trials, spread)
    source = scaling.generator_from(seed)
    rows = scaling.softmax_row(d_k, num_keys=num_keys, generator=source, spread=spread)
    shown = scaling_view.Shown(d_k, divisor, num_keys, spread)
    scaling_view.draw(sweep, rows, shown)
    parts.random_weights_badge("Queries and keys")

    measured = scaling_view.measured_divisor(64, 8, 100)
    ideas = {
        64: "64 is d_model; one head compares only its own share of it.",
        8: "",
        100: "100 is the sequence length: it adds scores, not terms to a score.",
    }
    parts.predict(
        "scaling_predict",
        "A layer has d_model = 64 in 8 heads and reads 100 tokens. "
        "What does it divide its scores by?",
        [parts.Choice(f"√{n} = {n**0.5:.2f}", idea) for n, idea in ideas.items()],
        list(ideas).index(round(measured**2)),
        f"Measured on such a layer: {measured:.2f}. One head has d_k = 64 / 8 = 8.",
    )
    parts.look_inside(
        "scaling",
        [
            scaling.saturation_sweep,
            scaling.saturation_of_scores,
            scaling.jacobian_norm,
            scaling.softmax_row,
        ],
        {
            "widths d_k": len(scaling.POWERS_OF_TWO),
            "largest_weight": sweep[divisor].largest_weight,
            "scores of one row": rows[divisor].scores,
            "gradient": rows[divisor].gradient,
        },
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
            "divisor": "sqrt_d_k",
            "keys": 8,
            "spread": 2.0,
        },
        "Take 64 keys: the score variance stays, d_k is not the sequence length": {
            "view": "Score variance",
            "divisor": "sqrt_d_k",
            "keys": 64,
            "spread": 1.0,
        },
    },
)
parts.limits(
    "Queries and keys are drawn independent and normal, as at the start of training; "
    "trained ones are neither. The gradient is followed through the softmax only: on "
    "its way to q and k it also meets the size of the keys and the divisor."
)
