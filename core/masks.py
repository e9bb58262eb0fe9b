"""Masks: which query may attend to which key.

A mask is a boolean tensor whose rows are queries and whose columns are keys; True
means "may attend". Masks are combined with ``&``: a key is open to a query where every
mask opens it. The shapes broadcast: a causal ``(T, S)`` and a padding ``(B, 1, S)``
mask give ``(B, T, S)``, one map a sequence, which attention gives to all its heads.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from core.checks import RefusedError, require_int

_NOTHING = "nothing to attend to"


def causal_mask(seq_len: int, *, device: torch.device | str | None = None) -> Tensor:
    """Return the mask that hides every later token.

    ``mask[t, s] = (s <= t)``. The diagonal is open: the targets are shifted by one, so
    the token at ``t`` is an input when position ``t`` predicts token ``t + 1``. Row 0
    has one open key, so all of its weight lies on key 0.

    Args:
        seq_len: Number of tokens, T = S; 0 gives an empty mask.
        device: Where the mask is to lie; None means PyTorch's default.

    Returns:
        Boolean mask ``(T, T)``, True = may attend.

    Raises:
        ValueError: If ``seq_len`` is negative or not a whole number.

    Reference:
        Vaswani et al. 2017, section 3.2.3, arXiv:1706.03762.
    """
    require_int("seq_len", seq_len, 0)
    position = torch.arange(seq_len, device=device)
    return position[None, :] <= position[:, None]


def padding_mask(lengths: Sequence[int] | Tensor, max_len: int) -> Tensor:
    """Return the mask that hides the key columns of the padding.

    ``mask[b, 0, s] = (s < lengths[b])``. Only keys are hidden: a padded query keeps
    its row, which reads like any other and is dropped in the loss. A sequence of
    length 0 leaves its queries with no key at all (see ``blocked_query_warnings``).

    Args:
        lengths: Number of real tokens of each sequence, ``(B,)``; each in
            ``[0, max_len]``. The mask lies on the device of a tensor.
        max_len: Length to which the sequences are padded, S.

    Returns:
        Boolean mask ``(B, 1, S)``, True = may attend; it broadcasts over the queries.
        ``causal_mask(S) & padding_mask(lengths, S)`` is ``(B, S, S)``.

    Raises:
        ValueError: If a length is not a whole number in ``[0, max_len]``.
    """
    require_int("max_len", max_len, 0)
    device = lengths.device if isinstance(lengths, Tensor) else None
    counts = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    for index, length in enumerate(counts):
        require_int(f"lengths[{index}]", length, 0, max_len)
    ends = torch.tensor(counts, dtype=torch.int64, device=device)  # (B,)
    position = torch.arange(max_len, device=device)  # (S,)
    return (position < ends[:, None])[:, None, :]  # (B, 1, S)


def sliding_window_mask(
    seq_len: int, window: int, *, device: torch.device | str | None = None
) -> Tensor:
    """Return the mask that opens the keys near each query, on both sides.

    ``mask[t, s] = (|t - s| < window)``: the query itself and up to ``window - 1``
    tokens before and after it. ``sliding_window_mask(T, w) & causal_mask(T)`` is the
    one-sided window: the last ``w`` tokens, the query itself among them.

    Args:
        seq_len: Number of tokens, T = S; 0 gives an empty mask.
        window: Reach in tokens, at least 1; 1 opens the diagonal alone, ``seq_len``
            or more opens everything.
        device: Where the mask is to lie; None means PyTorch's default.

    Returns:
        Boolean mask ``(T, T)``, True = may attend.

    Raises:
        ValueError: If ``seq_len`` is negative or ``window`` is below 1.

    Reference:
        Beltagy et al. 2020, section 3.1, arXiv:2004.05150.
    """
    require_int("seq_len", seq_len, 0)
    require_int("window", window, 1)
    position = torch.arange(seq_len, device=device)
    return (position[:, None] - position[None, :]).abs() < window


def blocked_queries(mask: Tensor) -> Tensor:
    """Return which queries have no key that they may attend to.

    Such a query gets weights 0 and output 0: there is nothing to attend to.

    Args:
        mask: Boolean mask ``(..., T, S)``, True = may attend.

    Returns:
        Boolean ``(..., T)``, True = every key of this query is hidden.

    Raises:
        ValueError: If ``mask`` is not boolean or has fewer than 2 dimensions.
    """
    _require_mask(mask)
    return ~mask.any(dim=-1)


def blocked_query_warnings(mask: Tensor) -> list[str]:
    """Return one sentence for each sequence or query with nothing to attend to.

    Args:
        mask: Boolean mask ``(T, S)``, ``(B, T, S)`` or ``(B, H, T, S)``, True = may
            attend. With several heads a query is named if every head hides every key.

    Returns:
        Sentences such as ``"sequence 1 is all padding: ..."``; empty if every query
        has a key.

    Raises:
        ValueError: If ``mask`` is not boolean or has not 2 to 4 dimensions.
    """
    blocked = blocked_queries(mask)
    if mask.dim() > 4:
        raise RefusedError(f"mask must have 2 to 4 dimensions, got {tuple(mask.shape)}")
    if mask.dim() == 2:
        return _query_sentences("", blocked)
    by_sequence = blocked if mask.dim() == 3 else blocked.all(dim=1)  # (B, T)
    sentences: list[str] = []
    for index, row in enumerate(by_sequence):
        if len(row) and bool(row.all()):
            sentences.append(
                f"sequence {index} is all padding: its queries have {_NOTHING}"
            )
        else:
            sentences += _query_sentences(f"sequence {index}, ", row)
    return sentences


def _query_sentences(prefix: str, blocked: Tensor) -> list[str]:
    queries = blocked.nonzero().flatten().tolist()
    return [f"{prefix}query {query} has {_NOTHING}" for query in queries]


def _require_mask(mask: Tensor) -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = f"dtype {mask.dtype}" if isinstance(mask, Tensor) else type(mask)
        raise RefusedError(f"mask must be boolean, True = may attend, got {kind}")
    if mask.dim() < 2:
        raise RefusedError(f"mask must be (..., T, S), got shape {tuple(mask.shape)}")
