"""How soon the first text of the home page comes on a cold server.

    python -m tests.bench.first_text

The reference is a script of one line. Servers are started afresh in turn; the time is
from the first message of the first tab to the first text that answers it.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from tests.live_server import ROOT, Server, serve

LARGEST_RATIO = 1.3
_TEXT = {"heading", "markdown", "text"}


def first_text_seconds(server: Server) -> float:
    """Open the first tab of a server and return the seconds to the first text."""
    address = f"ws://127.0.0.1:{server.port}/_stcore/stream"
    with connect(address, subprotocols=["streamlit"], max_size=None) as connection:
        request = BackMsg()
        request.rerun_script.query_string = ""
        start = time.perf_counter()
        connection.send(request.SerializeToString())
        while True:
            message = ForwardMsg()
            message.ParseFromString(connection.recv(60))
            element = message.delta.new_element
            if element.WhichOneof("type") in _TEXT:
                return time.perf_counter() - start


def measure(rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds of the home page and of the reference, round by round."""
    ours, reference = [], []
    with tempfile.TemporaryDirectory() as folder:
        one_line = Path(folder) / "one_line.py"
        one_line.write_text("import streamlit as st; st.write('hello')\n", "utf-8")
        log = Path(folder) / "log.txt"
        for _ in range(rounds):
            with serve(one_line, log) as server:
                reference.append(first_text_seconds(server))
            with serve(ROOT / "app.py", log) as server:
                ours.append(first_text_seconds(server))
    return ours, reference


def main() -> int:
    """Print both medians and their ratio; exit 1 above the bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    ours, reference = map(statistics.median, measure(parser.parse_args().rounds))
    ratio = ours / reference
    sys.stdout.write(
        f"home page {ours * 1000:.0f} ms   one line {reference * 1000:.0f} ms   "
        f"ratio {ratio:.2f}, bound {LARGEST_RATIO}\n"
    )
    return int(ratio > LARGEST_RATIO)


if __name__ == "__main__":
    sys.exit(main())
