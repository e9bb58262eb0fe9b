"""Every sentence of the encoder block page follows the numbers it is given."""

from dataclasses import replace

import pytest
import torch

from core import block_story as story
from core.block_walk import walk_stack
from core.built_in import HookCalls, Timing
from core.depth import (
    DEPTHS,
    MOMENTS,
    RATES,
    RECIPE,
    DepthRun,
    DepthStep,
    LayerNorms,
    Variant,
)
from core.layer_norm import norm_a_row
from core.models import ClassifierConfig

PRE, POST = Variant(True, True), Variant(False, True)


def norms(tokens, gradients):
    return LayerNorms(torch.tensor(tokens), torch.tensor(gradients))


def run(variant, depth, accuracy, *, seed=0, rate=RATES[0], first=0.5):
    by_moment = {
        MOMENTS[0]: norms([1.0, 2.0, 3.0], [7.0, 9.0]),
        MOMENTS[1]: norms([1.0, 2.0, 3.0], [first, 2.0]),
    }
    return DepthRun(variant, depth, seed, rate, 150, 0.5, accuracy, by_moment)


def test_a_walk_is_told_by_its_ends_in_both_orders():
    walks = {
        order: walk_stack(
            d_model=8, num_heads=2, seq_len=3, number=9, norm_first=order,
            residual=True, seed=0,
        )
        for order in (False, True)
    }  # fmt: skip
    said = story.walk_sentence(walks, 9)
    for order, name in story.ORDERS.items():
        points = {point.name: point.rms for point in walks[order].points}
        out = points["feed_forward_sum" if order else "feed_forward_norm"]
        assert f"from {points['x']:.2f} to {out:.2f} ({name})" in said
    assert said.startswith("Block 9 takes")
    assert said.endswith("makes it 1.00.")


@pytest.mark.parametrize(("residual", "right"), [(True, 0), (False, 3)])
def test_the_idle_block_is_measured(residual, right):
    index, reveal = story.idle_answer(residual)
    assert index == right
    assert ("measured: 0 (pre-norm)" in reveal) == residual


def test_the_start_is_told_by_last_size_and_ratio_of_gradients():
    found = {
        "pre-norm": norms([1.0, 2.0, 3.0], [0.5, 0.25]),
        "post-norm": norms([1.0, 1.0, 1.0], [0.1, 0.2]),
    }
    assert story.start_sentence(found) == (
        "After 2 layers the tokens have a root mean square of 3.00 (pre-norm) and 1.00 "
        "(post-norm); the gradient of the first layer is 2 (pre-norm) and 0.5 "
        "(post-norm) times that of the last."
    )
    found = {"pre-norm": norms([1.0, 2.0], [0.5])}
    assert story.start_sentence(found) == (
        "After 1 layer the tokens have a root mean square of 2.00 (pre-norm)."
    )


def test_runs_are_counted_by_depth_and_variant():
    runs = [run(PRE, depth, 1.0, seed=s) for depth in DEPTHS for s in (0, 1)]
    runs += [run(POST, 2, 0.95), run(POST, 2, 0.94, seed=1), run(POST, 24, 0.5)]
    said = story.runs_sentence(runs, (PRE, POST))
    assert said.startswith("Learned (≥ 95 %), of 2 seeds, in 150 steps at depth 2, 6")
    assert "pre-norm 2, 2, 2, 2; post-norm 1, 0, 0, 0." in said


def test_stalled_runs_are_counted_and_no_law_is_made_of_them():
    runs = [run(PRE, 6, 1.0), run(POST, 6, 0.5), run(POST, 12, 0.61)]
    runs += [run(Variant(False, False), 6, 0.5)]  # without shortcuts: not counted
    runs += [run(order, 6, 1.0, rate=RATES[1]) for order in (PRE, POST)]
    said = story.stall_sentence(runs)
    first, second = "learning rate 0.003", "learning rate 0.001"
    assert f"0 of 1 (pre-norm) and 1 of 2 (post-norm) at {first}" in said
    assert f"0 of 1 (pre-norm) and 0 of 1 (post-norm) at {second}" in said
    assert said.endswith("A deep stack may stall; no law says it must.")


