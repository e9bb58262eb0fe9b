"""Decoding: greedy with and without a cache, beams against trying everything."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from torch.testing import assert_close

from core.checks import RefusedError
from core.decoding import (
    beam_search,
    beam_steps,
    decode_steps,
    greedy_decode,
)
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
from core.recurrent_config import RecurrentConfig
from core.recurrent_seq2seq import RecurrentEncoderDecoder
from core.text_tasks import pad_ids
from core.vocabulary import END, PAD, START

A, B = 3, 4


def transformer(seed=0, vocab=13):
    config = EncoderDecoderConfig(
        source_vocab=11, target_vocab=vocab, d_model=12, num_heads=3, seed=seed
    )
    return EncoderDecoderTransformer(config).double().eval()


def recurrent(attention):
    config = RecurrentConfig(11, 13, attention=attention, hidden_size=7)
    return RecurrentEncoderDecoder(config).double().eval()


MAKERS = {
    "transformer": transformer,
    **{name: lambda name=name: recurrent(name) for name in ("none", "additive", "dot")},
}


def sharpened(model, factor=20.0):
    """Make a model sure of itself, so that no choice hangs on a rounding error."""
    with torch.no_grad():
        model.output.weight.mul_(factor)
    return model


def sources(*lengths):
    generator = torch.Generator().manual_seed(5)
    return pad_ids(
        [torch.randint(3, 11, (n,), generator=generator).tolist() for n in lengths]
    )


class TableState(NamedTuple):
    sources: list[int]
    said: list[tuple[int, ...]]

    def select(self, rows):
        chosen = rows.tolist()
        return TableState(
            [self.sources[row] for row in chosen], [self.said[row] for row in chosen]
        )


class TableModel:
    """Knows the next token by heart: a table for each first token of a source."""

    def __init__(self, table, *, other=None):
        self.tables = {3: table, 4: other}

    def encode(self, source):
        return source[:, 0].tolist()

    def begin(self, memory):
        return TableState(memory, [()] * len(memory))

    def advance(self, tokens, state):
        said = [
            (*before, token) if token != START else before
            for before, token in zip(state.said, tokens.tolist(), strict=True)
        ]
        rows = [self._row(*pair) for pair in zip(state.sources, said, strict=True)]
        return torch.stack(rows), TableState(state.sources, said)

    def _row(self, source, said):
        given = self.tables[source].get(said, {END: 1.0})
        row = [given.get(token, 0.0) for token in range(5)]
        return torch.tensor(row, dtype=torch.float64).log()


# The first choice of greedy, A with 0.5, leads to worse answers than B END does.
TRAP = TableModel(
    {
        (): {A: 0.5, B: 0.4, END: 0.1},
        (A,): {A: 0.4, B: 0.3, END: 0.3},
        (A, A): {END: 0.6, B: 0.4},
        (B,): {END: 0.9, A: 0.1},
    }
)
ONE = torch.tensor([[3]])


# Greedy


@pytest.mark.parametrize("name", MAKERS)
def test_greedy_decoding_gives_the_same_with_a_cache_and_without(name):
    model, source = sharpened(MAKERS[name]()), sources(7, 2, 5, 1, 7)
    cached = greedy_decode(model, source, max_len=11)
    plain = greedy_decode(model, source, max_len=11, cached=False)
    assert cached.tokens == plain.tokens
    assert cached.ended == plain.ended
    assert_close(cached.log_probability, plain.log_probability)
    assert len({tuple(row) for row in cached.tokens}) > 1  # it reads its sources


@pytest.mark.parametrize("name", MAKERS)
def test_a_batch_of_sources_is_decoded_as_each_alone(name):
    model = sharpened(MAKERS[name]())
    together = greedy_decode(model, sources(7, 2, 5), max_len=9)
    for number, row in enumerate(sources(7, 2, 5)):
        alone = greedy_decode(model, row[row != PAD][None], max_len=9)
        assert alone.tokens == [together.tokens[number]]
        assert_close(alone.log_probability[0], together.log_probability[number])


def test_greedy_takes_the_most_probable_token_as_worked_by_hand():
    found = greedy_decode(TRAP, ONE, max_len=5)
    assert found.tokens == [[A, A]]
    assert found.ended == [True]
    assert_close(found.log_probability, [math.log(0.5 * 0.4 * 0.6)])


def test_an_answer_that_ended_waits_for_the_others_and_keeps_its_probability():
    other = {(): {A: 0.6, B: 0.4}, (A,): {B: 0.6, A: 0.4}, (A, B): {END: 0.8, A: 0.2}}
    model = TableModel({(): {END: 0.7, A: 0.3}, (END,): {B: 1.0}}, other=other)
    found = greedy_decode(model, torch.tensor([[3], [4]]), max_len=4)
    assert found.tokens == [[], [A, B]]
    assert found.ended == [True, True]
    expected = [math.log(0.7), math.log(0.6 * 0.6 * 0.8)]
    assert_close(found.log_probability, expected)


def test_an_untrained_model_stops_at_the_limit():
    model = transformer()
    with torch.no_grad():
        model.output.bias[END] = -1e3  # it never says END
    for cached in (True, False):
        found = greedy_decode(model, sources(3, 5), max_len=6, cached=cached)
        assert [len(row) for row in found.tokens] == [6, 6]
        assert found.ended == [False, False]
    longest = beam_search(model, sources(3), beam_size=2, max_len=6)
    assert [(len(held.tokens), held.ended) for held in longest] == [(6, False)] * 2


def test_padding_and_start_are_never_said():
    model = transformer()
    with torch.no_grad():
        model.output.bias[[PAD, START]] = 1e3
    found = greedy_decode(model, sources(3, 5), max_len=6)
    assert not {PAD, START} & set(itertools.chain(*found.tokens))
    held = beam_search(model, sources(3), beam_size=40, max_len=2)
    assert not {PAD, START} & set(itertools.chain(*(one.tokens for one in held)))


def test_no_source_gives_no_answer():
    assert greedy_decode(TRAP, torch.zeros(0, 4, dtype=torch.int64), max_len=3) == (
        [], [], [],
    )  # fmt: skip


# Step by step


def test_the_steps_are_those_of_greedy_decoding():
    model, source = sharpened(transformer()), sources(5)
    decoded = greedy_decode(model, source, max_len=8)
    steps = decode_steps(model, source, max_len=8)
    chosen = [step.chosen for step in steps]
    assert [token for token in chosen if token != END] == decoded.tokens[0]
    assert [step.read for step in steps] == [START, *chosen[:-1]]
    said = [step.distribution[step.chosen].log().item() for step in steps]
    assert_close(sum(said), decoded.log_probability[0])
    assert all(step.distribution.sum().item() == pytest.approx(1) for step in steps)


def test_a_teacher_makes_the_decoder_read_the_right_tokens():
    steps = decode_steps(TRAP, ONE, max_len=5, forced=[B, A])
    assert [step.read for step in steps] == [START, B, A]
    assert [step.chosen for step in steps] == [A, END, END]  # its own choices
    model, forced = transformer(), [4, 9, 3]
    logits = model(sources(5), torch.tensor([[START, *forced]]))
    for place, step in enumerate(
        decode_steps(model, sources(5), max_len=9, forced=forced)
    ):
        assert_close(step.distribution, logits[0, place].softmax(-1))
    assert len(decode_steps(TRAP, ONE, max_len=2, forced=[B, A])) == 2


# Beams


def everything(model, source, tokens, max_len):
    """Return the probability of every answer there is, from the whole target."""
    endings = {}
    for length in range(max_len + 1):
        for said in itertools.product(tokens, repeat=length):
            answer = said if length == max_len else (*said, END)
            log_p = model.decode(
                model.encode(source), torch.tensor([[START, *answer[:-1]]])
            )[0].log_softmax(-1)
            endings[answer] = sum(
                log_p[n, token].item() for n, token in enumerate(answer)
            )
    return sorted(endings.items(), key=lambda pair: -pair[1])


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_the_space_finds_what_trying_everything_finds(seed):
    model, source = transformer(seed, vocab=5), sources(4)
    best = everything(model, source, (A, B), 4)  # 31 answers
    found = beam_search(model, source, beam_size=31, max_len=4)
    assert [held.tokens for held in found] == [tokens for tokens, _ in best]
    assert_close([held.log_probability for held in found], [p for _, p in best])
    assert all(held.ended == (held.tokens[-1] == END) for held in found)
    assert sum(math.exp(held.log_probability) for held in found) < 1  # PAD, START


def test_a_beam_of_two_escapes_the_trap_and_greedy_does_not():
    best, second = beam_search(TRAP, ONE, beam_size=2, max_len=5)
    assert best.tokens == (B, END)
    assert_close(best.log_probability, math.log(0.4 * 0.9))
    assert second.tokens == (A, A, END)
    assert_close(second.log_probability, math.log(0.5 * 0.4 * 0.6))


@pytest.mark.parametrize("name", MAKERS)
def test_a_beam_of_one_is_greedy_decoding(name):
    model = sharpened(MAKERS[name]())
    for source in sources(7, 2, 5, 3):
        row = source[source != PAD][None]
        greedy = greedy_decode(model, row, max_len=8)
        (held,) = beam_search(model, row, beam_size=1, max_len=8)
        assert [t for t in held.tokens if t != END] == greedy.tokens[0]
        assert held.ended == greedy.ended[0]
        assert_close(held.log_probability, greedy.log_probability[0])


def test_an_answer_that_ended_early_is_kept_until_better_ones_push_it_out():
    model = TableModel({(): {END: 0.3, A: 0.7}, (A,): {A: 0.5, B: 0.5}})
    steps = beam_steps(model, ONE, beam_size=2, max_len=4)
    assert [[held.tokens for held in step] for step in steps] == [
        [(A,), (END,)],
        [(A, A), (A, B)],
        [(A, A, END), (A, B, END)],
    ]
    found = beam_search(model, ONE, beam_size=3, max_len=4)
    assert [held.tokens for held in found][-1] == (END,)


def test_a_search_ends_when_nothing_in_the_beam_can_win():
    model = TableModel({(): {END: 0.8, A: 0.2}, (A,): {A: 1.0}, (A, A): {A: 1.0}})
    assert len(beam_steps(model, ONE, beam_size=1, max_len=9)) == 1
    steps = beam_steps(model, ONE, beam_size=2, max_len=3)
    assert [(held.tokens, held.ended) for held in steps[-1]] == [
        ((END,), True),
        ((A, A, A), False),
    ]
    assert_close(
        [held.log_probability for held in steps[-1]], [math.log(0.8), math.log(0.2)]
    )


def test_a_search_goes_on_while_an_answer_can_still_become_the_second_best():
    model = TableModel(
        {
            (): {END: 0.6, A: 0.4},
            (A,): {B: 0.9, END: 0.1},
            (A, B): {END: 1.0},
        }
    )
    first, second = beam_search(model, ONE, beam_size=2, max_len=5)
    assert (first.tokens, second.tokens) == ((END,), (A, B, END))


def test_decoding_leaves_the_global_generator_and_the_model_alone():
    before, model = torch.get_rng_state(), transformer()
    weights = [parameter.clone() for parameter in model.parameters()]
    beam_search(model, sources(4), beam_size=3, max_len=5)
    greedy_decode(model, sources(4, 2), max_len=5)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(map(torch.equal, weights, model.parameters()))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: greedy_decode(TRAP, ONE, max_len=0), r"max_len \(0\)"),
        (lambda: greedy_decode(TRAP, ONE[0], max_len=3), r"source \(1,\) must be"),
        (
            lambda: beam_search(TRAP, sources(2, 2), beam_size=2, max_len=3),
            r"source \(2, 2\) must be \(1, S\)",
        ),
        (lambda: beam_search(TRAP, ONE, beam_size=0, max_len=3), r"beam_size \(0\)"),
        (lambda: decode_steps(TRAP, ONE, max_len=10**6), r"max_len \(1000000\)"),
    ],
)
def test_what_cannot_be_decoded_is_refused(call, sentence):
    with pytest.raises(RefusedError, match=sentence):
        call()
