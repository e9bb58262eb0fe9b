"""What the pictures of several heads say: each sentence with its own numbers."""

import math

import pytest
import torch

from core import heads_story as story
from core.head_parity import GRADIENTS
from core.heads import HeadsSeen, attend_heads, head_costs, head_differences
from core.initial import generator_from
from core.mistakes import MISTAKES, STAGES, see_mistake
from core.parity import Parity

AXIS, MERGE, VALUES, SCALE, PROJECTION, MASK = MISTAKES
WORDS = ["the", "cat", "sat", "on", "the", "mat"]


def see(tokens: list[str] = WORDS, **settings) -> HeadsSeen:
    preset = {"d_model": 64, "num_heads": 8, "mask": "causal", "seed": 0}
    return attend_heads(tokens, **(preset | settings))


def test_a_head_reads_the_whole_token_and_writes_its_share():
    said = story.reads_sentence(see())
    assert said == "Every head reads all 64 numbers of a token and writes 8 of them."
    assert story.reads_sentence(see(num_heads=1)).startswith("The one head reads all")


def test_the_way_of_a_token_is_said_with_every_width():
    assert story.split_line(see()) == (
        "One token: 64 numbers → each of 8 heads reads all 64, writes 8 → "
        "concatenate: 8 × 8 = 64 → W_O → 64"
    )
    assert "the one head reads all 64, writes 64" in story.split_line(see(num_heads=1))


def test_the_difference_of_heads_is_said_with_the_pair_furthest_apart():
    same, other = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])
    three = head_differences(torch.stack([same, same, other]))
    assert story.differences_sentence(three) == (
        "Two heads place 33 % of their weight on different keys, on average over 3 "
        "pairs; heads 1 and 3 most, 50 %."
    )
    two = head_differences(torch.stack([same, other]))
    assert story.differences_sentence(two) == (
        "The two heads place 50 % of their weight on different keys."
    )
    assert "no other" in story.differences_sentence(head_differences(same[None]))
    alone = see(["a"])
    found = head_differences(alone.weights, alone.mask)
    assert "equal by necessity" in story.differences_sentence(found)


def test_a_map_is_named_as_one_head_or_as_the_mean():
    seen = see()
    third, name = story.large_map(seen, 3)
    assert name == "Head 3 of 8"
    assert torch.equal(third, seen.weights[2])
    mean, name = story.large_map(seen, None)
    assert name == "Mean of all 8 heads"
    torch.testing.assert_close(mean, sum(seen.weights) / 8)


def test_a_query_with_one_key_is_said_to_have_no_choice():
    seen = see(["a", "b"])
    said = story.map_sentence("Head 1 of 8", seen.weights[0], seen)
    assert said.startswith("Head 1 of 8, the largest weight where there is a choice: ")
    assert 'query "b" gives' in said
    assert said.endswith('Query "a" has one key: all its weight.')
    hidden = see(["a", "b"], mask="left padding")
    said = story.map_sentence("X", hidden.weights[0], hidden)
    assert said == 'Query "b" has one key: all its weight.'
    nothing = see(["a"], mask="left padding")
    said = story.map_sentence("X", nothing.weights[0], nothing)
    assert said == "X: no query has anything to attend to."
    unmasked = see(mask="none")
    assert "one key" not in story.map_sentence("X", unmasked.weights[0], unmasked)


def test_the_steps_name_every_parameter_of_the_layer_once():
    seen = see(num_heads=2)
    steps = story.steps_of(seen)
    assert [step.does for step in steps[-2:]] == ["concatenate", "project by W_O"]
    assert steps[1].shape == "3 × (2, 6, 32)"
    assert steps[3].shape == "(2, 6, 32)"
    assert steps[-2].shape == steps[-1].shape == "(6, 64)"
    assert steps[-1].parameters == 64 * 64 + 64
    learned = sum(parameter.numel() for parameter in seen.layer.parameters())
    assert sum(step.parameters for step in steps) == learned


def test_the_merge_is_said_with_its_widths_and_the_sum_of_the_shares():
    seen = see(num_heads=2)
    said = story.merge_sentence(seen)
    assert "writes 32 of them. Side by side they are 2 × 32 = 64;" in said
    assert "W_O (64 × 64)" in said
    assert float(said.rsplit("to ", 1)[1].removesuffix(".")) < 1e-12
    moved = seen._replace(output=seen.output + 0.5)
    assert story.merge_sentence(moved).endswith("to 5e-01.")


def test_names_of_heads_are_short_where_there_are_many():
    assert list(story.outputs_of_heads(see(num_heads=2))) == ["head 1", "head 2"]
    assert list(story.outputs_of_heads(see(num_heads=16)))[-1] == "16"


def test_the_queries_left_out_of_a_comparison_are_counted():
    assert story.compared_sentence(see()) == "All 6 queries are compared."
    said = story.compared_sentence(see(mask="left padding"))
    assert said.startswith("5 of 6 queries are compared: 1 may attend to no key")


def test_the_spread_of_the_packed_projection_is_measured_beside_separate_ones():
    """0.0884 of one packed matrix, 0.125 of three separate ones at width 64."""
    layer = see().layer
    measured = float(layer.in_proj.weight.detach().std())
    assert measured == pytest.approx(math.sqrt(2 / 256), rel=0.02)
    theirs = torch.nn.init.xavier_uniform_(
        torch.empty(192, 64), generator=generator_from(1)
    )
    assert measured == pytest.approx(float(theirs.std()), rel=0.02)
    said = story.initial_sentence(layer)
    assert f"here {measured:.4f}; Xavier expects 0.0884 of one" in said
    assert "0.1250 of three separate" in said