def test_trained_runs_are_told_by_what_reaches_their_first_layer():
    runs = [run(PRE, 6, 1.0, first=first) for first in (0.5, 0.004)]
    runs[1] = runs[1]._replace(loss=0.25)
    said = story.trained_sentence([*runs, run(POST, 12, 0.5)], 6)
    assert said == (
        "6 layers, trained to a loss of 0.25 to 0.5 (pre-norm): the gradient of the "
        "first is 0.002 to 0.25 (pre-norm) times that of the last, over the seeds; at "
        "the start it was 0.778 to 0.778 (pre-norm). Lengths of gradients compare only "
        "at like losses."
    )


def test_watched_runs_are_told_by_their_last_step():
    steps = [
        DepthStep(PRE, 0, 1, 0.9, None),
        DepthStep(PRE, 0, 2, 0.25, None),
        DepthStep(POST, 1, 150, 0.7, 0.5),
    ]
    assert story.watched_sentence(steps) == (
        "pre-norm, seed 0: loss 0.250; post-norm, seed 1: 50 % right."
    )


def test_the_cost_of_watching_follows_the_depth():
    seconds = []
    for layers in (2, 24):
        said = story.live_cost_sentence(layers)
        assert said.startswith("4 runs of 150 steps, taking turns: ")
        assert said.endswith(" s or more on two idle CPU cores.")
        seconds.append(float(said.split()[7]))
        step = 32 * replace(RECIPE.model, num_layers=layers).step_seconds
        assert seconds[-1] == pytest.approx(600 * step, abs=0.5)
    assert seconds[1] > 10 * seconds[0]


def test_a_row_is_told_with_its_numbers():
    found = norm_a_row(4, 0.1, 0)
    said = story.layer_norm_sentence(found, 0.1)
    assert f"biased variance {float(found.steps.variance):.4f}" in said
    assert "root of variance + 0.1 = " in said
    said = story.misreading_sentence(found, 0.1)
    assert said.count("by ") == 2
    assert "with eps outside the root" in said
    said = story.misreading_sentence(norm_a_row(4, 0.0, 0), 0.0)
    assert said.count("by ") == 1
    assert "outside" not in said
    assert said.endswith("With eps 0 its place plays no part.")


def test_hooks_counts_and_times_are_told_as_measured():
    said = story.hook_sentence(HookCalls(12, 0), 12)
    assert said.startswith(
        "Hooks on the attention of 12 built-in layers were called 12 times in all and "
        "handed weights 0 times"
    )
    assert "of 1 built-in layer were called once" in story.hook_sentence(
        HookCalls(1, 0), 1
    )
    assert story.count_sentence(7, 7) == "Both stacks have 7 parameters."
    assert "Our stack has 7 parameters, the built-in one 8" in story.count_sentence(
        7, 8
    )
    slow, same = (Timing("forward", 3, 0.002, 0.001, ratio) for ratio in (2.0, 1.02))
    said = story.timing_sentences([slow, same])
    assert said[0] == (
        "Forward: ours 2.0 ms, built-in 1.0 ms (medians of 3); ours takes 2.00 times "
        "as long."
    )
    assert said[1].endswith("ours is about as fast (ratio 1.02).")


def test_parameters_are_grouped_and_their_shares_follow():
    lab = ClassifierConfig()
    groups = story.parameter_groups(lab)
    assert sum(count for _, count in groups.values()) == 25_601
    assert "positions" not in groups  # sinusoids have none
    assert groups["norms of the blocks"] == ("norms", 256)
    assert groups["last norm"] == ("ends", 64)
    said = story.parameters_sentence(lab)
    assert "25,601 parameters with 2 layers of width 32" in said
    assert "33 % attention, 65 % feed-forward" in said
    one_head = replace(lab, num_heads=1)
    assert story.parameters_sentence(one_head) == said
