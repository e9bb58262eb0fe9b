"""The marker page's own pieces: its settings, and the picture of its run."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages._ui import device_line, leases, live_run, parts
from pages._ui.controls import Controls
from pages._ui.leases import HeldRun, Look

_LENGTHS = [10, 20, 30, 60, 120, 300]
_LONG = 120  # beyond, larger batches take too long a step even for the preset
_WIDTHS = [8, 16, 32, 64, 128]
_RATES = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0, 10.0, 1e6]
_STEPS = [63, 126, 189, 378, 400, 756, 1512, 3024, 6048, 10_000]
_TARGETS = {"off": None, "95 %": 0.95, "99 %": 0.99, "99.9 %": 0.999, "100 %": 1.0}
_MOST_ROWS = 4000
_SNAPSHOT_EVERY = 21
# Constant, for Streamlit builds a chart anew where its alternative text changes.
_ALT = {
    "loss": "Training loss against steps; the sentence below gives its numbers",
    "accuracy": "Test accuracy against steps; the sentence below gives its numbers",
    "sequence": "One test sequence over its positions; the sentence below names the "
    "marker",
    "rows": "Weights of the readout against positions; the sentence below gives its "
    "numbers",
}


_READOUT_HELP = (
    "Which vector after the last layer decides. CLS: a learned token that stands "
    "before the sequence and reads it. mean: the average over all positions. last and "
    "first: the last position, and position 0."
)


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
            "Readout",
            "readout",
            ["cls", "mean", "last", "first"],
            shown=_readout_name,
            help_text=_READOUT_HELP,
        ),
        "causal": c.switch("Causal mask", "causal", False),
    }
    return settings | _choose_training(c, settings["seq_len"])


def choose_moved(c: Controls, seq_len: int, held: HeldRun | None) -> int:
    """Return where the marker shall stand when the trained model is tested."""
    ready = held is not None and live_run.at_rest(held.look())
    st.markdown("**After training**")
    return c.whole(
        "Marker position at test time",
        "moved",
        0,
        seq_len - 1,
        0,
        help_text="Training always has it at position 0. Train, let the run rest, then "
        "move it.",
        disabled=not ready,
    )


def checked(settings: dict[str, Any]) -> Any | None:
    """Return the settings as a configuration, or None after saying what is wrong."""
    from core.training import TrainConfig

    with parts.explained():
        return TrainConfig(**settings, device=_device())
    return None


def hold(page: str, config: Any | None) -> HeldRun | None:
    """Return this tab's run; one not yet started follows the settings."""
    held = leases.hold(page, config, _make_run)
    untouched = held is not None and held.run.state == "new"
    if untouched and config is not None and held.config != config:
        held.replace(config, _make_run)
    return held


def buttons(held: HeldRun, config: Any | None) -> None:
    """Draw the buttons, and say where the settings are no longer the run's."""
    from core.marker_story import differences, notes_on, run_label

    own = held.config
    fresh = own if config is None else config

    def reset() -> None:
        held.replace(fresh, _make_run)

    live_run.buttons(held, reset, run_label)
    for note in notes_on(own):
        parts.note(note)
    if own != fresh:
        parts.note(
            "This run keeps its own settings, the sidebar has others: "
            f"{differences(own, fresh)}."
        )
        st.button(
            "Reset with these settings",
            key=f"{held.page}_reset_with",
            icon=":material/restart_alt:",
            type="primary",
            on_click=reset,
        )


def ask_ahead(held: HeldRun, position: int) -> None:
    """Ask for what the page needs of the trainer, before it is drawn."""
    from core.trained import copied_from

    look = held.look()
    if look.status.state == "new":  # builds the model, whose first snapshot is drawn
        live_run.ask(held, "opened", lambda trainer: None)
    if _can_move(look, position):
        moved(held, look, position)
    live_run.keep_weights(held, copied_from, look.config.model.num_parameters)


def offer_maps(held: HeldRun) -> None:
    """Lead to the page that reads the maps of this run, once it rests."""
    if held.newest_answer(leases.WEIGHTS) is not None and live_run.at_rest(held.look()):
        st.page_link(
            "pages/09_reading_maps.py",
            label="Read its attention maps",
            icon=":material/visibility:",
            query_params={"reading_source": "yours"},
        )


def draw(held: HeldRun, look: Look, position: int) -> None:
    """Draw the run as it stands: numbers, curves, what the readout reads."""
    from core.marker_story import estimate_sentence, is_sound

    live_run.status_line(look, estimate_sentence(look.config))
    sound = [s for s in look.snapshots if is_sound(s.content)]
    shown = live_run.scrubber(held.page, look._replace(snapshots=sound))
    back = shown is not None and shown.step != sound[-1].step
    _draw_curves(held.page, look, shown.step if back else None)
    _draw_task(held.page, look.config)
    if shown is not None:
        _draw_rows(look.config, shown, 0, f"{held.page}_rows")
    if len(sound) < len(look.snapshots):
        parts.note(
            "Later the attention weights are no longer numbers; these are the last "
            "that were."
        )
    if _can_move(look, position):
        _draw_moved(held, look, position)


