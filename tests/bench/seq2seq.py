"""A step of the ``Seq2SeqTrainer`` beside the same in a plain PyTorch loop.

    python -m tests.bench.seq2seq             the race
    python -m tests.bench.seq2seq --presets   and how long the presets take to learn

The plain loop is the recipe as most would write it: ``nn.Transformer`` with pre-norm
blocks between two ``nn.Embedding`` and an ``nn.Linear``, a ``DataLoader`` that shuffles
and pads each batch, Adam, ``clip_grad_norm_``. Same data, same sizes. The two take
turns in short blocks, so that a busy machine slows both, and the ratio is the median
over the turns. Ours must not be slower.

``--presets`` trains each preset to its end from three seeds, and tells the share of
exact answers on 1,000 other held-out sources, the seconds, and the processor's seconds.
Run it on a quiet machine: the seconds are of this one.
"""

import argparse
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader

from core.positional import sinusoidal_encoding
from core.seq2seq_training import (
    BETAS,
    PRESETS,
    Seq2SeqConfig,
    Seq2SeqTrainer,
    score_pairs,
)
from core.text_tasks import pad_ids
from core.train_config import MAX_STEPS
from core.vocabulary import END, PAD, START

ALLOWANCE = 0.05  # of noise
BLOCK_STEPS = 10
GOALS = {"reverse": (0.99, 90.0), "dates": (0.98, 180.0), "numbers": (0.98, 180.0)}
SEEDS = (0, 1, 2)
FINAL_SEED, FINAL_PAIRS = 7, 1000

Step = Callable[[], object]


class PlainTranslator(nn.Module):
    """An encoder-decoder around ``nn.Transformer``."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        task, d_model = config.text_task, config.d_model
        self.scale = math.sqrt(d_model)
        self.source_embedding = nn.Embedding(len(task.source), d_model)
        self.target_embedding = nn.Embedding(len(task.target), d_model)
        longest = max(task.max_source, task.max_target)
        self.register_buffer("positions", sinusoidal_encoding(longest, d_model))
        self.transformer = nn.Transformer(
            d_model,
            config.num_heads,
            config.num_layers,
            config.num_layers,
            4 * d_model if config.d_ff is None else config.d_ff,
            config.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=config.norm_first,
        )
        self.output = nn.Linear(d_model, len(task.target))

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        later = torch.ones(2 * target_in.shape[1:], dtype=torch.bool).triu(1)
        decoded = self.transformer(
            self._placed(self.source_embedding(source)),
            self._placed(self.target_embedding(target_in)),
            tgt_mask=later,
            tgt_is_causal=True,
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target_in == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.output(decoded)

    def _placed(self, tokens: Tensor) -> Tensor:
        return self.scale * tokens + self.positions[: tokens.shape[1]]


def plain_loop(config: Seq2SeqConfig) -> Step:
    """Return a function that takes one step of the plain loop."""
    torch.manual_seed(config.seed)
    task = config.text_task
    model = PlainTranslator(config).train()
    optimizer = torch.optim.Adam(
        model.parameters(), lr=config.learning_rate, betas=BETAS
    )
    pairs = task.pairs(config.train_pairs, seed=0, min_length=config.min_length)
    numbers = [(task.source.encode(s), task.target.encode(t)) for s, t in pairs]

    def padded(rows: Sequence[tuple[list[int], list[int]]]) -> tuple[Tensor, ...]:
        return (
            pad_ids([source for source, _ in rows]),
            pad_ids([[START, *target] for _, target in rows]),
            pad_ids([[*target, END] for _, target in rows]),
        )

    loader = DataLoader(
        numbers,  # type: ignore[arg-type]
        batch_size=config.batch_size,
        shuffle=True,
        collate_fn=padded,
    )
    batches = (batch for _ in iter(int, 1) for batch in loader)

    def step() -> float:
        source, target_in, target_out = next(batches)
        logits = model(source, target_in)
        loss = F.cross_entropy(logits.mT, target_out, ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        return loss.item()

    return step


def block_seconds(step: Step) -> float:
    """Return the seconds of a block of steps."""
    start = time.perf_counter()
    for _ in range(BLOCK_STEPS):
        step()
    return time.perf_counter() - start


def race(config: Seq2SeqConfig, turns: int) -> list[tuple[float, float]]:
    """Return the seconds of both in each turn, ours first, after one to warm up.

    Every second turn goes the other way round.
    """
    pair = Seq2SeqTrainer(config).step, plain_loop(config)
    seconds = []
    for turn in range(turns + 1):
        way = -1 if turn % 2 else 1
        ours, plain = [block_seconds(step) for step in pair[::way]][::way]
        if turn:
            seconds.append((ours, plain))
    return seconds


def race_and_tell(name: str, turns: int) -> float:
    """Race one preset, print its line, and return the ratio."""
    config = replace(PRESETS[name], max_steps=MAX_STEPS, eval_every=MAX_STEPS)
    seconds = race(config, turns)
    ours, plain = (
        1000 * statistics.median(column) / BLOCK_STEPS
        for column in zip(*seconds, strict=True)
    )
    ratio = statistics.median(a / b for a, b in seconds)
    sys.stdout.write(
        f"{name:<8} ours {ours:6.1f} ms a step   plain loop {plain:6.1f} ms"
        f"   ratio {ratio:.2f}\n"
    )
    return ratio


def learn_and_tell(name: str, seed: int) -> bool:
    """Train a preset to its end, print its line, and return whether it is in time."""
    goal, limit = GOALS[name]
    start, start_busy = time.perf_counter(), time.process_time()
    trainer = Seq2SeqTrainer(replace(PRESETS[name], seed=seed))
    while not trainer.finished:
        trainer.step()
    seconds = time.perf_counter() - start
    busy = time.process_time() - start_busy
    pairs = trainer.task.pairs(FINAL_PAIRS, seed=FINAL_SEED, held_out=True)
    exact = score_pairs(trainer.model, trainer.task, pairs).exact
    sys.stdout.write(
        f"{name:<8} seed {seed}: {exact:.1%} exact (goal {goal:.0%}) after "
        f"{len(trainer.records)} steps, {seconds:.0f} s (limit {limit:.0f} s), "
        f"{busy:.0f} s of processor\n"
    )
    sys.stdout.flush()
    return exact >= goal and seconds <= limit


def main() -> int:
    """Print a line a race, and a line a preset and seed; exit 1 where one misses."""
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--presets", action="store_true")
    parser.add_argument("--tasks", nargs="+", choices=GOALS, default=list(GOALS))
    options = parser.parse_args()
    worst = max(race_and_tell(name, options.turns) for name in options.tasks)
    bound = 1 + ALLOWANCE
    sys.stdout.write(f"largest ratio {worst:.2f}, bound {bound:.2f}\n")
    met = worst <= bound
    if options.presets:
        runs = [(name, seed) for name in options.tasks for seed in SEEDS]
        in_time = [learn_and_tell(name, seed) for name, seed in runs]
        met = met and all(in_time)
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
