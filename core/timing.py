"""Measured time of recurrent layers and attention against length.

``python -m core.timing`` measures what the page shows before anybody has pressed a
button and writes it to ``assets/tables/timing.csv``.
"""

import argparse
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from core.attention import MultiHeadAttention
from core.checks import require_choice, require_divisible, require_int
from core.growth import Curve, doubts
from core.initial import generator_from
from core.recurrent import initial_weights, torch_layer
from core.shipped import TABLES, origin_of, read_table, write_table
from core.threads import one_thread

MODELS = ("rnn", "lstm", "attention")
WHATS = ("forward", "train")
WIDTHS = (16, 32, 64, 128)
LENGTHS = tuple(2**exponent for exponent in range(4, 13))  # 16 … 4096
NUM_HEADS = 4
TIMING = TABLES / "timing.csv"

_LONGEST = 0.3  # seconds that one measurement may take
_ENOUGH = 0.05  # seconds after which repeating stops
_MOST_REPEATS = 15
_GROWTH = {"rnn": 2, "lstm": 2, "attention": 4}  # from one length to twice that
_REFUSAL = "Nothing is written: measure again on a quiet machine."
_COLUMNS = ("width", "what", "model", "seq_len", "thread_seconds", "rounds")


@dataclass(frozen=True)
class TimingConfig:
    """What is timed.

    Attributes:
        width: Width d of tokens and layers; four heads must divide it.
        what: "forward", or "train" for forward and backward.
        rounds: How often everything is measured, one after the other.

    Raises:
        ValueError: If a value is out of range.
    """

    width: int = 64
    what: str = "forward"
    rounds: int = 5

    def __post_init__(self) -> None:
        """Refuse what cannot be timed, in one sentence."""
        require_int("width", self.width, NUM_HEADS, WIDTHS[-1])
        require_divisible("width", self.width, "num_heads", NUM_HEADS)
        require_choice("what", self.what, WHATS)
        require_int("rounds", self.rounds, 1, 50)

    @property
    def total(self) -> int:
        """Number of results the measurement brings."""
        return self.rounds * len(LENGTHS) * len(MODELS)


class Timing(NamedTuple):
    """One measurement.

    Attributes:
        model: "rnn", "lstm" or "attention".
        seq_len: Number of tokens n.
        what: "forward" or "train".
        seconds: Processor time of one thread, the shortest of the repeats, as other
            work on the machine only adds to it; None where it was skipped since it
            would have taken over 0.3 s.
        repeats: How often it ran after a first pass that is not counted; 0 where the
            first pass took so long that it counts.
    """

    model: str
    seq_len: int
    what: str
    seconds: float | None
    repeats: int


def measure(config: TimingConfig) -> Iterator[Timing]:
    """Time every model at every length, round after round, so that all meet the same.

    A run that would take too long, judged by half its length, is skipped and told.

    Args:
        config: What to time.

    Yields:
        ``config.total`` timings.
    """
    passes = {model: _pass_of(model, config) for model in MODELS}
    longest = dict.fromkeys(MODELS, LENGTHS[-1])
    for _ in range(config.rounds):
        last: dict[str, float | None] = dict.fromkeys(MODELS, 0.0)
        for seq_len, (model, run) in product(LENGTHS, passes.items()):
            before = last[model] if seq_len <= longest[model] else None
            with one_thread():
                timing = timed(model, seq_len, config.what, run, before)
            last[model] = timing.seconds
            if timing.seconds and not timing.repeats:  # the longest that fits a turn
                fits = timing.seconds <= _LONGEST
                longest[model] = seq_len if fits else seq_len // 2
            yield timing


def timed(
    model: str,
    seq_len: int,
    what: str,
    run: Callable[[int], None],
    before: float | None,
    clock: Callable[[], float] = time.thread_time,
) -> Timing:
    """Time one model at one length, unless that would take too long.

    Args:
        model: "rnn", "lstm" or "attention".
        seq_len: Number of tokens n.
        what: "forward" or "train".
        run: Runs the model once on that many tokens.
        before: Seconds at half the length, by which the time is judged; None where
            that was skipped.
        clock: Seconds of computing: those of other threads and programs do not count,
            so a busy machine lengthens nothing.
    """
    if before is None or 2 * _GROWTH[model] * before > _LONGEST:  # a pass and one more
        return Timing(model, seq_len, what, None, 0)

    def once() -> float:
        start = clock()
        run(seq_len)
        return clock() - start

    first = once()  # it prepares memory and kernels
    if first > _LONGEST / 2:
        return Timing(model, seq_len, what, first, 0)
    seconds = [once()]
    while sum(seconds) < _ENOUGH and len(seconds) < _MOST_REPEATS:
        seconds.append(once())
    return Timing(model, seq_len, what, min(seconds), len(seconds))


