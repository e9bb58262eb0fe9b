"""A decoder step by step: what is fed, what it gives, and what one position costs."""

import math

import pytest
import torch
import torch.nn.functional as F

from core.checks import RefusedError
from core.decoding import decode_steps, greedy_decode
from core.decoding_walk import (
    feed_another,
    most_probable,
    position_loss,
    search,
    walk_decoding,
)
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
from core.vocabulary import END, PAD, START

SOURCE, ANSWER = (3, 7, 4, 5, 3), (6, 4, 3)


@pytest.fixture(scope="module")
def model() -> EncoderDecoderTransformer:
    config = EncoderDecoderConfig(11, 7, d_model=12, num_heads=3, max_len=16, seed=5)
    return EncoderDecoderTransformer(config).eval().requires_grad_(False)


def test_a_forced_walk_is_fed_the_true_tokens_and_says_which_are_right(model):
    walk = walk_decoding(model, SOURCE, ANSWER, forced=True, max_len=9)
    assert walk.target_in == (START, *ANSWER)
    assert [step.true for step in walk.steps] == [*ANSWER, END]
    seen = decode_steps(model, torch.tensor([SOURCE]), max_len=9, forced=ANSWER)
    for step, other in zip(walk.steps, seen, strict=True):
        assert step.fed == other.read
        assert step.chosen == other.chosen
        torch.testing.assert_close(step.distribution, other.distribution)


def test_an_own_walk_goes_on_with_what_greedy_decoding_chooses(model):
    decoded = greedy_decode(model, torch.tensor([SOURCE]), max_len=9)
    walk = walk_decoding(model, SOURCE, ANSWER, forced=False, max_len=9)
    own = (*decoded.tokens[0], END) if decoded.ended[0] else tuple(decoded.tokens[0])
    assert walk.chosen == own
    assert walk.target_in == (START, *own[:-1])
    assert walk.ended == decoded.ended[0]
    summed = sum(float(s.distribution[s.chosen].log()) for s in walk.steps)
    assert summed == pytest.approx(decoded.log_probability[0], abs=1e-4)


def test_the_first_wrong_step_is_the_first_that_differs_from_the_right_answer(model):
    own = walk_decoding(model, SOURCE, ANSWER, forced=False, max_len=9)
    taken = [token for token in own.chosen if token != END]
    again = walk_decoding(model, SOURCE, taken, forced=False, max_len=len(own.chosen))
    assert own.first_wrong is not None
    assert again.first_wrong is None
    assert again.right == own.ended
    changed = [*taken[:2], 3 if taken[2] != 3 else 4, *taken[3:]]
    third = walk_decoding(model, SOURCE, changed, forced=False, max_len=9)
    assert third.first_wrong == 2


def test_another_token_moves_no_logit_before_its_place(model):
    walk = walk_decoding(model, SOURCE, ANSWER, forced=True, max_len=9)
    moved = feed_another(model, walk, 2, 5)
    assert (moved.before, moved.after) == (4, 5)
    assert moved.moves[:2].tolist() == [0.0, 0.0]
    assert (moved.moves[2:] > 1e-3).all()


def test_the_loss_of_a_position_by_hand():
    logits = torch.tensor([0.0, math.log(2.0), 0.0])  # p = 1/4, 1/2, 1/4
    plain = position_loss(logits, 1)
    assert plain.cross_entropy == pytest.approx(math.log(2))
    assert plain.target_entropy == 0
    assert plain.divergence == pytest.approx(math.log(2))
    smooth = position_loss(logits, 1, 0.3)  # q = 0.1, 0.8, 0.1
    assert smooth.target.tolist() == pytest.approx([0.1, 0.8, 0.1])
    assert smooth.cross_entropy == pytest.approx(0.8 * math.log(2) + 0.2 * math.log(4))
    entropy = -(0.8 * math.log(0.8) + 0.2 * math.log(0.1))
    assert smooth.target_entropy == pytest.approx(entropy)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_equals_pytorchs_and_splits_into_entropy_and_divergence(smoothing):
    logits = torch.randn(13, generator=torch.Generator().manual_seed(2)).double()
    loss = position_loss(logits, 4, smoothing)
    wanted = F.cross_entropy(logits[None], torch.tensor([4]), label_smoothing=smoothing)
    assert loss.cross_entropy == pytest.approx(float(wanted))
    kl = F.kl_div(loss.log_probabilities, loss.target, reduction="sum")
    assert loss.divergence == pytest.approx(float(kl))
    parts = loss.target_entropy + loss.divergence
    assert parts == pytest.approx(loss.cross_entropy)


def test_the_bars_hold_the_chosen_and_the_right_token_in_order(model):
    step = walk_decoding(model, SOURCE, ANSWER, forced=True, max_len=9).steps[0]
    worst = int(step.distribution.argmin())
    shown = most_probable(step._replace(true=worst), 3)
    assert len(shown) == 3
    assert shown[0] == int(step.distribution.argmax())
    assert shown[-1] == worst


def test_a_beam_of_one_holds_the_greedy_tokens_at_every_step(model):
    walk = walk_decoding(model, SOURCE, ANSWER, forced=False, max_len=9)
    held, best = search(model, SOURCE, beam_size=1, max_len=9)
    assert best[0].tokens == walk.chosen
    for number, hypotheses in enumerate(held, start=1):
        assert hypotheses[0].tokens == walk.chosen[:number]


def test_an_empty_source_and_a_strange_token_are_refused(model):
    with pytest.raises(RefusedError, match="source must have at least 1 token"):
        walk_decoding(model, (), ANSWER, forced=True, max_len=9)
    with pytest.raises(RefusedError, match="true"):
        position_loss(torch.zeros(4), 4)


def test_padding_and_start_are_never_chosen():
    class Stub:
        def explain(self, source, target_in):
            logits = torch.zeros(1, target_in.shape[1], 5)
            logits[..., [PAD, START]] = 9.0
            logits[..., 4] = 1.0
            return type("Explained", (), {"logits": logits})

    walk = walk_decoding(Stub(), (3,), (3,), forced=True, max_len=4)
    assert walk.chosen == (4, 4)
