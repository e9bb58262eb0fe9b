"""Where a trained model looks and what it needs, on maps and changes worked by hand."""

import math

import pytest
import torch

from core.bottleneck import read_model, text_task
from core.bottleneck_reading import (
    END_SIGN,
    change_state,
    entropy_bits,
    read_source,
    spread_of,
)

TASK = text_task()
SOURCE = tuple("cab")


def reading_of(attention: str, source=SOURCE):
    model, _ = read_model(attention)
    return model, read_source(model, TASK, source)


def test_entropy_is_0_on_one_key_and_log_2_of_the_keys_when_even():
    rows = torch.tensor([[1.0, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0]])
    expected = torch.tensor([0.0, 2.0, 1.0])
    torch.testing.assert_close(entropy_bits(rows), expected)


def test_mass_is_counted_on_the_mirrored_letter_and_its_neighbours():
    weights = torch.tensor(
        [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.0, 0.0, 1.0]],
        dtype=torch.float64,
    )
    spread = spread_of(weights)  # the fourth row writes the end and copies no letter
    expected = torch.tensor([0.7, 0.3, 0.2], dtype=torch.float64)
    torch.testing.assert_close(spread.on_source, expected)
    expected = torch.tensor([0.9, 1.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(spread.near_source, expected)
    assert spread.offsets.tolist() == [0, -1, 2]
    assert len(spread.entropy) == 4
    straight = spread_of(weights, mirrored=False)
    expected = torch.tensor([0.1, 0.3, 0.5], dtype=torch.float64)
    torch.testing.assert_close(straight.on_source, expected)


@pytest.mark.parametrize("attention", ["none", "additive", "dot"])
def test_a_short_string_is_reversed_and_the_end_is_written(attention):
    _, reading = reading_of(attention)
    assert reading.answer == ("b", "a", "c", END_SIGN) == reading.right
    assert reading.wrong == []
    assert reading.inputs.shape == (1, 4)
    sums = reading.distributions.sum(dim=-1)
    torch.testing.assert_close(sums, torch.ones(4))
    if attention == "none":
        assert reading.weights is None
    else:
        assert reading.weights.shape == (4, 3)
        torch.testing.assert_close(reading.weights.sum(dim=-1), torch.ones(4))


def test_without_attention_sixteen_letters_go_wrong():
    _, reading = reading_of("none", tuple("abcdefghijklmnop"))
    assert reading.wrong
    assert all(
        reading.answer[t : t + 1] != reading.right[t : t + 1] for t in reading.wrong
    )


def test_without_attention_only_the_last_state_moves_an_output():
    model, reading = reading_of("none")
    for position in (0, 1):
        change = change_state(model, TASK, reading, position, how="zeros")
        assert change.moved.tolist() == [0.0] * 4
    assert float(
        change_state(model, TASK, reading, 2, how="zeros").moved.max()
    ) > 0.1  # fmt: skip


@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_with_attention_every_state_moves_some_output(attention):
    model, reading = reading_of(attention)
    for position in range(3):
        moved = change_state(model, TASK, reading, position, how="zeros").moved
        assert 0 < float(moved.max()) <= 1
        assert (moved >= 0).all()


def test_a_state_times_1_changes_nothing_and_the_reading_is_left_alone():
    model, reading = reading_of("additive")
    before = reading.memory.states.clone()
    for position in range(3):
        change = change_state(model, TASK, reading, position, how="scaled", factor=1.0)
        assert change.moved.tolist() == [0.0] * 4
        assert change.choices == reading.answer
    change_state(model, TASK, reading, 1, how="zeros")
    assert torch.equal(reading.memory.states, before)


def test_the_state_of_another_source_is_the_one_at_that_place_or_its_last():
    model, reading = reading_of("dot")
    same = change_state(model, TASK, reading, 1, how="another source", other=SOURCE)
    assert same.moved.tolist() == [0.0] * 4
    other = tuple("zq")
    at_end = change_state(model, TASK, reading, 2, how="another source", other=other)
    longer = change_state(
        model, TASK, reading, 2, how="another source", other=tuple("zqx")
    )
    assert float(at_end.moved.max()) > 0.1
    assert not torch.equal(at_end.moved, longer.moved)


@pytest.mark.parametrize("attention", ["none", "additive", "dot"])
@pytest.mark.parametrize("other", ["a", "ab", "abcdefghijklm", "abcdefghijklmnop"])
def test_a_state_that_has_read_the_same_letters_changes_exactly_nothing(
    attention, other
):
    for source in ("ab", "abcdefg", "abcdefghijklmnop"):
        model, reading = reading_of(attention, tuple(source))
        for position in range(min(len(source), len(other))):
            change = change_state(
                model, TASK, reading, position, how="another source", other=tuple(other)
            )
            assert change.moved.tolist() == [0.0] * len(reading.answer)


def test_the_distance_is_half_the_summed_change_of_the_probabilities():
    model, reading = reading_of("additive")
    found = change_state(model, TASK, reading, 0, how="zeros")
    states = reading.memory.states.clone()
    states[0, 0] = 0
    logits = model.decode(reading.memory._replace(states=states), reading.inputs)[0]
    expected = (logits.softmax(-1) - reading.distributions).abs().sum(-1) / 2
    torch.testing.assert_close(found.moved, expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"position": 3, "how": "zeros"}, r"position \(3\) must be between 0 and 2"),
        ({"position": 0, "how": "doubled"}, "how must be one of 'zeros', 'scaled'"),
        (
            {"position": 0, "how": "scaled", "factor": math.inf},
            "factor must be finite",
        ),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(given, message):
    model, reading = reading_of("none")
    with pytest.raises(ValueError, match=message):
        change_state(model, TASK, reading, **given)
