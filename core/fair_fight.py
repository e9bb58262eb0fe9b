"""A race on the marker task: recurrent cells and a Transformer, same data, same order.

``python -m core.fair_fight`` runs the races that the page opens on and writes them to
``assets/tables/fair_fight.csv``.
"""

import argparse
import functools
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.fight_config import (
    TRANSFORMER,
    Contender,
    FightConfig,
    contenders,
    look_steps,
)
from core.initial import generator_from
from core.recurrent import RecurrentClassifier
from core.shipped import TABLES, origin_of, read_table, write_table
from core.tasks import marker_task
from core.threads import one_thread
from core.training import TEST_SEED, Trainer

FAIR_FIGHT = TABLES / "fair_fight.csv"
LOSSES_TOGETHER = 10  # a point of the loss is the mean over so many steps
_RULER_BATCH = 64
_COLUMNS = (
    "seq_len", "equal", "contender", "seed", "step", "seconds", "loss", "accuracy",
    "ruler",
)  # fmt: skip


class FightStep(NamedTuple):
    """One result of a race: a step of training, or a look at a model between two.

    Attributes:
        contender: Name of the contender.
        seed: Its seed.
        step: Steps it has taken.
        seconds: What its steps took so far, measured round each step alone.
        loss: Training loss of the step; None for a look, or after training stopped.
        accuracy: Share of right answers on test sequences, in [0, 1]; None for a step.
        ruler: ``gradient_ruler`` on a fixed batch, a number a position; None for a
            step.
    """

    contender: str
    seed: int
    step: int
    seconds: float
    loss: float | None = None
    accuracy: float | None = None
    ruler: tuple[float, ...] | None = None


class ShippedFight(NamedTuple):
    """A race that was run before.

    Attributes:
        made_by: Field to text: command, seeds, versions, machine.
        steps: Its results, thinned.
    """

    made_by: dict[str, str]
    steps: tuple[FightStep, ...]

    @property
    def origin(self) -> str:
        """What made it, and whose seconds those are, as sentences."""
        return (
            f"{origin_of(self.made_by)} Its seconds are of one thread on that machine "
            f"({self.made_by['machine']}): yours differ."
        )