def best_curves(timings: Sequence[Timing]) -> dict[str, Curve]:
    """Return the shortest seconds of each model at each length over all rounds.

    What else the machine does can only add time, so the shortest is nearest to what the
    layer takes.

    Args:
        timings: Of one configuration, in any order; skipped ones are left out.
    """
    found: dict[tuple[str, int], list[float]] = {}
    for timing in timings:
        if timing.seconds is not None:
            found.setdefault((timing.model, timing.seq_len), []).append(timing.seconds)
    curves = {}
    for model in MODELS:
        lengths = tuple(sorted(n for name, n in found if name == model))
        seconds = tuple(min(found[model, n]) for n in lengths)
        if lengths:
            curves[model] = Curve(lengths, seconds)
    return curves


def rounds_of(timings: Sequence[Timing]) -> dict[tuple[str, int], int]:
    """Return in how many rounds each (model, length) was measured."""
    found: dict[tuple[str, int], int] = {}
    for timing in timings:
        if timing.seconds is not None:
            place = timing.model, timing.seq_len
            found[place] = found.get(place, 0) + 1
    return found


def left_out(curves: Mapping[str, Curve]) -> dict[str, int]:
    """Return the first length that a complete measurement left out, by model."""
    ends = {model: curve.lengths[-1] for model, curve in curves.items()}
    longer = {model: [n for n in LENGTHS if n > end] for model, end in ends.items()}
    return {model: lengths[0] for model, lengths in longer.items() if lengths}


class ShippedTimings(NamedTuple):
    """What was measured before, and what made it.

    Attributes:
        origin: What made it, as a sentence.
        curves: (width, what) -> model -> its shortest seconds.
    """

    origin: str
    curves: dict[tuple[int, str], dict[str, Curve]]


@functools.cache
def read_timings(path: Path = TIMING) -> ShippedTimings:
    """Return the shipped measurements.

    Args:
        path: A file that ``write_timings`` wrote.
    """
    made_by, rows = read_table(path)
    timings: dict[tuple[int, str], list[Timing]] = {}
    for row in rows:
        timing = Timing(
            row["model"],
            int(row["seq_len"]),
            row["what"],
            float(row["thread_seconds"]),
            int(row["rounds"]),
        )
        timings.setdefault((int(row["width"]), row["what"]), []).append(timing)
    rounds = sorted({int(row["rounds"]) for row in rows})
    count = f"{rounds[0]} to {rounds[-1]}" if len(rounds) > 1 else f"{rounds[0]}"
    how = f"processor time of one thread, shortest of {count} rounds"
    origin = f"{origin_of(made_by)[:-1]}, {made_by['machine']}, {how}."
    curves = {setting: best_curves(found) for setting, found in timings.items()}
    return ShippedTimings(origin, curves)


def write_timings(
    path: Path, timings: Mapping[tuple[int, str], Sequence[Timing]]
) -> None:
    """Write measurements as CSV, below lines on their origin.

    Args:
        path: File to write.
        timings: (width, what) -> all that was measured; the shortest of each model and
            length is written, and in how many rounds it was measured.
    """
    rows = (
        (width, what, model, n, f"{seconds:.4g}", rounds_of(found)[model, n])
        for (width, what), found in timings.items()
        for model, curve in best_curves(found).items()
        for n, seconds in zip(*curve, strict=True)
    )
    write_table(path, _COLUMNS, rows, command="python -m core.timing", seed="0")


def _pass_of(model: str, config: TimingConfig) -> Callable[[int], None]:
    """Return what runs one model once on a sequence of a given length."""
    source, width = generator_from(0), config.width
    if model == "attention":
        attention = MultiHeadAttention(width, NUM_HEADS, generator=source)
        parameters = list(attention.parameters())

        def outputs(x: Tensor) -> Tensor:
            return attention(x, x, x)
    else:
        weights = initial_weights(
            model, input_size=width, hidden_size=width, generator=source
        )
        recurrent = torch_layer(model, weights)
        parameters = list(recurrent.parameters())

        def outputs(x: Tensor) -> Tensor:
            return recurrent(x)[0]

    longest = torch.randn(1, LENGTHS[-1], width, generator=source)

    def forward(seq_len: int) -> None:
        with torch.inference_mode():
            outputs(longest[:, :seq_len])

    def train(seq_len: int) -> None:
        torch.autograd.grad(outputs(longest[:, :seq_len]).sum(), parameters)

    return {"forward": forward, "train": train}[config.what]


def main() -> None:
    """Measure every width, forward and training, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--path", type=Path, default=TIMING)
    given = parser.parse_args()
    configs = [TimingConfig(w, what, given.rounds) for w in WIDTHS for what in WHATS]
    timings = {(c.width, c.what): list(measure(c)) for c in configs}
    found = doubts({setting: best_curves(every) for setting, every in timings.items()})
    if found:
        parser.exit(1, "\n".join([*found, _REFUSAL]) + "\n")
    write_timings(given.path, timings)


if __name__ == "__main__":
    main()
