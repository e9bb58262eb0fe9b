"""The bench: its grids, the shipped runs of one, and the same grid run here."""

from typing import Any, NamedTuple

import streamlit as st

from pages._ui import measured_run, parts
from pages._ui.controls import Controls
from pages._ui.leases import Look

HEIGHT = 340
OWN = "own"
GRIDS = {  # name of the preset -> its words; core is not there yet on a cold start
    "order": "What carries position?",
    "order_normal": "Position in normal noise",
    "heads": "Heads at one width",
    "pooling": "Pooling",
    "length": "Length 300",
    "positions": "Learned against sinusoidal",
    "moved": "Move the marker",
    "depth": "Warm-up and norm at depth",
    OWN: "A grid of your own",
}
_NOTHING = "nothing"
_LIMITS = (
    "One toy task, small models and a few seeds: a range of runs, not a law. A cell "
    "that stalls here may learn with more steps, another rate or another seed."
)
_KEPT = (
    "A reload keeps the grids you saw and the runs made here; it forgets your "
    "prediction and your own table."
)
_MOST_SEEDS = 3
_OF_RUNS = ("accuracy, mean", "seeds from … to", "marker moved", "loss", "seeds")


class BenchRun(NamedTuple):
    """A grid that is run here: its cells, its seeds, and the runs brought along."""

    cells: tuple[Any, ...]
    num_seeds: int
    done: tuple[Any, ...]


class Shown(NamedTuple):
    """What the controls say of the picture, and of the grid run here."""

    x: str
    colour: str
    measure: str
    num_seeds: int


def choose_grid(c: Controls) -> str:
    """Return the name of the grid."""
    return c.menu("Grid", "grid", list(GRIDS), shown=GRIDS.__getitem__)


def load(name: str) -> tuple[Any, Any]:
    """Return a grid and the shipped table of its runs; of one's own there is none."""
    from core import grid_presets, grid_table

    if name == OWN:
        return None, None
    return grid_presets.PRESETS[name], grid_table.read_shipped(name)


def choose(c: Controls, preset: Any) -> Shown:
    """Draw the controls of the picture; its axes are the factors that vary."""
    from core.grid_presets import FACTORS
    from core.grid_story import MEASURES

    factors = list(preset.factors)
    last = len(factors) - 1
    x = c.menu("Across", "x", factors, preset=last, shown=FACTORS.__getitem__)
    others = [name for name in factors if name != x]
    colour = c.menu(
        "Colour",
        "colour",
        [*others, _NOTHING],
        preset=others.index(preset.colour) if preset.colour in others else 0,
        shown=lambda n: FACTORS.get(n, n),
    )
    measure = c.menu("Shown", "measure", list(MEASURES), shown=MEASURES.__getitem__)
    seeds = c.whole("Seeds, run here", "seeds", 1, _MOST_SEEDS, 1)
    return Shown(x, colour, measure, seeds)


def announce(preset: Any) -> None:
    """Say what a grid compares, before anything of its runs is shown."""
    st.subheader(GRIDS[preset.name], anchor=False)
    if preset.name != OWN:  # the controls say the levels of one's own
        _levels(preset)
    _recipe(preset)


def _levels(preset: Any) -> None:
    from core.grid_presets import FACTORS, short_words

    rows = []
    for factor in preset.factors:
        words = dict.fromkeys(short_words(cell, factor) for cell in preset.cells)
        rows.append((FACTORS[factor], parts.plain(", ".join(words))))
    st.markdown(parts.table(("factor", "levels"), rows))


def draw(preset: Any, shipped: Any, shown: Shown) -> None:
    """Draw the shipped runs of a grid, with what they show."""
    from core import grid_story

    cells = grid_story.summaries(shipped.results)
    said = grid_story.sentences(cells, preset.factors)
    _picture(preset, cells, shown, "bench_shipped", " ".join(said), "Shipped runs")
    for sentence in said:
        parts.sentence(sentence)
    _recipe(preset)
    st.caption(parts.plain(f"Shipped table. {shipped.origin}"))
    _table(preset, cells, "bench_table")
    _download("bench_download", preset.name, shipped)


def places(preset: Any) -> tuple[Any, Any]:
    """Return where runs made here stand, and where the visitor's table does.

    A grid of one's own has no shipped picture: its runs come first, to be seen at once.
    """
    first, second = st.container(), st.container()
    return (first, second) if preset.name == OWN else (second, first)


def run_here(preset: Any, shown: Shown, brought: tuple[Any, ...]) -> None:
    """Offer to run the grid here, and draw what has come of it so far.

    Args:
        preset: The grid.
        shown: What the controls say.
        brought: Runs of the visitor's own table; those of the grid are not run again.
    """
    from core import grid_presets, grid_story

    if preset.name != OWN:
        st.subheader("Run it here", anchor=False)
    own = grid_story.runs_of(preset.cells, brought)
    config = BenchRun(preset.cells, shown.num_seeds, own)
    grid_presets.check_size(preset.levels, shown.num_seeds)
    if not grid_story.missing_runs(*config):
        parts.note("Your table holds every run of this grid; more seeds add some.")
        return
    measured_run.measured(
        f"experiments/{preset.name}",
        config,
        _measurement,
        total=_total,
        label="Run here",
        unit="training steps and measurements",
        ahead=grid_story.budget_sentence(*config),
        draw=lambda look: _draw_here(preset, shown, look),
    )


