from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from hybrid_runner.model.jobs import NewJob
from hybrid_runner.model.settlements import Requeued
from hybrid_runner.storage import claim_calls, client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, enqueue, living, running
from tests.support.rings import listening

MINUTE = timedelta(minutes=1)
INSERT = (
    "INSERT INTO hybrid_runner.jobs (kind, queue, run_at) VALUES ('work', $1, clock_timestamp()"
    " + $2)"
)
MUTED = 50_000
"""Milliseconds. Below a minute: an insert within the millisecond of such a mute would take it for
one that another clock had set.
"""


async def mute(connection: Connection, queue: str, milliseconds: int) -> None:
    """Mute the bell of an open queue until then."""
    await connection.fetch(
        "SELECT setval(doorbell, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2) "
        "FROM hybrid_runner.queues WHERE name = $1",
        queue,
        milliseconds,
    )


@pytest.mark.parametrize("opened", [False, True], ids=["unknown queue", "open queue"])
@pytest.mark.parametrize(
    ("due_in", "heard"),
    [(-3600, [""]), (0, [""]), (30, ["later"]), (59, ["later"]), (75, []), (86400, [])],
)
async def test_an_insert_rings_when_a_worker_should_know(
    opened: bool, due_in: int, heard: list[str], dsn: str, database: Connection
) -> None:
    """A1, F3: now, soon, or not at all when a fallback poll comes sooner."""
    if opened:
        await worker_calls.open_queue(database, "default", MINUTE)
    async with listening(dsn) as rings:
        await database.execute(INSERT, "default", timedelta(seconds=due_in))
        assert await rings.so_far() == heard


async def test_a_queue_with_slower_polls_rings_for_later_jobs(
    dsn: str, database: Connection
) -> None:
    """A3"""
    await worker_calls.open_queue(database, "default", timedelta(minutes=10))
    await worker_calls.open_queue(
        database, "default", MINUTE
    )  # the longest that was ever announced counts
    async with listening(dsn) as rings:
        await database.execute(INSERT, "default", timedelta(minutes=9))
        assert await rings.so_far() == ["later"]


async def test_an_insert_rings_its_own_queue_only(dsn: str, database: Connection) -> None:
    async with listening(dsn, "images") as images, listening(dsn, "mail") as mail:
        await database.execute(INSERT, "images", timedelta(0))
        assert (await images.so_far(), await mail.so_far()) == ([""], [])


async def test_ten_thousand_rows_in_one_statement_ring_once_per_queue(
    dsn: str, database: Connection
) -> None:
    """F3"""
    async with (
        listening(dsn, "images") as images,
        listening(dsn, "mail") as mail,
        database.transaction(),
    ):
        await database.execute("SET LOCAL track_functions = 'all'")
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, queue) SELECT 'work', CASE WHEN n % 2 = 0 THEN"
            " 'images' ELSE 'mail' END FROM generate_series(1, 10000) AS n"
        )
        calls = await database.fetchval(
            "SELECT calls FROM pg_stat_xact_user_functions WHERE schemaname = 'hybrid_runner' AND"
            " funcname = 'ring'"
        )
        assert calls == 2
        assert (await images.so_far(), await mail.so_far()) == ([], [])
        await database.execute("RESET track_functions")
    async with listening(dsn, "images") as images:
        jobs = [NewJob("work", queue="images") for _ in range(10_000)]
        assert len(await client_calls.enqueue_many(database, jobs, "exists")) == 10_000
        assert await images.so_far() == [""]


async def test_a_statement_with_due_and_later_jobs_rings_for_both(
    dsn: str, database: Connection
) -> None:
    async with listening(dsn) as rings:
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, run_at) "
            "VALUES ('work', now()), ('work', now() + interval '30s'), ('work', now())"
        )
        assert sorted(await rings.so_far()) == ["", "later"]


async def test_a_muted_bell_is_quiet(dsn: str, database: Connection) -> None:
    await worker_calls.open_queue(database, "default", MINUTE)
    await mute(database, "default", MUTED)
    async with listening(dsn) as rings:
        await database.execute(INSERT, "default", timedelta(0))
        await database.execute(INSERT, "default", timedelta(seconds=30))
        assert await rings.so_far() == []


