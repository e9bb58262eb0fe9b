import math

import pytest
import torch
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from core import path_length
from core.attention import MultiHeadAttention
from core.initial import generator_from
from core.path_length import (
    MAX_SEQ_LEN,
    MODELS,
    attention_jacobians,
    cell_jacobians,
    decay_a_step,
    fade_with_length,
    first_below,
    jacobian_norms,
    step_slopes,
)
from core.recurrent import (
    CELLS,
    UNITS,
    CellWeights,
    initial_weights,
    run_over,
    run_steps,
    sums,
)


def stacked(cell: str, draws: int, input_size: int, hidden_size: int) -> CellWeights:
    """Return double weights of several draws, as the functions take them."""
    source = generator_from(2)
    each = [
        initial_weights(
            cell, input_size=input_size, hidden_size=hidden_size, generator=source
        )
        for _ in range(draws)
    ]
    parts = (torch.stack(values).double() for values in zip(*each, strict=True))
    return CellWeights(*(p if p.ndim == 3 else p[:, None] for p in parts))


def one_of(weights: CellWeights, draw: int) -> CellWeights:
    return CellWeights(*(part[draw] for part in weights))


@pytest.mark.parametrize("cell", CELLS)
def test_the_product_of_steps_is_the_jacobian_of_the_whole_unrolled_sequence(cell):
    weights = stacked(cell, 2, 3, 5)
    x = torch.randn(2, 7, 3, generator=generator_from(1), dtype=torch.float64)
    ours = cell_jacobians(cell, x, weights)
    assert ours.shape == (2, 7, 5, 3)
    for draw in range(2):
        own = one_of(weights, draw)

        def hidden(first, draw=draw, own=own):
            rows = [first[None], *x[draw, 1:, None]]
            states = run_steps(cell, rows, own)
            return torch.cat(states)[:, :5]

        whole = jacobian(hidden, x[draw, 0])
        assert_close(ours[draw], whole, rtol=0, atol=1e-14)


@pytest.mark.parametrize("cell", CELLS)
def test_the_slopes_of_units_are_the_diagonals_of_autograds_jacobian(cell):
    weights = stacked(cell, 1, 3, 5)
    size = 10 if cell == "lstm" else 5
    source = generator_from(4)
    x, state = (
        torch.randn(1, 1, n, generator=source, dtype=torch.float64) for n in (3, size)
    )
    slopes = step_slopes(cell, x, state, weights)
    assert len(slopes) == size // 5
    parts = (*sums(x, state, weights), state)
    theirs = jacobian(lambda a, b, s: UNITS[cell](a, b, s)[0, 0], parts)
    for place, found in enumerate(slopes):
        rows = slice(5 * place, 5 * place + 5)
        for ours, whole in zip(found, theirs, strict=True):
            assert_close(ours[0, 0], whole[rows, 0, 0].sum(0)[-len(ours[0, 0]) :])
        own_h = theirs[2][rows, 0, 0, :5]
        assert cell == "gru" or not own_h.any()  # an LSTM's own h acts through sums


@pytest.mark.parametrize("cell", CELLS)
def test_running_all_draws_at_once_is_running_single_steps(cell):
    weights = stacked(cell, 2, 3, 5)
    x = torch.randn(2, 7, 3, generator=generator_from(1), dtype=torch.float64)
    ours = run_over(cell, x, weights)
    single = run_steps(cell, [part[:, None] for part in x.unbind(1)], weights)
    assert_close(ours, torch.cat(single, dim=1), rtol=0, atol=1e-14)


@pytest.mark.parametrize("model", CELLS)
def test_a_longer_sequence_only_lengthens_the_norms_of_a_cell(model):
    short, long = (jacobian_norms(model, seq_len=n, width=3) for n in (7, 19))
    assert_close(short, long[:, :7], rtol=1e-12, atol=0)


def test_a_longer_sequence_keeps_the_layers_and_first_tokens_of_attention(monkeypatch):
    seen = []

    def watched(layer, tokens):
        seen.append((layer.in_proj.weight.detach(), tokens))
        return attention_jacobians(layer, tokens)

    monkeypatch.setattr(path_length, "attention_jacobians", watched)
    for n in (5, 11):
        jacobian_norms("attention", seq_len=n, width=4, num_draws=1)
    assert torch.equal(seen[0][0], seen[1][0])
    assert torch.equal(seen[0][1], seen[1][1][:5])


def test_attention_has_two_heads_where_the_width_allows(monkeypatch):
    heads = []

    def watched(layer, tokens):
        heads.append(layer.num_heads)
        return attention_jacobians(layer, tokens)

    monkeypatch.setattr(path_length, "attention_jacobians", watched)
    for width in (6, 5):
        jacobian_norms("attention", seq_len=3, width=width, num_draws=1)
    assert heads == [2, 1]


