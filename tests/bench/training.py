"""Steps a second of the ``Trainer``, beside a plain PyTorch loop in the same run.

    python -m tests.bench.training

The plain loop is the lab's recipe as most would write it: blocks around
``nn.MultiheadAttention``, ``nn.Dropout`` at the same places, a ``DataLoader`` that
shuffles, Adam and ``clip_grad_norm_``. Same data, same sizes, same rate of dropout. The
contenders take turns in short blocks, so that a busy machine slows all of them, and the
ratio is the median over the turns.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from core.positional import sinusoidal_encoding
from core.tasks import marker_task
from core.training import MAX_STEPS, TrainConfig, Trainer

SMALLEST_RATIO = 2.0

Step = Callable[[], object]


class PlainBlock(nn.Module):
    """A pre-norm encoder block from PyTorch's own parts."""

    def __init__(self, d_model: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(
            d_model, num_heads, dropout=dropout, batch_first=True
        )
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(4 * d_model, d_model),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        attended, _ = self.attention(normed, normed, normed)
        x = x + self.dropout(attended)
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class PlainClassifier(nn.Module):
    """The lab's classifier from such blocks."""

    def __init__(self, config: TrainConfig) -> None:
        super().__init__()
        d_model = config.d_model
        self.embed = nn.Linear(1, d_model)
        self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        positions = sinusoidal_encoding(config.seq_len + 1, d_model)
        self.register_buffer("positions", positions)
        self.blocks = nn.Sequential(
            *(
                PlainBlock(d_model, config.num_heads, config.dropout)
                for _ in range(config.num_layers)
            )
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, 1)

    def forward(self, x: Tensor) -> Tensor:
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), self.embed(x)], dim=1)
        return self.head(self.norm(self.blocks(tokens + self.positions))[:, 0])


def plain_loop(config: TrainConfig) -> Step:
    """Return a function that takes one step of the plain loop."""
    torch.manual_seed(config.seed)
    model = PlainClassifier(config).train()
    data = TensorDataset(*marker_task(config.train_samples, config.seq_len, seed=0))
    loader = DataLoader(data, batch_size=config.batch_size, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    criterion = nn.BCEWithLogitsLoss()
    batches = (batch for _ in itertools.count() for batch in loader)

    def step() -> float:
        inputs, targets = next(batches)
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        return loss.item()

    return step


def contenders() -> dict[str, Step]:
    """Return name and step of everyone who races; the first is the reference."""
    preset = TrainConfig(max_steps=MAX_STEPS)
    bare = TrainConfig(max_steps=MAX_STEPS, eval_every=MAX_STEPS)
    return {
        "plain loop": plain_loop(preset),
        "Trainer": Trainer(bare).step,
        "Trainer, tested three times an epoch": Trainer(preset).step,
    }


def race(steps: dict[str, Step], turns: int, block: int) -> dict[str, list[float]]:
    """Return the steps a second of everyone, turn by turn, after one to warm up."""
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(turns + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(block):
                step()
            if turn:
                rates[name].append(block / (time.perf_counter() - start))
    return rates


def median_ratios(rates: dict[str, list[float]]) -> dict[str, float]:
    """Return everyone's median ratio to the first, within the turns."""
    reference = next(iter(rates.values()))
    return {
        name: statistics.median(a / b for a, b in zip(own, reference, strict=True))
        for name, own in rates.items()
    }


def main() -> int:
    """Report steps a second and ratios; exit 1 where the Trainer misses the bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--block", type=int, default=42, help="steps in one turn")
    options = parser.parse_args()
    rates = race(contenders(), options.turns, options.block)
    ratios = median_ratios(rates)
    for name, own in rates.items():
        sys.stdout.write(
            f"{name:<37} {statistics.median(own):6.1f} steps/s, "
            f"{ratios[name]:.2f} times the plain loop\n"
        )
    sys.stdout.write(f"the Trainer must reach {SMALLEST_RATIO:g} times\n")
    return int(ratios["Trainer"] < SMALLEST_RATIO)


if __name__ == "__main__":
    sys.exit(main())
