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

import os

# Torch's threads wait for each other many times a step. By default they spin while
# they wait: beside any other busy process a step then takes four times as long, and a
# class server is always busy. Asleep they cost a lone run about a tenth. The variable
# is read once, when torch is loaded, and every module of core is loaded after this.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
