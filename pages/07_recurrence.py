"""Recurrence and attention

Attention reaches every token in one step, and pays for it with n².

Section: The mechanism
Icon: route
"""

import streamlit as st

from pages._ui import controls, frame, parts, recurrence_view, timing_view

page = frame.guard(__file__)
parts.head(
    page,
    r"\underbrace{n \, d^2}_{\text{recurrence, } n \text{ steps in a row}} \quad"
    r"\underbrace{n^2 \, d}_{\text{attention, one step}}",
)
tabs = st.tabs(recurrence_view.VIEWS, key="recurrence_view", bind="query-params")
path, time, memory, theory = tabs
with controls.sidebar("recurrence") as c:
    if path.open:
        shown = recurrence_view.choose_path(c)
    if time.open or theory.open:
        timed_width, what = timing_view.choose(c)
    if memory.open:
        seq_len = c.listed("Tokens, n", "tokens", recurrence_view.SEQ_LENS, 2048)
        heads = c.listed("Heads", "heads", recurrence_view.NUM_HEADS, 4)
        state_width = c.listed(
            "Width of hidden states, d", "state_width", timing_view.WIDTHS, 64
        )

if path.open:
    with path, parts.explained(), parts.loading(recurrence_view.HEIGHT):
        recurrence_view.draw_path(shown)
        recurrence_view.predict()
if time.open:
    with time, parts.explained(), parts.loading(recurrence_view.HEIGHT):
        timing_view.draw(timed_width, what)
if memory.open:
    with memory, parts.explained(), parts.loading(recurrence_view.HEIGHT):
        recurrence_view.draw_memory(seq_len, heads, state_width)
if theory.open:
    with theory, parts.explained(), parts.loading(recurrence_view.HEIGHT):
        recurrence_view.draw_theory(timed_width, what)

parts.try_it("recurrence", recurrence_view.EXPERIMENTS)
parts.limits(
    "Norms are those of untrained layers: training moves them, and a norm is not what "
    "a model learns. Times are of one sequence on this kind of CPU with PyTorch's own "
    "layers, in one thread; a GPU, a batch, more threads or another kernel moves the "
    "crossings. Attention stands alone, without positions and feed-forward network; "
    "the timed layer also projects its tokens, which costs n d² beside n² d."
)
