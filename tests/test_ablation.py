"""A head that is off hands on nothing, and nothing else changes."""

import pytest
import torch

from core.ablation import accuracy_without, layers_off, single_ablations, without_heads
from core.checks import RefusedError
from core.influence import influences
from core.models import ClassifierConfig, TransformerClassifier
from core.reading import marker_sequences, read_many, read_sequence


def model_of(**choices) -> TransformerClassifier:
    sizes = {"seq_len": 5, "d_model": 6, "num_heads": 3, "num_layers": 2}
    config = ClassifierConfig(**(sizes | choices))
    return TransformerClassifier(config).eval().requires_grad_(False)


def answers_with_outputs_zeroed(model, inputs, off):
    """Answer with the outputs of some heads multiplied by 0 on their way to W_O."""

    def zero(heads_off):
        def hook(_, arguments):
            merged = arguments[0].unflatten(-1, (model.config.num_heads, -1)).clone()
            merged[..., heads_off, :] = 0
            return (merged.flatten(-2),)

        return hook

    hooks = []
    for layer, block in enumerate(model.blocks):
        heads_off = [h for i, h in off if i == layer]
        hook = zero(heads_off)
        hooks.append(block.attention.out_proj.register_forward_pre_hook(hook))
    answers = model(inputs)
    for hook in hooks:
        hook.remove()
    return answers


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_head_off_is_its_output_times_zero(norm_first):
    model = model_of(norm_first=norm_first, readout="mean").double()
    with torch.no_grad():  # a bias that is not 0: it must stay
        model.blocks[1].attention.out_proj.bias += 0.3
    inputs = marker_sequences(model.config, 7)[0].double()
    for off in ({(0, 1)}, {(1, 2)}, {(0, 0), (1, 0), (1, 1)}):
        ours = without_heads(model, frozenset(off))(inputs)
        theirs = answers_with_outputs_zeroed(model, inputs, off)
        torch.testing.assert_close(ours, theirs)
        assert not torch.allclose(ours, model(inputs), atol=1e-4)


def test_nothing_off_changes_nothing_to_the_last_bit():
    model = model_of()
    inputs, targets = marker_sequences(model.config, 100)
    assert torch.equal(without_heads(model, frozenset())(inputs), model(inputs))
    right = ((model(inputs) > 0) == (targets > 0)).double().mean().item()
    assert accuracy_without(model, frozenset(), count=100) == right


def test_the_model_itself_stays_as_it_is():
    model = model_of()
    before = {name: values.clone() for name, values in model.state_dict().items()}
    single_ablations(model, count=3)
    for name, values in model.state_dict().items():
        assert torch.equal(values, before[name])


def test_without_its_only_attention_the_readout_answers_every_sequence_alike():
    model = model_of(num_layers=1)
    inputs, targets = marker_sequences(model.config, 100)
    off = frozenset((0, head) for head in range(3))
    answers = without_heads(model, off)(inputs)
    torch.testing.assert_close(answers, answers[:1].expand(100, 1))
    assert model(inputs).std() > 1e-3
    ones = targets.mean().item()
    share = ones if answers[0] > 0 else 1 - ones
    assert accuracy_without(model, off, count=100) == pytest.approx(share)
    assert layers_off(model, count=100).tolist() == pytest.approx([share])


def test_tables_hold_the_accuracy_without_each_head_and_each_layer():
    model = model_of(readout="mean")
    singles, layers = single_ablations(model, count=50), layers_off(model, count=50)
    assert singles.shape == (2, 3)
    assert layers.shape == (2,)
    for layer in range(2):
        whole = frozenset((layer, head) for head in range(3))
        alone = accuracy_without(model, whole, count=50)
        assert layers[layer].item() == pytest.approx(alone)
        for head in range(3):
            alone = accuracy_without(model, frozenset({(layer, head)}), count=50)
            assert singles[layer, head].item() == pytest.approx(alone)


def test_a_head_that_carries_the_answer_is_missed_and_the_other_is_not():
    sizes = {"seq_len": 1, "d_model": 4, "num_heads": 2, "num_layers": 1}
    model = hand_built(model_of(readout="last", positional="none", **sizes))
    assert accuracy_without(model, frozenset()) == 1
    singles = single_ablations(model, count=1000)
    assert singles[0, 1] == 1
    assert singles[0, 0] < 0.6


def hand_built(model: TransformerClassifier) -> TransformerClassifier:
    """Let head 0 alone carry the sign of the input to the answer, head 1 nothing."""
    for parameter in model.parameters():
        parameter.zero_()
    block = model.blocks[0]
    model.embed.weight[:, 0] = torch.tensor([1.0, -1.0, 0.0, 0.0])
    model.embed.bias[:] = torch.tensor([0.0, 0.0, 1.0, -1.0])
    block.attention_norm.weight.fill_(1)
    block.attention.in_proj.weight[8:10, 0] = 1  # values of head 0: the input
    block.attention.in_proj.weight[10:12, 2] = 1  # values of head 1: a constant
    block.attention.out_proj.weight[2, 0] = 10
    block.attention.out_proj.weight[3, 2] = 0.1
    model.norm.weight.fill_(1)
    model.head.weight[0, 2] = 1
    model.head.bias[:] = -0.1
    return model


def test_a_head_that_the_model_has_not_is_refused():
    model = model_of()
    for off in ({(2, 0)}, {(0, 3)}, {(-1, 0)}):
        with pytest.raises(RefusedError, match=r"num_layers \(2\).*num_heads \(3\)"):
            accuracy_without(model, frozenset(off), count=1)
    with pytest.raises(RefusedError, match=r"count \(1001\)"):
        layers_off(model, count=1001)


@pytest.mark.parametrize(
    "measure",
    [
        lambda model: accuracy_without(model, frozenset(), count=2),
        lambda model: read_sequence(model, sequence=0),
        lambda model: read_many(model, count=2),
        lambda model: influences(
            model, torch.zeros(5, 1), layer=0, head=0, draws=1, seed=0
        ),
    ],
)
def test_what_a_page_asks_of_a_model_is_worked_out_in_one_thread(measure):
    model, seen = model_of(), []
    before = torch.get_num_threads()
    model.embed.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    torch.set_num_threads(2)
    try:
        measure(model)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


def test_switching_off_leaves_the_global_generator_alone():
    model, state = model_of(), torch.get_rng_state()
    single_ablations(model, count=2)
    assert torch.equal(torch.get_rng_state(), state)
