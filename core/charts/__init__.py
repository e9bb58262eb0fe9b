"""Every picture of the playground.

``tidy`` turns tensors into frames; each chart function turns one frame into an Altair
chart; ``cached_spec`` keeps the spec, which never depends on the rows. ``image_grid``,
which draws many dense matrices as one small picture, is imported where it is used: it
needs Pillow.
"""

from core.charts.amounts import amounts
from core.charts.bars import bars, comparison, movement
from core.charts.by_length import by_length
from core.charts.depth import outcomes, run_lines
from core.charts.diagram import diagram
from core.charts.digits import digits
from core.charts.experiments import experiments
from core.charts.grid import grid
from core.charts.growth import growth, reach
from core.charts.heatmap import heatmap
from core.charts.lines import curves, readout_rows, sweep
from core.charts.live import live_curves
from core.charts.multiples import multiples
from core.charts.next_token import next_token
from core.charts.palette import nice_limit, palette
from core.charts.race import gradient_ruler, race
from core.charts.rows import row_panels
from core.charts.schedule import schedule
from core.charts.sequence import sequence
from core.charts.spec import cached_spec
from core.charts.sums import summed_heatmap
from core.charts.temperature import temperature_curve

__all__ = [
    "amounts",
    "bars",
    "by_length",
    "cached_spec",
    "comparison",
    "curves",
    "diagram",
    "digits",
    "experiments",
    "gradient_ruler",
    "grid",
    "growth",
    "heatmap",
    "live_curves",
    "movement",
    "multiples",
    "next_token",
    "nice_limit",
    "outcomes",
    "palette",
    "race",
    "reach",
    "readout_rows",
    "row_panels",
    "run_lines",
    "schedule",
    "sequence",
    "summed_heatmap",
    "sweep",
    "temperature_curve",
]
