from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.monitors import LATENCY_BOUNDS
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.waiting import until_blocked

pytestmark = pytest.mark.usefixtures("within_an_hour")

PARTITIONS = "SELECT partition FROM hybrid_monitors.partitions WHERE NOT is_default"
OF_TODAY = "SELECT hybrid_monitors.make_partitions()"
"""Those of the template may be of yesterday."""
STRAYS = (
    "SELECT (SELECT count(*) FROM hybrid_monitors.events_default) + (SELECT count(*) FROM"
    " hybrid_monitors.latencies_default) + (SELECT count(*) FROM hybrid_monitors.errors_default)"
)
HOURS = (
    "SELECT dependency_id, hour, answers, sum_ms, max_ms, buckets FROM hybrid_monitors.hours"
    " ORDER BY hour, dependency_id"
)
LATENCY = "INSERT INTO hybrid_monitors.latencies VALUES ($1, 'a', $2, $3)"


def hour(ago: int) -> datetime:
    """The beginning of an hour that was so many hours ago."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return now - timedelta(hours=ago)


async def partition(on: Connection, table: str, days_ago: int) -> str:
    """Attach an old partition; its name."""
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    opens = day - timedelta(days=days_ago)
    await on.execute(
        "SELECT hybrid_monitors.add_partition($1, $2, $3)", table, opens, opens + timedelta(days=1)
    )
    return f"{table}_{opens:%Y%m%d}"


async def partitions(on: Connection) -> set[str]:
    return {row[0] for row in await on.fetch(PARTITIONS)}


async def test_partitions_are_there_a_week_ahead(monitored: Connection) -> None:
    await monitored.execute(OF_TODAY)
    there = await partitions(monitored)
    for table in ("events", "latencies"):
        for days in range(8):
            assert f"{table}_{datetime.now(UTC) + timedelta(days=days):%Y%m%d}" in there
    assert (await monitor_calls.upkeep(monitored)).partitions_made == 0
    last = f"events_{datetime.now(UTC) + timedelta(days=7):%Y%m%d}"
    await monitored.execute(f"DROP TABLE hybrid_monitors.{last}")
    assert (await monitor_calls.upkeep(monitored)).partitions_made == 1
    assert last in await partitions(monitored)


@pytest.mark.parametrize("table", ["events", "latencies", "errors"])
async def test_an_index_or_a_trigger_that_an_administrator_adds_meanwhile_never_ends_by_a_deadlock(
    monitored: Connection, monitors_dsn: str, table: str
) -> None:
    """They take the whole first, then its parts."""
    for name in await partitions(monitored):
        if name.startswith(table):
            await monitored.execute(f"DROP TABLE hybrid_monitors.{name}")
    # It gives up after a second, for which a busy machine may stand still.
    await monitored.execute(
        "ALTER FUNCTION hybrid_monitors.make_partitions SET lock_timeout = '50s'"
    )
    administrator, maker = await connect(monitors_dsn), await connect(monitors_dsn)
    async with administrator.transaction():
        await administrator.execute(f"LOCK TABLE ONLY hybrid_monitors.{table} IN SHARE MODE")
        making = asyncio.create_task(monitor_calls.upkeep(maker))
        await until_blocked(monitored, maker)
        assert (
            await monitored.fetchval(
                "SELECT count(*) FROM pg_locks WHERE pid = $1 AND mode = 'AccessExclusiveLock'",
                maker.get_server_pid(),
            )
            == 0
        )
        await administrator.execute(f"CREATE INDEX mine ON hybrid_monitors.{table} (at)")
    await making
    assert (await monitor_calls.upkeep(monitored)).partitions_made == 0
    await administrator.close()
    await maker.close()


async def test_what_found_no_partition_moves_into_the_one_that_is_made(
    monitored: Connection,
) -> None:
    """Nobody had done upkeep for a week: no round fails for that."""
    day = datetime.now(UTC) + timedelta(days=8)
    await monitored.execute(
        "INSERT INTO hybrid_monitors.events VALUES (1, $1, 'service:up', 1, '{}')", day
    )
    assert await monitored.fetchval(STRAYS) == 1
    await monitored.execute("SELECT hybrid_monitors.make_partitions(9)")
    assert await monitored.fetchval(STRAYS) == 0
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.events") == 1


async def test_there_is_always_a_partition_for_now_whatever_lies_ahead(
    monitored: Connection,
) -> None:
    """Postgres's clock was forward for a month, and is set back: what was stored since then has
    found no partition, and moves.
    """
    for name in await partitions(monitored):
        await monitored.execute(f"DROP TABLE hybrid_monitors.{name}")
    now = datetime.now(UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for table in ("events", "latencies", "errors", "hours"):
        opens = (day.replace(day=1) if table in ("errors", "hours") else day) + timedelta(days=62)
        await monitored.execute(
            "SELECT hybrid_monitors.add_partition($1, $2, $3)",
            table,
            opens,
            opens + timedelta(days=1),
        )
    await monitored.execute(
        "INSERT INTO hybrid_monitors.events VALUES (1, now(), 'service:up', 1, '{}')"
    )
    done = await monitor_calls.upkeep(monitored)
    assert done.partitions_made >= 16 + 2
    assert await monitored.fetchval(STRAYS) == 0
    there = await partitions(monitored)
    assert f"events_{now + timedelta(days=7):%Y%m%d}" in there
    assert f"hours_{now:%Y%m}01" in there
    assert (await monitor_calls.upkeep(monitored)).partitions_made == 0


async def test_a_gap_between_partitions_is_filled_to_the_next_one(monitored: Connection) -> None:
    """One that begins in the middle of a month, since somebody had other ones made."""
    for name in await partitions(monitored):
        await monitored.execute(f"DROP TABLE hybrid_monitors.{name}")
    middle = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    middle += timedelta(days=1)
    await monitored.execute(
        "SELECT hybrid_monitors.add_partition('errors', $1, $2)", middle, middle + timedelta(days=1)
    )
    await monitor_calls.upkeep(monitored)
    bounds = await monitored.fetch(
        "SELECT lower, upper FROM hybrid_monitors.partitions WHERE what = 'errors'"
        " AND NOT is_default ORDER BY lower"
    )
    assert len(bounds) >= 3
    assert all(early["upper"] == late["lower"] for early, late in pairwise(bounds))


async def test_what_found_no_partition_is_removed_when_it_is_kept_long_enough(
    monitored: Connection,
) -> None:
    await monitored.execute(
        "INSERT INTO hybrid_monitors.events VALUES (1, now() - interval '29 days', 'x', 1, '{}'),"
        " (2, now() - interval '31 days', 'x', 1, '{}')"
    )
    await monitored.execute(
        "INSERT INTO hybrid_monitors.hours VALUES (now() - interval '91 days', 1, 1, 1, 1, '{1}')"
    )
    assert (await monitor_calls.upkeep(monitored)).leftovers == 2
    assert await monitored.fetchval("SELECT array_agg(id) FROM hybrid_monitors.events") == [1]
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.hours") == 0


async def test_an_hour_that_comes_once_more_is_summed_up_anew(monitored: Connection) -> None:
    """C11: Postgres's clock was forward for a while."""
    await monitored.execute(LATENCY, hour(2), [1], [7])
    await monitor_calls.upkeep(monitored)
    await monitored.execute(LATENCY, hour(2), [1], [9])
    ahead = hour(-48)
    await monitored.execute("UPDATE hybrid_monitors.upkeep_runs SET rolled_up_until = $1", ahead)
    await monitor_calls.upkeep(monitored)
    until = "SELECT rolled_up_until FROM hybrid_monitors.upkeep_runs"
    assert await monitored.fetchval(until) <= hour(0)
    await monitored.execute("UPDATE hybrid_monitors.upkeep_runs SET rolled_up_until = $1", hour(3))
    await monitor_calls.upkeep(monitored)
    [row] = await monitored.fetch(HOURS)
    assert (row["answers"], row["sum_ms"], row["max_ms"]) == (2, 16, 9)


