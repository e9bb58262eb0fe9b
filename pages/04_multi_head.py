"""Multi-head attention

Every head reads the whole token; W_O mixes what they write.

Section: The mechanism
Icon: account_tree
"""

import streamlit as st

from pages._ui import controls, frame, heads_view, hunt_view, parts

page = frame.guard(__file__)
parts.head(
    page,
    r"\begin{aligned}&\mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_H)\,W_O\\"
    r"&d_k = d_{model} / H\end{aligned}",
)
tabs = st.tabs(heads_view.VIEWS, key="heads_view", bind="query-params")
heads, concatenate, parity, cost, hunt, mistakes = tabs
with controls.sidebar("heads") as c:
    if hunt.open:
        case = hunt_view.choose_case(c)
    if mistakes.open:
        mistake = hunt_view.choose_mistake(c)
    asked = heads_view.asked_sizes()
    text = c.words("the cat sat on the mat")
    d_model = c.listed("Width of a token, d_model", "d_model", heads_view.WIDTHS, 64)
    in_core = st.container()  # what depends on d_model, known to core
    if not cost.open:
        mask = c.choice(
            "Mask",
            "mask",
            heads_view.MASKS,
            help_text="Left padding: causal, and token 0 may not be read.",
        )
        seed = c.seed()
    precision = "float64"
    if parity.open or hunt.open or mistakes.open:
        precision = c.choice("Precision", "precision", heads_view.PRECISIONS)

with parts.loading(heads_view.HEIGHT):
    from core import heads as layers
    from core import tokens

with parts.explained():
    if not cost.open:
        with in_core:
            num_heads = heads_view.choose_heads(c, d_model, asked)
            if heads.open:
                head = heads_view.choose_head(c, num_heads)
            if hunt.open or mistakes.open:
                head = hunt_view.choose_head(c, num_heads)
    words = tokens.split_into_tokens(text)
    if cost.open:
        with cost:
            heads_view.draw_costs(d_model, len(words))
    else:
        settings = {
            "d_model": d_model,
            "num_heads": num_heads,
            "mask": mask,
            "seed": seed,
            "dtype": precision,
        }
        seen = layers.attend_heads(words, **settings)
        if heads.open:
            with heads:
                heads_view.draw_heads(seen, head)
        if concatenate.open:
            with concatenate:
                heads_view.draw_concatenation(seen)
        if parity.open:
            with parity:
                heads_view.draw_parity(seen, settings)
        if hunt.open:
            with hunt:
                hunt_view.draw_hunt(seen, case, head)
        if mistakes.open:
            with mistakes:
                hunt_view.draw_mistake(seen, mistake, head)
        heads_view.look_inside(
            heads_view.VIEWS[[t.open for t in tabs].index(True)], seen
        )

if heads.open:
    heads_view.predict()
parts.try_it("heads", heads_view.EXPERIMENTS)
parts.limits(
    "One layer with random projections over at most 16 tokens. How far heads differ "
    "here is the spread of their random weights; what trained heads do is not shown."
)
