"""What every test gets."""

from collections.abc import Iterator

import pytest
import streamlit as st


@pytest.fixture(autouse=True)
def _sessions_of_their_own() -> Iterator[None]:
    """Release what a test's session held: AppTest gives all tests one session id."""
    yield
    st.cache_resource.clear()
