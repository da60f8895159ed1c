"""Short ways to bring a job into a state."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.settlements import FinalState, Finished
from hybrid_runner.storage import claim_calls, client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection

KINDS = claim_calls.Kinds(
    [claim_calls.KindLimits("work", 5, None), claim_calls.KindLimits("other", 3, None)]
)
"""What the workers in these tests can run."""


NUMBERS = count(1)
"""Claim numbers."""


def a_claim(kind: str = "work") -> Claim:
    """A claim of a job that nobody has stored."""
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return Claim(
        id=7,
        queue="default",
        kind=kind,
        priority=5,
        payload="{}",
        data=None,
        key=None,
        run_at=now,
        max_attempts=3,
        timeout_seconds=None,
        finish_by=None,
        traceparent=None,
        attempt=1,
        number=70,
        started_at=now,
    )


async def enqueue(connection: Connection, key: str | None = None, **fields: object) -> int:
    """The id of a new queued job of kind `work`."""
    job = NewJob(**{"kind": "work", "key": key, **fields})  # type: ignore[arg-type]  # a test names real fields
    return (await client_calls.enqueue_job(connection, job, "exists")).id


async def claim(
    connection: Connection, slots: int = 100, worker_id: str = "worker-1", queue: str = "default"
) -> list[Claim]:
    """Claim what is due."""
    return (
        await claim_calls.claim_jobs(connection, queue, KINDS, slots, worker_id, next(NUMBERS))
    ).claims


async def living(
    connection: Connection,
    worker_id: str = "worker-1",
    queues: str = "{}",
    kinds: Sequence[str] = (),
    lease: timedelta = timedelta(seconds=30),
) -> int:
    """A worker of that name is registered and lives; the first of its claim numbers."""
    return (
        await worker_calls.register_worker(
            connection, worker_id, "host", 1, "0", queues, lease, kinds=kinds
        )
    ).first_claim


async def running(connection: Connection, key: str | None = None) -> Claim:
    """The claim of a new job that runs, on a worker that lives however long the test takes; no
    other may be due.
    """
    await living(connection, lease=timedelta(hours=1))
    await enqueue(connection, key)
    [taken] = await claim(connection)
    return taken


async def ended(
    connection: Connection, state: FinalState = State.COMPLETED, key: str | None = None
) -> int:
    """The id of a new job that ended."""
    taken = await running(connection, key)
    assert await claim_calls.finish_jobs(connection, [Finished(taken, state, result='"done"')]) == {
        taken.id
    }
    return taken.id
