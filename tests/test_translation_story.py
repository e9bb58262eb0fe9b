"""Sentences on an encoder-decoder: their numbers come from the tensors."""

import math
from dataclasses import replace

import pytest
import torch

from core import marker_story, stack_walk, translation_run, translation_story
from core.decoding import Hypothesis
from core.decoding_walk import feed_another, position_loss, walk_decoding
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
from core.seq2seq_training import Sample, Seq2SeqConfig, Seq2SeqRecord, preset
from core.text_tasks import letter_task

TASK = letter_task("reverse", max_length=6)
SOURCE, ANSWER = TASK.source.encode("abca"), TASK.target.encode("acba")


def walk(*, forced: bool = True):
    size = len(TASK.source)
    config = EncoderDecoderConfig(size, size, d_model=12, num_heads=3, seed=2)
    model = EncoderDecoderTransformer(config).eval().requires_grad_(False)
    return model, walk_decoding(
        model, SOURCE, ANSWER, forced=forced, max_len=TASK.max_target
    )


def test_the_spread_of_a_map_by_hand():
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    spread = translation_story.spread_of(weights, ["a", "b", "c"], ["b", "c"])
    bits = -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))
    assert spread.entropies.tolist() == pytest.approx([1, bits])
    assert spread.largest.tolist() == [0.5, 0.75]
    assert spread.on_same == pytest.approx((0.5 + 0.75) / 2)


def test_a_repeated_token_counts_all_its_places_and_a_missing_one_none():
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    spread = translation_story.spread_of(weights, ["a", "b", "a"], ["a", "</s>"])
    assert spread.on_same == pytest.approx(0.75)
    none = translation_story.spread_of(weights, ["a", "b", "a"], ["x", "</s>"])
    assert none.on_same is None
    assert "lies on it" not in translation_story.spread_sentence("m", none, 3)


def test_shares_never_round_to_none_or_all():
    said = [translation_story.percent(s) for s in (0, 1e-5, 0.5, 0.99999, 1)]
    assert said == ["0 %", "<0.1 %", "50.0 %", ">99.9 %", "100 %"]


def test_an_answer_tells_where_it_goes_wrong_first():
    _, seen = walk(forced=False)
    said = translation_story.answer_sentence(seen, TASK.target, "")
    assert f"which is wrong: first at step {seen.first_wrong + 1}" in said
    right = seen._replace(true=seen.chosen)
    steps = tuple(
        s._replace(true=t) for s, t in zip(seen.steps, seen.chosen, strict=True)
    )
    right = right._replace(steps=steps)
    said = translation_story.answer_sentence(right, TASK.target, "")
    assert "which is right" in said
    assert f"Least sure at step {right.least_sure + 1}" in said


def test_the_table_of_a_beam_names_right_wrong_and_greedy_hypotheses():
    _, seen = walk(forced=False)
    true = Hypothesis(seen.true, -0.5, ended=True)
    start = Hypothesis(seen.true[:2], -0.25, ended=False)
    greedy = Hypothesis(seen.chosen[:2], -1.0, ended=False)
    rows = translation_story.beam_rows([start, true, greedy], TASK.target, "", seen)
    assert rows[0] == ("1", "ac…", "−0.25", "right so far")
    assert rows[1] == ("2", "acba", "−0.5", "right")
    assert rows[2][3] == "wrong, greedy's"


def test_the_parts_of_a_loss_add_up_in_the_table():
    loss = position_loss(torch.arange(7.0), 5, 0.2)
    rows = translation_story.loss_rows(loss, [6, 5], letter_task("copy").target)
    *shown, others, whole = rows
    assert others[0] == "5 others"
    parts = [float(row[3]) for row in (*shown, others)]
    assert sum(parts) == pytest.approx(float(whole[3]), rel=1e-2)
    assert float(whole[3]) == pytest.approx(loss.cross_entropy, rel=1e-2)


def test_the_loss_of_a_one_hot_target_has_no_entropy_and_says_so():
    plain = position_loss(torch.arange(7.0), 5)
    said = translation_story.loss_sentence(plain, 5, TASK.target)
    assert "its entropy is 0" in said
    cross = translation_story.number(plain.cross_entropy)
    assert f"{cross} = 0 + {cross}" in said
    smooth = position_loss(torch.arange(7.0), 5, 0.2)
    said = translation_story.loss_sentence(smooth, 5, TASK.target)
    assert "no model gets below the entropy" in said


