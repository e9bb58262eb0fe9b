"""How many threads PyTorch computes in."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread

import torch

_changing = Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch compute in this thread alone; other threads keep their number.

    PyTorch holds the number for each thread, and hands the last one set to threads that
    begin later; so a thread that ends at once sets it back for those. Small matrices
    gain nothing from more threads, which wait for each other on a busy machine.
    """
    with _changing:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        other = Thread(target=_keep_threads, args=(before,))
        other.start()
        other.join()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _keep_threads(count: int) -> None:
    torch.get_num_threads()  # a thread takes over the last number at its first use
    torch.set_num_threads(count)
