"""Queries, keys and values

A soft dictionary lookup: each query takes a share of every value.

Section: The mechanism
Icon: manage_search
"""

import functools

import streamlit as st

from pages._ui import controls, frame, lookup_view, parts

page = frame.guard(__file__)
parts.head(page, r"\mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V")
views = st.tabs(lookup_view.VIEWS, key="qkv_view", bind="query-params")
steps, edited, hard = views
with controls.sidebar("qkv") as c:
    text, readers = lookup_view.choose_words(c)
    of_view = st.container()  # these end at the words, known to core
    d_model = c.whole("Width of a token, d_model", "d_model", 2, 8, 4)
    d_k = c.whole("Width of q, k and v, d_k", "d_k", 1, 8, 3)
    seed = c.seed()

with parts.loading(470):
    from core import lookup, masking

with parts.explained():
    look_up = functools.partial(
        lookup.look_up,
        masking.read_tokens(text, 1),
        queries=None if readers is None else masking.read_tokens(readers, 1),
        d_model=d_model,
        d_k=d_k,
        seed=seed,
    )
    seen, shown = look_up(), "k"
    if steps.open:
        with steps:
            stage = lookup_view.choose_stage(c)
            with of_view:
                cell, vector = lookup_view.choose_cell(c, seen, stage)
            lookup_view.draw_stage(seen, stage, cell, vector)
    if edited.open:
        with of_view:
            edit = lookup_view.choose_edit(c, seen)
        shown = edit.which
        with edited:
            lookup_view.draw_edit(seen, look_up(edit=edit), edit)
    if hard.open:
        with of_view:
            temperature = lookup_view.choose_temperature(c)
            query = lookup_view.choose_query(c, seen)
        with hard:
            lookup_view.draw_hard(look_up(temperature=temperature), query)
    lookup_view.predict(seen, shown, lambda edit: look_up(edit=edit))

parts.try_it("qkv", lookup_view.EXPERIMENTS)
parts.limits(
    "One head, no mask, no positions, nothing trained: equal words get equal vectors. "
    "Dictionaries in programs find a key by equality; here keys are only more or less "
    "alike."
)
