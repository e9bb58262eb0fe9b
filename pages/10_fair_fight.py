"""Fair fight

Same data and order: model, width and start decide who learns.

Section: A trained model
Icon: sports_score
"""

import streamlit as st

from pages._ui import controls, fight_view, frame, parts

page = frame.guard(__file__)
parts.head(
    page,
    r"r_t = \tfrac{1}{N}\textstyle\sum_{n} \left|\partial \ell_n / \partial x_{n,t}"
    r"\right|",
)
tabs = st.tabs(fight_view.VIEWS, key="fight_view", bind="query-params")
curves, ruler, parameters = tabs
with controls.sidebar("fight") as c:
    if curves.open:
        look = fight_view.choose_look(c)
    if ruler.open:
        moment = fight_view.choose_moment(c)
    chosen = fight_view.choose(c)
with parts.loading(fight_view.HEIGHT):
    loaded = fight_view.load(chosen)

if curves.open:
    with curves:
        fight_view.draw_curves(loaded, chosen, look)
        fight_view.predict(chosen, look)
if ruler.open:
    with ruler:
        fight_view.draw_rulers(loaded, chosen, moment)
if parameters.open:
    with parameters:
        fight_view.draw_parameters(loaded, chosen)
fight_view.inside(loaded.config)
parts.try_it("fight", fight_view.EXPERIMENTS)
parts.limits(
    "One toy task, one learning rate, few steps and few seeds: a race, not a law. A "
    "model that stays at a coin flip here may learn with more steps, another rate, "
    "width or seed. Seconds depend on the machine and on what else it computes; a GPU "
    "ranks them otherwise. The ruler reads one fixed batch: how far the loss moves "
    "with a token, not what the model has learned."
)