async def test_what_is_kept_long_enough_is_dropped_by_days(monitored: Connection) -> None:
    old, kept = await partition(monitored, "events", 32), await partition(monitored, "events", 20)
    done = await monitor_calls.upkeep(monitored)
    assert (done.partitions_dropped, done.partitions_blocked) == (1, 0)
    there = await partitions(monitored)
    assert old not in there
    assert kept in there
    await monitored.execute(
        "UPDATE hybrid_monitors.retention SET keep = '10 days' WHERE what = 'events'"
    )
    assert (await monitor_calls.upkeep(monitored)).partitions_dropped == 1


async def test_a_reader_in_a_long_transaction_holds_the_dropping_up_and_nobody_else(
    monitored: Connection, monitors_dsn: str
) -> None:
    old = await partition(monitored, "events", 32)
    reader = await connect(monitors_dsn)
    transaction = reader.transaction()
    await transaction.start()
    await reader.fetch("SELECT count(*) FROM hybrid_monitors.events")
    assert (await monitor_calls.upkeep(monitored)).partitions_blocked == 1
    assert old in await partitions(monitored)
    await transaction.rollback()
    assert (await monitor_calls.upkeep(monitored)).partitions_dropped == 1
    await reader.close()


async def test_a_reader_in_a_long_transaction_keeps_no_hour_from_being_summed_up(
    monitored: Connection, monitors_dsn: str
) -> None:
    await monitored.execute(OF_TODAY)
    await monitored.execute(
        f"DROP TABLE hybrid_monitors.events_{datetime.now(UTC) + timedelta(days=7):%Y%m%d}"
    )
    await monitored.execute(LATENCY, hour(2), [1], [7])
    reader = await connect(monitors_dsn)
    async with reader.transaction():
        await reader.fetch("SELECT * FROM hybrid_monitors.events")
        with pytest.raises(RunnerError, match="lock"):
            await monitor_calls.upkeep(monitored)
        assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.hours") == 1
    await reader.close()
    assert (await monitor_calls.upkeep(monitored)).partitions_made == 1


