"""Runs by length: what is tested, what is shipped, and that it comes out again."""

from dataclasses import replace

import pytest
import torch

from core import bottleneck
from core.bottleneck import (
    ATTENTIONS,
    CONTEXTS,
    HIDDEN_SIZE,
    LENGTHS,
    SEEDS,
    BottleneckConfig,
    LengthResult,
    LengthRun,
    WatchRecord,
    latest_results,
    read_model,
    read_shipped,
    write_model,
    write_runs,
)
from core.recurrent_seq2seq import RecurrentConfig, RecurrentEncoderDecoder
from core.shipped import read_table
from core.text_tasks import Pair
from core.weights_file import read_weights


def test_the_shipped_table_has_every_length_model_and_seed():
    runs = read_shipped().by_attention()
    kinds = {(run.attention, run.seed) for run in runs}
    assert kinds == {(name, seed) for name in ATTENTIONS for seed in SEEDS}
    for run in read_shipped().runs:
        assert tuple(result.length for result in run.results) == LENGTHS
    widths = {(run.passed_on, run.seed) for run in read_shipped().by_context()}
    sizes = (*CONTEXTS, HIDDEN_SIZE)
    assert widths == {(size, seed) for size in sizes for seed in SEEDS}


def test_table_and_models_were_trained_as_long_as_the_page_trains():
    _, rows = read_table(bottleneck.BOTTLENECK)
    assert {int(row["steps"]) for row in rows} == {bottleneck.STEPS}
    for attention in ATTENTIONS:
        about, _ = read_weights(bottleneck.model_path(attention))
        assert about["steps"] == bottleneck.STEPS


def test_without_attention_answers_fall_with_length_and_with_it_they_hold():
    for run in read_shipped().by_attention():
        first, last = run.results[0].exact, run.results[-1].exact
        if run.attention == "none":
            assert first > 0.9
            assert last < 0.05
        else:
            assert min(result.exact for result in run.results[:5]) > 0.8
            assert last > 0.4


def test_a_written_table_reads_back_the_same(tmp_path):
    results = (LengthResult(2, 1.0, 1.0), LengthResult(4, 0.25, 0.75))
    runs = [LengthRun("none", 8, 2, results), LengthRun("dot", 64, 0, results)]
    write_runs(tmp_path / "runs.csv", runs)
    assert read_shipped(tmp_path / "runs.csv").runs == tuple(runs)
    assert "python -m core.bottleneck" in read_shipped(tmp_path / "runs.csv").origin


def test_a_shipped_model_answers_as_the_table_says():
    for attention in ATTENTIONS:
        model, origin = read_model(attention)
        assert "python -m core.bottleneck" in origin
        (run,) = (
            run
            for run in read_shipped().by_attention()
            if (run.attention, run.seed) == (attention, SEEDS[0])
        )
        for at in (3, 5, 7):  # another split or other strings would show here
            again = bottleneck.score_at(model, LENGTHS[at])
            assert again.exact == pytest.approx(run.results[at].exact, abs=0.01)


def test_every_string_tested_is_new_and_of_its_length():
    for length in (2, 16):
        pairs = bottleneck._tested(length)
        assert len(pairs) == bottleneck.NUM_TESTED
        assert {len(pair.source) for pair in pairs} == {length}
        trained = bottleneck.text_task().pairs(500, seed=0, min_length=2)
        assert not {p.source for p in pairs} & {p.source for p in trained}


def test_a_run_brings_every_step_and_tests_every_length_four_times():
    config = BottleneckConfig("dot", max_steps=6)
    records = list(bottleneck.watch(config))
    assert len(records) == config.total == 6 + 4 * len(LENGTHS)
    assert [r.step for r in records if r.result is None] == [1, 2, 3, 4, 5, 6]
    tested = [r.result.length for r in records if r.result is not None]
    assert tested == list(LENGTHS) * 4
    assert [r.length for r in latest_results(records)] == list(LENGTHS)


def test_the_same_seed_gives_the_same_run_and_no_global_number_is_drawn():
    before = torch.get_rng_state()
    config = BottleneckConfig("additive", max_steps=4, seed=3)
    first, second = (list(bottleneck.watch(config)) for _ in range(2))
    assert first == second
    assert first != list(bottleneck.watch(replace(config, seed=4)))
    assert torch.equal(torch.get_rng_state(), before)


def test_of_several_tests_at_one_length_the_last_counts():
    old, new = LengthResult(2, 0.1, 0.2), LengthResult(2, 0.3, 0.4)
    records = [WatchRecord(1, 3.0, old), WatchRecord(2, 2.0, None)]
    assert latest_results(records) == [old]
    assert latest_results([*records, WatchRecord(2, 2.0, new)]) == [new]


def test_the_context_is_as_wide_as_the_configuration_says():
    config = BottleneckConfig("none", 4)
    assert config.passed_on == 4
    assert config.recipe.model_config.context_size == 4
    assert BottleneckConfig("dot").passed_on == HIDDEN_SIZE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention": "soft"}, "attention must be one of 'none', 'additive', 'dot'"),
        ({"max_steps": 3}, r"max_steps \(3\) must be between 4 and 5000"),
        ({"context_size": 65}, r"context_size \(65\) must be between 1 and 64"),
        ({"attention": "dot", "context_size": 4}, "needs attention 'none'"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        BottleneckConfig(**changes)


def test_a_damaged_file_of_weights_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "weights.npz"
    monkeypatch.setattr(bottleneck, "model_path", lambda _: path)
    model = RecurrentEncoderDecoder(RecurrentConfig(7, 5, hidden_size=3))
    write_model(path, model, seed=1)
    read, origin = read_model.__wrapped__("none")
    assert "seed 1" in origin
    for ours, theirs in zip(read.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(
        ValueError, match=r"weights.npz must be a file of trained weights"
    ):
        read_model.__wrapped__("none")


def test_the_task_reverses_letters():
    (pair,) = bottleneck.text_task().pairs(1, seed=0, min_length=3, max_length=3)
    assert pair == Pair(pair.source, pair.source[::-1])
