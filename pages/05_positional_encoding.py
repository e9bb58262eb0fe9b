"""Positional encoding

Unmasked attention is blind to order; waves added to tokens carry it.

Section: The mechanism
Icon: waves
"""

import streamlit as st

from pages._ui import controls, frame, parts, positional_view

page = frame.guard(__file__)
parts.head(
    page,
    r"\begin{aligned}PE_{pos,\,2i}&=\sin(pos/base^{\,2i/d_{model}})\\"
    r"PE_{pos,\,2i+1}&=\cos(pos/base^{\,2i/d_{model}})\end{aligned}",
)
tabs = st.tabs(positional_view.TABS, key="positional_view", bind="query-params")
matrix, curves, similarity, shift, learned, permute, counter = tabs
with controls.sidebar("positional") as c:
    d_model = c.whole(
        "Width, d_model", "d_model", 1, 128, 64, help_text="Odd widths work too."
    )
    if not permute.open:
        base = c.listed("Base", "base", positional_view.BASES, 10_000)
    if matrix.open or curves.open or similarity.open or shift.open:
        length = c.whole("Positions", "length", 1, 128, 100)
    if curves.open:
        dimensions = c.several(
            "Dimensions drawn",
            "dimensions",
            range(d_model),
            [0, 4, 12, 30],
            most=positional_view.MOST_CURVES,
        )
    if similarity.open:
        chosen = c.whole("Position of the row", "position", 0, length - 1, 50)
    if shift.open:
        offset = c.whole("Offset, positions", "offset", -50, 50, 7)
    if learned.open:
        max_len = c.whole("Positions in the learned table", "max_len", 1, 32, 8)
        num_tokens = c.whole("Tokens", "tokens", 1, 48, 9)
    if permute.open:
        text, how = positional_view.choose_order(c)
    if counter.open:
        counted = c.whole("Position", "counted", 0, positional_view.COUNTED - 1, 5)
    if learned.open or permute.open:
        seed = c.seed()

with parts.loading(positional_view.HEIGHT):
    from core import positional, probes, tokens

if matrix.open:
    with matrix, parts.explained():
        positional_view.draw_matrix(
            positional.sinusoidal_encoding(length, d_model, base=base),
            positional.wavelengths(d_model, base=base),
        )
if curves.open:
    with curves, parts.explained():
        positional_view.draw_curves(
            positional.sinusoidal_encoding(length, d_model, base=base),
            positional.wavelengths(d_model, base=base),
            dimensions,
        )
if similarity.open:
    with similarity, parts.explained():
        encoding = positional.sinusoidal_encoding(length, d_model, base=base)
        positional_view.draw_similarity(
            positional.position_similarity(encoding), chosen
        )
if shift.open:
    with shift, parts.explained():
        positional_view.draw_shift(
            positional.measure_shift(offset, d_model, num_positions=length, base=base),
            offset,
            length,
        )
if learned.open:
    with learned, parts.explained():
        tables = probes.position_tables(
            num_tokens, d_model, max_len=max_len, seed=seed, base=base
        )
        positional_view.draw_tables(tables, max_len)
if permute.open:
    with permute, parts.explained():
        words = tokens.split_into_tokens(text)
        order = probes.new_order(len(words), how, seed=seed)
        probe = probes.probe_order(
            tokens.token_embeddings(words, d_model, seed), order, seed=seed
        )
        labels = tokens.token_labels(words)
        positional_view.draw_order(probe, labels, [labels[old] for old in order])
        positional_view.ask_about_mask(probe)
if counter.open:
    with counter, parts.explained():
        positional_view.draw_counter(
            positional.binary_counter(positional_view.COUNTED, 4),
            positional.sinusoidal_encoding(positional_view.COUNTED, d_model, base=base),
            positional.wavelengths(d_model, base=base),
            counted,
        )
if not permute.open:
    positional_view.ask_about_order()
parts.try_it("positional", positional_view.EXPERIMENTS)
parts.limits(positional_view.LIMITS)