async def test_latencies_are_not_dropped_before_their_hours_are_summed_up(
    monitored: Connection,
) -> None:
    old = await partition(monitored, "latencies", 3)
    await monitored.execute("UPDATE hybrid_monitors.upkeep_runs SET rolled_up_until = $1", hour(72))
    await monitored.execute("SELECT hybrid_monitors.drop_partitions()")
    assert old in await partitions(monitored)
    await monitor_calls.upkeep(monitored)
    assert old not in await partitions(monitored)


async def test_latencies_that_nobody_sums_up_are_dropped_three_days_later(
    monitored: Connection,
) -> None:
    """Otherwise they would fill the disk."""
    old, younger = [await partition(monitored, "latencies", days) for days in (5, 3)]
    await monitored.execute(
        "UPDATE hybrid_monitors.upkeep_runs SET rolled_up_until = $1", hour(240)
    )
    await monitored.execute("SELECT hybrid_monitors.drop_partitions()")
    there = await partitions(monitored)
    assert (old in there, younger in there) == (False, True)


async def test_a_partition_that_cannot_be_dropped_is_emptied(
    monitored: Connection, monitors_dsn: str
) -> None:
    """Its reader looks at others only, and may do so for days."""
    old = await partition(monitored, "events", 32)
    await monitored.execute(
        "INSERT INTO hybrid_monitors.events VALUES (1, now() - interval '32 days', 'x', 1, '{}')"
    )
    reader = await connect(monitors_dsn)
    async with reader.transaction():
        await reader.fetch("LOCK TABLE ONLY hybrid_monitors.events IN ACCESS SHARE MODE")
        done = await monitor_calls.upkeep(monitored)
        assert (done.partitions_dropped, done.partitions_blocked) == (1, 0)
        assert await monitored.fetchval(f"SELECT count(*) FROM hybrid_monitors.{old}") == 0
        assert (await monitor_calls.upkeep(monitored)).partitions_blocked == 1
    await reader.close()
    assert (await monitor_calls.upkeep(monitored)).partitions_dropped == 1


async def test_an_hour_is_summed_up_once_however_often_it_is_asked_for(
    monitored: Connection, monitors_dsn: str
) -> None:
    """C11"""
    at = hour(3)
    await monitored.execute(LATENCY, at, [1, 2], [1, 100_000])
    await monitored.execute(LATENCY, at + timedelta(minutes=59), [1, 1, 1], [2, 5, 6])
    await monitored.execute(LATENCY, hour(1), [1], [7])
    await monitored.execute(LATENCY, hour(0), [1], [8])
    assert (await monitor_calls.upkeep(monitored)).hours_rolled_up in (1, 2)
    await monitored.execute("UPDATE hybrid_monitors.upkeep_runs SET rolled_up_until = $1", hour(0))
    for _ in range(2):
        assert (await monitor_calls.upkeep(monitored)).hours_rolled_up == 0
    rows = {(row["dependency_id"], row["hour"]): row for row in await monitored.fetch(HOURS)}
    first = rows[1, at]
    assert (first["answers"], first["sum_ms"], first["max_ms"]) == (4, 14, 6)
    assert first["buckets"][:5] == [1, 1, 1, 1, 0]
    assert len(first["buckets"]) == len(LATENCY_BOUNDS) + 1
    second = rows[2, at]
    assert second["buckets"][-1] == 1
    assert sum(second["buckets"]) == 1
    assert (1, hour(0)) not in rows
    # Whoever holds the row does it: another one has nothing to do.
    await monitored.execute("UPDATE hybrid_monitors.upkeep_runs SET rolled_up_until = $1", at)
    other = await connect(monitors_dsn)
    async with other.transaction():
        await other.execute("SELECT FROM hybrid_monitors.upkeep_runs FOR UPDATE")
        assert not await monitored.fetchval("SELECT hybrid_monitors.roll_up_hour()")
    await other.close()
    assert await monitored.fetchval("SELECT hybrid_monitors.roll_up_hour()")


