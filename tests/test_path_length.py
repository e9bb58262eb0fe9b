import math

import pytest
import torch
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from core.attention import MultiHeadAttention
from core.initial import generator_from
from core.path_length import (
    MODELS,
    attention_jacobians,
    cell_jacobians,
    chains,
    decay_a_step,
    fade_with_length,
    first_below,
    jacobian_norms,
    step_jacobians,
)
from core.recurrent import CELLS, CellWeights, initial_weights, run_steps, step


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
def test_the_jacobians_of_single_steps_are_those_of_autograd(cell):
    weights = stacked(cell, 1, 3, 5)
    size = 10 if cell == "lstm" else 5
    source = generator_from(4)
    x, state = (
        torch.randn(1, 1, n, generator=source, dtype=torch.float64) for n in (3, size)
    )
    by_input, by_state = step_jacobians(cell, x, state, weights)
    own = one_of(weights, 0)
    theirs = jacobian(
        lambda a, b: step(cell, a, b, own)[0], (x[0, 0][None], state[0, 0][None])
    )
    assert_close(by_input[0, 0], theirs[0][:, 0], rtol=0, atol=1e-14)
    assert_close(by_state[0, 0], theirs[1][:, 0], rtol=0, atol=1e-14)


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
    tokens = torch.randn(1, 1, 3, generator=(source := generator_from(0))).double()
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
    assert fade_with_length(20, 80, width=16) == pytest.approx(1 / 4, rel=0.3)


def test_chains_grow_with_length_in_a_recurrence_and_not_in_attention():
    for cell, a_token in (("rnn", 5), ("gru", 10), ("lstm", 11)):
        short, long = (chains(cell, seq_len=n) for n in (8, 19))
        assert long.longest - short.longest <= 11 * (a_token + 1)
        assert long.longest - short.longest >= 11 * (a_token - 1)
        assert long.shortest - short.shortest >= 11
        assert short.shortest <= short.longest
    attention = [chains("attention", seq_len=n) for n in (2, 8, 64)]
    assert len(set(attention)) == 1


def test_chains_of_one_rnn_step_counted_by_hand():
    one, two = (chains("rnn", seq_len=n) for n in (1, 2))
    per_step = two.longest - one.longest
    # squeeze and product of the state, its bias, the sum, tanh: each waits in turn
    assert per_step == 5
    assert two.shortest - one.shortest == per_step


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


def test_wrong_arguments_are_refused_with_a_sentence():
    with pytest.raises(ValueError, match="model must be one of 'rnn', 'gru', 'lstm'"):
        jacobian_norms("cnn", seq_len=3, width=3)
    with pytest.raises(ValueError, match=r"seq_len \(0\) must be between 1 and 400"):
        jacobian_norms("rnn", seq_len=0, width=3)
    with pytest.raises(ValueError, match=r"width \(65\) must be between 1 and 64"):
        chains("rnn", seq_len=3, width=65)
    with pytest.raises(ValueError, match="attention has no gate"):
        jacobian_norms("attention", seq_len=3, width=3, forget_bias=1.0)
    with pytest.raises(ValueError, match="needs a forget gate"):
        jacobian_norms("gru", seq_len=3, width=3, forget_bias=1.0)
