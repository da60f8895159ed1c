"""Reports jobs that `cancel()` ended in the queue to tracing, since no worker saw their end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from hybrid_runner.model.claims import CancelledInQueue
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches

BATCH = 500
_DELETED = 10_000
"""How many ends a worker without tracing deletes at a time."""
_FOR_OTHERS = timedelta(minutes=1)
"""How long a worker without tracing leaves unreported ends to workers that have it."""

Report = Callable[[Sequence[CancelledInQueue]], Collection[int] | None]
"""Returns the ids of ends that were not accepted."""


class EndReporter:
    """Each end is given to `report` until that accepts it: its row is deleted afterwards.

    Ends that a worker has taken are given to no other for a minute; if they are not accepted, or
    the worker dies before it has deleted them, they are reported again.
    """

    def __init__(self, report: Report | None, room: Callable[[], int] = lambda: BATCH) -> None:
        self._report = report
        self._room = room
        """How many ends `report` can accept now."""

    async def report(self, on: Fetches) -> None:
        """Report one batch, and delete what was accepted; the next heartbeat asks for more."""
        if self._report is None:
            await worker_calls.delete_unreported_ends(on, _DELETED, _FOR_OTHERS)
            return
        if not (most := min(BATCH, self._room())):
            return
        taken = await worker_calls.take_unreported_ends(on, most)
        refused = {*(self._report(taken.ends) or ())} if taken.ends else set[int]()
        accepted = [job_id for job_id in taken.ids if job_id not in refused]
        if taken.taken_at is not None and accepted:
            await worker_calls.delete_reported_ends(on, accepted, taken.taken_at)
