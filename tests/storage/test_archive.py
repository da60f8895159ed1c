from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import Connection
from tests.support.jobs import ended

STRAY = (
    "INSERT INTO hybrid_runner.archive "
    "(id, queue, kind, priority, payload, run_at, state, attempt, version, created_at, finished_at) "
    "VALUES ($1, 'default', 'work', 5, '{}', now(), 'completed', 1, 1, now(), now() + make_interval(days => $2))"
)
PLACE = "SELECT c.relname FROM hybrid_runner.archive AS a JOIN pg_class AS c ON c.oid = a.tableoid WHERE a.id = $1"


async def test_partitions_are_made_ahead(database: Connection) -> None:
    """B15"""
    job = await ended(database)
    place = await database.fetchval(PLACE, job)
    today = await database.fetchval("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")
    assert place == f"archive_{today}"
    assert await statements.make_archive_partitions(database, 7) == 0
    assert await statements.make_archive_partitions(database, 10) == 3
    assert await statements.make_archive_partitions(database, 10) == 0


async def test_a_day_starts_at_midnight_utc_wherever_the_session_is(database: Connection) -> None:
    await database.execute("SET timezone = 'Pacific/Auckland'")
    await statements.make_archive_partitions(database, 30)
    bounds = await database.fetch(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_class AS c "
        "WHERE c.relispartition AND c.relname ~ '^archive_[0-9]{8}$' ORDER BY 1"
    )
    await database.execute("SET timezone = 'UTC'")
    assert len(bounds) == 31
    assert await statements.make_archive_partitions(database, 30) == 0


async def test_strays_in_the_default_partition_move_to_the_day_they_belong_to(database: Connection) -> None:
    await database.execute(STRAY, 1, 9)
    await database.execute(STRAY, 2, 400)
    assert await database.fetchval(PLACE, 1) == "archive_default"
    assert await statements.make_archive_partitions(database, 12) == 5
    day = await database.fetchval("SELECT to_char((now() + interval '9 days') AT TIME ZONE 'UTC', 'YYYYMMDD')")
    assert await database.fetchval(PLACE, 1) == f"archive_{day}"
    assert await database.fetchval(PLACE, 2) == "archive_default"


async def test_two_who_make_partitions_at_once_make_each_once(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    connections = [await another() for _ in range(6)]
    made = await asyncio.gather(*(statements.make_archive_partitions(c, 20) for c in connections))
    assert sorted(made) == [0, 0, 0, 0, 0, 13]
    assert await ended(database)


async def test_a_new_partition_is_found_by_id_as_the_others_are(database: Connection) -> None:
    await statements.make_archive_partitions(database, 9)
    without_key = await database.fetchval(
        "SELECT count(*) FROM pg_class AS c WHERE c.relispartition AND c.relkind = 'r' "
        "AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)"
    )
    assert without_key == 0
