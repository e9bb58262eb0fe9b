"""The marker page's own pieces: its settings, and the picture of its run."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages._ui import device_line, leases, live_run, parts
from pages._ui.controls import Controls
from pages._ui.leases import HeldRun

PAGE = "marker_task"
_LENGTHS = [10, 20, 30, 60, 120, 300]
_LONG = 120  # beyond, larger batches take too long a step even for the preset
_WIDTHS = [8, 16, 32, 64, 128]
_RATES = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0, 10.0, 1e6]
_STEPS = [63, 126, 189, 378, 756, 1512, 3024, 6048, 10_000]
_TARGETS = {"off": None, "95 %": 0.95, "99 %": 0.99, "99.9 %": 0.999, "100 %": 1.0}
_MOST_ROWS = 4000
_SNAPSHOT_EVERY = 21


def choose(c: Controls) -> dict[str, Any]:
    """Return the settings of a run as plain numbers, by their names in core."""
    st.markdown("**Task**")
    settings: dict[str, Any] = {
        "seq_len": c.listed("Sequence length", "length", _LENGTHS, 60),
        "train_samples": c.listed(
            "Training sequences", "samples", [250, 500, 1000, 2000, 4000, 8000], 4000
        ),
    }
    st.markdown("**Model**")
    width = c.listed("Width, d_model", "width", _WIDTHS, 32)
    heads = [h for h in (1, 2, 4, 8, 16) if width % h == 0]
    settings |= {
        "d_model": width,
        "num_heads": c.listed("Heads", "heads", heads, 4),
        "num_layers": c.whole("Layers", "layers", 1, 6, 2),
        "dropout": c.listed("Dropout", "dropout", [0.0, 0.05, 0.1, 0.2, 0.3, 0.5], 0.1),
        "positional": c.choice(
            "Positions", "positions", ["sinusoidal", "learned", "none"]
        ),
        "readout": c.choice(
            "Readout", "readout", ["cls", "mean", "last"], shown=_readout_name
        ),
        "causal": c.switch("Causal mask", "causal", False),
    }
    return settings | _choose_training(c, settings["seq_len"])


def choose_moved(c: Controls, seq_len: int) -> int:
    """Return where the marker shall stand when the trained model is tested."""
    st.markdown("**After training**")
    return c.whole(
        "Marker position at test time",
        "moved",
        0,
        seq_len - 1,
        0,
        help_text="Training always had it at position 0.",
    )


def checked(settings: dict[str, Any]) -> Any | None:
    """Return the settings as a configuration, or None after saying what is wrong."""
    from core.training import TrainConfig

    with parts.explained():
        return TrainConfig(**settings, device=_device())
    return None


def hold(config: Any | None) -> HeldRun | None:
    """Return this tab's run; one not yet started follows the settings."""
    held = leases.hold(PAGE, config, _make_run)
    untouched = held is not None and held.run.status().state == "new"
    if untouched and config is not None and held.config != config:
        leases.replace(held, config, _make_run)
    return held


def buttons(held: HeldRun, config: Any | None) -> None:
    """Draw the buttons, and say where the settings are no longer the run's."""
    from core.marker_story import notes_on, run_label

    fresh = held.config if config is None else config
    live_run.buttons(
        held, lambda: leases.replace(held, fresh, _make_run), run_label(held.config)
    )
    for note in notes_on(held.config):
        parts.note(note)
    if held.config != fresh:
        st.info(
            f"This run keeps its own settings ({run_label(held.config)}); "
            "Reset starts one with those in the sidebar.",
            icon=":material/info:",
        )


def predict(held: HeldRun) -> None:
    """Ask what moving the marker does; the answer is measured on this tab's run."""
    from core import marker_story

    position = held.config.seq_len // 2
    choices = [
        parts.Choice(
            "It stays where it is",
            "That would need a model that looks for the marker's size wherever it "
            "stands; training never asked for it.",
        ),
        parts.Choice(
            "It falls to about half",
            "A coin flip is the answer of a model that reads only the old place.",
        ),
        parts.Choice(
            "It falls to nearly 0 %",
            "Nearly 0 % would mean knowing the marker and answering the opposite.",
        ),
    ]
    picked = parts.ask_prediction(
        f"{PAGE}_predict",
        f"Train the run, then move the marker of the test sequences from position 0 to "
        f"{position}. What happens to the test accuracy?",
        choices,
    )
    if picked is None:
        return
    if held.run.state in live_run.MOVING or not held.run.step_count:
        parts.note("The answer is measured on your run: train it first, then commit.")
        return
    answer = _moved(held, position)
    if answer is None:
        parts.note("The trainer is busy; commit once more in a moment.")
    elif not marker_story.has_learned(held.run.records):
        parts.note("This run has not learned the task yet, so it cannot answer.")
    else:
        parts.judge_prediction(
            choices,
            picked,
            marker_story.fate_of_accuracy(answer),
            marker_story.moved_sentence(answer, held.run.records),
        )


def ask_ahead(held: HeldRun, moved: int) -> None:
    """Ask for what the picture needs of the trainer, before it is drawn."""
    live_run.ask(held, "opened", _snapshot)
    if _can_move(held, moved):
        _moved(held, moved)


def draw(held: HeldRun, moved: int) -> None:
    """Draw the run as it stands: numbers, curves, what the readout reads."""
    live_run.status_line(held)
    shown = live_run.scrubber(held)
    _draw_curves(held, None if shown is None else shown.step)
    if shown is not None:
        _draw_rows(held, shown.content, 0, "rows")
    if _can_move(held, moved):
        _draw_moved(held, moved)


