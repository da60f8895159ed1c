"""What the settler asks of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid_runner.model.outcomes import Finished, Requeued
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.tracing.tracing import Tracing


class Outcomes:
    """Writes outcomes, with the traces of jobs that go back."""

    def __init__(self, connection: LazyConnection, tracing: Tracing) -> None:
        self._connection = connection
        self._tracing = tracing

    async def finish(self, batch: Sequence[Finished]) -> set[int]:
        """Archive ended jobs; the ids that were still ours."""
        return await worker_calls.finish_jobs(self._connection, batch)

    async def requeue(self, batch: Sequence[Requeued]) -> set[int]:
        """Put jobs back; the ids that were still ours and not being cancelled."""
        return await worker_calls.requeue_jobs(self._connection, batch, self._tracing.kept(batch))

    async def archived_before(self, batch: Sequence[Finished]) -> set[int]:
        """The ids of those that an earlier write archived whose answer was lost."""
        return await worker_calls.archived_before(self._connection, batch)

    async def locked(self, ids: Sequence[int]) -> set[int]:
        """The ids of jobs whose rows somebody else holds."""
        return await worker_calls.find_locked(self._connection, ids)

    async def reasons(self, ids: Sequence[int]) -> Mapping[int, str]:
        """The last errors of ended jobs, as JSON texts."""
        return await worker_calls.find_reasons(self._connection, ids)
