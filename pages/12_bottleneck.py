"""The bottleneck

One vector of fixed size must hold a source of any length; attention reads every state.

Section: Sequence to sequence
Icon: compress
"""

import streamlit as st

from pages._ui import bottleneck_runs, bottleneck_view, controls, frame, parts

page = frame.guard(__file__)
parts.head(
    page,
    r"c_t = \sum_{j} \alpha_{tj}\, h_j \quad \text{instead of} \quad c = h_{S-1}",
)
tabs = st.tabs(bottleneck_view.VIEWS, key="bottleneck_view", bind="query-params")
networks, length, alignment, change, context = tabs
with controls.sidebar("bottleneck") as c:
    if networks.open:
        shown = bottleneck_view.choose_source(c, model="attention", preset="none")
        shown = bottleneck_view.choose_cut(c, shown)
        if shown.attention != "none":
            shown = shown._replace(step=bottleneck_view.choose_step(c, shown))
    if alignment.open:
        shown = bottleneck_view.choose_source(c, model="score", preset="additive")
    if change.open:
        shown = bottleneck_view.choose_source(c, model="changed", preset="additive")
        changed = bottleneck_view.choose_change(c, shown)
    if length.open or context.open:
        measure = bottleneck_runs.choose_measure(c)
    if length.open:
        attention = bottleneck_runs.choose_attention(c)
    if context.open:
        size = bottleneck_runs.choose_context(c)
    if length.open or context.open:
        seed = c.seed()

if networks.open:
    with networks, parts.loading(bottleneck_view.HEIGHT), parts.explained():
        bottleneck_view.draw_networks(shown)
    with networks, parts.explained():
        bottleneck_runs.predict()
if length.open:
    with length, parts.loading(bottleneck_view.HEIGHT), parts.explained():
        bottleneck_runs.draw(measure, attention, seed)
if alignment.open:
    with alignment, parts.loading(bottleneck_view.HEIGHT), parts.explained():
        bottleneck_view.draw_alignment(shown)
if change.open:
    with change, parts.loading(bottleneck_view.HEIGHT), parts.explained():
        bottleneck_view.draw_change(shown, changed)
if context.open:
    with context, parts.loading(bottleneck_view.HEIGHT), parts.explained():
        bottleneck_runs.draw_by_context(measure, size, seed)

parts.try_it("bottleneck", bottleneck_view.EXPERIMENTS)
parts.limits(
    "One task, one width, one number of training steps and three seeds: more steps or "
    "a wider state move the length at which it breaks. A weight says where an "
    "output looks, not why it is right. Strings of 2 to 16 letters are all that the "
    "models have seen."
)
