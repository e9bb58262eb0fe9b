"""What a training run from text to text says in numbers: its name, curves, samples."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from core import marker_story
from core.checks import RefusedError
from core.seq2seq_training import (
    SCHEDULES,
    Sample,
    Seq2SeqConfig,
    Seq2SeqRecord,
    Seq2SeqSnapshot,
    preset,
)
from core.shipped_seq2seq import TrainedSeq2Seq
from core.text_tasks import TextTask
from core.translation_story import (
    MEAN,
    map_name,
    percent,
    spread_of,
    spread_sentence,
)
from core.vocabulary import END

_NAMES = {
    "task": "task",
    "d_model": "width",
    "num_heads": "heads",
    "num_layers": "layers",
    "dropout": "dropout",
    "norm_first": "pre-norm",
    "learning_rate": "rate",
    "schedule": "schedule",
    "warmup_steps": "warm-up",
    "label_smoothing": "smoothing",
    "batch_size": "batch",
    "max_steps": "steps",
}
_CURVE_POINTS = 120


def run_words(trained: TrainedSeq2Seq, *, own: bool) -> str:
    """Return whose weights these are, with steps, exact match and size."""
    config = trained.config
    exact = "exact match not measured"
    if trained.exact is not None:
        exact = (
            f"exact match {percent(trained.exact)} of {trained.num_tested:,} held-out "
            "sources"
        )
    return " · ".join(
        [
            "Your run" if own else "Shipped run",
            f"{trained.steps:,} training steps",
            exact,
            f"{config.num_layers} + {config.num_layers} layers",
            f"{config.num_heads} heads",
            f"d_model {config.d_model}",
            "pre-norm" if config.norm_first else "post-norm",
        ]
    )


def run_label(config: Seq2SeqConfig) -> str:
    """Return a short name of a run: task, what differs from its preset, seed."""
    usual = preset(config.task)
    changed = [
        f"{shown} {marker_story.plain(getattr(config, name))}"
        for name, shown in _NAMES.items()
        if getattr(config, name) != getattr(usual, name)
    ]
    return ", ".join([config.task, *changed, f"seed {config.seed}"])


def differences(own: Seq2SeqConfig, other: Seq2SeqConfig) -> str:
    """Return what differs between the settings of a run and others, in words."""
    return marker_story.differences(own, other, _NAMES)


def no_knowledge(task: TextTask) -> tuple[float, str]:
    """Return the loss of a model that knows nothing, ln V, with its words."""
    size = len(task.target)
    return math.log(size), f"all {size} tokens alike: ln {size} = {math.log(size):.2f}"


def estimate_sentence(config: Seq2SeqConfig) -> str:
    """Return about how long a whole run takes at this size."""
    seconds = config.max_steps * config.step_seconds
    time = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(1, seconds):.0f} s"
    return f"{config.max_steps:,} steps: about {time} at most on two CPU cores."


def progress_sentence(
    records: Sequence[Seq2SeqRecord], config: Seq2SeqConfig, task: TextTask
) -> str:
    """Return where a run stands: loss, rate, exact match and tokens right."""
    if not records:
        loss, _ = no_knowledge(task)
        return (
            f"Before training; a model that gives all {len(task.target)} tokens alike "
            f"has the loss {loss:.2f}."
        )
    last = records[-1]
    if marker_story.failing_step(records) is not None:
        return f"Step {last.step}: loss or gradient is no longer a finite number."
    said = f"Step {last.step}: loss {last.loss:.3f}, learning rate {last.rate:.2e}"
    tested = next((r for r in reversed(records) if r.exact is not None), None)
    if tested is None:
        return f"{said}; held-out sources not tested yet."
    return (
        f"{said}; at step {tested.step} {percent(tested.exact or 0.0)} of "
        f"{config.test_pairs} held-out sources answered right in full, "
        f"{percent(tested.token_accuracy or 0.0)} of their tokens when the true ones "
        "are fed."
    )


def shipped_sentence(trained: TrainedSeq2Seq) -> str:
    """Return what the shipped run of a task reached."""
    exact = percent(trained.exact or 0.0)
    return (
        f"Grey: the shipped run, {exact} of {trained.num_tested:,} held-out sources "
        f"right in full after {trained.steps:,} steps."
    )


def token_points(records: Sequence[Seq2SeqRecord]) -> list[tuple[int, float]]:
    """Return (step, tokens right in percent) of each evaluation."""
    return [
        (record.step, 100 * record.token_accuracy)
        for record in records
        if record.token_accuracy is not None
    ]


def schedules(config: Seq2SeqConfig) -> dict[str, list[tuple[int, float]]]:
    """Return the learning rate over the steps of the run, by every schedule."""
    last = config.max_steps
    stride = max(1, last // _CURVE_POINTS)
    ends = {1, max(config.warmup_steps, 1), last}
    steps = sorted({*ends, *range(stride, last + 1, stride)})
    return {
        name: [
            (step, replace(config, schedule=name).rate_at(step))
            for step in steps
            if step <= last
        ]
        for name in SCHEDULES
    }


def schedule_sentence(config: Seq2SeqConfig, step: int) -> str:
    """Return the schedule of a run in words, with its rate at a step."""
    grows = f"grows to {config.learning_rate:g} over {config.warmup_steps} steps"
    if not config.warmup_steps:
        grows = f"starts at {config.learning_rate:g}"
    return (
        f"Schedule: {config.schedule} (grey: the others). The rate {grows}; at step "
        f"{max(step, 1)} it is {config.rate_at(max(step, 1)):.2e}."
    )


def sample_rows(
    samples: Sequence[Sample], task: TextTask
) -> list[tuple[str, str, str]]:
    """Return source, answer and verdict of each sample."""
    rows = []
    for sample in samples:
        answer = task.write(sample.answer) + ("" if sample.ended else " …")
        verdict = "right" if sample.right else "wrong"
        rows.append((task.write(sample.source), answer or "(nothing)", verdict))
    return rows


def samples_sentence(samples: Sequence[Sample], step: int) -> str:
    """Return how many samples are answered right after a step."""
    right = sum(sample.right for sample in samples)
    return f"After step {step}: {right} of {len(samples)} samples right in full."


class SampleMap(NamedTuple):
    """The cross-attention of one sample, with the labels of its picture.

    Attributes:
        weights: (T, S), of the last layer, mean of its heads.
        rows: The token that each query gives.
        columns: Tokens of the source.
        title: Whose map it is.
        sentence: Where its weights lie, in numbers.
    """

    weights: Tensor
    rows: list[str]
    columns: list[str]
    title: str
    sentence: str


def is_sound(snapshot: Seq2SeqSnapshot) -> bool:
    """Return whether all weights of a snapshot are finite numbers."""
    return all(bool(weights.isfinite().all()) for weights in snapshot.cross_maps)


def map_of(snapshot: Seq2SeqSnapshot, task: TextTask) -> SampleMap:
    """Return the map of the sample whose attention a snapshot holds."""
    sample, maps = snapshot.samples[snapshot.mapped], snapshot.cross_maps
    weights = maps[-1].mean(dim=0)
    given = [*sample.answer, task.target.tokens[END]][: len(weights)]
    name = map_name(len(maps), MEAN, maps[-1].shape[0])
    spread = spread_of(weights, sample.source, given)
    return SampleMap(
        weights,
        task.labels(given),
        task.labels(sample.source),
        f"{name}: cross-attention",
        spread_sentence(name, spread, len(sample.source)),
    )


def checked(settings: dict[str, object]) -> Seq2SeqConfig:
    """Return settings of the page as a configuration; what is not set is the preset's.

    Raises:
        RefusedError: If they cannot be run.
    """
    task = settings.get("task")
    if not isinstance(task, str):
        raise RefusedError(f"task must be a name, got {task!r}")
    return preset(task, **{k: v for k, v in settings.items() if k != "task"})