def draw_brought(preset: Any, shown: Shown, brought: tuple[Any, ...]) -> None:
    """Draw the runs of the visitor's own table that belong to this grid."""
    from core import grid_story

    own = grid_story.runs_of(preset.cells, brought)
    parts.sentence(grid_story.brought_sentence(len(own), len(brought)))
    if own:
        cells = grid_story.summaries(own)
        said = grid_story.sentences(cells, preset.factors)
        _picture(preset, cells, shown, "bench_brought", " ".join(said), "Your runs")
        for sentence in said:
            parts.sentence(sentence)


def limits(shown_grids: set[str]) -> None:
    """Say what the bench does not show; numbers come only from grids that are shown."""
    size = (
        "The marker is exactly −1 or +1: in uniform noise, which lies between, its "
        "size alone may give it away. The grid with normal noise tests that."
    )
    if {"order", "order_normal"} <= shown_grids:
        from core import order_grid

        size = parts.plain(order_grid.noise_sentence())
    parts.limits(f"{_LIMITS} {size} {_KEPT}")


def inside(preset: Any) -> None:
    """Show the code of a run."""
    from core import grid_cell, grid_runner

    functions = [grid_cell.watch_cell, grid_cell.measure, grid_runner.run_grid]
    parts.look_inside("bench", functions, {"cells": len(preset.cells)})


def _total(config: BenchRun) -> int:
    from core import grid_story

    return grid_story.num_steps(grid_story.missing_runs(*config))


def _measurement(config: BenchRun) -> Any:
    from core import grid_story, measuring

    runs = grid_story.missing_runs(*config)
    return measuring.Measurement(grid_story.watch_runs(runs), _total(config))


def _draw_here(preset: Any, shown: Shown, look: Look) -> None:
    from core import grid_story, grid_table

    if not look.records:
        return
    done, total = look.status.step_count, look.status.max_steps
    if done < total:
        now = grid_story.now_sentence(look.records[-1], preset.factors)
        parts.sentence(grid_story.left_sentence(done, total, look.status.elapsed, now))
    made = grid_story.results_of(look.records)
    results = grid_table.merged(look.config.done, made)
    if not results or look.config.cells != preset.cells:
        return
    cells = grid_story.summaries(results)
    alt = "Runs made here, one point a cell so far"
    _picture(preset, cells, shown, "bench_here", alt, "Runs made here")
    if done == total:
        for sentence in grid_story.sentences(cells, preset.factors):
            parts.sentence(sentence)
    _table(preset, cells, "bench_here_table")
    if done == total:
        made_by = grid_table.grid_made_here(
            "the experiments page", look.config.num_seeds
        )
        own = grid_table.GridTable(made_by, results)
        _download("bench_download_here", f"{preset.name}-here", own)


def _picture(
    preset: Any, cells: Any, shown: Shown, key: str, alt: str, title: str
) -> None:
    from core import charts, grid_story
    from core.charts.experiments import experiments_frame
    from core.grid_presets import FACTORS

    colour = None if shown.colour == _NOTHING else shown.colour
    points, series, places = grid_story.points(
        cells, preset.cells, preset.factors, (shown.x, colour), shown.measure
    )
    parts.bare_chart(
        charts.experiments,
        experiments_frame(points),
        key=key,
        alt=alt,
        measure=shown.measure,
        x_title=FACTORS[shown.x],
        y_title=grid_story.MEASURES[shown.measure],
        series=series,
        places=places,
        title=f"{title}: mean of the seeds, and their range",
        height=HEIGHT,
    )


def _table(preset: Any, cells: Any, key: str) -> None:
    from core import grid_story
    from core.grid_presets import FACTORS

    opened = st.expander("All cells", key=key, icon=":material/table:")
    head = (*(FACTORS[name] for name in preset.factors), *_OF_RUNS)
    rows = grid_story.table_rows(cells, preset.factors)
    cleaned = [[parts.plain(text) for text in row] for row in rows]
    opened.markdown(parts.table(head, cleaned))


def _recipe(preset: Any) -> None:
    from core import grid_story

    st.caption(parts.plain(grid_story.settings_sentence(preset.base, preset.factors)))


def _download(key: str, name: str, table: Any) -> None:
    from core import grid_table

    st.download_button(
        "Download the runs as CSV",
        grid_table.grid_text(table.made_by, table.results),
        f"{name}.csv",
        "text/csv",
        key=key,
        icon=":material/download:",
        on_click="ignore",
    )
