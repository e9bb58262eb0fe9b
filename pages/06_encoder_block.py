"""Encoder block

Shortcuts carry signal and gradient; the place of the norm can decide what learns.

Section: The mechanism
Icon: layers
"""

import streamlit as st

from pages._ui import block_view, controls, depth_view, frame, parts

page = frame.guard(__file__)
top = st.container()
views = {  # name -> its controls, its picture
    "Block": (block_view.choose_walk, block_view.draw_block),
    "Depth": (depth_view.choose_stack, depth_view.draw_start),
    "Training": (depth_view.choose_trained, depth_view.draw_training),
    "LayerNorm by hand": (block_view.choose_row, block_view.draw_row),
    "The shortcut": (block_view.choose_built_in, block_view.draw_built_in),
    "Parameters": (block_view.choose_size, block_view.draw_parameters),
}
tabs = st.tabs(list(views), key="block_view", bind="query-params")
shown = [tab.open for tab in tabs].index(True)
choose, draw = list(views.values())[shown]
with controls.sidebar("block") as c:
    settings = choose(c)
with top:
    parts.head(page, block_view.formula(settings))

with tabs[shown], parts.explained(), parts.loading(540):
    draw(settings)

parts.try_it("block", block_view.EXPERIMENTS)
parts.limits(
    "Only the runs of Training learned, one toy task: width 32, sequences of 20, no "
    "warm-up. Other tasks, widths and learning rates may end "
    "otherwise. Times hold for this machine at this moment."
)
