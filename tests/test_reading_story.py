"""What is said of maps: worked out by hand on small ones."""

from types import SimpleNamespace

import pytest
import torch

from core import influence_story, reading_story
from core.influence import Influences
from core.influence_story import Largest
from core.models import ClassifierConfig
from core.reading import ManyReadings, Reading
from core.trained import TrainedModel

CONFIG = ClassifierConfig(seq_len=2, num_heads=2, num_layers=1, d_model=4)
ROWS = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]])  # one layer, two heads
READING = Reading(
    sequence=7,
    inputs=torch.tensor([1.0, -0.5]),
    target=1,
    logit=2.0,
    probability=0.88,
    maps=ROWS[:, :, None].expand(1, 2, 3, 3),
    rows=ROWS,
    marker_at=1,
    labels=("CLS", "0", "1"),
)


def trained(accuracy: float | None = 1.0, **changes) -> TrainedModel:
    config = ClassifierConfig(**{"seq_len": 2, "d_model": 4, "num_heads": 2} | changes)
    return TrainedModel(config, {}, "Made by hand.", 63, accuracy)


def influences(weight, occlusion) -> Influences:
    zeros = torch.zeros(len(weight))
    named = dict.fromkeys(("occlusion", "gradient", "contribution"))
    return Influences(
        torch.tensor(weight), torch.tensor(occlusion), zeros, zeros, named
    )


def test_a_row_names_its_peak_and_what_the_marker_gets():
    (layer, even) = reading_story.row_sentences(READING, CONFIG)
    assert layer == (
        "Layer 1, mean of 2 heads: CLS reads most from the marker, position 0, with "
        "52.5 %."
    )
    assert even == "Dashed: the same weight for each of the keys, 33.3 %."
    assert reading_story.peak_words(ROWS[0, 0], READING) == (
        "most from CLS, 50.0 %, and 25.0 % from the marker"
    )


def test_the_rows_of_a_chosen_head_are_told_as_its_own():
    (layer, _) = reading_story.row_sentences(READING, CONFIG, head=1)
    assert layer == (
        "Layer 1, head 1: CLS reads most from CLS, 50.0 %, and 25.0 % from the marker."
    )


def test_a_map_is_one_head_or_the_mean_and_says_which():
    torch.testing.assert_close(reading_story.of_head(ROWS, 1, 2), ROWS[0, 1])
    torch.testing.assert_close(reading_story.of_head(ROWS, 1, 0), ROWS[0].mean(dim=0))
    assert reading_story.map_name(1, 2, 2) == "Layer 1, head 2"
    assert reading_story.map_name(1, 0, 1) == "Layer 1, mean of 1 head"
    said = reading_story.map_sentence(READING, 1, 2)
    assert said.startswith("Layer 1, head 2, the largest weight of the map")
    assert 'gives 80 % to key "0"' in said


def test_the_answer_is_called_right_only_where_it_is():
    assert reading_story.answer_sentence(READING).endswith("class 1, which is right.")
    wrong = READING._replace(logit=-2.0)
    assert reading_story.answer_sentence(wrong).endswith("class 1, which is wrong.")


def test_a_run_that_has_not_learned_is_said_to_be_such():
    assert reading_story.doubts(trained(), sound=True) == []
    (learned,) = reading_story.doubts(trained(accuracy=0.51), sound=True)
    assert "has not learned the task: it answers 51.0 % right" in learned


def test_the_first_row_of_a_causal_map_is_named_as_it_stands_there():
    said = {
        readout: reading_story.doubts(trained(causal=True, readout=readout), sound=True)
        for readout in ("cls", "first", "last", "mean")
    }
    assert said["last"] == said["mean"]
    (last,) = said["last"]
    assert last == (
        "Causal mask: row 0 of every map is all on key 0 by necessity, for it may "
        "read nothing else."
    )
    assert said["first"] == [
        f"{last} The answer is read from that row: no input but position 0 reaches it."
    ]
    (cls,) = said["cls"]
    assert "row CLS of every map is all on key CLS by necessity" in cls
    assert cls.endswith("The answer is read from that row: no input reaches it.")


