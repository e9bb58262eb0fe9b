"""Several heads over one sequence: what each reads, writes and costs."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from core.attention import MultiHeadAttention
from core.heads import (
    MASKS,
    MAX_D_MODEL,
    HeadsSeen,
    attend_heads,
    head_costs,
    head_counts,
    head_differences,
    head_shares,
)

WORDS = ["the", "cat", "sat", "on", "the", "mat"]
close = torch.testing.assert_close


def see(tokens: list[str] = WORDS, **settings) -> HeadsSeen:
    preset = {"d_model": 15, "num_heads": 3, "mask": "causal", "seed": 0}
    return attend_heads(tokens, **(preset | settings))


@pytest.mark.parametrize("mask", MASKS)
def test_a_head_is_attention_over_its_own_rows_of_the_projections(mask):
    seen, d_k = see(mask=mask), 5
    x, (w_q, w_k, w_v) = seen.embeddings, seen.layer.in_proj.weight.chunk(3)
    for head in range(3):
        own = slice(head * d_k, (head + 1) * d_k)  # it writes d_k numbers ...
        q, k, v = (x @ w[own].T for w in (w_q, w_k, w_v))  # ... and reads all 15
        scores = q @ k.T / math.sqrt(d_k)
        close(seen.scores[head], scores)
        if seen.mask is not None:
            scores = scores.masked_fill(~seen.mask, -math.inf)
        weights = scores.softmax(dim=-1).nan_to_num(0.0)
        close(seen.weights[head], weights)
        close(seen.head_outputs[head], weights @ v)
        close(seen.concatenated[:, own], weights @ v)


def test_the_output_is_the_concatenation_after_the_output_projection():
    seen = see(num_heads=5)
    projection = seen.layer.out_proj
    close(seen.output, F.linear(seen.concatenated, projection.weight, projection.bias))
    x = seen.embeddings[None]
    close(seen.output, seen.layer(x, x, x, mask=seen.mask)[0])


@pytest.mark.parametrize("dimension", [0, 7, 14])
def test_every_head_reads_every_number_of_a_token(dimension):
    seen = see(mask="none")
    moved = seen.embeddings.clone()
    moved[:, dimension] += 1.0
    scores = seen.layer.attend(moved[None], moved[None], moved[None]).scores[0]
    assert ((scores - seen.scores).abs().amax(dim=(1, 2)) > 1e-3).all()


def test_the_shares_of_the_heads_and_the_bias_sum_to_the_output():
    seen = see(num_heads=5)
    with torch.no_grad():
        seen.layer.out_proj.bias.copy_(torch.arange(15.0))
    expected = seen.output + torch.arange(15.0).double()
    close(head_shares(seen).sum(dim=0) + seen.layer.out_proj.bias, expected)
    alone = torch.zeros_like(seen.concatenated)
    alone[:, 3:6] = seen.concatenated[:, 3:6]  # the second of five heads
    close(head_shares(seen)[1], alone @ seen.layer.out_proj.weight.T)


def test_the_masks_open_what_their_names_say():
    rows = {
        kind: None if mask(3) is None else mask(3).int().tolist()
        for kind, mask in MASKS.items()
    }
    assert rows == {
        "causal": [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        "none": None,
        "left padding": [[0, 0, 0], [0, 1, 0], [0, 1, 1]],
    }


def test_a_query_without_a_key_gets_nothing_in_any_head():
    seen = see(mask="left padding")
    assert not seen.weights[:, 0].any()
    assert not seen.concatenated[0].any()
    close(seen.weights[:, 1:].sum(dim=-1), torch.ones(3, 5).double())


def test_the_precisions_show_the_same_numbers():
    single, double = see(dtype="float32"), see(dtype="float64")
    assert single.output.dtype == torch.float32
    assert double.output.dtype == torch.float64
    assert torch.equal(single.embeddings.double(), double.embeddings)
    close(single.output.double(), double.output, rtol=0, atol=1e-6)


def test_the_same_seed_gives_the_same_numbers_and_no_global_ones_are_drawn():
    state = torch.get_rng_state()
    first, again, other = see(), see(), see(seed=1)
    assert torch.equal(first.output, again.output)
    assert not torch.equal(first.output, other.output)
    assert torch.equal(torch.get_rng_state(), state)


def test_one_token_gives_itself_all_weight():
    assert see(["a"]).weights.flatten().tolist() == [1.0] * 3


def test_the_difference_of_heads_worked_by_hand():
    weights = torch.tensor(
        [
            [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.2, 0.6]],
            [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.6, 0.2, 0.2]],
            [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.2, 0.6]],
        ]
    )
    found = head_differences(weights, MASKS["causal"](3))
    # Query 0 has one key and does not count: (0.5 + 0.4) / 2.
    expected = torch.tensor([[0, 0.45, 0], [0.45, 0, 0.45], [0, 0.45, 0]])
    close(found.pairwise, expected)
    assert found.mean == pytest.approx(0.3)
    assert found.furthest == (0, 1)
    assert found.num_queries == 2
    everyone = head_differences(weights)
    assert everyone.mean == pytest.approx(0.2)
    assert everyone.num_queries == 3


def test_equal_heads_differ_by_0_and_heads_without_a_key_in_common_by_1():
    one = torch.eye(4)
    assert head_differences(torch.stack([one, one])).mean == 0
    assert head_differences(torch.stack([one, one.roll(1, 0)])).mean == 1


@pytest.mark.parametrize(
    ("tokens", "settings"),
    [(WORDS, {"num_heads": 1}), (["a"], {}), (["a", "b"], {"mask": "left padding"})],
)
def test_where_nothing_can_differ_there_is_no_number(tokens, settings):
    seen = see(tokens, **settings)
    found = head_differences(seen.weights, seen.mask)
    assert math.isnan(found.mean)
    assert found.furthest is None


@pytest.mark.parametrize(("d_model", "seq_len"), [(64, 7), (10, 1), (12, 16)])
def test_heads_share_parameters_and_products_whatever_their_number(d_model, seq_len):
    costs = head_costs(d_model, seq_len)
    assert [cost.num_heads for cost in costs] == head_counts(d_model)
    projections = 4 * 2 * seq_len * d_model * d_model
    attention = 2 * 2 * seq_len * seq_len * d_model
    for cost in costs:
        assert cost.num_heads * cost.d_k == d_model
        assert cost.parameters == 4 * d_model * d_model + 4 * d_model
        assert cost.flops == projections + attention
        assert cost.map_cells == cost.num_heads * seq_len * seq_len


def test_products_are_counted_as_pytorch_counts_them():
    layer, x = MultiHeadAttention(15, 3), torch.zeros(1, 7, 15)
    with torch.no_grad(), FlopCounterMode(display=False) as theirs:
        layer.attend(x, x, x)
    (ours,) = head_costs(15, 7, [3])
    assert ours.flops == theirs.get_total_flops()


def test_a_layer_of_64_may_have_1_to_16_heads_and_one_of_10_four_numbers():
    assert head_counts(64) == [1, 2, 4, 8, 16]
    assert head_counts(10) == [1, 2, 5, 10]
    assert head_counts(1) == [1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"d_model": 10, "num_heads": 3},
            r"d_model \(10\) must be divisible by num_heads \(3\)",
        ),
        ({"num_heads": 0}, r"num_heads \(0\) must be between 1 and 16"),
        ({"d_model": MAX_D_MODEL + 1}, r"d_model \(257\) must be between 1 and 256"),
        ({"mask": "diagonal"}, "mask must be one of 'causal', 'none', 'left padding'"),
        ({"dtype": "float16"}, "dtype must be one of 'float32', 'float64'"),
        ({"seed": -1}, r"seed \(-1\) must be between"),
    ],
)
def test_a_bad_setting_is_refused_with_its_numbers(settings, message):
    with pytest.raises(ValueError, match=message):
        see(**settings)


def test_no_token_and_too_many_are_refused():
    for tokens in ([], ["a"] * 17):
        with pytest.raises(ValueError, match=r"len\(tokens\)"):
            see(tokens)
    with pytest.raises(ValueError, match=r"seq_len \(17\)"):
        head_costs(8, 17)
    with pytest.raises(ValueError, match=r"d_model \(8\) must be divisible"):
        head_costs(8, 2, [3])
