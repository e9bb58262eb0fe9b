"""Our multi-head attention beside ``nn.MultiheadAttention`` with the same weights.

The weights are copied: two layers that were drawn apart agree in nothing.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from core.attention import MultiHeadAttention
from core.checks import RefusedError, require_choice
from core.heads import DTYPES, MASKS
from core.initial import generator_from
from core.parity import Parity, compare, tolerance_of

COTANGENT_SEED = 1
OUTPUT, WEIGHTS = "output", "weights of each head"
GRADIENTS = ("gradient of the input", "gradient of in_proj", "gradient of out_proj")
COMPARED = (OUTPUT, WEIGHTS, *GRADIENTS)

_SCRIPT = '''\
"""core against PyTorch: save and run it in the folder that holds core."""
from torch.autograd import grad
from core.head_parity import compared_rows, cotangent_of, torch_layer
from core.heads import attend_heads
words = {words}
seen = attend_heads(words, d_model={d_model}, num_heads={num_heads}, mask="{mask}",
                    seed={seed}, dtype="{dtype}")
theirs = torch_layer(seen.layer)  # an nn.MultiheadAttention with the same weights
rows = compared_rows(len(words), seen.mask)  # without a key PyTorch answers NaN
x = seen.embeddings[None].requires_grad_()
ours = seen.layer.attend(x, x, x, mask=seen.mask)
output, weights = theirs(x[:, rows], x, x, attn_mask={hidden},
                         average_attn_weights=False)
upstream = cotangent_of(output, rows)
a = grad(ours.output[:, rows], [x, *seen.layer.parameters()], upstream)
b = grad(output, [x, *theirs.parameters()], upstream)
pairs = [(ours.output[:, rows], output), (ours.attn_weights[:, :, rows], weights)]
off = [float((p - q).detach().abs().max()) for p, q in [*pairs, *zip(a, b)]]
print(f"output {{off[0]:.1e}}, weights {{off[1]:.1e}}, gradients {{max(off[2:]):.1e}}")
print(f"largest difference {{max(off):.1e}}")
'''


def torch_layer(layer: MultiHeadAttention) -> nn.MultiheadAttention:
    """Return an ``nn.MultiheadAttention`` with a copy of the weights of ``layer``.

    It is in evaluation mode and leaves the global generator alone.
    """
    weight = layer.in_proj.weight
    # Made on "meta" it draws no numbers of its own: they would be global ones.
    copy = nn.MultiheadAttention(
        layer.d_model,
        layer.num_heads,
        bias=layer.in_proj.bias is not None,
        batch_first=True,
        device="meta",
        dtype=weight.dtype,
    ).to_empty(device=weight.device)
    named = layer.state_dict().items()
    copy.load_state_dict({k.replace("in_proj.", "in_proj_"): v for k, v in named})
    return copy.eval()


def parity_with_torch(
    layer: MultiHeadAttention,
    x: Tensor,
    mask: Tensor | None = None,
    *,
    theirs: Mapping[str, Tensor] | None = None,
) -> Parity:
    """Compare self-attention with PyTorch's: output, weights and gradients.

    PyTorch answers NaN to a query that may attend to no key, and NaN equals nothing:
    only the queries that have a key are compared, and only they enter the gradients.

    Args:
        layer: The layer to be checked, or a copy of one with something broken in it;
            its dtype decides what counts as equal.
        x: One sequence of tokens, (T, d_model).
        mask: Boolean, (T, T), True = may attend; None means every key is open.
        theirs: From ``results_of_torch`` with the same weights, where it is known.

    Returns:
        The largest differences under the names in ``COMPARED``. Gradients are those of
        a fixed random weighting of the outputs, divided by T.

    Raises:
        ValueError: If no query has a key: there is nothing to compare.
    """
    if theirs is None:
        theirs = results_of_torch(layer, x, mask)
    with torch.enable_grad():
        ours = _ours(layer, x, mask, compared_rows(len(x), mask))
    return compare(ours, theirs, tolerance=tolerance_of(x.dtype))


def results_of_torch(
    layer: MultiHeadAttention, x: Tensor, mask: Tensor | None = None
) -> Mapping[str, Tensor]:
    """Return what PyTorch's layer gives with the weights of ``layer``, by name.

    Takes what ``parity_with_torch`` takes.

    Raises:
        ValueError: If no query has a key: there is nothing to compare.
    """
    rows = compared_rows(len(x), mask)
    if not rows.any():
        raise RefusedError("no query has a key to attend to: nothing to compare")
    with torch.enable_grad():
        return _theirs(torch_layer(layer), x, mask, rows)


def compared_rows(seq_len: int, mask: Tensor | None) -> Tensor:
    """Return which queries have a key, (T,): those that can be compared."""
    if mask is None:
        return torch.ones(seq_len, dtype=torch.bool)
    return mask.any(dim=-1)


def cotangent_of(output: Tensor, rows: Tensor) -> Tensor:
    """Return the fixed random weighting of outputs whose gradients are compared.

    Args:
        output: Of the queries that are compared, (1, number of them, d_model).
        rows: Boolean, (T,), True = the query is compared.

    Returns:
        As ``output``, divided by T.
    """
    shape = (1, len(rows), output.shape[-1])
    drawn = torch.randn(shape, generator=generator_from(COTANGENT_SEED))
    return drawn.to(output)[:, rows] / len(rows)


def parity_script(
    tokens: Sequence[str],
    *,
    d_model: int,
    num_heads: int,
    mask: str,
    seed: int,
    dtype: str,
) -> str:
    """Return a program that makes the comparison of ``parity_with_torch`` by itself.

    Takes what ``core.heads.attend_heads`` takes.

    Raises:
        ValueError: If ``mask`` or ``dtype`` is unknown.
    """
    require_choice("mask", mask, MASKS)
    require_choice("dtype", dtype, DTYPES)
    return _SCRIPT.format(
        words=ascii(list(tokens)),
        d_model=int(d_model),
        num_heads=int(num_heads),
        seed=int(seed),
        dtype=dtype,
        mask=mask,
        hidden="None" if mask == "none" else "~seen.mask[rows]",
    )


def _ours(
    layer: MultiHeadAttention, x: Tensor, mask: Tensor | None, rows: Tensor
) -> Mapping[str, Tensor]:
    entry = x.detach()[None].requires_grad_()
    seen = layer.attend(entry, entry, entry, mask=mask)
    output, weights = seen.output[:, rows], seen.attn_weights[:, :, rows]
    return _results(layer, entry, output, weights, rows)


def _theirs(
    layer: nn.MultiheadAttention, x: Tensor, mask: Tensor | None, rows: Tensor
) -> Mapping[str, Tensor]:
    entry = x.detach()[None].requires_grad_()
    output, weights = layer(
        entry[:, rows],
        entry,
        entry,
        attn_mask=None if mask is None else ~mask[rows],
        average_attn_weights=False,  # by default PyTorch returns the mean of the heads
    )
    return _results(layer, entry, output, weights, rows)


def _results(
    layer: nn.Module, entry: Tensor, output: Tensor, weights: Tensor, rows: Tensor
) -> dict[str, Tensor]:
    by_name = dict(layer.named_parameters())
    of_input, *of_parameters = torch.autograd.grad(
        output,
        [entry, *by_name.values()],
        cotangent_of(output, rows),
        allow_unused=True,
        materialize_grads=True,  # a part that plays no role has gradient 0
    )
    gradients = dict(zip(by_name, of_parameters, strict=True))
    of_projections = (_of_part(gradients, part) for part in ("in_proj", "out_proj"))
    found = (of_input, *of_projections)
    detached = {OUTPUT: output.detach(), WEIGHTS: weights.detach()}
    return detached | dict(zip(GRADIENTS, found, strict=True))


def _of_part(gradients: Mapping[str, Tensor], part: str) -> Tensor:
    of_part = [g.flatten() for name, g in gradients.items() if name.startswith(part)]
    return torch.cat(of_part)