def test_maps_that_are_no_numbers_are_refused_with_a_sentence():
    reading_story.require_sound(READING)
    broken = READING._replace(maps=READING.maps * float("nan"))
    silent = READING._replace(logit=float("nan"))
    for diverged in (broken, silent):
        with pytest.raises(ValueError, match="no longer made of numbers"):
            reading_story.require_sound(diverged)


def test_no_accuracy_is_told_of_answers_that_are_no_numbers():
    lost = trained(accuracy=0.532, causal=True)
    said = reading_story.run_words(lost, "Your run", sound=False)
    assert "no test accuracy" in said
    assert "53.2" not in said
    assert reading_story.doubts(lost, sound=False) == []


def test_several_sequences_give_mean_and_spread_at_the_marker():
    spread = torch.tensor([[[0.0, 0.1, 0.0], [0.0, 0.3, 0.0]]])
    maps = ROWS[:, :, None].expand(1, 2, 3, 3)
    many = ManyReadings(20, maps, maps, ROWS, spread, 1)
    assert reading_story.many_sentence(many, 1, 2).endswith(
        "80.0 % on average, with a standard deviation of 30.0 %."
    )
    assert "20.0 % (mean of the heads' own)" in reading_story.many_sentence(many, 1, 0)


def test_a_single_step_is_called_one():
    one = trained()._replace(steps=1)
    assert "Your run · 1 training step ·" in reading_story.run_words(
        one, "Your run", sound=True
    )


def test_a_share_is_100_percent_only_where_it_is_all():
    shown = [reading_story.percent(share) for share in (1.0, 0.9999, 0.5)]
    assert shown == ["100 %", "99.9 %", "50.0 %"]


def test_the_accuracy_of_a_run_not_measured_is_not_invented():
    said = reading_story.run_words(trained(accuracy=None), "Your run", sound=True)
    assert said.startswith("Your run · 63 training steps · test accuracy not measured")


@pytest.mark.parametrize(
    ("occlusion", "rank", "fate"),
    [
        ([9.0, 1, 1, 1, 1, 1, 1], 1, Largest.FIRST),
        ([5.0, 9, 8, 7, 6, 1, 1], 5, Largest.AMONG_FIVE),
        ([5.0, 9, 8, 7, 6, 5.5, 1], 6, Largest.FURTHER_DOWN),
        ([9.0, 9, 1, 1, 1, 1, 1], 1, Largest.FIRST),
    ],
)
def test_the_input_with_the_largest_weight_is_ranked_by_what_it_moves(
    occlusion, rank, fate
):
    found = influences([0.7, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05], occlusion)
    assert influence_story.rank_of_largest(found) == rank
    assert influence_story.fate_of_largest(found) is fate


def test_weight_and_influence_are_told_apart_in_one_sentence():
    said = influence_story.influence_sentence(
        influences([0.6, 0.3], [0.25, 4.0]), "Layer 2, head 1"
    )
    assert said == (
        "Layer 2, head 1: position 0 has the largest weight of the inputs, 60.0 %; "
        "replaced by noise, it moves the logit by 0.25, rank 2 of 2. Position 1 "
        "moves it most, by 4."
    )


def test_a_correlation_without_an_order_is_not_defined():
    found = influences([0.5], [1.0])
    known = found.correlations | {"occlusion": -0.25}
    said = influence_story.correlation_sentence(found._replace(correlations=known))
    assert said == (
        "Rank correlation with the weight: input replaced by noise -0.25; what it "
        "hands on not defined; gradient × input, by size not defined."
    )


def test_what_lies_on_cls_is_told_beside_the_weights_of_the_inputs():
    assert influence_story.cls_sentence(READING, 1, 1) == (
        "CLS itself holds 50.0 % of this row; the panel shows the inputs, 50.0 % in "
        "all."
    )
    assert "CLS itself holds 30.0 %" in influence_story.cls_sentence(READING, 1, 0)
    without = READING._replace(rows=ROWS[..., 1:], labels=("0", "1"), marker_at=0)
    assert influence_story.cls_sentence(without, 1, 1) == ""


def test_the_largest_input_leaves_cls_out():
    assert influence_story.largest_input(READING, 1, 1) == 0
    assert influence_story.largest_input(READING, 1, 2) == 0


