"""The encoder-decoder page's view of training: the settings and picture of its run."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages._ui import device_line, leases, live_run, parts, s2s_view
from pages._ui.controls import Controls
from pages._ui.leases import HeldRun, Look

_WIDTHS = [16, 32, 64, 128]
_HEADS = [1, 2, 4, 8]  # each divides each width
_RATES = [1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2, 3e-2, 1e-1, 1.0, 1e6]
_WARM_UPS = [0, 10, 50, 100, 200, 400, 800]
_BATCHES = [16, 32, 64, 128, 256]
_STEPS = [50, 100, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000]
_SMOOTHING = [0.0, 0.05, 0.1, 0.2, 0.3]
_DROPOUT = [0.0, 0.05, 0.1, 0.2, 0.3]
_TARGETS = {"off": None, "90 %": 0.9, "95 %": 0.95, "99 %": 0.99, "100 %": 1.0}
_SNAPSHOT_EVERY = 50
_NORMS = ["pre-norm", "post-norm"]
_NAMED_RIGHT = (("current", "this run"), ("part", "its tokens"), ("shipped", "shipped"))
# Constant, for Streamlit builds a chart anew where its alternative text changes.
_ALT = {
    "loss": "Training loss against steps; the sentence below gives its numbers",
    "accuracy": "Exact match against steps; the sentence below gives its numbers",
    "rate": "Learning rate against steps by each schedule",
    "map": "Cross-attention of one held-out source; the sentence gives its numbers",
}


def choose(c: Controls, task: str) -> dict[str, Any]:
    """Return the settings of a run as plain numbers, by their names in core."""
    from core.seq2seq_training import SCHEDULES, preset

    usual = preset(task)
    st.markdown("**Training**")
    settings: dict[str, Any] = {
        "schedule": c.menu(
            "Learning-rate schedule",
            "schedule",
            list(SCHEDULES),
            preset=SCHEDULES.index(usual.schedule),
        ),
        "warmup_steps": c.listed(
            "Warm-up steps", "warmup", _with(_WARM_UPS, usual.warmup_steps),
            usual.warmup_steps,
        ),
        "learning_rate": c.listed(
            "Highest learning rate", "rate", _with(_RATES, usual.learning_rate),
            usual.learning_rate, shown=lambda rate: f"{float(rate):g}",
        ),
        "label_smoothing": c.listed(
            "Label smoothing", "smoothing", _SMOOTHING, usual.label_smoothing
        ),
        "batch_size": c.listed(
            "Batch", "batch", _with(_BATCHES, usual.batch_size), usual.batch_size
        ),
        "max_steps": c.listed(
            "Stop after steps", "steps", _with(_STEPS, usual.max_steps),
            usual.max_steps,
        ),
    }  # fmt: skip
    target = c.menu("Or stop at an exact match of", "target", list(_TARGETS))
    return settings | {"task": task, "target_exact": _TARGETS[target]} | _model(c)


def checked(settings: dict[str, Any]) -> Any | None:
    """Return the settings as a configuration, or None after saying what is wrong."""
    from core import translation_run
    from core.device import pick_device

    with parts.explained():
        device = pick_device(device_line.chosen()).type
        return translation_run.checked(settings | {"device": device})
    return None


def hold(config: Any | None) -> HeldRun | None:
    """Return this tab's run; one not yet started follows the settings."""
    held = leases.hold(s2s_view.PAGE, config, _make_run)
    untouched = held is not None and held.run.state == "new"
    if untouched and config is not None and held.config != config:
        held.replace(config, _make_run)
    return held


def draw(held: HeldRun, config: Any | None) -> None:
    """Draw the buttons and the moving picture of the run, and keep its weights."""
    from core.shipped_seq2seq import copied_from

    _draw_buttons(held, config)
    size = held.config.model_config.num_parameters
    live_run.keep_weights(held, copied_from, size)
    live_run.moving_view(held, lambda look: _draw_run(held, look))


def look_inside(held: HeldRun) -> None:
    """Show the functions of core that train."""
    from core import encoder_decoder, seq2seq_training

    config = held.config
    task = config.text_task
    functions: list[Callable[..., Any]] = [
        seq2seq_training.Seq2SeqTrainer.step,
        seq2seq_training.target_loss,
        type(config).rate_at,
        encoder_decoder.EncoderDecoderTransformer.forward,
    ]
    sizes = f"({config.batch_size}, up to {task.max_target}, {len(task.target)})"
    parts.look_inside(
        "s2s",
        functions,
        {
            "source (B, S)": f"({config.batch_size}, up to {task.max_source})",
            "logits (B, T, V)": sizes,
            "parameters": f"{config.model_config.num_parameters:,}",
        },
    )


def _model(c: Controls) -> dict[str, Any]:
    st.markdown("**Model**")
    norms = c.choice("Norms", "norms", _NORMS)
    return {
        "norm_first": norms == _NORMS[0],
        "d_model": c.listed("Width, d_model", "width", _WIDTHS, 64),
        "num_heads": c.listed("Heads", "heads", _HEADS, 4),
        "num_layers": c.whole("Layers, each side", "layers", 1, 4, 2),
        "dropout": c.listed("Dropout", "dropout", _DROPOUT, 0.0),
        "seed": c.seed(),
    }


def _with(options: list[Any], own: Any) -> list[Any]:
    return sorted({*options, own})


def _make_run(config: Any) -> Any:
    from core.scheduler import shared_scheduler
    from core.seq2seq_training import Seq2SeqTrainer

    return shared_scheduler(config.device).submit(
        lambda: Seq2SeqTrainer(config),
        max_steps=config.max_steps,
        snapshot_every=_SNAPSHOT_EVERY,
    )


