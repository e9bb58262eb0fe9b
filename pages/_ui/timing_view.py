"""Time against length on the recurrence page: shipped, and measured on demand."""

from typing import Any

import streamlit as st

from pages._ui import measured_run, parts
from pages._ui.controls import Controls
from pages._ui.leases import Look

WIDTHS = [16, 32, 64, 128]
WHATS = {"forward": "forward", "train": "with backward"}
_HEIGHT = 380
_SECONDS = (5e-5, 1.0)
_ALT = (
    "Seconds of one pass of RNN, LSTM and attention against length, on logarithmic "
    "axes, with fitted powers. The sentences below give the numbers."
)
_AHEAD = "About ten seconds of computing on this server, in turns with other runs."


def choose(c: Controls) -> tuple[int, str]:
    """Return width and what is timed."""
    width = c.listed("Width of the layers, d", "timed_width", WIDTHS, 64)
    what = c.choice("One pass is", "what", list(WHATS), shown=WHATS.get)
    return width, what


def draw(width: int, what: str) -> None:
    """Draw the button that measures here, and time against length below it."""
    from core import measuring, timing

    measured_run.measured(
        "recurrence/timing",
        timing.TimingConfig(width, what),
        lambda config: measuring.Measurement(timing.measure(config), config.total),
        total=lambda config: config.total,
        label="Measure here",
        ahead=_AHEAD,
        draw=lambda look: _draw_look(look, width, what),
    )
    parts.look_inside(
        "recurrence",
        [timing.measure, timing.timed, *_fits()],
        {"tokens": f"(1, n, {width})", "heads of attention": timing.NUM_HEADS},
    )


def _fits() -> list[Any]:
    from core import growth

    return [growth.fit_exponent, growth.crossing]


def _draw_look(look: Look, width: int, what: str) -> None:
    """Draw shipped curves alone, or behind what was measured here."""
    from core import charts, recurrence_story, timing
    from core.charts import growth_frames

    if look.records:  # they belong to the settings they were measured with
        width, what = look.config.width, look.config.what
    shipped = timing.read_timings()
    before = shipped.curves[width, what]
    here = timing.best_curves(look.records)
    complete = len(look.records) >= look.status.max_steps
    told = here if complete else before  # sentences rest while numbers come in
    fits = recurrence_story.fits_of(told)
    named = recurrence_story.named_curves
    parts.bare_chart(
        charts.growth,
        growth_frames.growth_frame(
            named(here or before),
            earlier=named(before) if here else None,
            fits=recurrence_story.fit_curves(fits, timing.LENGTHS),
            chosen=recurrence_story.rules_of(told, timing.LENGTHS[-1]),
        ),
        key="recurrence_time",
        alt=_ALT,
        x_domain=(timing.LENGTHS[0], timing.LENGTHS[-1]),
        y_domain=_SECONDS,
        y_title="seconds of one pass",
        unit="s",
        title="Time against length, one sequence",
        height=_HEIGHT,
    )
    lines = "Solid: measured here. Dotted: " if here else "Solid: "
    st.caption(
        f"{lines}the shipped table. Dashed: fitted powers of "
        f"{'what was measured here' if complete else 'the shipped table'}.",
        help=parts.plain(shipped.origin),
    )
    parts.sentence(" ".join(recurrence_story.time_sentences(told, width)))
    skipped = timing.skipped_lengths(look.records) if complete else {}
    left = recurrence_story.skipped_sentence(skipped)
    if left:
        parts.sentence(left)