async def test_bounds_of_buckets_are_the_same_in_sql_and_in_python(undone: Connection) -> None:
    assert tuple(await undone.fetchval("SELECT hybrid_monitors.latency_bounds()")) == LATENCY_BOUNDS


async def test_the_oldest_partitions_are_dropped_first_and_no_more_than_is_said(
    monitored: Connection,
) -> None:
    younger, oldest, old = [await partition(monitored, "events", days) for days in (33, 35, 34)]
    drop = "SELECT partition FROM hybrid_monitors.drop_partitions(1)"
    assert [await monitored.fetchval(drop) for _ in range(4)] == [oldest, old, younger, None]


async def test_a_partition_is_dropped_when_its_last_row_is_kept_long_enough(
    monitored: Connection,
) -> None:
    """Events are kept for thirty days: so are those of the evening of its day."""
    kept = await partition(monitored, "events", 30)
    assert (await monitor_calls.upkeep(monitored)).partitions_dropped == 0
    assert kept in await partitions(monitored)


async def test_events_are_dropped_whether_or_not_hours_are_summed_up(
    monitored: Connection,
) -> None:
    old = await partition(monitored, "events", 32)
    await monitored.execute("UPDATE hybrid_monitors.upkeep_runs SET rolled_up_until = NULL")
    await monitored.execute("SELECT hybrid_monitors.drop_partitions()")
    assert old not in await partitions(monitored)


async def test_partitions_are_dropped_by_one_at_a_time(
    monitored: Connection, monitors_dsn: str
) -> None:
    """Whoever holds the row does it: another one waits for nobody and has nothing to do."""
    old = await partition(monitored, "events", 32)
    drop = "SELECT partition FROM hybrid_monitors.drop_partitions()"
    other = await connect(monitors_dsn)
    async with other.transaction():
        await other.execute("SELECT FROM hybrid_monitors.upkeep_runs FOR UPDATE")
        assert await monitored.fetch(drop) == []
    await other.close()
    assert await monitored.fetchval(drop) == old


async def test_an_answer_at_the_full_hour_counts_in_the_hour_that_begins(
    monitored: Connection,
) -> None:
    """C11: and in that one alone."""
    await monitored.execute(LATENCY, hour(4), [1], [7])
    await monitored.execute(LATENCY, hour(3), [1], [9])
    await monitor_calls.upkeep(monitored)
    rows = await monitored.fetch(HOURS)
    assert [(row["hour"], row["sum_ms"]) for row in rows] == [(hour(4), 7), (hour(3), 9)]


async def test_an_hour_that_is_summed_up_anew_has_the_buckets_of_all_its_answers(
    monitored: Connection,
) -> None:
    """C11"""
    for milliseconds in (1, 100_000):
        await monitored.execute(LATENCY, hour(3), [1], [milliseconds])
        await monitored.execute(
            "UPDATE hybrid_monitors.upkeep_runs SET rolled_up_until = $1", hour(3)
        )
        await monitor_calls.upkeep(monitored)
    [row] = await monitored.fetch(HOURS)
    assert (row["buckets"][0], row["buckets"][-1]) == (1, 1)


async def test_where_nobody_polled_no_hour_that_was_summed_up_is_looked_at_again(
    monitored: Connection,
) -> None:
    """C11: rows that came late for it stay out of it."""
    until = "SELECT rolled_up_until FROM hybrid_monitors.upkeep_runs"
    await monitor_calls.upkeep(monitored)
    first = await monitored.fetchval(until)
    assert first >= hour(1)
    await monitored.execute(LATENCY, hour(5), [1], [7])
    await monitor_calls.upkeep(monitored)
    assert await monitored.fetchval(until) >= first
    assert await monitored.fetch(HOURS) == []
