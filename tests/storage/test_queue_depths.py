"""How deep the queues are: exact while they are shallow, cheap however deep."""

from __future__ import annotations

from hybrid_runner.model.upkeep import QueueDepth
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection

INSERT = (
    "INSERT INTO hybrid_runner.jobs (queue, kind, priority, run_at) SELECT $1, 'note', i % 10,"
    " now() + $2::int * interval '1 minute' FROM generate_series(1, $3::int) AS i"
)


async def test_each_job_is_counted_in_one_state_of_its_queue(database: Connection) -> None:
    """D8"""
    await database.execute(INSERT, "a", -3, 25)
    await database.execute(INSERT, "a", 5, 7)
    await database.execute(INSERT, "b", 5, 1)
    await database.execute("UPDATE hybrid_runner.jobs SET run_at = 'infinity' WHERE queue = 'b'")
    await database.execute("SELECT hybrid_runner.open_queue('c'), hybrid_runner.pause('c')")
    c, a, b = await worker_calls.queue_depths(database)
    assert 180 <= a.oldest_due < 240
    assert a._replace(oldest_due=0) == QueueDepth(
        "a", 25, 7, 0, 0, paused=False, workers=0, opened=False
    )
    assert b == QueueDepth("b", 0, 1, 0, 0, paused=False, workers=0, opened=False)
    assert c == QueueDepth("c", 0, 0, 0, 0, paused=True, workers=0)


async def test_workers_count_while_they_live_and_running_is_what_they_said_last(
    database: Connection,
) -> None:
    await database.execute("SELECT hybrid_runner.open_queue('a')")
    await database.execute(
        "INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, running, dead_at,"
        " heartbeat_at) VALUES "
        """('1', '', 1, '', '{"a": 10}', '{"a": 4}', NULL, now()), """
        """('2', '', 1, '', '{"a": 5, "b": 1}', '{"a": 5}', NULL, now()), """
        """('stopping', '', 1, '', '{}', '{"a": 2}', NULL, now()), """
        """('dead', '', 1, '', '{"a": 10}', '{"a": 9}', now(), now()), """
        """('silent', '', 1, '', '{"a": 10}', '{"a": 9}', NULL, now() - interval '1 hour')"""
    )
    [a] = await worker_calls.queue_depths(database)
    assert (a.workers, a.running) == (2, 11)
    [wanted] = await worker_calls.scale(database, "a", 200)
    assert wanted._asdict() == {
        "queue": "a",
        "backlog": 0,
        "running": 11,
        "slots": 15,
        "workers": 2,
        "wanted": 2,
    }


async def test_a_deep_queue_is_estimated_and_never_below_what_was_counted(
    database: Connection,
) -> None:
    await database.execute(INSERT, "deep", -1, 30_000)
    await database.execute(INSERT, "deep", 60, 20_000)
    [fresh] = await worker_calls.queue_depths(database)
    assert (fresh.due, fresh.scheduled) >= (10_000, 10_000)
    await database.execute("ANALYZE hybrid_runner.jobs")
    [known] = await worker_calls.queue_depths(database)
    assert 25_000 <= known.due <= 35_000
    assert 15_000 <= known.scheduled <= 25_000


async def test_counting_reads_no_more_of_a_deep_queue_than_its_limit(database: Connection) -> None:
    await database.execute(INSERT, "deep", -1, 50_000)
    await database.execute("VACUUM ANALYZE hybrid_runner.jobs")
    before = await _read(database)
    await worker_calls.queue_depths(database)
    assert await _read(database) - before <= 10_000 + 100


async def test_an_old_transaction_is_the_age_of_the_horizon(database: Connection, dsn: str) -> None:
    """D8"""
    from hybrid_runner.storage.connections.connection import connect  # noqa: PLC0415

    assert await worker_calls.horizon_age(database) == 0
    other = await connect(dsn)
    try:
        async with other.transaction(isolation="repeatable_read"):
            await other.execute("SELECT 1")
            first = await worker_calls.horizon_age(database)
            assert first > 0
            assert await worker_calls.horizon_age(database) > first
        assert await worker_calls.horizon_age(database) == 0
    finally:
        await other.close()


async def _read(database: Connection) -> int:
    await database.execute("SELECT pg_stat_force_next_flush()")
    await database.execute("SELECT pg_stat_clear_snapshot()")
    read: int = await database.fetchval(
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'jobs_due'"
    )
    return read
