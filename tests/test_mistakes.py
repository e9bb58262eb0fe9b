"""Each mistake in the layer: what it breaks, by how much, and where nothing breaks."""

import itertools
import math

import pytest
import torch

from core.attention import MultiHeadAttention
from core.head_parity import COTANGENT_SEED, GRADIENTS, OUTPUT, WEIGHTS
from core.heads import MASKS, HeadsSeen, attend_heads
from core.initial import generator_from
from core.mistakes import (
    MAX_CASES,
    MISTAKES,
    RIGHT,
    STAGES,
    MistakenAttention,
    merge_without_transpose,
    mistake_of_case,
    mistakes_that_show,
    see_mistake,
    see_mistakes,
    softmax_over_queries,
)
from core.parity import tolerance_of

AXIS, MERGE, VALUES, SCALE, PROJECTION, MASK = MISTAKES
WORDS = ["the", "cat", "sat", "on", "the", "mat", "."]
close = torch.testing.assert_close


def see(tokens: list[str] = WORDS, **settings) -> HeadsSeen:
    preset = {"d_model": 15, "num_heads": 3, "mask": "causal", "seed": 0}
    return attend_heads(tokens, **(preset | settings))


def by_hand(
    layer: MultiHeadAttention, x: torch.Tensor, mask, mistake: str | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and weights of the layer with a mistake, written anew."""
    seq_len, width = x.shape
    heads, d_k = layer.num_heads, width // layer.num_heads
    parts = zip(layer.in_proj.weight.chunk(3), layer.in_proj.bias.chunk(3), strict=True)
    to_q, to_k, to_v = parts
    to_v = to_k if mistake == VALUES else to_v
    q, k, v = ((x @ w.T + b).view(seq_len, heads, d_k) for w, b in (to_q, to_k, to_v))
    width_scaled = width if mistake == SCALE else d_k
    scores = torch.einsum("thd,shd->hts", q, k) / math.sqrt(width_scaled)
    allowed = ~mask if mistake == MASK else mask
    hidden = scores.masked_fill(~allowed, -1e300)
    axis = 1 if mistake == AXIS else 2
    weights = hidden.softmax(dim=axis) * allowed  # a row of -1e300 alone becomes 0
    of_heads = torch.einsum("hts,shd->htd", weights, v)
    if mistake == MERGE:
        merged = of_heads.contiguous().view(seq_len, width)
    else:
        merged = torch.cat(list(of_heads), dim=-1)
    projected = merged @ layer.out_proj.weight.T + layer.out_proj.bias
    output = merged if mistake == PROJECTION else projected
    return output, weights


def gradients_by_hand(layer, x, mask, mistake) -> dict[str, torch.Tensor]:
    """Return the gradients of the input and of both projections, biases last."""
    entry = x.detach().clone().requires_grad_()
    learned = [*layer.in_proj.parameters(), *layer.out_proj.parameters()]
    output, _ = by_hand(layer, entry, mask, mistake)
    shape = (1, *output.shape)
    cotangent = torch.randn(shape, generator=generator_from(COTANGENT_SEED))[0]
    of_input, *rest = torch.autograd.grad(
        output,
        [entry, *learned],
        cotangent.to(x) / len(x),
        allow_unused=True,
        materialize_grads=True,
    )
    flat = [gradient.flatten() for gradient in rest]
    found = (of_input, torch.cat(flat[:2]), torch.cat(flat[2:]))
    return dict(zip(GRADIENTS, found, strict=True))


@pytest.mark.parametrize("name", MISTAKES)
def test_the_badge_goes_red_with_the_right_size(name):
    seen = see()
    layer, x, mask = seen.layer, seen.embeddings, seen.mask
    with torch.no_grad():
        right, wrong = (by_hand(layer, x, mask, mistake) for mistake in (None, name))
    close(right[0], seen.output)
    expected = {
        OUTPUT: (right[0] - wrong[0]).abs().max(),
        WEIGHTS: (right[1] - wrong[1]).abs().max(),
    }
    true, off = (gradients_by_hand(layer, x, mask, which) for which in (None, name))
    expected |= {part: (true[part] - off[part]).abs().max() for part in GRADIENTS}
    found = see_mistake(seen, name)
    assert not found.parity.agrees
    assert found.parity.largest > 0.05
    for part, size in expected.items():
        assert found.parity.differences[part] == pytest.approx(float(size), abs=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_badge_of_the_right_recipe_is_green_and_of_every_mistake_red(dtype):
    seen = see(dtype=dtype)
    right = MistakenAttention(seen.layer, RIGHT)
    x = seen.embeddings[None]
    close(right.attend(x, x, x, mask=seen.mask).output[0], seen.output)
    for name in MISTAKES:
        parity = see_mistake(seen, name).parity
        assert parity.tolerance == tolerance_of(x.dtype)
        assert not parity.agrees
        assert parity.largest > 0.05


@pytest.mark.parametrize("mask", MASKS)
def test_the_right_recipe_gives_every_stage_of_the_layer(mask):
    seen = see(mask=mask)
    stages = MistakenAttention(seen.layer, RIGHT).stages(
        seen.embeddings[None], seen.mask
    )
    close(stages.scores[0], seen.scores)
    close(stages.weights[0], seen.weights)
    close(stages.heads[0], seen.head_outputs)
    close(stages.concatenated[0], seen.concatenated)
    close(stages.output[0], seen.output)


def test_every_mistake_changes_a_single_entry_of_the_recipe():
    for recipe in MISTAKES.values():
        assert sum(a is not b for a, b in zip(recipe, RIGHT, strict=True)) == 1


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        (AXIS, "weights"),
        (MERGE, "concatenated"),
        (VALUES, "heads"),
        (SCALE, "scores"),
        (PROJECTION, "output"),
        (MASK, "weights"),
    ],
)
def test_a_mistake_shows_from_the_stage_where_it_is_made(name, stage):
    stages = see_mistake(see(), name).stages
    first = STAGES.index(stage)
    assert tuple(stages) == STAGES
    assert all(stages[before] < 1e-12 for before in STAGES[:first])
    assert all(stages[after] > 1e-3 for after in STAGES[first:])


def test_the_softmax_over_queries_makes_columns_sum_to_one():
    seen = see(mask="none")
    found = see_mistake(seen, AXIS)
    close(found.weights.sum(dim=1), torch.ones(3, 7).double())
    assert (found.row_sums - 1).abs().max() > 0.1
    close(found.row_sums, found.weights.sum(dim=2))


def test_the_softmax_over_queries_worked_by_hand():
    query = torch.tensor([[0.0], [math.log(3)]]).double()
    key, value = torch.tensor([[1.0], [0.0]]).double(), torch.eye(2).double()
    seen = softmax_over_queries(query, key, value, scale=1.0)
    close(seen.attn_weights, torch.tensor([[0.25, 0.5], [0.75, 0.5]]).double())
    close(seen.output, seen.attn_weights)
    close(seen.scores, torch.tensor([[0.0, 0.0], [math.log(3), 0.0]]).double())
    first = torch.tensor([[True, True], [False, True]])
    masked = softmax_over_queries(query, key, value, mask=first, scale=1.0)
    close(masked.attn_weights, torch.tensor([[1.0, 0.5], [0.0, 0.5]]).double())


def test_merging_without_the_transpose_worked_by_hand():
    x = torch.arange(12).view(2, 3, 2)  # two heads, three tokens, d_k = 2
    expected = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert merge_without_transpose(x).tolist() == expected
    assert merge_without_transpose(x[:, :1]).tolist() == [[0, 1, 6, 7]]
    assert merge_without_transpose(torch.zeros(0, 2, 3, 5)).shape == (0, 3, 10)


def test_scaling_by_d_model_makes_scores_smaller_by_the_root_of_the_heads():
    seen = see()
    broken = MistakenAttention(seen.layer, MISTAKES[SCALE])
    scores = broken.stages(seen.embeddings[None], seen.mask).scores[0]
    close(scores * math.sqrt(3), seen.scores)


def test_an_inverted_mask_leaves_the_last_query_with_nothing():
    found = see_mistake(see(), MASK)
    assert found.row_sums[:, -1].tolist() == [0.0] * 3
    close(found.row_sums[:, :-1], torch.ones(3, 6).double())
    assert not found.weights.tril().any()


@pytest.mark.parametrize(
    ("tokens", "settings", "silent"),
    [
        (WORDS, {"num_heads": 1}, {MERGE, SCALE}),
        (WORDS, {"mask": "none"}, {MASK}),
        (["a"], {}, {AXIS, MERGE, SCALE}),
        (["a"], {"mask": "none"}, {AXIS, MERGE, SCALE, MASK}),
    ],
)
def test_a_mistake_that_changes_nothing_is_green_and_not_hunted(
    tokens, settings, silent
):
    seen = see(tokens, **settings)
    green = {name for name in MISTAKES if see_mistake(seen, name).parity.agrees}
    assert green == silent
    assert set(mistakes_that_show(see_mistakes(seen))) == set(MISTAKES) - silent


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_hunted_is_what_makes_the_badge_red(dtype):
    for mask, num_heads, length in itertools.product(MASKS, (1, 5), (2, 3)):
        for words in (WORDS[:length], ["a"] * length):
            seen = see(words, mask=mask, num_heads=num_heads, dtype=dtype)
            found = see_mistakes(seen)
            red = [name for name in MISTAKES if not found[name].parity.agrees]
            assert mistakes_that_show(found) == red


def test_a_mistake_in_the_gradients_alone_is_hunted_too():
    """Equal tokens: each column and each row holds equal weights, whatever the axis."""
    found = see_mistakes(see(["a"] * 3, mask="none"))
    assert max(found[AXIS].stages.values()) < 1e-12
    assert found[AXIS].parity.differences[GRADIENTS[0]] > 1e-3
    assert AXIS in mistakes_that_show(found)


def test_every_mistake_comes_once_before_any_comes_again():
    names = list(MISTAKES)
    cases = [mistake_of_case(case, names) for case in range(1, MAX_CASES + 1)]
    for start in range(0, MAX_CASES, 6):
        assert set(cases[start : start + 6]) == set(names)
    assert cases[:6] != names
    assert cases[:6] != cases[6:12]
    assert [mistake_of_case(case, ["x"]) for case in (1, 2)] == ["x", "x"]


def test_nothing_here_draws_from_the_global_generator():
    state = torch.get_rng_state()
    seen = see()
    see_mistake(seen, MERGE)
    mistake_of_case(3, mistakes_that_show(see_mistakes(seen)))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_broken_copy_leaves_the_layer_as_it_is():
    seen = see()
    before = {name: t.clone() for name, t in seen.layer.state_dict().items()}
    see_mistake(seen, PROJECTION)
    for name, tensor in seen.layer.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert all(parameter.grad is None for parameter in seen.layer.parameters())


def test_bad_names_and_cases_are_refused():
    seen = see()
    with pytest.raises(ValueError, match="name must be one of 'softmax over"):
        see_mistake(seen, "typo")
    with pytest.raises(ValueError, match=r"case \(0\) must be between 1 and 24"):
        mistake_of_case(0, list(MISTAKES))
    with pytest.raises(ValueError, match="no mistake shows"):
        mistake_of_case(1, [])
    with pytest.raises(ValueError, match="no query has a key"):
        see_mistakes(see(["a"], mask="left padding"))
    x = seen.embeddings[None]
    with pytest.raises(ValueError, match="query, key and value must be one"):
        MistakenAttention(seen.layer, RIGHT).attend(x, x.clone(), x)


def test_a_layer_without_biases_can_be_broken():
    layer = MultiHeadAttention(15, 3, bias=False).double()
    x = torch.ones(1, 4, 15).double()
    close(MistakenAttention(layer, RIGHT)(x, x, x), layer(x, x, x))
    broken = MistakenAttention(layer, MISTAKES[VALUES])(x, x, x)
    assert (broken - layer(x, x, x)).abs().max() > 0.05
