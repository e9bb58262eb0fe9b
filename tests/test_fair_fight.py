"""The race: one recipe for all, its ruler, its sizes, its shipped table."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from core import fair_fight
from core.fair_fight import (
    SHIPPED,
    FightStep,
    gradient_ruler,
    read_fights,
    thinned,
    trainer_of,
    watch_fight,
    write_fights,
)
from core.fight_config import (
    NUM_TESTED,
    Contender,
    FightConfig,
    cell_parameters,
    contenders,
    hidden_size_for,
    look_steps,
)
from core.fight_results import standings
from core.tasks import marker_task
from core.threads import one_thread
from core.training import TEST_SEED

TOLERANCE = 0.02
TINY = FightConfig(seq_len=11, steps=3, batch_size=16)


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():  # small matrices gain nothing from more
        yield


def watched(config: FightConfig) -> dict[tuple[str, int], list[FightStep]]:
    found: dict[tuple[str, int], list[FightStep]] = {}
    for step in watch_fight(config):
        found.setdefault((step.contender, step.seed), []).append(step)
    return found


# The race


def test_all_contenders_read_the_same_batches_in_the_same_order():
    seen = []
    for contender in TINY.contenders:
        trainer, batches = trainer_of(TINY, contender, 3), []
        trainer.model.register_forward_pre_hook(
            lambda _, given, kept=batches: kept.append(given[0].clone())
        )
        for _ in range(3):
            trainer.step()
        seen.append(torch.stack(batches))
    assert seen[0].shape == (3, 16, 11, 1)
    for other in seen[1:]:
        torch.testing.assert_close(other, seen[0], rtol=0, atol=0)


def test_a_contender_runs_beside_others_as_if_alone():
    before = torch.get_rng_state()
    config = replace(TINY, num_seeds=2)
    together = watched(config)
    assert torch.equal(torch.get_rng_state(), before)
    gru = next(who for who in contenders() if who.name == "GRU")
    alone = watched(replace(config, contenders=(gru,)))
    for seed in (0, 1):
        ours, theirs = together["GRU", seed], alone["GRU", seed]
        assert [s._replace(seconds=0) for s in ours] == [
            s._replace(seconds=0) for s in theirs
        ]
    assert alone["GRU", 0][1].loss != alone["GRU", 1][1].loss
    # Other seeds are other weights: one batch, and not the same gradient.
    assert alone["GRU", 0][0].ruler != alone["GRU", 1][0].ruler


def test_no_result_waits_for_the_models_of_the_others(monkeypatch):
    made, usual = [], fair_fight.trainer_of
    monkeypatch.setattr(
        fair_fight,
        "trainer_of",
        lambda config, who, seed: made.append(who.name) or usual(config, who, seed),
    )
    race = watch_fight(TINY)
    assert next(race).contender == "Transformer"
    assert made == ["Transformer"]


def test_every_ruler_is_read_on_the_same_test_sequences(monkeypatch):
    asked, usual = [], fair_fight.marker_task
    monkeypatch.setattr(
        fair_fight,
        "marker_task",
        lambda *size, seed: asked.append(seed) or usual(*size, seed=seed),
    )
    watched(replace(TINY, num_seeds=2, steps=1))
    assert asked == [TEST_SEED] * 10


def test_the_race_takes_turns_and_brings_as_many_results_as_it_says():
    steps = list(watch_fight(TINY))
    assert len(steps) == TINY.num_results == 5 * (3 + 2)
    names = [who.name for who in TINY.contenders]
    assert [step.contender for step in steps] == names * 5
    assert [step.step for step in steps[::5]] == [0, 1, 2, 3, 3]
    assert [step.ruler is not None for step in steps[::5]] == [True, *[False] * 3, True]
    assert len(steps[0].ruler) == 11
    assert look_steps(45) == [0, 20, 40, 45]


def test_the_clock_runs_round_the_steps_alone(monkeypatch):
    ticks = iter(range(1000))
    monkeypatch.setattr(fair_fight.time, "perf_counter", lambda: float(next(ticks)))
    (run,) = watched(replace(TINY, contenders=contenders()[:1])).values()
    assert [step.seconds for step in run] == [0, 1, 2, 3, 3]


def test_one_that_stops_stays_where_it_is_and_the_race_goes_on(monkeypatch):
    usual = fair_fight.trainer_of

    def stopped(config, contender, seed):
        trainer = usual(config, contender, seed)
        if contender.name == "RNN":
            trainer.stop_reason = "The loss is no finite number."
        return trainer

    monkeypatch.setattr(fair_fight, "trainer_of", stopped)
    steps = watched(TINY)
    assert [step.loss for step in steps["RNN", 0]] == [None] * 5
    assert all(step.loss for step in steps["GRU", 0][1:4])


def test_an_open_forget_gate_is_set_for_the_last_lstm_alone():
    gate = slice(32, 64)
    for who in contenders(2.0):
        layer = getattr(trainer_of(TINY, who, 0).model, "recurrent", None)
        if who.model == "lstm":
            both = (layer.bias_ih_l0 + layer.bias_hh_l0)[gate].detach()
            assert bool((both == 2).all()) == (who.name == "LSTM +2")


# The ruler


def test_the_ruler_of_a_linear_model_is_as_worked_by_hand():
    linear = nn.Linear(2, 1, bias=False)
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.9), linear).double().train()
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0, -3.0]]))
    inputs = torch.zeros(2, 2, 1, dtype=torch.float64)
    inputs[1, 0] = torch.log(torch.tensor(3.0))  # a logit of ln 3: p = 3/4
    targets = torch.tensor([[1.0], [1.0]], dtype=torch.float64)
    # |p - y| is 1/2 and 1/4, 3/8 on average; times |w| = 1 and 3.
    expected = torch.tensor([3 / 8, 9 / 8], dtype=torch.float64)
    torch.testing.assert_close(
        gradient_ruler(model, inputs, targets), expected, atol=1e-7, rtol=0
    )
    assert linear.weight.grad is None


def test_before_training_the_marker_reaches_attention_and_an_open_gate_alone():
    config = FightConfig(steps=1)
    first = {
        step.contender: step.ruler[0] for step in watch_fight(config) if step.ruler
    }
    assert max(first[name] for name in ("RNN", "LSTM", "GRU")) < 1e-8
    assert min(first[name] for name in ("Transformer", "LSTM +3")) > 1e-5


# Sizes and refusals


@pytest.mark.parametrize(("cell", "blocks"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_no_other_hidden_size_brings_the_parameters_nearer(cell, blocks):
    def count(size: int) -> int:
        return blocks * (size * size + 3 * size) + size + 1

    assert cell_parameters(cell, 7) == count(7)
    for parameters in (1, 500, 12_897):
        size = hidden_size_for(parameters, cell)
        assert size == min(range(1, 200), key=lambda s: abs(count(s) - parameters))


def test_equal_parameters_are_within_one_percent_of_the_transformer():
    config = FightConfig(equal_parameters=True)
    counts = [config.num_parameters(who) for who in config.contenders]
    assert max(counts) / min(counts) < 1.02
    built = [trainer_of(config, who, 0).model for who in config.contenders]
    assert [sum(p.numel() for p in model.parameters()) for model in built] == counts


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"seq_len": 301}, r"seq_len \(301\) must be between 10 and 300"),
        ({"seq_len": 9}, r"seq_len \(9\) must be"),
        ({"num_seeds": 11}, r"num_seeds \(11\) must be between 1 and 10"),
        ({"contenders": ()}, "contenders must be at least one, got none"),
        ({"seq_len": 300, "batch_size": 256}, r"about 1.4 GB of memory; it must be"),
        (
            {"seq_len": 300, "num_seeds": 10, "steps": 1000},
            r"seeds \(10\) × steps \(1000\) with seq_len \(300\) would take about \d+ "
            "min; it must be at most 30 min",
        ),
    ],
)
def test_a_race_that_cannot_be_run_is_refused_with_its_numbers(values, words):
    with pytest.raises(ValueError, match=words):
        FightConfig(**values)


@pytest.mark.parametrize("seq_len", [10, 60, 300])
def test_one_answer_for_all_test_sequences_is_right_about_half_the_time(seq_len):
    training = FightConfig(seq_len=seq_len).training(0)
    assert training.num_tested == NUM_TESTED
    _, targets = marker_task(NUM_TESTED, seq_len, seed=TEST_SEED)
    assert 0.46 < targets.mean().item() < 0.54


def test_a_forget_bias_needs_a_forget_gate():
    with pytest.raises(ValueError, match=r"forget_bias \(3\) needs a forget gate"):
        Contender("GRU +3", "gru", 3.0)
    with pytest.raises(ValueError, match="parameters"):
        hidden_size_for(0, "rnn")


# The shipped table


def test_thinning_keeps_means_of_losses_looks_and_both_rulers():
    look = FightStep("RNN", 0, 0, 0.0, accuracy=0.5, ruler=(1.0,))
    middle = look._replace(step=20, accuracy=0.75, ruler=(2.0,))
    losses = [FightStep("RNN", 0, s, float(s), loss=float(s)) for s in range(1, 24)]
    run = [look, *losses[:20], middle, *losses[20:], look._replace(step=23)]
    kept = thinned(run, 23)
    assert [step.step for step in kept] == [0, 10, 20, 23]
    assert [step.loss for step in kept] == [None, 5.5, 15.5, 22.0]
    assert [step.accuracy for step in kept] == [0.5, None, 0.75, 0.5]
    assert [step.ruler for step in kept] == [(1.0,), None, None, (1.0,)]


def test_a_table_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "fights.csv"
    wide = replace(TINY, equal_parameters=True, contenders=contenders()[:2])
    write_fights(path, [wide])
    ((key, fight),) = read_fights(path).items()
    assert key == (11, True)
    assert {step.contender for step in fight.steps} == {"Transformer", "RNN"}
    last = watched(wide)["RNN", 0][-1]
    assert fight.steps[-1].accuracy == pytest.approx(last.accuracy, abs=1e-4)
    assert fight.steps[-1].ruler == pytest.approx(last.ruler, rel=0.06)


def test_the_seconds_of_a_table_are_of_one_thread_as_it_says(tmp_path, monkeypatch):
    threads, usual = [], fair_fight.watch_fight
    monkeypatch.setattr(
        fair_fight,
        "watch_fight",
        lambda config: threads.append(torch.get_num_threads()) or usual(config),
    )
    torch.set_num_threads(2)
    write_fights(
        tmp_path / "f.csv", [replace(TINY, steps=1, contenders=contenders()[:1])]
    )
    assert threads == [1]
    assert torch.get_num_threads() == 2


def test_the_estimate_grows_with_wider_cells_yet_slower_than_their_parameters():
    cells = contenders()[1:2]
    usual = FightConfig(cells)
    wide = replace(usual, equal_parameters=True)
    more = wide.num_parameters(cells[0]) / usual.num_parameters(cells[0])
    assert 1.5 < wide.seconds / usual.seconds < more


def test_the_shipped_table_names_what_made_it_and_whose_seconds_it_holds():
    fight = read_fights()[60, False]
    assert fight.made_by["command"] == "python -m core.fair_fight"
    assert fight.made_by["seed"] == "0 to 2"
    assert fight.made_by["versions"].startswith("torch ")
    assert f"one thread on that machine ({fight.made_by['machine']})" in fight.origin


def test_the_shipped_table_holds_every_run_to_its_end():
    table = read_fights()
    assert len(table) == len(SHIPPED)
    for config in SHIPPED:
        steps = table[config.seq_len, config.equal_parameters].steps
        found = standings(steps)
        assert [s.name for s in found] == [who.name for who in config.contenders]
        assert {s.steps for s in found} == {(300, 300, 300)}
        rulers = [step.ruler for step in steps if step.ruler]
        assert {len(ruler) for ruler in rulers} == {config.seq_len}


@pytest.mark.parametrize("place", [0, 4])
def test_two_shipped_cells_come_out_again(place):
    shipped = read_fights()[60, False].steps
    who = contenders()[place]
    stated = {s.step: s for s in shipped if (s.contender, s.seed) == (who.name, 0)}
    (run,) = watched(FightConfig((who,), steps=20)).values()
    for step in thinned(run, 20)[1:]:
        assert step.loss == pytest.approx(stated[step.step].loss, abs=TOLERANCE)
    assert run[-1].accuracy == pytest.approx(stated[20].accuracy, abs=TOLERANCE)


def test_at_equal_width_plain_cells_stay_near_half_and_an_open_gate_does_not():
    ends = {s.name: s.accuracies for s in standings(read_fights()[60, False].steps)}
    for name in ("RNN", "GRU", "LSTM"):
        assert 0.4 < min(ends[name]) <= max(ends[name]) < 0.65, name
    assert min(ends["LSTM +3"]) > 0.95
    assert min(ends["Transformer"]) > 0.99


def test_at_300_tokens_the_transformer_holds_its_accuracy():
    ends = {s.name: s.accuracies for s in standings(read_fights()[300, False].steps)}
    assert min(ends["Transformer"]) > 0.99
