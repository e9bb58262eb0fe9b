"""Every picture of the playground.

``tidy`` turns tensors into frames; each chart function turns one frame into an Altair
chart; ``cached_spec`` keeps the spec, which never depends on the rows; ``image_grid``
draws many dense matrices as one small picture.
"""

from core.charts.bars import bars, comparison, movement
from core.charts.digits import digits
from core.charts.heatmap import heatmap
from core.charts.image_grid import image_grid, matrix_image, png_bytes
from core.charts.lines import curves, readout_rows, sweep
from core.charts.live import live_curves
from core.charts.palette import nice_limit, palette
from core.charts.spec import cached_spec

__all__ = [
    "bars",
    "cached_spec",
    "comparison",
    "curves",
    "digits",
    "heatmap",
    "image_grid",
    "live_curves",
    "matrix_image",
    "movement",
    "nice_limit",
    "palette",
    "png_bytes",
    "readout_rows",
    "sweep",
]
