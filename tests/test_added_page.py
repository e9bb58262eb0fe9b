"""A page is one file: CONTRIBUTING's example, dropped into a copy, appears and runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def copy(tmp_path) -> Path:
    for name in ("app.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("pages", "core", "tests", "assets"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "pages" / "15_window.py").write_text(example, encoding="utf-8")
    return tmp_path


def run(copy: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=copy,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(copy)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_frame_lists_the_added_page_by_its_title(copy):
    code = (
        "from pages._ui import catalogue as c; print([p.title for p in c.list_pages()])"
    )
    assert "Sliding window" in run(copy, "-c", code)


def test_the_tests_run_the_added_page_without_a_line_added(copy):
    out = run(copy, "-m", "pytest", "-q", "tests/test_pages.py", "-k", "window")
    assert "2 passed" in out
