"""Sentences on an encoder-decoder: their numbers come from the tensors."""

import math

import pytest
import torch

from core import translation_story
from core.decoding_walk import feed_another, position_loss, walk_decoding
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
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
    said = translation_story.spread_sentence("m", spread, 3)
    assert said.endswith("75.0\u00a0% of the weight lies on it and on equal tokens.")
    once = translation_story.spread_of(weights, ["a", "b", "a"], ["b", "</s>"])
    said = translation_story.spread_sentence("m", once, 3)
    assert said.endswith("25.0\u00a0% of the weight lies on it.")


def test_over_one_key_there_is_no_entropy_and_no_even_spread_to_tell():
    weights = torch.tensor([[1.0], [1.0000001]])
    spread = translation_story.spread_of(weights, ["a"], ["a", "</s>"])
    said = [
        translation_story.spread_sentence("m", spread, 1),
        translation_story.mean_entropy_sentence("m", weights),
        translation_story.row_sentence("m", weights[0], ["a"]),
    ]
    for sentence in said:
        assert "there is one key alone" in sentence
        assert "keys" not in sentence
    assert [f"{bits:.2f}" for bits in spread.entropies.tolist()] == ["0.00", "0.00"]


def test_shares_never_round_to_none_or_all():
    said = [translation_story.percent(s) for s in (0, 1e-5, 0.5, 0.99999, 1)]
    wanted = ["0 %", "<0.1 %", "50.0 %", ">99.9 %", "100 %"]
    assert said == [words.replace(" ", "\u00a0") for words in wanted]


def value_of(words: str) -> float:
    return float(words.replace("−", "-"))


def test_the_parts_of_a_loss_add_up_in_the_table():
    loss = position_loss(torch.arange(7.0), 5, 0.2)
    rows = translation_story.loss_rows(loss, [6, 5], letter_task("copy").target)
    *shown, others, whole = rows
    assert others[0] == "5\u00a0others"
    parts = [value_of(row[3]) for row in (*shown, others)]
    assert sum(parts) == pytest.approx(value_of(whole[3]), rel=1e-2)
    assert value_of(whole[3]) == pytest.approx(loss.cross_entropy, rel=1e-2)
    few = position_loss(torch.arange(4.0), 3)
    rows = translation_story.loss_rows(few, [3, 2, 1], letter_task("copy").target)
    assert rows[-2][0] == "1\u00a0other"


def test_the_loss_of_a_one_hot_target_has_no_entropy_and_says_so():
    plain = position_loss(torch.arange(7.0), 5)
    said = translation_story.loss_sentence(plain, 5, TASK.target)
    assert "its entropy is 0" in said
    cross = translation_story.number(plain.cross_entropy)
    assert f"{cross} = 0 + {cross}" in said
    smooth = position_loss(torch.arange(7.0), 5, 0.2)
    said = translation_story.loss_sentence(smooth, 5, TASK.target)
    assert "no model gets below the entropy" in said


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-0.742, "−0.742"),
        (-2.8e-5, "−2.80e−05"),
        (6.79e-4, "6.79e−04"),
        (-0.0011, "−0.0011"),
        (8.31e-5, "8.31e−05"),
        (-0.0, "0"),
        (-math.inf, "−inf"),
    ],
)
def test_numbers_have_one_kind_of_minus_and_0_has_none(value, words):
    assert translation_story.number(value) == words


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (1.0, "1"),
        (0.25, "0.25"),
        (0.9995, "1\u00a0−\u00a05.00e−04"),
        (0.9999169, "1\u00a0−\u00a08.31e−05"),
    ],
)
def test_a_probability_near_1_tells_what_it_lacks(p, words):
    assert translation_story.probability(math.log(p)) == words


def test_the_loss_of_a_sure_position_is_told_in_one_kind_of_number():
    loss = position_loss(torch.tensor([0.0, 0.0, 0.0, 10.5]), 3)
    said = translation_story.loss_sentence(loss, 3, TASK.target)
    missing = translation_story.number(loss.cross_entropy)
    assert f"p('a') = 1\u00a0−\u00a0{missing}, so −ln p = {missing} nats" in said
    assert "-" not in said.replace("cross-entropy", "").replace("one-hot", "")


def test_one_of_something_is_told_in_the_singular():
    assert translation_story.counted(1, "step") == "1 step"
    assert translation_story.counted(0, "step") == "0 steps"
    assert translation_story.counted(1200, "step") == "1,200 steps"


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


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.0, "1"), (0.9997, ">0.999"), (0.9994, "0.999"), (0.0, "0"), (2e-5, "2.00e−05")],
)
def test_only_all_of_the_probability_is_written_as_1(value, words):
    assert translation_story.share(value) == words
