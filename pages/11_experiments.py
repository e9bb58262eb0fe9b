"""Experiments

Every level beside every other, a few seeds each: read a difference beside its spread.

Section: A trained model
Icon: science
"""

from pages._ui import bench_own, bench_predict, bench_view, controls, frame, parts

page = frame.guard(__file__)
parts.head(
    page,
    r"\text{accuracy}(\text{cell}) = \tfrac{1}{n}\textstyle\sum_{s=1}^{n} a_s",
)
with controls.sidebar("bench") as c:
    name = bench_view.choose_grid(c)
with parts.loading(bench_view.HEIGHT):
    grid, shipped = bench_view.load(name)
with controls.sidebar("bench") as c:
    grid = bench_own.choose(c) if grid is None else grid
    shown = None if grid is None else bench_view.choose(c, grid)

if shipped is not None and not bench_predict.revealed(grid):
    bench_view.announce(grid)
    bench_predict.ask(grid, shipped)
elif grid is not None:
    with parts.explained():
        if shipped is None:
            bench_view.announce(grid)
        else:
            bench_view.draw(grid, shipped, shown)
            bench_predict.ask(grid, shipped)
    runs_place, table_place = bench_view.places(grid)
    with table_place:
        brought = bench_own.brought()
        with parts.explained():
            if brought:
                bench_view.draw_brought(grid, shown, brought)
    with runs_place, parts.explained():
        bench_view.run_here(grid, shown, brought)
    bench_view.inside(grid)
parts.try_it(
    "bench",
    {
        "Which cell learns the order without positions?": {
            "grid": "order",
            "x": "readout",
            "colour": "positional",
            "measure": "accuracy",
        },
        "The marker moves at test time: who still answers?": {
            "grid": "moved",
            "x": "model",
            "colour": "nothing",
            "measure": "moved",
        },
        "Twelve layers: what do norm and warm-up change?": {
            "grid": "depth",
            "x": "warmup_steps",
            "colour": "norm",
            "measure": "loss",
        },
    },
)
bench_view.limits(bench_predict.shown_grids())