def test_the_answer_of_the_question_follows_what_moved():
    model, seen = walk()
    moved = feed_another(model, seen, 2, TASK.target.encode("z")[0])
    assert translation_story.moved_answer(moved) == 0
    first = moved._replace(moves=torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0]))
    assert translation_story.moved_answer(first) == 2
    own = moved._replace(moves=torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]))
    assert translation_story.moved_answer(own) == 1
    none = moved._replace(moves=torch.zeros(5))
    assert translation_story.moved_answer(none) == 3


@pytest.mark.parametrize("part", ["cross_attention", "decoder_attention"])
def test_a_map_of_a_head_stands_beside_its_labels(part):
    _, seen = walk()
    panel = stack_walk.panel_of(seen, TASK, part, 2, 3)
    maps = {"cross_attention": "cross_maps", "decoder_attention": "self_maps"}
    wanted = getattr(seen.explained, maps[part])[1][0, 2]
    assert torch.equal(panel.matrix, wanted)
    assert len(set(panel.rows)) == len(panel.rows) == panel.matrix.shape[0]
    assert len(set(panel.columns)) == len(panel.columns) == panel.matrix.shape[1]
    assert panel.title.startswith("Layer 2, head 3")


def test_the_shapes_of_the_stack_are_those_of_the_tensors():
    _, seen = walk()
    shapes = stack_walk.shapes_of(seen)
    assert shapes["memory"] == (4, 12)
    assert shapes["cross_map"] == (3, 5, 4)
    assert shapes["encoder_map"] == (3, 4, 4)
    assert shapes["softmax"] == (5, len(TASK.target))


@pytest.mark.parametrize("part", ["memory", "linear", "softmax", "target_embedded"])
def test_a_part_that_is_no_map_shows_its_own_tensor(part):
    _, seen = walk()
    panel = stack_walk.panel_of(seen, TASK, part, 1, 0)
    tensors = {
        "memory": seen.explained.memory.states[0],
        "linear": seen.explained.logits[0],
        "softmax": seen.explained.logits[0].softmax(-1),
        "target_embedded": seen.explained.target_embedded[0],
    }
    torch.testing.assert_close(panel.matrix, tensors[part])


def test_a_run_tells_loss_exact_match_and_tokens():
    config = Seq2SeqConfig()
    records = [
        Seq2SeqRecord(1, 1, 3.2, 1e-5, 1.0, 0.5, 0.25),
        Seq2SeqRecord(2, 1, 3.1, 2e-5, 1.0, None, None),
    ]
    said = translation_run.progress_sentence(records, config, TASK)
    assert "Step 2: loss 3.100" in said
    assert "at step 1 25.0 % of 256" in said
    assert translation_run.token_points(records) == [(1, 50.0)]
    broken = [*records, Seq2SeqRecord(3, 1, math.nan, 2e-5, 1.0, None, None)]
    assert marker_story.failing_step(broken) == 3


def test_a_run_is_named_by_what_differs_from_its_preset():
    config = preset("numbers", norm_first=False, seed=4)
    assert translation_run.run_label(config) == "numbers, pre-norm False, seed 4"
    other = replace(config, max_steps=100)
    steps = f"steps {config.max_steps} here, 100 there"
    assert translation_run.differences(config, other) == steps


def test_the_schedules_are_those_the_trainer_takes():
    config = Seq2SeqConfig(warmup_steps=10, max_steps=40)
    curves = translation_run.schedules(config)
    for name, points in curves.items():
        taken = replace(config, schedule=name)
        assert all(rate == taken.rate_at(step) for step, rate in points)
        assert max(rate for _, rate in points) == config.learning_rate
        assert points[-1][0] == 40


def test_samples_without_an_end_are_marked_and_counted():
    samples = [
        Sample(("a", "b"), ("b", "a"), right=True, ended=True),
        Sample(("a", "b"), ("b", "b"), right=False, ended=False),
    ]
    rows = translation_run.sample_rows(samples, TASK)
    assert rows == [("ab", "ba", "right"), ("ab", "bb …", "wrong")]
    assert "1 of 2" in translation_run.samples_sentence(samples, 7)


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.0, "1"), (0.9997, ">0.999"), (0.9994, "0.999"), (0.0, "0"), (2e-5, "2e-05")],
)
def test_only_all_of_the_probability_is_written_as_1(value, words):
    assert translation_story.share(value) == words
