from concurrent.futures import ThreadPoolExecutor

import torch

from core.threads import one_thread


def test_one_thread_computes_and_others_keep_their_number():
    def ask() -> int:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(torch.get_num_threads).result()

    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
        assert ask() == before
    assert (torch.get_num_threads(), ask()) == (before, before)
