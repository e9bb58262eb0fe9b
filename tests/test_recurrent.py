import math

import pytest
import torch
from torch.testing import assert_close

from core.initial import generator_from
from core.recurrent import (
    CELLS,
    CellWeights,
    RecurrentClassifier,
    initial_weights,
    run_steps,
    state_size,
    step,
    torch_layer,
)
from core.training import TrainConfig, Trainer


def draw(cell: str, **options) -> CellWeights:
    weights = initial_weights(cell, input_size=3, hidden_size=5, **options)
    return CellWeights(*(values.double() for values in weights))


def tokens(batch: int = 7, length: int = 11) -> torch.Tensor:
    generator = generator_from(1)
    return torch.randn(batch, length, 3, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("length", [1, 11])
def test_steps_one_by_one_equal_pytorchs_layer(cell, length):
    weights, x = draw(cell, generator=generator_from(3)), tokens(length=length)
    theirs = torch_layer(cell, weights).double()
    states = torch.stack(run_steps(cell, x.unbind(1), weights), dim=1)
    assert states.shape == (7, length, state_size(cell, 5))
    assert_close(states[..., :5], theirs(x)[0], rtol=0, atol=1e-12)


def test_an_lstms_state_holds_h_and_c_as_pytorch_gives_them():
    weights, x = draw("lstm", generator=generator_from(3)), tokens()
    _, (hidden, memory) = torch_layer("lstm", weights).double()(x)
    last = run_steps("lstm", x.unbind(1), weights)[-1]
    assert_close(last, torch.cat([hidden[0], memory[0]], dim=-1), rtol=0, atol=1e-12)


def test_an_rnn_step_worked_by_hand():
    two, three = torch.tensor([[2.0]]), torch.tensor([[3.0]])
    weights = CellWeights(two, three, torch.tensor([0.1]), torch.tensor([0.2]))
    after = step("rnn", torch.tensor([0.5]), torch.tensor([-0.4]), weights)
    assert_close(after, torch.tensor([math.tanh(1.0 + 0.1 - 1.2 + 0.2)]))


def test_an_open_forget_gate_hands_the_memory_on_and_a_shut_one_drops_it():
    for bias, kept in ((9.0, 1.0), (-9.0, 0.0)):
        blank = (torch.zeros_like(part) for part in draw("lstm"))
        weights = CellWeights(*blank)
        weights.input_bias[5:10] = bias
        state = torch.cat([torch.zeros(5), torch.ones(5)]).double()
        after = step("lstm", torch.zeros(3).double(), state, weights)
        assert_close(after[5:], torch.full((5,), kept).double(), rtol=0, atol=2e-4)


@pytest.mark.parametrize("cell", CELLS)
def test_weights_start_uniform_on_one_over_the_root_of_the_width(cell):
    weights = initial_weights(cell, input_size=31, hidden_size=64)
    for part in weights:
        assert float(part.abs().max()) <= 1 / 8
    assert float(weights.hidden_weight.std()) == pytest.approx(1 / 8 / 3**0.5, rel=0.02)


def test_the_forget_bias_is_the_sum_of_both_biases_of_that_gate_alone():
    drawn, opened = draw("lstm"), draw("lstm", forget_bias=3.0)
    both = opened.input_bias + opened.hidden_bias
    assert both[5:10].tolist() == [3.0] * 5
    for name, values in opened._asdict().items():
        others = torch.ones(20, dtype=torch.bool)
        others[5:10] = "weight" in name
        assert torch.equal(values[others], getattr(drawn, name)[others])


@pytest.mark.parametrize("cell", ["rnn", "gru"])
def test_a_forget_bias_without_a_forget_gate_is_refused(cell):
    with pytest.raises(ValueError, match=r"forget_bias \(3.0\) needs a forget gate"):
        RecurrentClassifier(cell, forget_bias=3.0)


def test_wrong_arguments_are_refused_with_a_sentence():
    with pytest.raises(ValueError, match="cell must be one of 'rnn', 'gru', 'lstm'"):
        RecurrentClassifier("transformer")
    with pytest.raises(ValueError, match=r"hidden_size \(0\) must be between 1 and"):
        RecurrentClassifier("rnn", hidden_size=0)
    with pytest.raises(ValueError, match=r"forget_bias \(11\) must be between"):
        RecurrentClassifier("lstm", forget_bias=11.0)
    with pytest.raises(ValueError, match=r"x \(2, 0, 1\) must have shape"):
        RecurrentClassifier("rnn")(torch.zeros(2, 0, 1))
    with pytest.raises(ValueError, match=r"x \(2, 3\) must have shape"):
        RecurrentClassifier("rnn")(torch.zeros(2, 3))


@pytest.mark.parametrize("cell", CELLS)
def test_the_answer_is_read_from_the_last_hidden_state(cell):
    model = RecurrentClassifier(cell, hidden_size=7, input_size=3).double()
    x = tokens()
    hidden = model.hidden_states(x)
    assert hidden.shape == (7, 11, 7)
    assert_close(model(x), hidden[:, -1] @ model.output.weight.T + model.output.bias)
    assert model(x[:0]).shape == (0, 1)
    assert model(x[:, :1]).shape == (7, 1)


@pytest.mark.parametrize("cell", CELLS)
def test_a_later_token_changes_no_earlier_state(cell):
    model = RecurrentClassifier(cell, hidden_size=7, input_size=3).double()
    x = tokens()
    other = x.clone()
    other[:, 6] += 1
    before, after = model.hidden_states(x), model.hidden_states(other)
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.equal(before[:, 6], after[:, 6])


def test_weights_come_from_the_given_generator_and_leave_the_global_one_alone():
    state = torch.get_rng_state()
    first, again, other = (
        RecurrentClassifier("gru", generator=generator_from(seed)) for seed in (4, 4, 5)
    )
    assert torch.equal(state, torch.get_rng_state())
    pairs = zip(first.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)
    assert not torch.equal(first.output.weight, other.output.weight)


@pytest.mark.parametrize("cell", CELLS)
def test_a_trainer_moves_every_weight_of_a_recurrent_classifier(cell):
    model = RecurrentClassifier(cell, hidden_size=5)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    trainer = Trainer(
        TrainConfig(seq_len=7, train_samples=20, test_samples=10, max_steps=2),
        model=model,
    )
    while not trainer.finished:
        trainer.step()
    pairs = zip(before, model.parameters(), strict=True)
    assert not any(torch.equal(ours, theirs) for ours, theirs in pairs)
    assert trainer.snapshot().readout_rows is None
