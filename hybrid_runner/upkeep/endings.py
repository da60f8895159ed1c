"""Tells of jobs that ended without a worker: `cancel()` ends a job that waits, and nobody else was there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from hybrid_runner.models import Ended
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import Fetches

BATCH = 500
_FOR_OTHERS = timedelta(minutes=1)
"""So long a worker that has nobody to tell leaves them to those that have."""


class Endings:
    """Each is told by one worker, once; if it dies just then, by none."""

    def __init__(self, on: Fetches, told: Callable[[Sequence[Ended]], None] | None) -> None:
        self._on = on
        self._told = told

    async def tell(self) -> None:
        """Those that are there."""
        older_than = _FOR_OTHERS if self._told is None else timedelta(0)
        while ended := await statements.take_unreported_ends(self._on, BATCH, older_than):
            if self._told is not None:
                self._told(ended)
            if len(ended) < BATCH:
                return
