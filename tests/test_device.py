import pytest
import torch

from core.device import explain_device, pick_device, present_devices


@pytest.fixture
def machine(monkeypatch):
    def pretend(*, cuda: bool, mps: bool, threads: int = 2) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(torch, "get_num_threads", lambda: threads)

    return pretend


@pytest.mark.parametrize(
    ("cuda", "mps", "present"),
    [
        (True, True, ["cuda", "mps", "cpu"]),
        (True, False, ["cuda", "cpu"]),
        (False, True, ["mps", "cpu"]),
        (False, False, ["cpu"]),
    ],
)
def test_auto_takes_cuda_then_mps_then_cpu(machine, cuda, mps, present):
    machine(cuda=cuda, mps=mps)
    assert present_devices() == present
    assert pick_device() == pick_device("auto") == torch.device(present[0])


@pytest.mark.parametrize("kind", ["cuda", "mps", "cpu"])
def test_a_preference_that_is_present_is_taken(machine, kind):
    machine(cuda=True, mps=True)
    assert pick_device(kind) == torch.device(kind)


def test_an_absent_preference_names_what_is_present(machine):
    machine(cuda=False, mps=True)
    with pytest.raises(
        ValueError,
        match=r"preferred \('cuda'\) must be a device that is present: mps, cpu",
    ):
        pick_device("cuda")
    machine(cuda=False, mps=False)
    with pytest.raises(ValueError, match=r"preferred \('mps'\) .* present: cpu$"):
        pick_device("mps")


@pytest.mark.parametrize("word", ["gpu", "", "CUDA", None, 0])
def test_an_unknown_preference_lists_the_words(machine, word):
    machine(cuda=True, mps=True)
    with pytest.raises(
        ValueError, match="preferred must be one of 'auto', 'cuda', 'mps', 'cpu'"
    ):
        pick_device(word)


@pytest.mark.parametrize(
    ("cuda", "mps", "preferred", "sentence"),
    [
        (
            False,
            False,
            "auto",
            "cpu: no CUDA and no MPS device was found (2 threads)",
        ),
        (
            False,
            False,
            "cpu",
            "cpu: no CUDA and no MPS device was found (2 threads)",
        ),
        (True, False, "auto", "cuda: the fastest device found (NVIDIA H200)"),
        (True, True, "cuda", "cuda: asked for (NVIDIA H200)"),
        (
            False,
            True,
            "auto",
            "mps: the fastest device found (the graphics processor of this Mac)",
        ),
        (
            True,
            True,
            "mps",
            "mps: asked for, though CUDA could be used "
            "(the graphics processor of this Mac)",
        ),
        (
            True,
            True,
            "cpu",
            "cpu: asked for, though CUDA and MPS could be used (2 threads)",
        ),
    ],
)
def test_the_choice_is_explained_in_one_sentence(
    machine, cuda, mps, preferred, sentence
):
    machine(cuda=cuda, mps=mps)
    choice = explain_device(preferred)
    assert choice.device == pick_device(preferred)
    assert choice.sentence == sentence


def test_one_thread_is_not_called_threads(machine):
    machine(cuda=False, mps=False, threads=1)
    assert explain_device().sentence.endswith("(1 thread)")


def test_an_absent_device_is_not_explained(machine):
    machine(cuda=False, mps=False)
    with pytest.raises(ValueError, match="must be a device that is present"):
        explain_device("cuda")


def test_this_machine_computes_on_what_it_picks():
    device = pick_device()
    assert torch.ones(3, device=device).sum().item() == 3
