"""Measures of influence, on models whose right answer is known in advance."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from core.checks import RefusedError
from core.influence import (
    contributions,
    disagreement,
    gradient_times_input,
    influences,
    occlusion,
    rank_correlation,
)
from core.initial import generator_from
from core.models import ClassifierConfig, TransformerClassifier
from core.reading import NUM_SEQUENCES, marker_sequences, read_sequence
from core.trained import build

# Weights of the CLS token's row in head 0 of the hand-built model, itself first. Those
# of head 1 are all 1/4.
WEIGHTS = torch.tensor([0.1, 0.2, 0.6, 0.1], dtype=torch.float64)
INPUTS = torch.tensor([[1.0], [0.0], [-0.5]], dtype=torch.float64)


class LinearModel(nn.Module):
    """The logit is 2 x_0 - 3 x_1 + 0 x_2 + 1."""

    def forward(self, x):
        """Weigh and sum: (B, 3, 1) -> (B, 1)."""
        return x[..., 0] @ torch.tensor([[2.0], [-3.0], [0.0]], dtype=x.dtype) + 1


def hand_built() -> TransformerClassifier:
    """Build one layer of two heads whose logit is linear in the inputs.

    Tokens are (input, log weight, 0, 0). Head 0 scores a key by its log weight, so its
    weights are WEIGHTS whatever the inputs; head 1 scores all alike. Both hand on the
    input: head 0 along (0, 0, 3, 4), head 1 along (0, 0, -8, 0). The answer is
    coordinate 2 of the CLS token. No norm stands in the way.
    """
    model = TransformerClassifier(
        ClassifierConfig(
            seq_len=3, d_model=4, num_heads=2, num_layers=1, positional="learned"
        )
    )
    model = model.double().eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.zero_()
    block = model.blocks[0]
    block.attention_norm = block.feed_forward_norm = model.norm = nn.Identity()
    model.embed.weight[0, 0] = 1
    model.positions.table[:, 1] = WEIGHTS.log()
    attention = block.attention
    attention.in_proj.bias[0] = math.sqrt(2)  # query of head 0, times 1/√d_k: 1
    attention.in_proj.weight[4, 1] = 1  # key of head 0: the log weight
    attention.in_proj.weight[8, 0] = 1  # value of head 0: the input
    attention.in_proj.weight[10, 0] = 1  # value of head 1: the input
    attention.out_proj.weight[:, 0] = torch.tensor([0.0, 0.0, 3.0, 4.0])
    attention.out_proj.weight[:, 2] = torch.tensor([0.0, 0.0, -8.0, 0.0])
    model.head.weight[0, 2] = 1
    return model


# Slopes of the hand-built logit: 3 times the weight of head 0, less 8/4 of head 1.
SLOPES = 3 * WEIGHTS[1:] - 2


def random_model(**choices) -> TransformerClassifier:
    sizes = {"seq_len": 5, "d_model": 6, "num_heads": 3, "num_layers": 2}
    config = ClassifierConfig(**(sizes | choices))
    return TransformerClassifier(config).double().eval().requires_grad_(False)


def noise(seq_len: int, seed: int = 7) -> torch.Tensor:
    generator = generator_from(seed)
    return torch.rand(seq_len, 1, generator=generator, dtype=torch.float64) * 2 - 1


def test_the_hand_built_model_is_what_it_says():
    model = hand_built()
    rows = model.readout_rows(INPUTS[None])[0, 0]
    torch.testing.assert_close(rows[0], WEIGHTS)
    torch.testing.assert_close(rows[1], torch.full((4,), 0.25, dtype=torch.float64))
    logit = (SLOPES * INPUTS[:, 0]).sum()
    torch.testing.assert_close(model(INPUTS[None])[0, 0], logit)


def test_gradient_times_input_gives_the_summands_of_a_linear_logit():
    products = gradient_times_input(LinearModel(), INPUTS)
    assert products.tolist() == [2, 0, 0]
    products = gradient_times_input(hand_built(), INPUTS)
    torch.testing.assert_close(products, SLOPES * INPUTS[:, 0])


def test_gradient_times_input_is_the_slope_measured_by_small_steps():
    model, x, step = random_model(), noise(5), 1e-6
    products = gradient_times_input(model, x)
    for t in range(5):
        up, down = x.clone(), x.clone()
        up[t] += step
        down[t] -= step
        slope = (model(up[None]) - model(down[None])).item() / (2 * step)
        assert products[t].item() == pytest.approx(slope * x[t].item(), abs=1e-7)


def draws_of(length: int, draws: int, seed: int) -> torch.Tensor:
    """One draw from each of ``draws`` parts of [-1, 1), (draws, length)."""
    within = torch.rand(
        draws, length, generator=generator_from(seed), dtype=torch.float64
    )
    width = 2 / draws
    return torch.stack([-1 + width * (k + within[k]) for k in range(draws)])


def test_occlusion_of_a_linear_logit_is_the_slope_times_the_distance_of_the_noise():
    moved = (INPUTS.T - draws_of(3, 5, seed=3)).abs().mean(dim=0)  # mean |x_t - u|
    ours = occlusion(LinearModel(), INPUTS, draws=5, seed=3)
    torch.testing.assert_close(ours, torch.tensor([2.0, 3.0, 0.0]) * moved)
    ours = occlusion(hand_built(), INPUTS, draws=5, seed=3)
    torch.testing.assert_close(ours, SLOPES.abs() * moved)


@pytest.mark.parametrize("seed", [0, 1])
def test_occlusion_nears_the_mean_distance_of_the_uniform_noise(seed):
    # For u uniform on [-1, 1) the mean of |x - u| is (1 + x²) / 2.
    expected = SLOPES.abs() * (1 + INPUTS[:, 0] ** 2) / 2
    ours = occlusion(hand_built(), INPUTS, draws=100, seed=seed)
    torch.testing.assert_close(ours, expected, rtol=0.005, atol=0)


def test_occlusion_replaces_one_input_at_a_time_and_averages_over_its_draws():
    model, x = random_model(), noise(5)
    draws = draws_of(5, 3, seed=2)
    by_hand = torch.zeros(5, dtype=torch.float64)
    for t in range(5):
        for value in draws[:, t]:
            changed = x.clone()
            changed[t] = value
            by_hand[t] += (model(changed[None]) - model(x[None])).abs().item() / 3
    torch.testing.assert_close(occlusion(model, x, draws=3, seed=2), by_hand)


def test_occlusion_leaves_the_sequence_as_it_is_and_repeats_itself():
    model, x = random_model(), noise(5)
    before = x.clone()
    first = occlusion(model, x, draws=2, seed=1)
    assert torch.equal(first, occlusion(model, x, draws=2, seed=1))
    assert not torch.equal(first, occlusion(model, x, draws=2, seed=2))
    assert torch.equal(x, before)


def test_contributions_are_weight_times_length_of_the_value():
    ours = contributions(hand_built(), INPUTS)
    sizes = torch.cat([torch.zeros(1, dtype=torch.float64), INPUTS[:, 0].abs()])
    torch.testing.assert_close(ours[0, 0], 5 * WEIGHTS * sizes)  # |(3, 4)| = 5
    torch.testing.assert_close(ours[0, 1], 8 * 0.25 * sizes)


def test_the_key_with_the_largest_weight_contributes_nothing_where_its_value_is_zero():
    seen = influences(hand_built(), INPUTS, layer=0, head=0, draws=2, seed=0)
    assert seen.weight.argmax() == 1
    assert seen.contribution[1] == 0
    assert seen.gradient[1] == 0


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"readout": "mean"},
        {"readout": "last", "causal": True, "norm_first": False},
    ],
)
def test_contributions_are_the_vectors_counted_one_by_one(choices):
    model, x = random_model(**choices), noise(5)
    tokens = model.tokens_of(x[None])
    mask = model.mask_of(tokens)
    rows, ours = model.readout_rows(x[None])[0], contributions(model, x)
    for layer, block in enumerate(model.blocks):
        weight, bias = block.attention.in_proj.weight, block.attention.in_proj.bias
        normed = block.attention_norm(tokens)[0] if block.norm_first else tokens[0]
        for head in range(3):
            own = slice(2 * head, 2 * head + 2)
            for s in range(tokens.shape[1]):
                value = weight[12:][own] @ normed[s] + bias[12:][own]
                vector = block.attention.out_proj.weight[:, own] @ value
                expected = (rows[layer, head, s] * vector).norm()
                torch.testing.assert_close(ours[layer, head, s], expected)
        tokens = block(tokens, mask=mask)


def test_heads_together_contribute_the_length_of_their_summed_vectors():
    seen = influences(hand_built(), INPUTS, layer=0, head=None, draws=2, seed=0)
    # Head 0 adds weight · input · (3, 4), head 1 adds 1/4 · input · (-8, 0).
    along = (3 * WEIGHTS[1:] - 2).square() + (4 * WEIGHTS[1:]).square()
    torch.testing.assert_close(seen.contribution, along.sqrt() * INPUTS[:, 0].abs())
    torch.testing.assert_close(seen.weight, (WEIGHTS[1:] + 0.25) / 2)


def test_influences_are_the_single_measures_without_the_cls_token():
    model, x = random_model(), noise(5)
    seen = influences(model, x, layer=1, head=2, draws=3, seed=4)
    torch.testing.assert_close(seen.weight, model.readout_rows(x[None])[0, 1, 2, 1:])
    torch.testing.assert_close(seen.occlusion, occlusion(model, x, draws=3, seed=4))
    torch.testing.assert_close(seen.gradient, gradient_times_input(model, x))
    torch.testing.assert_close(seen.contribution, contributions(model, x)[1, 2, 1:])
    measures = {
        "occlusion": seen.occlusion,
        "gradient": seen.gradient.abs(),
        "contribution": seen.contribution,
    }
    expected = {n: rank_correlation(seen.weight, v) for n, v in measures.items()}
    assert seen.correlations == expected


def test_over_all_layers_weight_and_contribution_are_means():
    model, x = random_model(readout="mean"), noise(5)
    whole = influences(model, x, layer=None, head=None, draws=1, seed=0)
    parts = [influences(model, x, layer=i, head=None, draws=1, seed=0) for i in (0, 1)]
    for name in ("weight", "contribution"):
        mean = (getattr(parts[0], name) + getattr(parts[1], name)) / 2
        torch.testing.assert_close(getattr(whole, name), mean)


def test_a_model_that_cannot_read_its_input_shows_no_influence_at_all():
    model, x = random_model(causal=True), noise(5)  # CLS sees itself alone
    seen = influences(model, x, layer=0, head=0, draws=2, seed=0)
    for measured in (seen.weight, seen.occlusion, seen.gradient):
        torch.testing.assert_close(measured, torch.zeros_like(measured))
    assert set(seen.correlations.values()) == {None}


def test_what_only_rounding_moves_does_not_move_at_all():
    # Answers of a large batch are rounded otherwise than the answer to one sequence.
    model = random_model(causal=True, seq_len=10, num_heads=2).float()
    moved = occlusion(model, noise(10).float(), draws=4, seed=0)
    assert moved.tolist() == [0] * 10


def test_a_sequence_of_one_has_influence_but_no_order():
    model = random_model(seq_len=1, readout="last")
    seen = influences(model, noise(1), layer=0, head=0, draws=2, seed=0)
    assert seen.weight.tolist() == [1]
    assert seen.occlusion.item() > 0
    assert set(seen.correlations.values()) == {None}


def test_rank_correlation_by_hand():
    up = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert rank_correlation(up, up.exp()) == pytest.approx(1)
    assert rank_correlation(up, -up) == pytest.approx(-1)
    swapped = torch.tensor([1.0, 30.0, 2.0, 400.0])
    assert rank_correlation(up, swapped) == pytest.approx(1 - 6 * 2 / (4 * 15))


def test_equal_numbers_share_the_mean_of_their_ranks():
    tied, up = torch.tensor([5.0, 5.0, 9.0]), torch.tensor([1.0, 2.0, 3.0])
    # Ranks 1.5, 1.5, 3 against 1, 2, 3: 1.5 / √(1.5 · 2).
    assert rank_correlation(tied, up) == pytest.approx(math.sqrt(3) / 2)


def test_rank_correlation_is_that_of_the_ranks_of_numpy_and_pandas():
    draw = np.random.default_rng(0)
    for first, second in (
        draw.normal(size=(2, 53)),
        draw.integers(5, size=(2, 53)).astype(float),  # many ties
    ):
        ranks = [pd.Series(values).rank() for values in (first, second)]
        expected = np.corrcoef(*ranks)[0, 1]
        ours = rank_correlation(torch.tensor(first), torch.tensor(second))
        assert ours == pytest.approx(expected)


def test_rank_correlation_with_nothing_to_order_is_none():
    up, flat = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 3.0])
    assert rank_correlation(up, flat) is None
    assert rank_correlation(flat, up) is None
    assert rank_correlation(torch.ones(1), torch.ones(1)) is None
    assert rank_correlation(torch.ones(0), torch.ones(0)) is None


def test_measuring_leaves_the_global_generator_alone():
    model, state = random_model(), torch.get_rng_state()
    influences(model, noise(5), layer=None, head=None, draws=2, seed=0)
    assert torch.equal(torch.get_rng_state(), state)


def test_what_is_out_of_range_is_refused():
    model, x = random_model(), noise(5)
    with pytest.raises(RefusedError, match=r"draws \(101\) must be between 1 and 100"):
        occlusion(model, x, draws=101, seed=0)
    with pytest.raises(RefusedError, match=r"seed \(-1\)"):
        occlusion(model, x, draws=1, seed=-1)
    with pytest.raises(RefusedError, match=r"layer \(2\) must be between 0 and 1"):
        influences(model, x, layer=2, head=0, draws=1, seed=0)
    with pytest.raises(RefusedError, match=r"head \(3\) must be between 0 and 2"):
        influences(model, x, layer=0, head=3, draws=1, seed=0)
    with pytest.raises(RefusedError, match=r"x \(1, 5, 1\) must be one sequence"):
        contributions(model, x[None])
    with pytest.raises(RefusedError, match=r"x \(5,\) must be one sequence"):
        gradient_times_input(model, x[:, 0])
    with pytest.raises(RefusedError, match=r"first \(2,\) and second \(3,\)"):
        rank_correlation(torch.ones(2), torch.ones(3))


def test_where_weight_and_influence_disagree_the_most_weighted_input_moves_little():
    case = disagreement()
    model = build(case.trained)
    read = read_sequence(model, sequence=case.sequence)
    x = read.inputs[:, None]
    for seed in (0, 1):
        seen = influences(
            model, x, layer=case.layer, head=case.head, draws=20, seed=seed
        )
        most = int(seen.weight.argmax())
        assert most != 0
        assert seen.weight[most] > 1.4 * seen.weight[0]  # 0 is the marker
        assert seen.occlusion.argmax() == 0
        assert seen.occlusion[most] < seen.occlusion[0] / 1000
        assert seen.gradient.abs().max() < abs(read.logit) / 50  # flat everywhere
        assert read.inputs[most] < 0 < read.inputs[0]
        assert (read.logit > 0) == (read.target == 1)


def test_no_head_looks_more_at_another_input_where_it_looks_less_at_the_marker():
    case = disagreement()
    model = build(case.trained)
    inputs, _ = marker_sequences(case.trained.config, NUM_SEQUENCES)
    parts = [model.readout_rows(x)[..., 1:] for x in inputs.split(100)]
    marker, *others = torch.cat(parts).unbind(-1)  # each (sequences, L, H)
    largest = torch.stack(others).amax(dim=0)
    largest[largest <= marker] = 0
    place = np.unravel_index(int(largest.argmax()), largest.shape)
    assert place == (case.sequence, case.layer, case.head)
