"""The small pictures of the home page, drawn from core.

``python -m core.gallery`` writes one PNG a page and theme to ``assets/images``. It
needs vl-convert, of ``requirements-dev.txt``; the app itself only shows the files.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from core import (
    bottleneck,
    bottleneck_story,
    decoding_walk,
    depth,
    fair_fight,
    fight_config,
    fight_results,
    grid_story,
    heads,
    lookup,
    masking,
    order_grid,
    path_length,
    positional,
    reading,
    scaling,
    shipped,
    shipped_seq2seq,
    text_tasks,
    trained,
    translation_story,
)
from core.charts import cached_spec, heatmap, live_curves, palette, sweep, tidy
from core.charts.by_length import by_length, by_length_frame
from core.charts.depth import norm_points, run_lines, runs_frame
from core.charts.diagram import Edge, Node, diagram, diagram_frame
from core.charts.experiments import experiments, experiments_frame
from core.charts.growth import reach
from core.charts.growth_frames import reach_frame
from core.charts.image_grid import matrix_image, png_bytes
from core.charts.multiples import multiples
from core.charts.race import race, race_frame
from core.charts.records import live_frame, record_points
from core.charts.rows import panels_frame, row_panels
from core.charts.tiles import Tile, multiples_frame
from core.initial import generator_from

IMAGES = Path(__file__).parent.parent / "assets" / "images"
_WIDTH, _HEIGHT, _SCALE = 320, 170, 2


def draw_queries_keys_values(dark: bool) -> bytes:
    """Draw the weights of a sentence that reads itself."""
    words = ["the", "dog", "left", "the", "street", "as", "it", "was", "wet"]
    seen = lookup.look_up(words, d_model=4, d_k=3, seed=0)
    frame = tidy.matrix_frame(seen.attn_weights)
    return _render(heatmap, frame, dark, legend=False, show_values=True)


def draw_scaling(dark: bool) -> bytes:
    """Draw the largest weight against d_k, raw and scaled."""
    source = generator_from(0)
    found = scaling.saturation_sweep(num_keys=8, num_trials=200, generator=source)
    trials = {
        "raw": found["nothing"].largest_weight,
        "÷ √d_k": found["sqrt_d_k"].largest_weight,
    }
    frame = tidy.sweep_frame(scaling.POWERS_OF_TWO, trials)
    return _render(sweep, frame, dark, y_domain=(0.0, 1.0), x_domain=scaling.ALL_WIDTHS)


def draw_masks(dark: bool) -> bytes:
    """Draw the weights of six tokens under a causal mask."""
    seen = masking.masked_attention(
        list("abcdef"), "causal", length=6, window=2, d_k=16, seed=0
    )
    frame = tidy.matrix_frame(seen.weights_after, mask=seen.mask)
    return _render(heatmap, frame, dark, legend=False)


def draw_positional_encoding(dark: bool) -> bytes:
    """Draw the sinusoids of 160 positions and 85 dimensions, on their side."""
    encoding = positional.sinusoidal_encoding(160, 85)
    return png_bytes(
        matrix_image(encoding.T.numpy(), look="diverging", cell=4, dark=dark)
    )


def draw_multi_head(dark: bool) -> bytes:
    """Draw the maps of eight heads over six tokens, on one scale."""
    seen = heads.attend_heads(
        list("abcdef"), d_model=64, num_heads=8, mask="causal", seed=0
    )
    maps = {f"head {n}": Tile(seen.weights[n - 1], "abcdef") for n in range(1, 9)}
    tiled = multiples_frame(maps, "abcdef", mask=seen.mask, per_line=4)
    places = {"across": tiled.across, "down": tiled.down}
    return _render(multiples, tiled.frame, dark, legend=False, **places)


def draw_encoder_block(dark: bool) -> bytes:
    """Draw the gradient that reaches each of 12 layers after training, run by run."""
    runs = {
        (run.variant.name, f", seed {run.seed}"): run.norms[depth.MOMENTS[1]]
        for run in depth.read_depth().runs
        if run.depth == 12 and run.variant.residual and run.rate == depth.RATES[0]
    }
    frame = runs_frame(norm_points(runs, "gradient"))
    series, ends = ("pre-norm", "post-norm"), (1e-7, 1.0)
    drawn = {"series": series, "x_domain": (1.0, 12.0), "y_domain": ends}
    return _render(run_lines, frame, dark, kind="gradient", **drawn)


def draw_recurrence(dark: bool) -> bytes:
    """Draw how the influence of token 0 fades over 60 tokens."""
    models = {"RNN": "rnn", "GRU": "gru", "LSTM": "lstm", "attention": "attention"}
    norms = {
        name: path_length.jacobian_norms(
            model, seq_len=60, width=16, forget_bias=3 if model == "lstm" else None
        )
        for name, model in models.items()
    }
    return _render(reach, reach_frame(norms), dark, x_domain=(0, 59))


def draw_marker_task(dark: bool) -> bytes:
    """Draw the loss of the shipped run of the preset."""
    points = record_points(shipped.read_run().records)[:190]
    frame = live_frame({"preset": points})
    return _render(live_curves, frame, dark, max_steps=190)


def draw_reading_maps(dark: bool) -> bytes:
    """Draw what CLS reads in each head of the shipped model, in one sequence."""
    model = trained.read_shipped()
    seen = reading.read_sequence(trained.build(model), sequence=0)
    layers = [
        [(f"head {n}", row) for n, row in enumerate(heads, start=1)]
        for heads in seen.rows.numpy()
    ]
    laid = panels_frame(layers, seen.labels, marker=seen.marker_at)
    places = {"across": laid.across, "down": laid.down, "num_keys": len(seen.labels)}
    return _render(row_panels, laid.frame, dark, **places)


def draw_experiments(dark: bool) -> bytes:
    """Draw the shipped runs of what carries position."""
    cells = grid_story.summaries(order_grid.read_order().results)
    factors, axes = order_grid.PRESET.factors, ("readout", "positional")
    found, series, places = grid_story.points(
        cells, order_grid.PRESET.cells, factors, axes, "accuracy"
    )
    frame = experiments_frame(found)
    return _render(experiments, frame, dark, series=series, places=places)


def draw_fair_fight(dark: bool) -> bytes:
    """Draw the shipped race at equal width: accuracy against steps."""
    shipped = fair_fight.read_fights()[60, False]
    curves = fight_results.seed_curves(shipped.steps, "accuracy")
    frame = race_frame(curves, fight_results.median_curves(curves))
    series = tuple(who.name for who in fight_config.contenders())
    return _render(race, frame, dark, series=series)


def draw_applications(dark: bool) -> bytes:
    """Draw the way from a source over the memory to a target."""
    places = {"source": 1.0, "memory": 3.0, "target": 5.0}
    nodes = [
        Node("memory" if name == "memory" else "tokens", x, 1.0, name, width=1.5)
        for name, x in places.items()
    ]
    edges = [Edge(((x + 0.75, 1.0), (x + 1.25, 1.0))) for x in (1.0, 3.0)]
    plane = {"x_domain": (0.0, 6.0), "y_domain": (-0.5, 2.5)}
    return _render(diagram, diagram_frame(nodes, edges), dark, **plane)


def draw_encoder_decoder(dark: bool) -> bytes:
    """Draw the cross-attention of the shipped model that reverses a word."""
    task = text_tasks.TASKS["reverse"]
    model = shipped_seq2seq.build(shipped_seq2seq.read_shipped(task.name))
    tokens = task.read(task.example)
    walk = decoding_walk.walk_decoding(
        model,
        task.source.encode(tokens),
        task.target.encode(task.answer_to(tokens)),
        forced=True,
        max_len=task.max_target,
    )
    weights = translation_story.of_head(walk.explained.cross_maps, 2, 0)
    return _render(heatmap, tidy.matrix_frame(weights), dark, legend=False)


def draw_bottleneck(dark: bool) -> bytes:
    """Draw the shipped runs: whole strings right against their length."""
    runs = bottleneck.read_shipped().by_attention()
    seeds = bottleneck_story.seed_curves(runs, "exact")
    medians = bottleneck_story.median_curves(seeds)
    ends = float(bottleneck.LENGTHS[0]), float(bottleneck.LENGTHS[-1])
    drawn = {"series": tuple(medians), "x_domain": ends, "with_here": False}
    return _render(by_length, by_length_frame(seeds, medians), dark, **drawn)


PICTURES: dict[str, Callable[[bool], bytes]] = {
    "queries_keys_values": draw_queries_keys_values,
    "scaling": draw_scaling,
    "masks": draw_masks,
    "multi_head": draw_multi_head,
    "positional_encoding": draw_positional_encoding,
    "encoder_block": draw_encoder_block,
    "recurrence": draw_recurrence,
    "marker_task": draw_marker_task,
    "fair_fight": draw_fair_fight,
    "reading_maps": draw_reading_maps,
    "experiments": draw_experiments,
    "bottleneck": draw_bottleneck,
    "encoder_decoder": draw_encoder_decoder,
    "applications": draw_applications,
}


def _render(
    chart: Callable[..., Any], frame: pd.DataFrame, dark: bool, **options: Any
) -> bytes:
    import vl_convert  # not among the packages of the app

    shown = palette(dark)
    spec = _without_axes(cached_spec(chart, frame, dark=dark, **options))
    spec |= {
        "data": {"values": frame.to_dict("records")},
        "title": None,
        "width": _WIDTH,
        "height": _HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"},
        "padding": 4,
        "background": shown.background,
        "config": {
            "axis": {"labels": False, "ticks": False, "title": None, "grid": False},
            "legend": {"disable": True},
            "view": {"stroke": None},
            "text": {"color": shown.text},
        },
    }
    return vl_convert.vegalite_to_png(spec, scale=_SCALE)


def _without_axes(part: Any) -> Any:
    """Return a spec with the axes and legends of every encoding taken out."""
    if isinstance(part, list):
        return [_without_axes(item) for item in part]
    if not isinstance(part, dict):
        return part
    inside = {name: item for name, item in part.items() if name != "legend"}
    kept = {name: _without_axes(item) for name, item in inside.items()}
    return kept | ({"axis": None} if "axis" in kept else {})


def main() -> None:
    """Write every picture in both themes."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        for dark in (False, True):
            path = IMAGES / f"{name}-{'dark' if dark else 'light'}.png"
            path.write_bytes(draw(dark))


if __name__ == "__main__":
    main()
