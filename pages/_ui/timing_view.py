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


def setting_words(width: int, what: str) -> str:
    """Return what is timed in words."""
    return f"d = {width}, {WHATS[what]}"


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
        elsewhere=lambda look: (
            f"Measured here at {setting_words(look.config.width, look.config.what)}: "
            "return to those settings to see it."
        ),
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
    """Draw the shipped curves of the settings, or them behind what is measured here."""
    from core import charts, recurrence_story, timing
    from core.charts import growth_frames

    own = (look.config.width, look.config.what) == (width, what)
    records = look.records if own else ()
    shipped = timing.read_timings()
    before = shipped.curves[width, what]
    here = timing.best_curves(records)
    complete = len(records) >= look.status.max_steps
    told = before if not here else here if complete else {}  # no fit of half a curve
    setting = setting_words(width, what)
    named = recurrence_story.named_curves
    parts.bare_chart(
        charts.growth,
        growth_frames.growth_frame(
            named(here or before),
            earlier=named(before) if here else None,
            fits=recurrence_story.fit_curves(
                recurrence_story.fits_of(told), timing.LENGTHS
            ),
            chosen=recurrence_story.rules_of(told, timing.LENGTHS[-1]),
        ),
        key="recurrence_time",
        alt=_ALT,
        x_domain=(timing.LENGTHS[0], timing.LENGTHS[-1]),
        y_domain=_SECONDS,
        y_title="time of one pass",
        unit="s",
        title=f"Time against length, one sequence, {setting}",
        height=_HEIGHT,
    )
    lines = "Solid: measured here. Dotted: " if here else "Solid: "
    dashes = "Dashed: fitted powers." if told else "Fits follow the last round."
    st.caption(
        f"{setting}; processor time of one thread. {lines}the shipped table. {dashes}",
        help=parts.plain(shipped.origin),
    )
    if told:
        parts.sentence(" ".join(recurrence_story.time_sentences(told, width)))
        left = recurrence_story.left_out_sentence(timing.left_out(told))
        if left:
            parts.sentence(left)
