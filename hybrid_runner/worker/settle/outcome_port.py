"""The settler's statements, bound to one database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid_runner.model.outcomes import Finished, Requeued
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.tracing.tracing import Tracing


class Outcomes:
    """The `OutcomePort` of a real database; see there what each method returns."""

    def __init__(self, connection: LazyConnection, tracing: Tracing) -> None:
        self._connection = connection
        self._tracing = tracing

    async def finish(self, batch: Sequence[Finished]) -> set[int]:
        return await worker_calls.finish_jobs(self._connection, batch)

    async def requeue(self, batch: Sequence[Requeued]) -> set[int]:
        return await worker_calls.requeue_jobs(
            self._connection, batch, self._tracing.traceparents_of(batch)
        )

    async def archived_before(self, batch: Sequence[Finished]) -> set[int]:
        return await worker_calls.archived_before(self._connection, batch)

    async def locked(self, ids: Sequence[int]) -> set[int]:
        return await worker_calls.find_locked(self._connection, ids)

    async def reasons(self, ids: Sequence[int]) -> Mapping[int, str]:
        return await worker_calls.find_reasons(self._connection, ids)
