"""The controls of a page: in the sidebar, held by the address bar, in range.

Every control is bound to the address under ``prefix_name``, but for a seed that the
address made infinite. Values from an address are
hostile: Streamlit drops unknown options and out-of-range numbers, and no control here
has a step that an address could miss (a slider stops at the options of a list, a seed
steps by one). Core checks all values again, and their products.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st

from core.checks import MAX_SEED

MOST_TOKENS = 16
_LONGEST_TEXT = 200  # characters


class Controls:
    """Makes the controls of one page; their keys carry the page's prefix."""

    def __init__(self, prefix: str) -> None:
        """Name the page's prefix, the part of the address before each ``_name``."""
        self.prefix = prefix

    def _bound(self, name: str, help_text: str | None) -> dict[str, Any]:
        return {
            "key": f"{self.prefix}_{name}",
            "bind": "query-params",
            "help": help_text,
        }

    def _follow(self, name: str, preset: Any, fitted: Callable[[Any], Any]) -> None:
        """Write what a control holds where another control moved its range or preset.

        The address leaves a preset out and follows only what is chosen or written, so
        it would else name a value that is gone, or stand for another preset.

        Args:
            name: Name of the control.
            preset: What it holds where the address says nothing.
            fitted: Takes what it holds; what it can hold now.
        """
        key = f"{self.prefix}_{name}"
        known = f"{key}_preset"
        moved = st.session_state.get(known, preset) != preset
        st.session_state[known] = preset
        held = st.session_state.get(key)
        if held is not None and (moved or fitted(held) != held):
            st.session_state[key] = fitted(held)

    def whole(
        self,
        label: str,
        name: str,
        low: int,
        high: int,
        default: int,
        *,
        help_text: str | None = None,
        disabled: bool = False,
    ) -> int:
        """Return a whole number from a slider that steps by one.

        To Streamlit a slider of numbers with other ends is another one, which forgets
        its value and its place in the address; a slider of options stays the same.
        """
        return self._stops(
            label,
            name,
            range(low, high + 1),
            min(max(default, low), high),
            lambda held: min(max(held, low), high),
            help_text=help_text,
            disabled=disabled,
        )

    def listed(
        self,
        label: str,
        name: str,
        options: Sequence[Any],
        default: Any,
        *,
        shown: Callable[[Any], str] = str,
        help_text: str | None = None,
        disabled: bool = False,
    ) -> Any:
        """Return one of ordered options, from a slider that stops at each."""
        preset = default if default in options else options[0]
        return self._stops(
            label,
            name,
            options,
            preset,
            lambda held: held if held in options else preset,
            shown=shown,
            help_text=help_text,
            disabled=disabled,
        )

    def _stops(
        self,
        label: str,
        name: str,
        options: Sequence[Any],
        preset: Any,
        fitted: Callable[[Any], Any],
        *,
        shown: Callable[[Any], str] = str,
        help_text: str | None,
        disabled: bool = False,
    ) -> Any:
        if len(options) == 1:  # a slider needs two ends
            return options[0]
        self._follow(name, preset, fitted)
        return st.select_slider(
            label,
            options,
            preset,
            format_func=shown,
            disabled=disabled,
            **self._bound(name, help_text),
        )

    def choice(
        self,
        label: str,
        name: str,
        options: Sequence[Any],
        *,
        shown: Callable[[Any], str] = str,
        help_text: str | None = None,
    ) -> Any:
        """Return one of a few options, all of them visible; the first is preset."""
        picked = st.segmented_control(
            label,
            options,
            default=options[0],
            required=True,
            format_func=shown,
            **self._bound(name, help_text),
        )
        return options[0] if picked is None else picked  # an address may empty it

    def menu(
        self,
        label: str,
        name: str,
        options: Sequence[Any],
        *,
        preset: int = 0,
        shown: Callable[[Any], str] = str,
        help_text: str | None = None,
    ) -> Any:
        """Return one of many options from a menu; ``preset`` is the place of one."""
        first = options[preset]
        self._follow(name, first, lambda held: held if held in options else first)
        return st.selectbox(
            label, options, preset, format_func=shown, **self._bound(name, help_text)
        )

    def several(
        self,
        label: str,
        name: str,
        options: Sequence[Any],
        default: Sequence[Any],
        *,
        most: int,
        help_text: str | None = None,
    ) -> list[Any]:
        """Return some of many options, at most ``most``; it may be none."""
        return st.multiselect(
            label,
            options,
            [option for option in default if option in options],
            max_selections=most,
            select_all=False,
            **self._bound(name, help_text),
        )

    def switch(
        self, label: str, name: str, default: bool, *, help_text: str | None = None
    ) -> bool:
        """Return whether a switch is on."""
        return st.toggle(label, default, **self._bound(name, help_text))

    def words(self, default: str, *, label: str = "Words", name: str = "text") -> str:
        """Return a line of text that is to be split into words."""
        bound = self._bound(name, f"Split at spaces; 1 to {MOST_TOKENS} words.")
        typed = st.text_input(label, default, max_chars=_LONGEST_TEXT, **bound)
        return typed or ""

    def line(self, label: str, name: str, default: str, help_text: str) -> str:
        """Return a line of text, as it was typed."""
        bound = self._bound(name, help_text)
        typed = st.text_input(label, default, max_chars=_LONGEST_TEXT, **bound)
        return typed or ""

    def seed(self, default: int = 0) -> int:
        """Return the seed of everything random on the page."""
        bound = self._bound("seed", "The same seed draws the same numbers everywhere.")
        try:
            value = st.number_input("Seed", 0, MAX_SEED, default, step=1, **bound)
        except OverflowError:  # seed=1e999 in the address is infinite to Streamlit
            free = f"{self.prefix}_seed_free"
            value = st.number_input("Seed", 0, MAX_SEED, default, step=1, key=free)
        return default if value is None else int(value)


@contextmanager
def sidebar(prefix: str) -> Iterator[Controls]:
    """Open the sidebar and give the page's controls."""
    with st.sidebar:
        yield Controls(prefix)
