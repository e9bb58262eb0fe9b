"""How fast a slider answers, beside a plain Streamlit script in the same run.

    python -m tests.bench.sliders

The reference is a script with torch, altair and pandas imported, one slider and one
chart of 16 bars, served by ``streamlit run`` with its defaults. Both servers run at
once and are asked in turn, each by one client that speaks the browser's protocol; the
time is from the message to the message that the run has finished.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from pages._ui import catalogue
from tests.live_server import ROOT, Server, Tab, open_tab, serve

LARGEST_RATIO = 0.35
LIVE_PAGE = "marker_task"
REFERENCE = """
import altair as alt
import pandas as pd
import streamlit as st
import torch

n = st.slider("n", 1, 100, 50)
frame = pd.DataFrame({"x": range(16), "y": [n * i for i in range(16)]})
st.altair_chart(alt.Chart(frame).mark_bar().encode(x="x:O", y="y:Q"))
"""


def time_slider(tab: Tab, kind: str, index: int, moves: int) -> list[float]:
    """Drag one slider back and forth; return the seconds of each run."""
    slider = tab.elements(kind)[index]
    seconds = []
    for turn in range(moves):
        tab.move(slider, 0.3 + 0.4 * (turn % 2))
        seconds.append(tab.run())
    return seconds


def slider_times(server: Server, page: str, moves: int) -> list[float]:
    """Return the seconds of every slider of a page, each moved ``moves`` times."""
    with open_tab(server, page) as tab:
        tab.run()
        return [
            second
            for index in range(len(tab.elements("slider")))
            for second in time_slider(tab, "slider", index, moves)
        ]


def measure(moves: int = 8) -> dict[str, tuple[float, float]]:
    """Return, per page, the median seconds of its sliders and of the reference."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.py"
        plain.write_text(REFERENCE, encoding="utf-8")
        with (
            serve(plain, Path(folder) / "plain.log") as reference,
            serve(ROOT / "app.py", Path(folder) / "app.log") as app,
        ):
            pages = [p.name for p in catalogue.list_pages() if p.section != "Home"]
            return _alternate(reference, app, pages, moves)


def _alternate(
    reference: Server, app: Server, pages: list[str], moves: int
) -> dict[str, tuple[float, float]]:
    _warm(reference, app, pages)
    results = {}
    for page in pages:
        before = slider_times(reference, "", moves)
        ours = slider_times(app, page, moves)
        after = slider_times(reference, "", moves)
        results[page] = (statistics.median(ours), statistics.median(before + after))
    return results


def _warm(reference: Server, app: Server, pages: list[str]) -> None:
    slider_times(reference, "", 2)
    for page in pages:
        slider_times(app, page, 1)


def main() -> int:
    """Print a line a page; exit 1 if a page but the live one is over the bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=8)
    results = measure(parser.parse_args().moves)
    worst = 0.0
    for page, (ours, reference) in results.items():
        ratio = ours / reference
        live = page == LIVE_PAGE
        worst = worst if live else max(worst, ratio)
        sys.stdout.write(
            f"{page:22} {ours * 1000:6.1f} ms   plain script {reference * 1000:6.1f} ms"
            f"   ratio {ratio:.2f}{'   (live page, no bound)' if live else ''}\n"
        )
    sys.stdout.write(f"largest ratio {worst:.2f}, bound {LARGEST_RATIO}\n")
    return int(worst > LARGEST_RATIO)


if __name__ == "__main__":
    sys.exit(main())