def _draw_buttons(held: HeldRun, config: Any | None) -> None:
    from core.translation_run import differences, run_label

    fresh = held.config if config is None else config

    def reset() -> None:
        held.replace(fresh, _make_run)

    live_run.buttons(held, reset, run_label)
    if held.config != fresh:
        parts.note(
            "This run keeps its own settings, the sidebar has others: "
            f"{differences(held.config, fresh)}. Reset takes those of the sidebar."
        )


def _draw_run(held: HeldRun, look: Look) -> None:
    from core import translation_run

    status = look.status._replace(message=translation_run.status_words(look.status))
    live_run.status_line(
        look._replace(status=status), translation_run.estimate_sentence(look.config)
    )
    sound = [s for s in look.snapshots if translation_run.is_sound(s.content)]
    shown = live_run.scrubber(held.page, look._replace(snapshots=sound))
    back = shown is not None and shown.step != sound[-1].step
    _draw_curves(look, shown.step if back else None)
    if shown is not None:
        _draw_snapshot(look.config, shown)


def _draw_curves(look: Look, step: int | None) -> None:
    from core import marker_story, translation_run
    from core.charts.records import live_frame, record_points

    config, records = look.config, look.records
    shipped = _shipped(config.task)
    task = config.text_task
    most, words = translation_run.no_knowledge(task)
    drawn = {
        "loss": {
            "ends": (0.0, most + 0.5), "level": (most, words), "named": live_run.NAMED,
        },
        "accuracy": {
            "ends": (0.0, 100.0), "named": _NAMED_RIGHT,
            "title": "Held-out sources right in full", "y_title": "right (%)",
        },
    }  # fmt: skip
    ends = [config.max_steps, *(curve.num_steps for curve in look.kept)]
    steps = max([*ends, *([shipped.steps] if shipped is not None else [])])
    columns = st.columns([11, 11, 8])
    for column, (kind, options) in zip(columns, drawn.items(), strict=False):
        kept = {
            translation_run.short_name(curve.name, config): curve.curves[kind]
            for curve in look.kept
        }
        others = {}
        if shipped is not None:
            others["shipped"] = {"shipped run": shipped.curves[kind]}
        if kind == "accuracy":
            tokens = translation_run.token_points(records)
            others["part"] = {"tokens, the true ones fed": tokens}
        frame = live_frame(
            {translation_run.run_label(config): record_points(records, kind)},
            kept=kept,
            others=others,
            chosen=step,
            failed=marker_story.failing_step(records),
            max_points=120 if look.status.state in live_run.MOVING else 300,
        )
        with column:
            _draw_live(frame, kind, steps, options)
    with columns[-1]:
        _draw_schedule(config, step or look.status.step_count or None)
    said = translation_run.progress_sentence(records[:step], config, task)
    if shipped is not None:
        said = f"{said} {translation_run.shipped_sentence(shipped)}"
    st.markdown(parts.plain(said), help=shipped and parts.plain(shipped.origin))
    parts.sentence(_schedule_words(config, step or len(records)))


def _schedule_words(config: Any, step: int) -> str:
    from core import translation_run
    from core.charts.schedule import other_lines
    from core.seq2seq_training import SCHEDULES

    said = translation_run.schedule_sentence(config, step)
    if translation_run.only_rises(config):  # then all schedules are one line
        return said
    return f"{said} {other_lines(SCHEDULES, config.schedule)}"


def _shipped(task: str) -> Any | None:
    from core import shipped_seq2seq

    with parts.explained():
        return shipped_seq2seq.read_shipped(task)
    return None


def _draw_live(frame: Any, kind: str, steps: int, options: dict[str, Any]) -> None:
    from core import charts

    parts.bare_chart(
        charts.live_curves,
        frame,
        key=f"s2s_{kind}",
        alt=_ALT[kind],
        kind=kind,
        max_steps=steps,
        height=240,
        **options,
    )


def _draw_schedule(config: Any, step: int | None) -> None:
    from core import charts, translation_run
    from core.charts.schedule import schedule_frame

    rates = translation_run.schedules(config)
    parts.bare_chart(
        charts.schedule,
        schedule_frame(rates, config.schedule, step=step),
        key="s2s_rate",
        alt=_ALT["rate"],
        series=tuple(rates),
        max_steps=config.max_steps,
        most=config.learning_rate,
        title="Learning rate",
        height=240,
    )


def _draw_snapshot(config: Any, snapshot: Any) -> None:
    from core import charts, translation_run
    from core.charts import tidy

    task, content = config.text_task, snapshot.content
    samples, picture = st.columns([1, 1], gap="medium")
    with samples:
        rows = translation_run.sample_rows(content.samples, task)
        st.markdown(parts.table(["held-out source", "answer", ""], rows))
        parts.sentence(translation_run.samples_sentence(content.samples, snapshot.step))
    with picture:
        seen = translation_run.map_of(content, task)
        parts.bare_chart(
            charts.heatmap,
            tidy.matrix_frame(
                seen.weights, row_labels=seen.rows, column_labels=seen.columns
            ),
            key="s2s_map",
            # With other words the picture is built anew: one that lives on would keep
            # the order of its old labels.
            alt=f"{_ALT['map']}. Rows: {' '.join(seen.rows)}. "
            f"Columns: {' '.join(seen.columns)}",
            title=seen.title,
            row_title="query (reads): token given",
            legend=False,
            height=330,
        )
        parts.sentence(seen.sentence)
