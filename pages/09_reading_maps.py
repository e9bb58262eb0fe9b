"""Reading attention maps

A map says where a head reads; what moves the answer has to be measured beside it.

Section: A trained model
Icon: visibility
"""

import streamlit as st

from pages._ui import (
    controls,
    frame,
    parts,
    reading_film,
    reading_influence,
    reading_off,
    reading_view,
)
from pages._ui.reading_view import INFLUENCE, MAPS, OFF, ROWS, SEVERAL

page = frame.guard(__file__)
parts.head(page, r"a_{ij} = \mathrm{softmax}_j\left(q_i^\top k_j / \sqrt{d_k}\right)")
told = st.container()
tabs = st.tabs(reading_view.VIEWS, key="reading_view", bind="query-params")
view, body = reading_view.open_tab(tabs)
with controls.sidebar("reading") as c:
    source = reading_view.choose_source(c)

with body, parts.loading(reading_view.HEIGHT):
    shown = reading_view.pick_model(source)
    with told:
        reading_view.tell(shown)

with controls.sidebar("reading") as c:
    if view == OFF:
        off = reading_off.choose(c, shown.config)
    if view == INFLUENCE:
        draws = reading_influence.choose_draws(c, shown.config)
    if view == SEVERAL:
        count = reading_view.choose_count(c, shown.config)
    if view == MAPS:
        seconds = reading_film.choose_speed(c)
    plays = reading_film.plays()
    chosen = reading_view.choose(c, view, shown.config, plays=plays)

with body, parts.explained():
    seen = reading_view.read(shown, chosen)
    if view == ROWS:
        reading_view.draw_rows(shown, seen, chosen)
    if view == MAPS:
        reading_film.draw(shown, seen, chosen, seconds)
    if view == INFLUENCE:
        reading_influence.draw(shown, seen, chosen, draws)
    if view == OFF:
        reading_off.draw(shown, off)
    if view == SEVERAL:
        reading_view.draw_several(shown, count, chosen)
    if view in (ROWS, MAPS):
        reading_influence.predict(shown, seen, chosen)
    reading_view.look_inside(view, shown, seen)

parts.try_it("reading", reading_influence.experiments())
parts.limits(
    "One toy task whose answer stands at one position. No map here is an explanation: "
    "a weight says how much of a value is read, not what the model makes of it. "
    "Replacing or switching off asks about inputs and models it was not trained on."
)
