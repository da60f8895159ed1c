"""Who publishes that a job has changed, while readers are announced (B13)."""

from __future__ import annotations

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.rings import listening
from tests.support.streams import Stepwise, changes_channel, served
from tests.support.waiting import until, until_fetched
from tests.support.working import working
from tests.web.test_events import INSERT, PAUSED, READERS, published_only

SET = (
    "SELECT setval('hybrid_runner.stream_readers_until', (extract(epoch FROM clock_timestamp()) *"
    " 1000)::bigint + $1)"
)
LOST = """
UPDATE hybrid_runner.jobs SET
    state = 'running', attempt = 1, version = version + 1, worker_id = 'nobody',
    started_at = clock_timestamp(), claim = nextval('hybrid_runner.claims')
WHERE id = $1
"""
LOOKED_FOR = "UPDATE hybrid_runner.duties SET taken_at = '2020-01-01' WHERE name = 'orphaned_jobs'"
"""The next heartbeat may have done that already, before it was lost, and would do it again in ten
minutes.
"""

__all__ = ["published_only"]


@pytest.mark.usefixtures("published_only")
async def test_rescues_are_published(dsn: str, database: Connection) -> None:
    """Nobody else would: the worker that had the job is gone."""
    async with served(Stepwise(dsn, heartbeat="100ms").app) as (client, worker):
        await database.execute(PAUSED)
        job = await database.fetchval(INSERT, "steps", "default")
        async with client.events(f"/jobs/{job}/events") as seen:
            await seen.until("queued")
            await until(lambda: inside.knows_of_readers(worker))
            await database.execute(LOST, job)
            await database.execute(LOOKED_FOR)
            assert (await seen.until("retried")).data["attempt"] == 1


async def test_retry_of_an_ended_job_and_cancel_of_a_running_one_are_published(
    dsn: str, database: Connection
) -> None:
    """A5 B6: by the functions themselves; the worker here does not know that somebody reads."""
    steps = Stepwise(dsn)
    channel = await changes_channel(database)
    async with listening(dsn, channel) as said, working(steps.app) as worker:
        ended = await database.fetchval(INSERT, "brief", "images")
        await worker.settled(1)
        running = await database.fetchval(INSERT, "steps", "default")
        await until_fetched(
            database, "SELECT state::text FROM hybrid_runner.jobs WHERE id = $1", "running", running
        )
        assert await said.so_far() == []
        await database.execute(PAUSED)
        await database.fetchval(SET, 60_000)
        assert await database.fetchval("SELECT hybrid_runner.retry($1)", ended) == "queued"
        assert await said.so_far() == [f"images brief 0 {ended}"]
        assert await database.fetchval("SELECT hybrid_runner.cancel($1)", running) == "requested"
        assert await said.so_far() == [f"default steps 0 {running}"]


async def test_a_new_worker_asks_whether_somebody_reads(dsn: str, database: Connection) -> None:
    """It has not heard the announcement."""
    await database.fetchval(SET, 60_000)
    async with working(Stepwise(dsn).app) as worker:
        await until(lambda: inside.knows_of_readers(worker))


@pytest.mark.parametrize(
    ("ahead", "read"),
    [(50_000, True), (0, False), (-1000, False), (3_600_000, False), (2**61, False)],
)
async def test_an_announcement_of_readers_believes_no_clock_that_was_set(
    database: Connection, ahead: int, read: bool
) -> None:
    """It is a lease of a minute at most: whoever set it for longer had another clock."""
    await database.fetchval(SET, ahead)
    assert (await database.fetchval(f"{READERS} > 0")) is read
    await database.fetchval("SELECT hybrid_runner.publish('q', 'k', 1)")
