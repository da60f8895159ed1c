"""Reports jobs that `cancel()` ended while no worker had them: nobody else could say that they
ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from hybrid_runner.model.claims import CancelledInQueue
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches

BATCH = 500
_FOR_OTHERS = timedelta(minutes=1)
"""For so long a worker that reports to nobody leaves them to those that do."""


class EndReporter:
    """Each end is reported at least once: its row is deleted afterwards.

    Taken ones are given to nobody else for a minute; if the worker dies before it has deleted them,
    they are reported again.
    """

    def __init__(self, report: Callable[[Sequence[CancelledInQueue]], None] | None) -> None:
        self._report = report

    async def report(self, on: Fetches) -> None:
        """Take those that are there, report them, and delete them."""
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