async def test_a_mute_is_a_lease_that_ends_by_itself(dsn: str, database: Connection) -> None:
    await worker_calls.open_queue(database, "default", MINUTE)
    await mute(database, "default", -1)
    async with listening(dsn) as rings:
        await database.execute(INSERT, "default", timedelta(0))
        assert await rings.so_far() == [""]


async def test_a_mute_of_one_queue_leaves_the_others_ringing(
    dsn: str, database: Connection
) -> None:
    await worker_calls.open_queue(database, "images", MINUTE)
    await worker_calls.open_queue(database, "mail", MINUTE)
    await mute(database, "images", MUTED)
    async with listening(dsn, "mail") as rings:
        await database.execute(INSERT, "mail", timedelta(0))
        assert await rings.so_far() == [""]


async def test_a_bell_that_is_missing_rings(dsn: str, database: Connection) -> None:
    await worker_calls.open_queue(database, "default", MINUTE)
    await mute(database, "default", MUTED)
    bell = await database.fetchval(
        "SELECT doorbell FROM hybrid_runner.queues WHERE name = 'default'"
    )
    await database.execute(f"DROP SEQUENCE {bell}")
    async with listening(dsn) as rings:
        await database.execute(INSERT, "default", timedelta(0))
        assert await rings.so_far() == [""]


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
async def test_a_mute_is_seen_at_once_by_a_transaction_with_an_older_snapshot(
    isolation: str, dsn: str, database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    await worker_calls.open_queue(database, "default", MINUTE)
    producer = await another()
    async with listening(dsn) as rings:
        async with producer.transaction(isolation=isolation):  # type: ignore[arg-type]  # the three words it takes
            await producer.fetch("SELECT id FROM hybrid_runner.jobs")
            await mute(database, "default", MUTED)
            await producer.execute(INSERT, "default", timedelta(0))
        assert await rings.so_far() == []
        async with producer.transaction(isolation=isolation):  # type: ignore[arg-type]  # the three words it takes
            await producer.fetch("SELECT id FROM hybrid_runner.jobs")
            await mute(database, "default", -1)
            await producer.execute(INSERT, "default", timedelta(0))
        assert await rings.so_far() == [""]


async def test_a_job_that_was_rolled_back_does_not_ring(dsn: str, database: Connection) -> None:
    async with listening(dsn) as rings:
        transaction = database.transaction()
        await transaction.start()
        await database.execute(INSERT, "default", timedelta(0))
        await transaction.rollback()
        assert await rings.so_far() == []


async def test_opening_a_queue_twice_keeps_its_bell(database: Connection) -> None:
    open_queue = "SELECT hybrid_runner.open_queue('default')"
    assert await database.fetchval(open_queue) == await database.fetchval(open_queue)


async def test_jobs_put_back_ring_for_when_they_are_due(dsn: str, database: Connection) -> None:
    taken = await running(database)
    async with listening(dsn) as rings:
        await claim_calls.requeue_jobs(database, [Requeued(taken, timedelta(0), charged=False)])
        assert await rings.so_far() == [""]
        [taken] = await claim(database)
        await claim_calls.requeue_jobs(
            database, [Requeued(taken, timedelta(seconds=30), charged=False)]
        )
        [said] = await rings.so_far()
        word, _, milliseconds = said.partition(" ")
        assert word == "later"
        assert 20_000 < int(milliseconds) <= 30_000  # from when it rang on


async def test_what_people_do_to_jobs_rings(dsn: str, database: Connection) -> None:
    """B6"""
    job = await enqueue(database, run_at=None, delay=timedelta(hours=1))
    await living(database)
    async with listening(dsn) as rings:
        await client_calls.retry_job(database, job)
        assert await rings.so_far() == [""]
        await claim(database)
        await client_calls.cancel_job(database, job, None)
        assert await rings.so_far() == [f"cancel {job}"]
        await client_calls.pause_queue(database, "default")
        assert await rings.so_far() == []
        await client_calls.resume_queue(database, "default")
        assert await rings.so_far() == ["help resumed"]


async def test_finishing_does_not_ring(dsn: str, database: Connection) -> None:
    """Workers must not wake each other by their own endings."""
    taken = await running(database)
    async with listening(dsn) as rings:
        await database.execute("DELETE FROM hybrid_runner.jobs WHERE id = $1", taken.id)
        assert await rings.so_far() == []
