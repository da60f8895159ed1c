"""Reports jobs that `cancel()` ended in the queue to tracing, since no worker saw their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from hybrid_runner.model.claims import CancelledInQueue
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches

BATCH = 500
_FOR_OTHERS = timedelta(minutes=1)
"""How long a worker without tracing leaves unreported ends to workers that have it."""


class EndReporter:
    """Each end is reported at least once: its row is deleted afterwards.

    Ends that a worker has taken are given to no other for a minute; if the worker dies before it
    has deleted them, they are reported again.
    """

    def __init__(self, report: Callable[[Sequence[CancelledInQueue]], None] | None) -> None:
        self._report = report

    async def report(self, on: Fetches) -> None:
        """Take up to 500 unreported ends at a time, report them, and delete them."""
        older_than = _FOR_OTHERS if self._report is None else timedelta(0)
        while ids := await self._report_some(on, older_than):
            if len(ids) < BATCH:
                return

    async def _report_some(self, on: Fetches, older_than: timedelta) -> Sequence[int]:
        taken = await worker_calls.take_unreported_ends(on, BATCH, older_than)
        if taken.ends and self._report is not None:
            self._report(taken.ends)
        if taken.taken_at is not None:
            await worker_calls.delete_reported_ends(on, taken.ids, taken.taken_at)
        return taken.ids