def test_differences_are_listed_and_0_is_called_exact():
    parity = Parity({"output": 0.0, "weights": 2.5e-8, "gradient": 1.25}, 1e-6)
    assert story.parity_rows(parity) == [
        ("output", "exactly 0"), ("weights", "2.5e-08"), ("gradient", "1.25"),
    ]  # fmt: skip


def test_costs_are_said_once_where_they_are_equal():
    said = story.costs_sentence(head_costs(64, 6), 6)
    assert "From 1 to 16 heads: parameters always 16,640" in said
    assert "operations always 205,824 at 6 tokens" in said
    assert "from 36 weights to 576" in said
    unequal = [cost._replace(flops=cost.num_heads) for cost in head_costs(64, 6)]
    assert "operations 1 to 16 at" in story.costs_sentence(unequal, 6)
    counted = head_costs(64, 6)[0].flops
    assert story.products_sentence(64, 6).startswith(f"{counted:,} = 196,608 in four")
    assert story.growth_of_parameters(64, 4, 8) == 1.0


@pytest.mark.parametrize(
    ("sums", "said"),
    [
        ([1.0, 1.0, 1 + 1e-7], "every row sums to 1"),
        ([1.0, 0.0, 1.0], "1 of 3 rows sum to 0, the others to 1"),
        ([0.0, 0.0, 0.0], "3 of 3 rows sum to 0"),
        ([0.25, 1.0, 1.75], "rows sum to 0.25 up to 1.75"),
        ([0.0, 0.5, 1.0], "rows sum to 0.00 up to 1.00"),
    ],
)
def test_row_sums_are_said_as_they_are(sums, said):
    assert story.sums_sentence(torch.tensor(sums).double()) == said


def test_a_mistake_is_said_with_its_sizes_or_with_none():
    seen = see()
    found = see_mistake(seen, MERGE)
    size = found.parity.differences["output"]
    said = story.mistake_sentence(found, seen, 1)
    assert said == (
        "Head 1: every row sums to 1. Against PyTorch the weights agree, the output is "
        f"off by up to {size:.3g}."
    )
    off = story.mistake_sentence(see_mistake(seen, MASK), seen, 2)
    assert "Head 2: 1 of 6 rows sum to 0, the others to 1" in off
    assert "Framed: 15 keys that should be hidden get up to 1." in off
    assert "the weights are off by up to 1, the output" in off
    one = see(num_heads=1)
    silent = story.mistake_sentence(see_mistake(one, MERGE), one, 1)
    assert silent.endswith("Here this mistake changes nothing.")


def test_the_row_sums_said_are_those_of_the_head_that_is_drawn():
    seen = see()
    found = see_mistake(seen, AXIS)
    low, high = (f(found.weights[1].sum(dim=1)) for f in (torch.min, torch.max))
    said = story.mistake_sentence(found, seen, 2)
    assert f"Head 2: rows sum to {low:.2f} up to {high:.2f}." in said
    assert said != story.mistake_sentence(found, seen, 1).replace("Head 1", "Head 2")


def test_a_mistake_in_the_gradients_alone_is_said_to_be_there():
    same = see(["a"] * 3, mask="none")
    found = see_mistake(same, AXIS)
    off = found.parity.differences
    said = (
        f"Against PyTorch only the gradients differ, by up to {max(off.values()):.3g}."
    )
    assert story.effect_sentence(found) == story.found_sentence(found, same) == said
    rows = story.stage_rows(found)
    assert rows[len(STAGES)] == (GRADIENTS[0], f"{off[GRADIENTS[0]]:.3g}")


@pytest.mark.parametrize(
    ("tokens", "mask"),
    [(["a"], "causal"), (["a", "a"], "causal"), (["a", "b"], "left padding")],
)
def test_scores_that_differ_are_said_where_the_softmax_hides_them(tokens, mask):
    found = see_mistake(see(tokens, mask=mask), SCALE)
    assert found.stages["scores"] > 1e-3
    assert found.parity.differences["output"] < 1e-12
    assert story.effect_sentence(found) == (
        "The scores differ, the weights and the output do not: each row has one key or "
        "equal keys."
    )


def test_what_was_hidden_is_told_with_the_sizes_of_its_stages():
    seen = see()
    found = see_mistake(seen, PROJECTION)
    assert story.found_sentence(found, seen) == (
        "Right: scores, weights, heads, concatenated. Off: output by up to "
        f"{found.stages['output']:.3g}."
    )
    assert story.found_sentence(see_mistake(seen, SCALE), seen).startswith("Off: score")


def test_the_first_stage_that_is_wrong_is_named():
    seen = see()
    stages = {
        name: story.first_wrong_stage(see_mistake(seen, name), seen)
        for name in MISTAKES
    }
    assert stages == {
        AXIS: "weights",
        MERGE: "concatenated",
        VALUES: "heads",
        SCALE: "scores",
        PROJECTION: "output",
        MASK: "weights",
    }
    one = see(num_heads=1)
    assert story.first_wrong_stage(see_mistake(one, MERGE), one) is None
    rows = story.stage_rows(see_mistake(seen, PROJECTION))
    assert [stage for stage, _ in rows] == [*STAGES, *GRADIENTS]
    assert [size for _, size in rows[:4]] == ["exactly 0"] * 4


def test_one_scale_holds_the_numbers_of_several_pictures():
    assert story.value_limit(torch.tensor([0.3]), torch.tensor([-1.2])) == 2.0
