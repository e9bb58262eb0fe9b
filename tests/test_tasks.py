"""The marker task: the lab's data to the last bit, and its rules."""

import pytest
import torch
from torch.testing import assert_close

from core.tasks import marker_task

TRAIN_START = [-1.0, 0.536444, -0.823045, -0.735939, -0.385154]
TEST_START = [-1.0, -0.441378, -0.193861, 0.469369, -0.941437]
TRAIN_TARGETS = [0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0]
TEST_TARGETS = [0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("num_samples", "seed", "start", "targets", "positive", "total"),
    [
        (4000, 0, TRAIN_START, TRAIN_TARGETS, 2000, 284.3577),
        (1000, 1, TEST_START, TEST_TARGETS, 474, 49.2446),
    ],
    ids=["train", "test"],
)
def test_the_data_are_those_of_the_lab(
    num_samples, seed, start, targets, positive, total
):
    inputs, labels = marker_task(num_samples, 60, seed=seed)
    assert inputs.shape == (num_samples, 60, 1)
    assert labels.shape == (num_samples, 1)
    assert inputs.dtype == labels.dtype == torch.float32
    assert_close(inputs[0, :5, 0], torch.tensor(start), rtol=0, atol=5e-7)
    assert labels[:12, 0].tolist() == targets
    assert labels.sum() == positive
    assert inputs.double().sum().item() == pytest.approx(total, abs=5e-5)


@pytest.mark.parametrize("position", [0, 5, 10])
def test_the_marker_alone_decides_the_class(position):
    inputs, targets = marker_task(101, 11, seed=3, position=position)
    assert_close(inputs[:, position], 2 * targets - 1)
    noise = inputs[:, [t for t in range(11) if t != position]]
    assert ((noise >= -1) & (noise < 1)).all()
    assert set(targets.unique().tolist()) == {0.0, 1.0}


def test_normal_noise_is_drawn_before_the_markers_and_reaches_beyond_them():
    inputs, targets = marker_task(2003, 11, seed=3, position=4, noise="normal")
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(2003, 11, 1, generator=generator)
    markers = torch.randint(0, 2, (2003, 1), generator=generator)
    others = [t for t in range(11) if t != 4]
    assert_close(inputs[:, others], noise[:, others], rtol=0, atol=0)
    assert_close(inputs[:, 4], 2 * markers.float() - 1, rtol=0, atol=0)
    assert_close(targets, markers.float())
    beyond = (inputs[:, others].abs() > 1).double().mean().item()
    assert beyond == pytest.approx(0.3173, abs=0.01)  # of N(0, 1)


def test_uniform_noise_is_what_nothing_said_means():
    for plain, named in zip(
        marker_task(7, 5, seed=2), marker_task(7, 5, seed=2, noise="uniform"),
        strict=True,
    ):  # fmt: skip
        assert torch.equal(plain, named)


def test_moving_the_marker_moves_nothing_else():
    first, targets = marker_task(101, 11, seed=3)
    moved, same_targets = marker_task(101, 11, seed=3, position=7)
    assert_close(targets, same_targets)
    untouched = [t for t in range(11) if t not in (0, 7)]
    assert_close(first[:, untouched], moved[:, untouched], rtol=0, atol=0)
    assert (moved[:, 0].abs() < 1).all()


def test_the_same_seed_gives_the_same_data_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    assert_close(marker_task(7, 5, seed=2), marker_task(7, 5, seed=2), rtol=0, atol=0)
    assert not torch.equal(marker_task(7, 5, seed=2)[0], marker_task(7, 5, seed=3)[0])
    assert torch.equal(torch.get_rng_state(), before)


def test_no_samples_and_length_one_work():
    inputs, targets = marker_task(0, 1, seed=0)
    assert (inputs.shape, targets.shape) == ((0, 1, 1), (0, 1))
    inputs, targets = marker_task(5, 1, seed=0)
    assert_close(inputs[:, 0], 2 * targets - 1)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"position": 60}, r"position \(60\) must be between 0 and 59"),
        ({"position": -1}, r"position \(-1\) must be between 0 and 59"),
        ({"seed": -1}, r"seed \(-1\) must be between 0 and 2147483647"),
        ({"seed": 2**31}, r"seed \(2147483648\) must be between"),
        ({"num_samples": -1}, r"num_samples \(-1\) must be at least 0"),
        ({"seq_len": 0}, r"seq_len \(0\) must be at least 1"),
        ({"noise": "pink"}, r"noise must be one of 'uniform', 'normal', got 'pink'"),
        ({"seq_len": 2.5}, r"seq_len must be a whole number, got 2\.5"),
    ],
)
def test_numbers_out_of_range_are_refused(settings, rule):
    arguments = {"num_samples": 3, "seq_len": 60, "seed": 0, **settings}
    with pytest.raises(ValueError, match=rule):
        marker_task(**arguments)
