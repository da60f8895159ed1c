"""What the claimers and the settler ask of the database, on connections of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from hybrid_runner.models import Taken
from hybrid_runner.outcomes import Finished, Requeued
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import Link
from hybrid_runner.storage.statements import Kinds, Lanes
from hybrid_runner.telemetry.tracing import Tracing
from hybrid_runner.worker.executor import Executor
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.settler import Settler


class Claims:
    """Claims in this worker's name, knowing which of its claims it still has in hand."""

    def __init__(
        self,
        link: Link,
        kinds: Kinds,
        identity: Identity,
        executor: Executor,
        settler: Settler,
        ask_for_heartbeat: Callable[[], None],
    ) -> None:
        self._link = link
        self._kinds = kinds
        self._identity = identity
        self._executor = executor
        self._settler = settler
        self._ask_for_heartbeat = ask_for_heartbeat

    @property
    def session(self) -> int:
        """Which connection since the start this is; 0 while there is none."""
        return self._link.session

    def room(self) -> int:
        """How many more outcomes the settler takes: a job that ends must not wait for its place there."""
        return self._settler.room()

    async def claim(self, queue: str, slots: int, lanes: Lanes) -> Taken:
        """Claim up to so many due jobs that lie behind where the lanes start."""
        worker_id, number = await self._identity.next_claim(self._ask_for_heartbeat)
        taken = await statements.claim_jobs(self._link, queue, self._kinds, slots, worker_id, number, lanes)
        if self._identity.still(worker_id):
            return taken
        for claim in taken.claims:  # made in a dead worker's name: it goes back, unless somebody was faster
            self._settler.settle(Requeued(claim, timedelta(0), charged=False, why="release"))
        return Taken([], taken.at)

    async def release_lost(self, queue: str) -> dict[int, bool]:
        """Put back what Postgres shows as running here and is not; which jobs, and whether it could be done."""
        in_hand = [*self._executor.claims, *self._settler.claims()]
        return await statements.release_lost(self._link, queue, self._identity.id, in_hand)

    async def next_due(self, queue: str) -> timedelta | None:
        """How long until the next job of the queue is due; None when none waits for its time."""
        return await statements.next_due(self._link, queue)


class Outcomes:
    """Writes outcomes, with the traces of jobs that go back."""

    def __init__(self, link: Link, tracing: Tracing) -> None:
        self._link = link
        self._tracing = tracing

    async def finish(self, batch: Sequence[Finished]) -> set[int]:
        """Archive ended jobs; the ids that were still ours."""
        return await statements.finish_jobs(self._link, batch)

    async def requeue(self, batch: Sequence[Requeued]) -> set[int]:
        """Put jobs back; the ids that were still ours and not being cancelled."""
        return await statements.requeue_jobs(self._link, batch, self._tracing.kept(batch))

    async def archived_before(self, batch: Sequence[Finished]) -> set[int]:
        """The ids of those that an earlier write archived whose answer was lost."""
        return await statements.archived_before(self._link, batch)

    async def locked(self, ids: Sequence[int]) -> set[int]:
        """The ids of jobs whose rows somebody else holds."""
        return await statements.find_locked(self._link, ids)

    async def reasons(self, ids: Sequence[int]) -> Mapping[int, str]:
        """The last errors of ended jobs, as JSON texts."""
        return await statements.find_reasons(self._link, ids)
