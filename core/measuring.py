"""Measurements as live runs: one result a step, to be watched and stopped.

A page that wants something measured here hands a ``Measurement`` to the scheduler,
where it takes turns with every other run; nothing is measured in a script thread.
"""

from collections.abc import Iterator
from typing import Any

from core.checks import require_int


class Measurement:
    """Results worked out one a step, until there are ``total`` of them.

    Attributes:
        total: Number of results when it is done.
        stop_reason: That it is done, as a sentence; None before.
    """

    def __init__(self, results: Iterator[Any], total: int) -> None:
        """Take the source of the results.

        Args:
            results: Works out the next result each time it is asked; a step should
                take well under half a second, since nobody else's turn comes meanwhile.
            total: How many it gives.
        """
        self.total = require_int("total", total, 1)
        self.stop_reason: str | None = None
        self._results = results
        self._done = 0

    @property
    def finished(self) -> bool:
        """Whether all results are there."""
        return self.stop_reason is not None

    def step(self) -> Any:
        """Return the next result.

        Raises:
            RuntimeError: If there is none: the source gave fewer than ``total``.
        """
        result = next(self._results, None)
        if result is None:
            raise RuntimeError(f"only {self._done} of {self.total} results came")
        self._done += 1
        if self._done == self.total:
            self.stop_reason = f"Measured: {self.total} results."
        return result

    def snapshot(self) -> None:
        """Return nothing: the records hold all there is to draw."""