def _draw_task(page: str, config: Any) -> None:
    """Draw one test sequence of the run's task, and say what y and p are."""
    from core import charts, marker_story
    from core.charts import tidy

    values, target = marker_story.first_test(config)
    parts.bare_chart(
        charts.sequence,
        tidy.curves_frame({"sequence": values}),
        key=f"{page}_sequence",
        alt=_ALT["sequence"],
        num_positions=len(values),
    )
    parts.sentence(marker_story.task_sentence(target))


def moved(held: HeldRun, look: Look, position: int) -> Any | None:
    """Return how the model answers with the marker elsewhere; None while asked."""
    from core.marker_story import move_marker

    return live_run.ask(
        held,
        ("moved", look.status.step_count, position),
        lambda trainer: move_marker(trainer, position),
    )


def inside(held: HeldRun) -> list[Callable[..., Any]]:
    """Return the functions of core behind the run, outermost first."""
    from core.attention import MultiHeadAttention, scaled_dot_product_attention
    from core.blocks import EncoderBlock
    from core.models import TransformerClassifier
    from core.tasks import marker_task
    from core.training import Trainer

    functions = [
        marker_task,
        Trainer.step,
        TransformerClassifier.forward,
        EncoderBlock.forward,
        MultiHeadAttention.forward,
    ]
    if held.config.dropout:  # then no fused kernel takes the place of these
        functions += [MultiHeadAttention.attend, scaled_dot_product_attention]
    return functions


def shapes(held: HeldRun) -> dict[str, str]:
    """Return the shapes inside the model of a run, in training."""
    model, batch = held.config.model, held.config.batch_size
    length, heads = model.num_positions, model.num_heads
    read = length if model.readout == "mean" else 1
    inner = {"scores (B, H, T, S)": f"({batch}, {heads}, {length}, {length})"}
    return {
        "inputs (B, T, 1)": f"({batch}, {model.seq_len}, 1)",
        "tokens (B, T, d_model)": f"({batch}, {length}, {model.d_model})",
        **(inner if model.num_layers > 1 else {}),
        "scores of the last layer": f"({batch}, {heads}, {read}, {length})",
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


def _device() -> str:
    from core.device import pick_device

    return pick_device(device_line.chosen()).type


def _draw_curves(page: str, look: Look, step: int | None) -> None:
    from core import charts, marker_story, shipped
    from core.charts.records import live_frame, record_points

    records, config = look.records, look.config
    preset = shipped.read_run()
    steps = max([config.max_steps, *(curve.num_steps for curve in look.kept)])
    max_points = 120 if look.status.state in live_run.MOVING else 300
    for column, kind in zip(st.columns(2), ("loss", "accuracy"), strict=True):
        frame = live_frame(
            {marker_story.run_label(config): record_points(records, kind)},
            kept={curve.name: curve.curves[kind] for curve in look.kept},
            others={
                "shipped": {"shipped run": record_points(preset.records[:steps], kind)}
            },
            chosen=step,
            failed=marker_story.failing_step(records),
            max_points=max_points,
        )
        with column:
            parts.bare_chart(
                charts.live_curves,
                frame,
                key=f"{page}_{kind}",
                alt=_ALT[kind],
                kind=kind,
                max_steps=steps,
                named=live_run.NAMED,
            )
    said = (
        marker_story.progress_sentence(records[:step], config.num_tested),
        marker_story.shipped_sentence(preset),
    )
    st.markdown(parts.plain(" ".join(said)), help=parts.plain(preset.origin))


def _draw_rows(config: Any, snapshot: Any, position: int, key: str) -> None:
    from core import charts, marker_story
    from core.charts import tidy

    rows = snapshot.content.readout_rows
    heads_shown = rows.numel() <= _MOST_ROWS
    shown = rows if heads_shown else rows.mean(dim=1, keepdim=True)
    parts.bare_chart(
        charts.readout_rows,
        tidy.readout_frame(list(shown)),
        key=key,
        alt=_ALT["rows"],
        num_layers=config.num_layers,
        x_domain=(0, config.model.num_positions - 1),
        marker=marker_story.marker_column(config, position),
        readout=config.readout,
        title="What the readout reads in this sequence (dash: one head, bar: mean)",
        height=250,
    )
    parts.sentence(
        marker_story.readout_sentence(
            rows, config, step=snapshot.step, position=position
        )
    )


def _can_move(look: Look, position: int) -> bool:
    return live_run.at_rest(look) and 0 < position < look.config.seq_len


def _draw_moved(held: HeldRun, look: Look, position: int) -> None:
    from core import marker_story
    from core.attempt import Snapshot

    answer = moved(held, look, position)
    st.subheader(f"The marker at position {position}", anchor=False)
    if answer is None:
        st.caption("Tested as soon as the trainer is free.")
        return
    st.markdown(parts.plain(marker_story.moved_sentence(answer)))
    snapshot = Snapshot(look.status.step_count, answer.snapshot)
    _draw_rows(look.config, snapshot, position, f"{held.page}_moved_rows")
