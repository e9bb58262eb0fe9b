"""Masks

A mask hides keys from a query; the rest share its weight.

Section: The mechanism
Icon: grid_off
"""

import streamlit as st

from pages._ui import controls, frame, masks_view, nan_lab_view, parts

page = frame.guard(__file__)
parts.head(
    page,
    r"\begin{aligned}&\mathrm{softmax}\!\left(\tfrac{QK^\top}{\sqrt{d_k}} + M\right),"
    r"\;M \in \{0, -\infty\}\\&\text{a row of }{-\infty}\text{ alone: weights }0"
    r"\end{aligned}",
)
views = st.tabs(masks_view.TABS, key="masks_view", bind="query-params")
weights, change, conventions, nan_lab = views
with controls.sidebar("masks") as c:
    if nan_lab.open:  # four keys of its own: nothing else has an effect there
        precision, method = nan_lab_view.choose_fill(c)
    else:
        text, seq_len = masks_view.choose_tokens(c)
        kind = c.menu("Mask", "kind", masks_view.KINDS)
        in_core = st.container()  # these end at the number of words, known to core
        d_k = c.listed("Width of the head, d_k", "d_k", masks_view.WIDTHS, 16)
        seed = c.seed()

with parts.loading(560):
    from core import masking

if nan_lab.open:
    with nan_lab:
        nan_lab_view.draw(precision, method)
else:
    with parts.explained():
        tokens = masking.read_tokens(text, seq_len)
        with in_core:
            sizes = masks_view.choose_sizes(c, kind, len(tokens))
            if change.open:
                index = c.whole("Token to change", "changed", 0, len(tokens) - 1, 2)
        seen = masking.masked_attention(tokens, kind, d_k=d_k, seed=seed, **sizes)
        if weights.open:
            with weights:
                masks_view.draw_weights(seen, kind)
                masks_view.predict(seen, seed)
        if change.open:
            with change:
                masks_view.draw_movement(seen, index, seed)
        if conventions.open:
            with conventions:
                masks_view.draw_conventions(seen)
        masks_view.look_inside([tab.open for tab in views].index(True), seen)

parts.try_it("masks", masks_view.EXPERIMENTS)
parts.limits(
    "One head, random projections, at most 16 tokens. Masking keys hides them in this "
    "layer alone: what an earlier layer has mixed into a token stays in it."
)
