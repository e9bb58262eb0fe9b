"""Every picture of the playground.

``tidy`` turns tensors into frames; each chart function turns one frame into an Altair
chart; ``cached_spec`` keeps the spec, which never depends on the rows. ``image_grid``,
which draws many dense matrices as one small picture, is imported where it is used: it
needs Pillow.
"""

from core.charts.bars import bars, comparison, movement
from core.charts.digits import digits
from core.charts.grid import grid
from core.charts.heatmap import heatmap
from core.charts.lines import curves, readout_rows, sweep
from core.charts.live import live_curves
from core.charts.palette import nice_limit, palette
from core.charts.sequence import sequence
from core.charts.spec import cached_spec

__all__ = [
    "bars",
    "cached_spec",
    "comparison",
    "curves",
    "digits",
    "grid",
    "heatmap",
    "live_curves",
    "movement",
    "nice_limit",
    "palette",
    "readout_rows",
    "sequence",
    "sweep",
]
