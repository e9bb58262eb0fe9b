"""Marker task

One marker, then noise: attention must find the one position that decides the answer.

Section: A trained model
Icon: flag
"""

from pages._ui import (
    controls,
    frame,
    live_run,
    marker_length,
    marker_order,
    marker_predict,
    marker_view,
    parts,
)

page = frame.guard(__file__)
parts.head(page, r"\mathcal{L} = -\,y\,\ln p - (1-y)\,\ln(1-p)")
with controls.sidebar("marker") as c:
    settings = marker_view.choose(c)

with parts.loading(480):
    config = marker_view.checked(settings)

held = marker_view.hold(page.name, config)
with controls.sidebar("marker") as c:
    moved = marker_view.choose_moved(c, settings["seq_len"], held)
    test_length = marker_length.choose(c, held)
if held is not None:
    marker_view.buttons(held, config)
    marker_view.ask_ahead(held, moved)
    marker_predict.ask_ahead(held)
    moving = live_run.moving_view(
        held, lambda look: marker_view.draw(held, look, moved)
    )
    marker_view.offer_maps(held)
    marker_length.draw(held, test_length)
    marker_predict.predict(held, moving)
    parts.look_inside("marker", marker_view.inside(held), marker_view.shapes(held))
marker_order.draw()
parts.try_it(
    "marker",
    {
        "No positions, mean readout: what is left to learn from?": {
            "positions": "none",
            "readout": "mean",
            "causal": False,
        },
        "A causal mask with CLS: what may it read?": {
            "positions": "sinusoidal",
            "readout": "cls",
            "causal": True,
        },
        "The largest learning rate: where does it stop?": {"rate": 1e6},
    },
)
parts.limits(
    "One toy task and small models. A high weight on the marker says where the readout "
    "looks, not why it answers. A run that stalls at ln 2 may learn with another seed."
)
