"""What a training run from text to text says in numbers: its name, curves, samples."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from torch import Tensor

from core import marker_story
from core.captions import counted
from core.checks import RefusedError
from core.run import RunState, RunStatus
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
    "norm_first": "norms",
    "learning_rate": "rate",
    "schedule": "schedule",
    "warmup_steps": "warm-up",
    "label_smoothing": "smoothing",
    "batch_size": "batch",
    "max_steps": "steps",
    "target_exact": "stop at an exact match of",
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
            counted(trained.steps, "training step"),
            exact,
            f"{config.num_layers} + {config.num_layers} layers",
            f"{config.num_heads} heads",
            f"d_model {config.d_model}",
            _said("norm_first", config.norm_first),
        ]
    )


def run_label(config: Seq2SeqConfig) -> str:
    """Return a short name of a run: task, what differs from its preset, seed."""
    usual = preset(config.task)
    changed = [
        _setting(name, getattr(config, name))
        for name in _NAMES
        if getattr(config, name) != getattr(usual, name)
    ]
    return ", ".join([config.task, *changed, f"seed {config.seed}"])


def short_name(label: str, config: Seq2SeqConfig) -> str:
    """Return the label of a run as it stands beside one of ``config``'s task."""
    return label.removeprefix(f"{config.task}, ")


def differences(own: Seq2SeqConfig, other: Seq2SeqConfig) -> str:
    """Return what differs between the settings of a run and others, in words."""
    return marker_story.differences(own, other, _NAMES, _said)


def rate_text(rate: float) -> str:
    """Return a learning rate with three digits and no exponent: 0.003, 0.0000297."""
    if not rate or not math.isfinite(rate):
        return f"{rate:g}"
    digits = 2 - math.floor(math.log10(abs(rate)))
    written = f"{rate:.{max(digits, 0)}f}"
    return written.rstrip("0").rstrip(".") if digits > 0 else written


def status_words(status: RunStatus) -> str:
    """Return what a run does; before its first step, that it is being made ready."""
    if status.step_count or status.let_go:
        return status.message
    waiting = {
        RunState.RUNNING: "Starting: the data are made and the model is built.",
        RunState.PAUSED: "Paused before the first step.",
    }
    return waiting.get(status.state, status.message)


def no_knowledge(task: TextTask) -> tuple[float, str]:
    """Return the loss of a model that knows nothing, ln V, with its words."""
    size = len(task.target)
    return math.log(size), f"all {size} tokens alike: ln {size} = {math.log(size):.2f}"


def estimate_sentence(config: Seq2SeqConfig) -> str:
    """Return about how long a whole run takes at this size."""
    seconds = config.max_steps * config.step_seconds
    time = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(1, seconds):.0f} s"
    return (
        f"{config.max_steps:,} steps: about {time} on two idle CPU cores, longer "
        "beside other runs."
    )


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
    rate = rate_text(last.rate)
    said = f"Step {last.step}: loss {last.loss:.3f}, learning rate {rate}"
    tested = next((r for r in reversed(records) if r.exact is not None), None)
    if tested is None:
        return f"{said}; held-out sources not tested yet."
    return (
        f"{said}; at step {tested.step}, {percent(tested.exact or 0.0)} of "
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
    step, highest = max(step, 1), rate_text(config.learning_rate)
    if only_rises(config):
        end = rate_text(config.rate_at(config.max_steps))
        grows = (
            f"The warm-up of {config.warmup_steps} steps does not end before the run: "
            f"by every schedule the rate only rises, to {end} at step "
            f"{config.max_steps}"
        )
    elif config.warmup_steps:
        grows = f"The rate grows to {highest} over {config.warmup_steps} steps"
    else:
        grows = f"Without warm-up the rate starts at {highest}"
    rate = rate_text(config.rate_at(step))
    return f"Schedule: {config.schedule}. {grows}; at step {step} it is {rate}."


def only_rises(config: Seq2SeqConfig) -> bool:
    """Return whether the run ends in its warm-up, where all schedules are one line."""
    return config.warmup_steps >= config.max_steps


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


def _setting(name: str, value: Any) -> str:
    said = _said(name, value)
    return said if name == "norm_first" else f"{_NAMES[name]} {said}"


def _said(name: str, value: Any) -> str:
    """Return the value of a setting in the words of the page."""
    if name == "norm_first":
        return "pre-norm" if value else "post-norm"
    if name == "target_exact":
        return "off" if value is None else f"{100 * value:g}\u00a0%"
    if name == "learning_rate":
        return rate_text(value)
    return marker_story.plain(value)
