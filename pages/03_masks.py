"""Masks

A mask hides keys from a query; the rest share its weight.

Section: The mechanism
Icon: grid_off
"""

import streamlit as st

from pages._ui import controls, frame, masks_view, parts

page = frame.guard(__file__)
parts.head(
    page,
    r"\mathrm{softmax}\!\left(\tfrac{QK^\top}{\sqrt{d_k}} + M\right),\;"
    r"M \in \{0, -\infty\}",
)
with controls.sidebar("masks") as c:
    text, seq_len = masks_view.choose_tokens(c)
    kind = c.menu("Mask", "kind", masks_view.KINDS)
    sizes_here = st.container()  # they end at the number of words, known to core
    d_k = c.listed("Width of the head, d_k", "d_k", [1, 2, 4, 8, 16, 32, 64, 128], 16)
    seed = c.seed()
    tab_here = st.container()  # controls of the open tab

with parts.loading(560):
    from core import masking

with parts.explained():
    tokens = masking.read_tokens(text, seq_len)
    with sizes_here:
        sizes = masks_view.choose_sizes(c, kind, len(tokens))
    seen = masking.masked_attention(tokens, kind, d_k=d_k, seed=seed, **sizes)
    views = st.tabs(masks_view.TABS, key="masks_view", bind="query-params")
    weights, change, conventions, nan_lab = views
    if weights.open:
        with weights:
            masks_view.draw_weights(seen, kind)
    if change.open:
        with tab_here:
            index = c.whole("Token to change", "changed", 0, len(tokens) - 1, 2)
        with change:
            masks_view.draw_movement(seen, index, seed)
    if conventions.open:
        with conventions:
            masks_view.draw_conventions(seen)
    if nan_lab.open:
        with tab_here:
            precision, method = masks_view.choose_fill(c)
        with nan_lab:
            masks_view.draw_nan_lab(precision, method)
    masks_view.predict(seen, seed)
    parts.look_inside(
        "masks",
        masks_view.inside([tab.open for tab in views].index(True)),
        {"tokens": seen.embeddings, "mask": seen.mask, "scores": seen.scores},
    )

parts.try_it("masks", masks_view.EXPERIMENTS)
parts.limits(
    "One head, random projections, at most 16 tokens. Masking keys hides them in this "
    "layer alone: what an earlier layer has mixed into a token stays in it."
)
