import pytest

from core.chains import chains


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


def test_wrong_arguments_are_refused_with_a_sentence():
    with pytest.raises(ValueError, match=r"width \(65\) must be between 1 and 64"):
        chains("rnn", seq_len=3, width=65)
    with pytest.raises(ValueError, match="model must be one of 'rnn', 'gru', 'lstm'"):
        chains("cnn", seq_len=3)
