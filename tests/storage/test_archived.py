"""Ended jobs are found by their ids without a look into every partition of the archive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.storage import client_calls, stream_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.queries import query

HOUR = timedelta(hours=1)
PARTITIONS = 350
"""Of each half, one for each hour."""
ARCHIVED = """
INSERT INTO hybrid_runner.archive (id, queue, kind, priority, payload, run_at, state, attempt,
    snoozes, version, created_at, finished_at)
SELECT $1, 'default', 'note', 5, '{}', $2, $3::hybrid_runner.job_state, 1, 0, 1, $2, $4
"""
NOTE = "INSERT INTO hybrid_runner.id_history (noted_at, next_id) VALUES ($1, $2)"
LOCKED = """
SELECT DISTINCT l.relation::regclass::text
FROM pg_locks AS l
JOIN pg_class AS c ON c.oid = l.relation
WHERE l.pid = pg_backend_pid() AND c.relnamespace <> 'pg_catalog'::regnamespace
"""


async def archived(database: Connection, *ids: int) -> list[int]:
    rows = await database.fetch("SELECT id FROM hybrid_runner.archived($1::bigint[])", list(ids))
    return sorted(row[0] for row in rows)


@pytest.fixture
async def now(database: Connection) -> datetime:
    """Many hours of partitions, and a note for each hour: a thousand ids an hour."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    await database.execute("DELETE FROM hybrid_runner.id_history")
    for half in ("archive_completed", "archive_failed"):
        first = await database.fetchval(
            "SELECT min(lower) FROM hybrid_runner.archive_partitions"
            " WHERE half = $1 AND NOT is_default",
            half,
        )
        for hours in range(1, PARTITIONS + 1):
            await database.execute(
                "SELECT hybrid_runner.add_archive_partition($1, $2, $3)",
                half,
                first - HOUR * hours,
                first - HOUR * (hours - 1),
            )
    for hours in range(PARTITIONS):
        await database.execute(NOTE, now - HOUR * hours, (PARTITIONS - hours) * 1000)
    return now


async def test_every_job_is_found_wherever_it_ended(database: Connection, now: datetime) -> None:
    began = now - 300 * HOUR
    at_once = (PARTITIONS - 300) * 1000 + 5
    late, today, before, unnoted = at_once + 1, at_once + 2, at_once + 3, 7
    for job_id, finished_at, state in (
        (at_once, began + timedelta(minutes=5), "completed"),
        (late, began + 90 * HOUR, "failed"),
        (today, now, "cancelled"),
        (before, began - 40 * HOUR, "completed"),  # a clock was set back
        (unnoted, began - 48 * HOUR, "completed"),
    ):
        await database.execute(ARCHIVED, job_id, began, state, finished_at)
    assert await archived(database, at_once, late, today, before, unnoted, 999_999_999) == [
        unnoted,
        at_once,
        late,
        today,
        before,
    ]
    for job_id in (at_once, late, today, before, unnoted):
        assert await archived(database, job_id) == [job_id]
        view = await client_calls.get_job(database, job_id)
        assert view is not None
        assert view.id == job_id
    assert await archived(database) == []


async def test_a_look_for_one_id_opens_few_partitions_of_many(
    database: Connection, now: datetime
) -> None:
    job_id = (PARTITIONS - 2) * 1000 + 5
    await database.execute(ARCHIVED, job_id, now - 2 * HOUR, "completed", now - 2 * HOUR)
    looks: tuple[tuple[int, Callable[[], Awaitable[object]]], ...] = (
        (23, lambda: client_calls.get_job(database, job_id)),
        (23, lambda: stream_calls.job_snapshots(database, [job_id])),
        (23, lambda: database.fetch(query("watch_jobs"), [job_id])),
        (23, lambda: database.fetchval("SELECT hybrid_runner.cancel($1)", job_id)),
        (23, lambda: database.fetchval("SELECT hybrid_runner.amend($1, 1)", job_id)),
        (40, lambda: database.fetchval("SELECT hybrid_runner.retry($1)", job_id)),
    )
    for most, look in looks:
        async with database.transaction():
            assert await look()
            locked = [row[0] for row in await database.fetch(LOCKED)]
            assert len(locked) <= most, f"of 1,400 partitions and indexes: {locked}"
    assert await archived(database, job_id) == []


async def test_ids_are_noted_as_partitions_are_made_and_thinned_out(database: Connection) -> None:
    await database.execute("DELETE FROM hybrid_runner.id_history")
    await database.fetchval("SELECT hybrid_runner.make_archive_partitions()")
    await database.fetchval("SELECT hybrid_runner.make_archive_partitions()")
    first = await database.fetchval("SELECT next_id FROM hybrid_runner.id_history")
    job_id = await database.fetchval("SELECT hybrid_runner.enqueue('note')")
    assert first == job_id, "one note within the hour"
    await database.execute(
        "INSERT INTO hybrid_runner.id_history"
        " SELECT date_trunc('day', now()) - make_interval(hours => g), 1"
        " FROM generate_series(1, 240) AS g"
    )
    await database.fetchval("SELECT hybrid_runner.keep('completed', '30 days')")
    await database.fetchval("SELECT hybrid_runner.make_archive_partitions()")
    days = await database.fetch(
        "SELECT count(*) FROM hybrid_runner.id_history"
        " WHERE noted_at < now() - interval '8 days' GROUP BY date_trunc('day', noted_at)"
    )
    assert {row[0] for row in days} == {1}
