"""Steps a second of the ``Trainer``, alone and live, beside a plain PyTorch loop.

    python -m tests.bench.training

The plain loop is the lab's recipe as most would write it: blocks around
``nn.MultiheadAttention``, ``nn.Dropout`` at the same places, a ``DataLoader`` that
shuffles, Adam and ``clip_grad_norm_``. Same data, same sizes, same rate of dropout.
Three contenders take turns in short blocks, so that a busy machine slows all of them,
and the ratio is the median over the turns:

- the plain loop, in a process with PyTorch's own settings;
- the ``Trainer`` alone, in a process with the playground's, testing as the page does;
- the marker page in Chromium with its charts open, run and paused by its buttons.
"""

import argparse
import itertools
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

# Loaded before core on purpose: the plain loop keeps the waiting that torch presets.
import torch
from playwright.sync_api import Page, expect, sync_playwright
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from core.positional import sinusoidal_encoding
from core.tasks import marker_task
from core.train_config import TrainConfig
from tests.e2e.conftest import OPTIONS, find_chromium
from tests.e2e.tabs import open_page, quiet
from tests.live_server import ROOT, serve

SMALLEST_RATIO = {"Trainer alone": 2.0, "live page": 1.7}
LIVE_SECONDS = 5.0
BLOCK_STEPS = 63

Step = Callable[[], object]
Rate = Callable[[], float]  # runs one block; steps a second

TRAINER = """
import sys, time
from core.training import TrainConfig, Trainer
step = Trainer(TrainConfig(max_steps=20_000)).step
for line in sys.stdin:
    start = time.perf_counter()
    for _ in range(int(line)):
        step()
    print(time.perf_counter() - start, flush=True)
"""


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


@contextmanager
def plain_contender() -> Iterator[Rate]:
    """Race the plain loop, in this process."""
    step = plain_loop(TrainConfig())

    def rate() -> float:
        start = time.perf_counter()
        for _ in range(BLOCK_STEPS):
            step()
        return BLOCK_STEPS / (time.perf_counter() - start)

    yield rate


@contextmanager
def trainer_contender() -> Iterator[Rate]:
    """Race the Trainer alone, in a process that loads core as the app does."""
    with subprocess.Popen(
        [sys.executable, "-c", TRAINER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def rate() -> float:
            stdin.write(f"{BLOCK_STEPS}\n")
            stdin.flush()
            return BLOCK_STEPS / float(stdout.readline())

        yield rate
        stdin.close()


@contextmanager
def live_contender() -> Iterator[Rate]:
    """Race the marker page in a browser, charts and all."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(ROOT / "app.py", Path(folder) / "log.txt") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=list(OPTIONS)
        )
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        open_page(tab, server, "marker_task", "marker_steps=10000")
        quiet(tab)
        yield lambda: _live_rate(tab)
        browser.close()


def _live_rate(tab: Page) -> float:
    tab.get_by_role("button", name="Run", exact=True).click()
    _next_count(tab)
    first, start = _next_count(tab), time.perf_counter()
    tab.wait_for_timeout(LIVE_SECONDS * 1000)
    last, end = _next_count(tab), time.perf_counter()
    tab.get_by_role("button", name="Pause", exact=True).click()
    expect(tab.get_by_role("button", name="Run", exact=True)).to_be_visible()
    return (last - first) / (end - start)


def _next_count(tab: Page) -> int:
    """Return the number of steps at the moment in which the page shows another one."""
    line = tab.get_by_text(re.compile(r"^Step [\d,]+ / ")).first
    before = line.inner_text()
    while line.inner_text() == before:
        tab.wait_for_timeout(10)
    found = re.match(r"Step ([\d,]+)", line.inner_text())
    assert found is not None
    return int(found.group(1).replace(",", ""))


def race(contenders: dict[str, Rate], turns: int) -> dict[str, list[float]]:
    """Return the steps a second of everyone, turn by turn, after one to warm up.

    Every second turn goes the other way round.
    """
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(turns + 1):
        order = list(contenders)[:: -1 if turn % 2 else 1]
        for name in order:
            rate = contenders[name]()
            if turn:
                rates[name].append(rate)
    return rates


def median_ratios(rates: dict[str, list[float]]) -> dict[str, float]:
    """Return everyone's median ratio to the first, within the turns."""
    reference = next(iter(rates.values()))
    return {
        name: statistics.median(a / b for a, b in zip(own, reference, strict=True))
        for name, own in rates.items()
    }


def main() -> int:
    """Report steps a second and ratios; exit 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    makers = {
        "plain loop": plain_contender,
        "Trainer alone": trainer_contender,
        "live page": live_contender,
    }
    if find_chromium() is None:
        del makers["live page"]
        sys.stdout.write("no Chromium here: the live page does not race\n")
    turns = parser.parse_args().turns
    with ExitStack() as stack:
        contenders = {n: stack.enter_context(make()) for n, make in makers.items()}
        rates = race(contenders, turns)
    ratios = median_ratios(rates)
    for name, own in rates.items():
        bound = SMALLEST_RATIO.get(name)
        must = f", at least {bound:g} asked for" if bound else ""
        sys.stdout.write(
            f"{name:<14} {statistics.median(own):6.1f} steps/s, "
            f"{ratios[name]:.2f} times the plain loop{must}\n"
        )
    return int(any(ratios[n] < b for n, b in SMALLEST_RATIO.items() if n in ratios))


if __name__ == "__main__":
    sys.exit(main())
