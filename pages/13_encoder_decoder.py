"""Encoder-decoder

The decoder writes token by token and reads the whole source at every step.

Section: Sequence to sequence
Icon: translate
"""

import streamlit as st

from pages._ui import (
    controls,
    frame,
    parts,
    s2s_decode,
    s2s_loss,
    s2s_stack,
    s2s_train,
    s2s_view,
)
from pages._ui.s2s_view import DECODE, LOSS, STACK, TRAIN

page = frame.guard(__file__)
parts.head(
    page,
    r"p(y \mid x) = \textstyle\prod_t p\left(y_t \mid y_{<t},\, \mathrm{memory}(x)"
    r"\right)",
)
tabs = st.tabs(s2s_view.VIEWS, key="s2s_view", bind="query-params")
view, body = s2s_view.open_tab(tabs)
with controls.sidebar("s2s") as c:
    task = s2s_view.choose_task(c)

with body, parts.loading(s2s_view.HEIGHT):
    s2s_view.load()

if view == TRAIN:
    with controls.sidebar("s2s") as c:
        settings = s2s_train.choose(c, task)
    with body:
        config = s2s_train.checked(settings)
        held = s2s_train.hold(config)
        if held is not None:
            s2s_train.draw(held, config)
            s2s_train.look_inside(held)
else:
    with controls.sidebar("s2s") as c:
        whose, typed = s2s_view.choose_source(c, task)
    with body, parts.explained():
        shown = s2s_view.pick(task, whose, typed)
        with controls.sidebar("s2s") as c:
            if view == STACK:
                stacked = s2s_stack.choose(c, shown.model.config)
            if view == DECODE:
                decoded = s2s_decode.choose(c, shown)
            if view == LOSS:
                lost = s2s_loss.choose(c, shown)
        s2s_view.tell(shown)
        if view == STACK:
            s2s_stack.draw(shown, stacked)
            s2s_stack.predict(shown)
            s2s_stack.look_inside(shown, stacked)
        if view == DECODE:
            s2s_decode.draw(shown, decoded)
            s2s_decode.look_inside(shown, decoded)
        if view == LOSS:
            s2s_loss.draw(shown, lost)
            s2s_loss.look_inside(shown, lost)

parts.try_it("s2s", s2s_view.EXPERIMENTS)
parts.limits(
    "Small models on tasks whose answers a rule gives: no language is learned here. A "
    "high weight of cross-attention says where a step reads, not why it answers. "
    "Beam search can find a likelier answer; likelier is not truer."
)