def inside() -> list[Callable[..., Any]]:
    """Return the functions of core behind the run, outermost first."""
    from core.attention import MultiHeadAttention
    from core.blocks import EncoderBlock
    from core.models import TransformerClassifier
    from core.tasks import marker_task
    from core.training import Trainer

    return [
        marker_task,
        Trainer.step,
        Trainer._update,
        TransformerClassifier.forward,
        EncoderBlock.forward,
        MultiHeadAttention.forward,
    ]


def shapes(held: HeldRun) -> dict[str, str]:
    """Return the shapes inside the model of a run."""
    model, batch = held.config.model, held.config.batch_size
    length, width = model.num_positions, model.d_model
    return {
        "inputs (B, T, 1)": f"({batch}, {model.seq_len}, 1)",
        "tokens (B, T, d_model)": f"({batch}, {length}, {width})",
        "scores (B, H, T, S)": f"({batch}, {model.num_heads}, {length}, {length})",
        "logits (B, 1)": f"({batch}, 1)",
        "parameters": f"{model.num_parameters:,}",
    }


def _choose_training(c: Controls, seq_len: int) -> dict[str, Any]:
    st.markdown("**Training**")
    batches = [16, 32] if seq_len > _LONG else [16, 32, 64, 128, 256]
    settings = {
        "learning_rate": c.listed(
            "Learning rate", "rate", _RATES, 1e-3, shown=lambda rate: f"{float(rate):g}"
        ),
        "batch_size": c.listed("Batch", "batch", batches, min(64, batches[-1])),
        "max_steps": c.listed("Stop after steps", "steps", _STEPS, 756),
    }
    target = c.menu("Or stop at a test accuracy of", "target", list(_TARGETS))
    settings["target_accuracy"] = _TARGETS[target]
    if settings["target_accuracy"] is not None:
        settings["target_hold"] = c.whole(
            "held for evaluations in a row", "hold", 1, 10, 3
        )
    return settings | {"seed": c.seed()}


def _readout_name(readout: str) -> str:
    return "CLS" if readout == "cls" else readout


def _make_run(config: Any) -> Any:
    from core.scheduler import shared_scheduler
    from core.training import Trainer

    return shared_scheduler(config.device).submit(
        lambda: Trainer(config),
        max_steps=config.max_steps,
        snapshot_every=_SNAPSHOT_EVERY,
    )


def _snapshot(trainer: Any) -> Any:
    return trainer.snapshot()


def _device() -> str:
    from core.device import pick_device

    return pick_device(device_line.chosen()).type


def _draw_curves(held: HeldRun, step: int | None) -> None:
    from core import charts, marker_story, shipped
    from core.charts.records import live_frame, record_points

    records = held.run.records
    name = marker_story.run_label(held.config)
    sentence = marker_story.progress_sentence(records, held.config.num_tested)
    kept = dict(held.kept)
    if not records:
        run = shipped.read_run()
        sentence = f"{sentence} {marker_story.shipped_sentence(run)}"
        kept |= {"shipped run": run.records}
    steps = max([held.config.max_steps, *map(len, kept.values())])
    at_rest = held.run.state not in live_run.MOVING
    for column, kind in zip(st.columns(2), ("loss", "accuracy"), strict=True):
        frame = live_frame(
            {name: record_points(records, kind)},
            kept={label: record_points(run, kind) for label, run in kept.items()},
            chosen=step if at_rest and records else None,
            max_points=300 if at_rest else 120,
        )
        with column:
            parts.bare_chart(
                charts.live_curves,
                frame,
                key=f"{PAGE}_{kind}",
                alt=sentence,
                kind=kind,
                max_steps=steps,
                height=230,
            )
    parts.sentence(sentence)


def _draw_rows(held: HeldRun, snapshot: Any, position: int, key: str) -> None:
    from core import charts, marker_story
    from core.charts import tidy

    rows, config = snapshot.readout_rows, held.config
    heads_shown = rows.numel() <= _MOST_ROWS
    shown = rows if heads_shown else rows.mean(dim=1, keepdim=True)
    largest = max(float(s.content.readout_rows.max()) for s in held.run.snapshots)
    parts.picture(
        charts.readout_rows,
        tidy.readout_frame(list(shown)),
        key=f"{PAGE}_{key}",
        caption=marker_story.readout_sentence(rows, config, position=position),
        num_layers=config.num_layers,
        limit=next(x for x in (0.1, 0.2, 0.5, 1.0) if largest <= x or x == 1.0),
        marker=marker_story.marker_column(config, position),
        readout=_readout_name(config.readout),
        title="What the readout reads in one test sequence",
        height=250,
    )


def _can_move(held: HeldRun, position: int) -> bool:
    status = held.run.status()
    at_rest = status.step_count > 0 and status.state not in live_run.MOVING
    return at_rest and 0 < position < held.config.seq_len


def _moved(held: HeldRun, position: int) -> Any | None:
    from core.marker_story import move_marker

    return live_run.ask(
        held,
        ("moved", held.run.step_count, position),
        lambda trainer: move_marker(trainer, position),
    )


def _draw_moved(held: HeldRun, position: int) -> None:
    from core import marker_story

    moved = _moved(held, position)
    st.subheader(f"The marker at position {position}", anchor=False)
    if moved is None:
        st.caption("Tested as soon as the trainer is free.")
        return
    st.markdown(parts.plain(marker_story.moved_sentence(moved, held.run.records)))
    _draw_rows(held, moved.snapshot, position, "moved_rows")
