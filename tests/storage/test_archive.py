from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import ended
from tests.support.waiting import until_blocked

pytestmark = pytest.mark.usefixtures("within_an_hour")

STRAY = (
    "INSERT INTO hybrid_runner.archive (id, queue, kind, priority, payload, run_at, state, attempt,"
    " snoozes, version, created_at, finished_at) VALUES ($1, 'default', 'work', 5, '{}', now(),"
    " 'completed', 1, 0, 1, now(), now() + make_interval(days => $2))"
)
PLACE = (
    "SELECT c.relname FROM hybrid_runner.archive AS a JOIN pg_class AS c ON c.oid = a.tableoid"
    " WHERE a.id = $1"
)


PATIENT = "ALTER FUNCTION hybrid_runner.make_archive_partitions SET lock_timeout = '50s'"
"""It gives up after two seconds, for which a busy machine may stand still."""


async def drop_all(database: Connection) -> None:
    """As if no partitions had been made."""
    for (name,) in await database.fetch(
        "SELECT partition FROM hybrid_runner.archive_partitions WHERE NOT is_default"
    ):
        await database.execute(f"DROP TABLE hybrid_runner.{name}")


async def test_the_archive_has_the_columns_of_jobs_in_their_order_and_three_more(
    database: Connection,
) -> None:
    """The view puts them together by place. (A column that comes after a release stands behind the
    three: name them then.)
    """
    columns = (
        "SELECT array_agg(attname || ' ' || format_type(atttypid, atttypmod) ORDER BY attnum) FROM"
        " pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped"
    )
    live, ended, both = [
        await database.fetchval(columns, f"hybrid_runner.{name}")
        for name in ("jobs", "archive", "all_jobs")
    ]
    more = ["finished_at timestamp with time zone", "result jsonb", "followed_by bigint[]"]
    assert ended == both == [*live, *more]


async def test_partitions_are_made_ahead(database: Connection) -> None:
    """B15"""
    await drop_all(database)  # those of the template may be of the last hour
    await worker_calls.make_archive_partitions(database, 7)
    job = await ended(database)
    hour = await database.fetchval("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDDHH24')")
    assert str(await database.fetchval(PLACE, job)).startswith(f"archive_completed_{hour}_")
    assert await worker_calls.make_archive_partitions(database, 7) == 0
    await drop_all(database)
    assert await worker_calls.make_archive_partitions(database, 1) == 7 + 2
    assert await worker_calls.make_archive_partitions(database, 7) == 2
    assert await worker_calls.make_archive_partitions(database, 7) == 0


async def test_hours_and_days_start_on_the_hour_of_utc_wherever_the_session_is(
    database: Connection,
) -> None:
    await drop_all(database)
    await database.execute("SET timezone = 'Asia/Kathmandu'; SET datestyle = 'SQL, DMY'")
    await worker_calls.make_archive_partitions(database, 7)
    await database.execute("SET timezone = 'UTC'; RESET datestyle")
    bounds = await database.fetch(
        "SELECT half, lower, upper FROM hybrid_runner.archive_partitions WHERE NOT is_default"
    )
    assert len(bounds) == 11
    for half, lower, upper in bounds:
        assert (lower.minute, upper.minute) == (0, 0)
        assert (lower.hour, upper.hour) == (0, 0) or half == "archive_completed"
    assert await worker_calls.make_archive_partitions(database, 7) == 0


async def test_strays_in_the_default_partition_move_to_the_time_they_belong_to(
    database: Connection,
) -> None:
    await drop_all(database)
    await database.execute(STRAY, 1, 0)
    await database.execute(STRAY, 2, 400)
    assert await database.fetchval(PLACE, 1) == "archive_completed_default"
    assert await worker_calls.make_archive_partitions(database, 7) == 11
    assert re.fullmatch(r"archive_completed_\d{10}_\d{10}", await database.fetchval(PLACE, 1))
    assert await database.fetchval(PLACE, 2) == "archive_completed_default"


async def test_two_who_make_partitions_at_once_make_each_once(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    await drop_all(database)
    await database.execute(PATIENT)
    connections = [await another() for _ in range(6)]
    made = await asyncio.gather(*(worker_calls.make_archive_partitions(c, 20) for c in connections))
    assert sorted(made) == [0, 0, 0, 0, 0, 11]
    assert await ended(database)


@pytest.mark.parametrize("whole", ["archive", "archive_completed", "archive_failed"])
async def test_an_index_or_a_trigger_that_an_administrator_adds_meanwhile_never_ends_by_a_deadlock(
    database: Connection, another: Callable[[], Awaitable[Connection]], whole: str
) -> None:
    """They take the whole first, then its parts."""
    await drop_all(database)
    await database.execute(PATIENT)
    administrator, maker = await another(), await another()
    async with administrator.transaction():
        await administrator.execute(f"LOCK TABLE ONLY hybrid_runner.{whole} IN SHARE MODE")
        making = asyncio.create_task(worker_calls.make_archive_partitions(maker, 7))
        await until_blocked(database, maker)
        await administrator.execute(f"CREATE INDEX mine ON hybrid_runner.{whole} (kind)")
    await making
    assert await worker_calls.make_archive_partitions(database, 7) == 0


async def test_a_new_partition_is_found_by_id_as_the_others_are(database: Connection) -> None:
    await drop_all(database)
    await worker_calls.make_archive_partitions(database, 9)
    without_key = await database.fetchval(
        "SELECT count(*) FROM pg_class AS c WHERE c.relispartition AND c.relkind = 'r' "
        "AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)"
    )
    assert without_key == 0
