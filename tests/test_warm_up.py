"""Warm-up: torch is loaded once in the background; the collector leaves it alone."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent

CODE = """
import gc, sys, threading, time
from pages._ui import warm_up
warm_up._HEAD_START_SECONDS = 0
warm_up.begin()
warm_up.begin()
threads = [t for t in threading.enumerate() if t.name == "warm-up"]
for thread in threads:
    thread.join()
print(len(threads), warm_up.ready.is_set(), gc.get_freeze_count() > 100_000)
print("torch._dynamo" in sys.modules, "core.scheduler" in sys.modules)
"""


def test_warm_up_runs_once_loads_what_a_first_run_needs_and_freezes_it():
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "True", "True", "True", "True"]


def test_the_collector_does_not_run_after_every_script():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    assert config["runner"]["postScriptGC"] is False
    assert config["server"]["showEmailPrompt"] is False


def test_a_process_that_ends_in_the_midst_of_warm_up_ends_quietly():
    code = CODE.split("threads =")[0] + "time.sleep(0.5)\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
