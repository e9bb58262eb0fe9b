"""A cold server: title and controls are there while torch still loads."""

import time

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from pages._ui import catalogue
from tests.live_server import ROOT, serve

CONTROLS = {"slider", "selectbox", "text_input", "button_group"}
PAGES = [info for info in catalogue.list_pages() if info.section != "Home"]


def first_arrivals(server, page: str) -> dict[str, float]:
    """Return, for each kind of element, the seconds until its first one came."""
    address = f"ws://127.0.0.1:{server.port}/_stcore/stream"
    with connect(address, subprotocols=["streamlit"], max_size=None) as connection:
        request = BackMsg()
        request.rerun_script.page_name = page
        start = time.perf_counter()
        connection.send(request.SerializeToString())
        seen: dict[str, float] = {}
        finished = False
        while not finished:
            message = ForwardMsg()
            message.ParseFromString(connection.recv(120))
            kind = message.delta.new_element.WhichOneof("type")
            if kind:
                seen.setdefault(kind, time.perf_counter() - start)
            finished = message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY and (
                message.WhichOneof("type") == "script_finished"
            )
        return seen


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.name)
def test_title_and_controls_come_long_before_the_picture(info, tmp_path):
    with serve(ROOT / "app.py", tmp_path / "log.txt") as server:
        seen = first_arrivals(server, info.name)
    # A page that asks for a prediction before it shows a picture computes that first.
    computed = min(
        when for kind, when in seen.items() if "vega_lite" in kind or kind == "radio"
    )
    control = min(when for kind, when in seen.items() if kind in CONTROLS)
    assert seen["heading"] < computed / 2
    assert control < computed / 2