def test_the_jacobian_of_attention_is_that_of_the_whole_layer():
    layer = MultiHeadAttention(6, 2, generator=generator_from(3)).double()
    x = torch.randn(5, 6, generator=generator_from(1), dtype=torch.float64)
    whole = jacobian(lambda t: layer(t[None], t[None], t[None])[0], x)
    assert_close(attention_jacobians(layer, x), whole[:, :, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_norms_are_positive_numbers_one_a_draw_and_distance(model):
    state = torch.get_rng_state()
    found = jacobian_norms(model, seq_len=7, width=3, num_draws=2)
    assert torch.equal(state, torch.get_rng_state())
    assert found.shape == (2, 7)
    assert found.dtype == torch.float64
    assert bool((found > 0).all())
    assert not torch.equal(found[0], found[1])
    assert jacobian_norms(model, seq_len=1, width=1, num_draws=1).shape == (1, 1)


def test_the_norm_is_the_root_mean_square_of_the_steps_an_output_takes():
    found = jacobian_norms("rnn", seq_len=1, width=3, num_draws=1)
    source = generator_from(0)
    tokens = torch.randn(1, MAX_SEQ_LEN, 3, generator=source).double()
    drawn = initial_weights("rnn", input_size=3, hidden_size=3, generator=source)
    weights = CellWeights(*(part.double() for part in drawn))
    sums = tokens[0, 0] @ weights.input_weight.T + weights.input_bias
    slope = 1 - torch.tanh(sums + weights.hidden_bias) ** 2  # worked by hand
    moved = slope[:, None] * weights.input_weight
    assert float(found) == pytest.approx(float(moved.norm()) / math.sqrt(3), rel=1e-12)


def test_recurrent_norms_fade_with_distance_and_attentions_do_not():
    ends = {}
    for model in MODELS:
        middle = jacobian_norms(model, seq_len=60, width=16).median(dim=0).values
        ends[model] = float(middle[-1] / middle[1])
    assert ends["rnn"] < 1e-15
    assert all(ends[cell] < 1e-9 for cell in ("gru", "lstm"))
    assert 1 / 3 < ends["attention"] < 3


def test_a_higher_forget_bias_keeps_more_of_the_norm():
    found = [
        jacobian_norms("lstm", seq_len=60, width=16, forget_bias=bias)
        for bias in (-2.0, 0.0, 3.0, 5.0)
    ]
    last = [float(norms[:, -1].min()) for norms in found]
    assert last == sorted(last)
    assert last[0] < 1e-25
    assert last[-1] > 1e-3


def test_four_times_the_tokens_leave_attention_about_a_quarter():
    assert fade_with_length(20, 80, distance=10, width=16) == pytest.approx(
        1 / 4, rel=0.1
    )


def test_the_first_distance_below_a_limit_is_where_the_norm_stays_below():
    norms = torch.tensor([1.0, 0.1, 0.5, 0.1, 0.05])
    assert first_below(norms, 0.2) == 3
    assert first_below(norms, 2.0) == 0
    assert first_below(norms, 0.01) is None


def test_the_decay_a_step_is_that_of_a_geometric_row():
    norms = 0.7 ** torch.arange(20, dtype=torch.float64)
    assert decay_a_step(norms) == pytest.approx(0.7)
    assert decay_a_step(norms[:2]) is None
    assert decay_a_step(torch.tensor([1.0, 0.0, 0.0])) is None


def test_the_decay_a_step_is_that_of_the_second_half():
    steps = torch.arange(21, dtype=torch.float64)
    kinked = torch.where(steps < 10, 0.5**steps, 0.5**10 * 0.9 ** (steps - 10))
    assert decay_a_step(kinked) == pytest.approx(0.9)


def test_wrong_arguments_are_refused_with_a_sentence():
    with pytest.raises(ValueError, match="model must be one of 'rnn', 'gru', 'lstm'"):
        jacobian_norms("cnn", seq_len=3, width=3)
    with pytest.raises(ValueError, match=r"seq_len \(0\) must be between 1 and 128"):
        jacobian_norms("rnn", seq_len=0, width=3)
    with pytest.raises(ValueError, match=r"width \(65\) must be between 1 and 64"):
        jacobian_norms("rnn", seq_len=3, width=65)
    with pytest.raises(ValueError, match=r"distance \(20\) must be between 0 and 19"):
        fade_with_length(20, 80, distance=20, width=4)
    with pytest.raises(ValueError, match="attention has no gate"):
        jacobian_norms("attention", seq_len=3, width=3, forget_bias=1.0)
    with pytest.raises(ValueError, match="needs a forget gate"):
        jacobian_norms("gru", seq_len=3, width=3, forget_bias=1.0)
