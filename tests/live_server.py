"""A real server of the app and a client that speaks as the browser does."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import ClientConnection, connect

ROOT = Path(__file__).parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Server:
    """A running ``streamlit run``."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log_text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def serve(
    script: Path, log: Path, *options: str, port: int | None = None
) -> Iterator[Server]:
    """Run ``script`` in its own folder until the block ends."""
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", script.name]
    command += ["--server.headless=true", f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", *options]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=script.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        _wait_until_healthy(port, process)
        yield Server(process, port, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_healthy(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with code {process.returncode}")
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}/_stcore/health", timeout=1
            ):
                return
        except OSError:
            time.sleep(0.005)
    raise RuntimeError("the server did not answer within 60 s")


@dataclass
class Tab:
    """One browser tab: the messages of its last run and the state of its widgets."""

    connection: ClientConnection
    query: str = ""
    page_hash: str = ""
    states: dict[str, WidgetState] = field(default_factory=dict)
    messages: list[ForwardMsg] = field(default_factory=list)

    def run(self, *, timeout: float = 120.0) -> float:
        """Ask for a run and read until it has finished; return the seconds."""
        request = BackMsg()
        request.rerun_script.query_string = self.query
        request.rerun_script.page_script_hash = self.page_hash
        request.rerun_script.widget_states.widgets.extend(self.states.values())
        start = time.perf_counter()
        self.connection.send(request.SerializeToString())
        self.read_run(timeout)
        return time.perf_counter() - start

    def read_run(self, timeout: float) -> None:
        """Read the messages of one run, up to the word that it has finished."""
        self.messages = []
        while True:
            message = ForwardMsg()
            message.ParseFromString(self.connection.recv(timeout))
            self.messages.append(message)
            kind = message.WhichOneof("type")
            if kind == "navigation":
                self.page_hash = message.navigation.page_script_hash
            elif (
                kind == "script_finished"
                and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
            ):
                return

    def elements(self, kind: str) -> list:
        """Return the elements of one kind that the last run drew."""
        return [
            getattr(m.delta.new_element, kind)
            for m in self.messages
            if m.WhichOneof("type") == "delta"
            and m.delta.WhichOneof("type") == "new_element"
            and m.delta.new_element.WhichOneof("type") == kind
        ]

    def press(self, label: str) -> float:
        """Press a button and return the seconds until the run has finished."""
        (button,) = (b for b in self.elements("button") if b.label == label)
        self.states[button.id] = WidgetState(id=button.id, trigger_value=True)
        seconds = self.run()
        del self.states[button.id]
        return seconds

    def text(self) -> str:
        """Return all text that the last run drew, without the signs of Markdown."""
        bodies = [part.body for part in self.elements("markdown")]
        return "\n".join(bodies).replace("\\", "")

    def move(self, slider, position: float) -> None:
        """Put a slider at a fraction of its range, as a drag would."""
        state = WidgetState(id=slider.id)
        if slider.options:
            index = round(position * (len(slider.options) - 1))
            state.string_array_value.data.append(slider.options[index])
        else:
            value = slider.min + position * (slider.max - slider.min)
            state.double_array_value.data.append(
                round(value / slider.step) * slider.step
            )
        self.states[slider.id] = state


@contextmanager
def open_tab(
    server: Server, page: str = "", query: str = "", *before: str
) -> Iterator[Tab]:
    """Open a page as a tab would and wait for its first run.

    A tab that comes back names its token and its session, as ``before``.
    """
    address = f"ws://127.0.0.1:{server.port}/_stcore/stream"
    with connect(
        address, subprotocols=["streamlit", *before], max_size=None, compression=None
    ) as connection:
        tab = Tab(connection, query=query)
        request = BackMsg()
        request.rerun_script.query_string = query
        request.rerun_script.page_name = page
        connection.send(request.SerializeToString())
        tab.read_run(120)
        yield tab