def gradient_ruler(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """Return how strongly the loss reads each position.

    ``r_t = mean_n |∂ℓ_n / ∂x_{n,t}|``, where ℓ_n is the loss of sequence n alone.

    Args:
        model: Sequences -> logits; its own gradients are left as they are.
        inputs: Sequences, (N, T, 1).
        targets: Their classes, (N, 1).

    Returns:
        One number a position, (T,), none below 0.
    """
    model.eval()
    read = inputs.detach().clone().requires_grad_()
    loss = F.binary_cross_entropy_with_logits(model(read), targets, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, read)
    return gradient.abs().mean(dim=(0, 2))


def trainer_of(config: FightConfig, contender: Contender, seed: int) -> Trainer:
    """Return a fresh model of a contender in training; all see the same batches."""
    if contender.model == TRANSFORMER:
        return Trainer(config.training(seed))
    model = RecurrentClassifier(
        contender.model,
        hidden_size=config.hidden_size(contender),
        forget_bias=contender.forget_bias,
        generator=generator_from(seed),
    )
    return Trainer(config.training(seed), model=model)


class _Run:
    """One contender with one seed, on its way."""

    def __init__(self, config: FightConfig, contender: Contender, seed: int) -> None:
        self._trainer = trainer_of(config, contender, seed)
        self._ruled = marker_task(_RULER_BATCH, config.seq_len, seed=TEST_SEED)
        self._who = contender.name, seed
        self._seconds = 0.0

    def train(self, step: int) -> FightStep:
        """Take a step; one that has stopped stays where it is."""
        if self._trainer.finished:
            return FightStep(*self._who, step, self._seconds)
        started = time.perf_counter()
        record = self._trainer.step()
        self._seconds += time.perf_counter() - started
        return FightStep(*self._who, step, self._seconds, loss=record.loss)

    def look(self, step: int) -> FightStep:
        """Measure what the model knows and what its loss reads."""
        return FightStep(
            *self._who,
            step,
            self._seconds,
            accuracy=self._trainer.evaluate(),
            ruler=tuple(gradient_ruler(self._trainer.model, *self._ruled).tolist()),
        )


def watch_fight(config: FightConfig) -> Iterator[FightStep]:
    """Run a race, one result after the other; all contenders take turns.

    A seed is run to its end before the next begins.
    """
    looked = set(look_steps(config.steps))
    for seed in range(config.num_seeds):
        runs = []
        for contender in config.contenders:  # no result waits for all the models
            runs.append(_Run(config, contender, seed))
            yield runs[-1].look(0)
        for step in range(1, config.steps + 1):
            yield from (run.train(step) for run in runs)
            if step in looked:
                yield from (run.look(step) for run in runs)


SHIPPED = (
    FightConfig(num_seeds=3),
    FightConfig(num_seeds=3, equal_parameters=True),
    FightConfig((contenders()[0], contenders()[-1]), seq_len=300, num_seeds=3),
)


def shipped_config(seq_len: int, equal_parameters: bool) -> FightConfig | None:
    """Return the race of a length that is shipped, if one is."""
    wanted = seq_len, equal_parameters
    return next((c for c in SHIPPED if (c.seq_len, c.equal_parameters) == wanted), None)


@functools.cache
def read_fights(path: Path = FAIR_FIGHT) -> dict[tuple[int, bool], ShippedFight]:
    """Return the shipped races by length and whether their parameters are equal.

    Args:
        path: A file that ``write_fights`` wrote.
    """
    made_by, rows = read_table(path)
    found: dict[tuple[int, bool], list[FightStep]] = {}
    for row in rows:
        key = int(row["seq_len"]), row["equal"] == "yes"
        found.setdefault(key, []).append(_step_of(row))
    return {key: ShippedFight(made_by, tuple(rows)) for key, rows in found.items()}


def write_fights(path: Path, configs: Sequence[FightConfig]) -> None:
    """Run races, each in one thread, and write them as CSV below their origin."""
    with one_thread():
        rows = [row for config in configs for row in _rows_of(config)]
    seeds = f"0 to {max(config.num_seeds for config in configs) - 1}"
    write_table(path, _COLUMNS, rows, command="python -m core.fair_fight", seed=seeds)


def thinned(steps: Iterable[FightStep], last: int) -> list[FightStep]:
    """Return a race with one row for several losses, and the ruler at both ends.

    Args:
        steps: Of one contender with one seed, in their order.
        last: The last step of the race.
    """
    kept: dict[int, FightStep] = {}
    losses: list[float] = []
    for step in steps:
        if step.loss is not None:
            losses.append(step.loss)
        if step.step % LOSSES_TOGETHER and step.step != last:
            continue
        before = kept.get(step.step, step)
        kept[step.step] = before._replace(
            loss=sum(losses) / len(losses) if losses else before.loss,
            accuracy=step.accuracy,
            ruler=step.ruler if step.step in (0, last) else None,
        )
        losses = []
    return list(kept.values())


def _rows_of(config: FightConfig) -> Iterator[tuple[Any, ...]]:
    runs: dict[tuple[str, int], list[FightStep]] = {}
    for step in watch_fight(config):
        runs.setdefault((step.contender, step.seed), []).append(step)
    equal = "yes" if config.equal_parameters else "no"
    for run in runs.values():
        for step in thinned(run, config.steps):
            yield (
                config.seq_len,
                equal,
                step.contender,
                step.seed,
                step.step,
                f"{step.seconds:.3f}",
                "" if step.loss is None else f"{step.loss:.4f}",
                "" if step.accuracy is None else f"{step.accuracy:.4f}",
                " ".join(f"{value:.1e}" for value in step.ruler or ()),
            )


def _step_of(row: dict[str, str]) -> FightStep:
    return FightStep(
        row["contender"],
        int(row["seed"]),
        int(row["step"]),
        float(row["seconds"]),
        loss=float(row["loss"]) if row["loss"] else None,
        accuracy=float(row["accuracy"]) if row["accuracy"] else None,
        ruler=tuple(map(float, row["ruler"].split())) or None,
    )


def main() -> None:
    """Run the shipped races and write their table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--path", type=Path, default=FAIR_FIGHT)
    write_fights(parser.parse_args().path, SHIPPED)


if __name__ == "__main__":
    main()