def test_where_no_input_has_a_weight_none_is_called_the_largest():
    rows = torch.tensor([[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
    alone = READING._replace(rows=rows)
    assert influence_story.largest_input(alone, 1, 0) is None
    none = influence_story.influence_sentence(influences([0.0, 0.0], [0.0, 0.0]), "M")
    assert none == "M: no input has a weight, and none moves the logit."
    one = influence_story.influence_sentence(influences([0.0, 0.0], [0.0, 2.0]), "M")
    assert one == "M: no input has a weight; position 1 moves the logit most, by 2."


def test_slopes_near_0_are_told_from_influence_near_0():
    found = influences([0.6, 0.4], [0.25, 4.0])
    flat = found._replace(gradient=torch.tensor([0.0, -0.02]))
    assert influence_story.slope_sentence(flat) == (
        "The answer is flat here: gradient × input is at most 0.02 in size, though "
        "noise at position 1 moves the logit by 4. A slope tells of a small step alone."
    )
    steep = found._replace(gradient=torch.tensor([0.5, 0.0]))
    assert influence_story.slope_sentence(steep) == ""
    still = influences([0.6, 0.4], [0.0, 0.0])
    assert influence_story.slope_sentence(still) == ""


def test_layers_and_heads_are_offered_by_the_names_that_switch_them_off():
    names = influence_story.off_choices(CONFIG)
    assert names == {
        "layer 1": {(0, 0), (0, 1)},
        "layer 1, head 1": {(0, 0)},
        "layer 1, head 2": {(0, 1)},
    }


def test_a_table_of_accuracies_names_the_head_that_costs_most():
    heads, layers = torch.tensor([[1.0, 0.75], [0.5, 1.0]]), torch.tensor([0.75, 0.25])
    rows = influence_story.ablation_rows(heads, layers)
    assert rows[1] == ["layer 2", "50.0 %", "100 %", "**25.0 %**"]
    said = influence_story.ablation_sentence(heads, layers, 1.0)
    assert "costs most is layer 2, head 1: 50.0 % without it" in said
    assert "layer 2 off leaves 25.0 %" in said
    same = influence_story.ablation_sentence(torch.ones(2, 2), layers, 1.0)
    assert same.startswith("No single head lowers the accuracy")


def test_more_off_that_does_better_than_a_part_of_it_is_said_to_do_so():
    heads, layers = torch.tensor([[1.0, 0.75], [0.5, 1.0]]), torch.tensor([0.75, 0.25])
    second = frozenset({(1, 0), (1, 1)})
    said = influence_story.more_off_sentence(heads, layers, second | {(0, 0)}, 0.9)
    assert said == (
        "More off is not always worse: layer 2 alone off leaves 25.0 %, all that is "
        "off here 90.0 %."
    )
    for off, after in ((second, 0.25), (second | {(0, 0)}, 0.25), (frozenset(), 1.0)):
        assert influence_story.more_off_sentence(heads, layers, off, after) == ""
    said = influence_story.more_off_sentence(heads, layers, second, 0.6)
    assert "layer 2, head 1 alone off leaves 50.0 %" in said


def test_a_test_on_fewer_sequences_says_why_it_is_not_on_all():
    said = influence_story.off_sentence(1.0, 0.5, ["layer 1"], 644)
    assert "the first 644 of 1,000 test sequences, as many as are answered" in said
    assert influence_story.off_sentence(1.0, 1.0, [], 1000) == (
        "Nothing is off: 100 % right of all 1,000 test sequences."
    )


def test_tests_cost_about_the_time_they_are_given():
    fast, slow = (SimpleNamespace(test_seconds=s) for s in (1e-6, 1e-2))
    kept = {"seconds": 0.5, "fewest": 10}
    assert reading_story.affordable(fast, 10, **kept) == 1000
    assert reading_story.affordable(slow, 2, **kept) == 25
    assert reading_story.affordable(slow, 1000, **kept) == 10


def test_what_would_keep_the_page_from_answering_is_refused_with_its_numbers():
    large = ClassifierConfig(seq_len=300, num_layers=6, num_heads=16, d_model=64)
    reading_story.require_affordable(large, 10)
    with pytest.raises(ValueError, match="6 layers, 16 heads and length 300 would"):
        reading_story.require_affordable(large, 300)
