"""Attention modules, tasks, training and charts of the playground.

One tested package behind every page. It never imports Streamlit: values come in as
plain numbers and tensors, results go out as named tuples, frames and charts.

Dimension key, used in every docstring and every ``# (B, T, d_model)`` remark:

==  ==================================================================
B   batch: independent sequences
H   heads
T   queries, or target positions (rows of every map)
S   keys and values, or source positions (columns of every map); T = S
    in self-attention
V   vocabulary
==  ==================================================================

Widths keep the names of the paper: ``d_model, d_k, d_v, d_ff``. So
``(B, H, T, d_k) @ (B, H, d_k, S) -> (B, H, T, S)``.

Two words are kept apart everywhere: ``scores`` come before the softmax,
``attn_weights`` after it. A ``mask`` is boolean and True means "may attend".
"""
