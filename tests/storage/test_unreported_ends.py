"""Ends that no worker saw are reported at least once, and in the normal case by one."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence

from hybrid_runner.model.claims import CancelledInQueue
from hybrid_runner.model.news import EndsUnreported
from hybrid_runner.storage import client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.unreported_ends import EndReporter
from tests.support.beats import told
from tests.support.jobs import enqueue, living

LEFT = "SELECT count(*) FROM hybrid_runner.unreported_ends"
A_MINUTE_PASSES = (
    "UPDATE hybrid_runner.unreported_ends SET taken_at = taken_at - interval '1 minute'"
)
DIES = """
import asyncio, os, signal, sys
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.upkeep.unreported_ends import EndReporter

def report(ends):
    print(*(end.claim.id for end in ends), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    await EndReporter(report).report(await connect(sys.argv[1]))

asyncio.run(main())
"""


async def cancelled(database: Connection) -> int:
    job = await enqueue(database)
    assert await client_calls.cancel_job(database, job, None) == "cancelled"
    return job


async def taken(database: Connection, most: int = 10) -> list[int]:
    return sorted((await worker_calls.take_unreported_ends(database, most)).ids)


async def reported(database: Connection) -> list[int]:
    said: list[CancelledInQueue] = []
    await EndReporter(said.extend).report(database)
    return [end.claim.id for end in said]


async def test_a_worker_that_is_killed_between_report_and_deletion_leaves_them_to_another(
    dsn: str, database: Connection
) -> None:
    jobs = [await cancelled(database), await cancelled(database)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DIES, dsn, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert [int(job) for job in said.split()] == jobs
    assert await reported(database) == []  # it may live, and be about to delete them
    await database.execute(A_MINUTE_PASSES)
    assert await reported(database) == jobs
    assert await database.fetchval(LEFT) == 0


async def test_a_report_that_fails_is_made_again(database: Connection) -> None:
    job = await cancelled(database)

    def fail(_: object) -> None:
        raise OSError("no way out")

    try:
        await EndReporter(fail).report(database)
    except OSError:
        await database.execute(A_MINUTE_PASSES)
    assert await reported(database) == [job]


async def test_two_workers_at_once_do_not_take_the_same(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    jobs = [await cancelled(database) for _ in range(20)]
    workers = [await another() for _ in range(4)]
    shares = await asyncio.gather(*(taken(worker) for worker in workers))
    shares += [await taken(database)]
    assert sorted(job for share in shares for job in share) == jobs


async def test_a_job_that_is_cancelled_again_while_its_first_end_is_reported_is_reported_again(
    database: Connection,
) -> None:
    job = await cancelled(database)
    first = await worker_calls.take_unreported_ends(database, 10)
    assert await client_calls.retry_job(database, job) == "queued"
    assert await client_calls.cancel_job(database, job, None) == "cancelled"
    assert first.taken_at is not None
    await worker_calls.delete_reported_ends(database, first.ids, first.taken_at)
    assert await reported(database) == [job]


async def test_what_was_forgotten_meanwhile_is_deleted_without_a_report(
    database: Connection,
) -> None:
    await cancelled(database)
    await database.execute("TRUNCATE hybrid_runner.archive")
    assert await reported(database) == []
    assert await database.fetchval(LEFT) == 0


async def test_a_heartbeat_speaks_of_those_that_can_be_taken(database: Connection) -> None:
    first = await living(database)

    async def is_said() -> bool:
        return EndsUnreported() in await told(database, "worker-1", first)

    assert not await is_said()
    await cancelled(database)
    assert await is_said()
    await taken(database)
    assert not await is_said()
    await database.execute(A_MINUTE_PASSES)
    assert await is_said()


async def test_only_what_was_accepted_is_deleted(database: Connection) -> None:
    """A span queue that is full drops spans: their jobs are reported again."""
    refused, accepted = await cancelled(database), await cancelled(database)
    said: list[int] = []

    def report(ends: Sequence[CancelledInQueue]) -> list[int]:
        said.extend(end.claim.id for end in ends)
        return [refused]

    await EndReporter(report).report(database)
    assert said == [refused, accepted]
    await database.execute(A_MINUTE_PASSES)
    assert await reported(database) == [refused]


async def test_no_more_are_taken_than_there_is_room_for(database: Connection) -> None:
    jobs = [await cancelled(database) for _ in range(3)]
    said: list[CancelledInQueue] = []
    for room in (0, 2):
        await EndReporter(said.extend, lambda room=room: room).report(database)  # type: ignore[misc]
    assert [end.claim.id for end in said] == jobs[:2]
    assert await reported(database) == jobs[2:]
