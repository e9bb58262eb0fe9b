"""What every test gets."""

import sys
from collections.abc import Iterator

import pytest
import streamlit as st


@pytest.fixture(autouse=True)
def _sessions_of_their_own() -> Iterator[None]:
    """Release what a test's session held: AppTest gives all tests one session id."""
    yield
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def _main_module_stays() -> Iterator[None]:
    """Put the main module back, which a spawned process begins by running.

    AppTest leaves its own script in its place.
    """
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before
