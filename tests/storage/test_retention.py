"""What is forgotten when, by dropping partitions, and what stays readable."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest

from hybrid_runner.model.jobs import State
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.archive import aged, exists, keep, known, partition, pruned

pytestmark = pytest.mark.usefixtures("partitions_of_now")

Another = Callable[[], Awaitable[Connection]]
COMPLETED, FAILED = "archive_completed", "archive_failed"
HOUR, DAY = 60, 24 * 60


async def file_of(connection: Connection, table: str) -> int:
    return int(
        await connection.fetchval(
            "SELECT pg_relation_filenode('hybrid_runner.' || $1::text)", table
        )
    )


async def scans_of(connection: Connection, table: str) -> int:
    """How often it was read from one end to the other, by now where Postgres can be asked for that:
    else it counts what a session has done about a second later.
    """
    if connection.get_server_version() >= (15,):
        await connection.execute("SELECT pg_stat_force_next_flush()")
    scans: int = await connection.fetchval(
        "SELECT coalesce(seq_scan, 0) FROM pg_stat_all_tables WHERE relid = ('hybrid_runner.' ||"
        " $1::text)::regclass",
        table,
    )
    return scans


async def test_completed_jobs_are_forgotten_after_an_hour_and_not_before(
    database: Connection,
) -> None:
    """B15"""
    due = await partition(database, COMPLETED, 2 * HOUR, HOUR)
    not_yet = await partition(database, COMPLETED, HOUR, 0)
    old, young = await aged(database, 61), await aged(database, 1)
    assert await pruned(database) == [("dropped", due)]
    assert await known(database, old + young) == young
    assert not await exists(database, due)
    assert await exists(database, not_yet)


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
async def test_what_did_not_complete_is_kept_for_a_day(state: State, database: Connection) -> None:
    """B15"""
    await database.execute(
        "DO $$ DECLARE part text; BEGIN FOR part IN SELECT partition FROM"
        " hybrid_runner.archive_partitions WHERE half = 'archive_failed' AND NOT is_default LOOP"
        " EXECUTE 'DROP TABLE hybrid_runner.' || part; END LOOP; END $$"
    )
    due = await partition(database, FAILED, 2 * DAY, DAY)
    not_yet = await partition(database, FAILED, DAY, 0)
    old, young = await aged(database, DAY + 1, state), await aged(database, DAY - 1, state)
    assert await pruned(database) == [("dropped", due)]
    assert await known(database, old + young) == young
    assert await exists(database, not_yet)


async def test_a_longer_time_is_heeded_at_once_and_a_shorter_one_too(database: Connection) -> None:
    """B15"""
    part = await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    jobs = await aged(database, 130)
    await keep(database, State.COMPLETED, "6 hours")
    assert await pruned(database) == []
    assert await known(database, jobs) == jobs
    await keep(database, State.COMPLETED, "30 minutes")
    assert await pruned(database) == [("dropped", part)]


async def test_a_kind_that_is_kept_longer_survives_in_a_table_without_the_others(
    database: Connection,
) -> None:
    """B15"""
    part = await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    usual, longer = (
        await aged(database, 130, count=500),
        await aged(database, 125, kind="report", count=3),
    )
    await keep(database, State.COMPLETED, "7 days", "report")
    before = await file_of(database, part)
    assert await pruned(database) == [("rewritten", part)]
    assert await known(database, usual[:5] + longer) == longer
    assert await file_of(database, part) != before
    assert await database.fetchval(f"SELECT count(*) FROM hybrid_runner.{part}") == 3
    assert not await exists(database, "archive_successor")


async def test_a_partition_of_which_some_is_kept_is_not_searched_again_until_there_is_a_reason(
    database: Connection,
) -> None:
    """B15"""
    part = await partition(database, COMPLETED, 4 * HOUR, 3 * HOUR)
    await aged(database, 190)
    a, b = await aged(database, 191, kind="a"), await aged(database, 192, kind="b")
    await keep(database, State.COMPLETED, "7 days", "a")
    await keep(database, State.COMPLETED, "8 days", "b")
    assert await pruned(database) == [("rewritten", part)]
    before = await scans_of(database, part)
    assert await pruned(database) == []
    assert await scans_of(database, part) == before
    await keep(database, State.COMPLETED, "2 hours", "a")
    assert await pruned(database) == [("rewritten", part)]
    assert await known(database, a + b) == b
    await keep(database, State.COMPLETED, None, "b")
    assert await pruned(database) == [("dropped", part)]


async def test_a_kind_that_is_kept_shorter_goes_first(database: Connection) -> None:
    """B15"""
    part = await partition(database, COMPLETED, HOUR, 0)
    await keep(database, State.COMPLETED, "3 hours")
    await keep(database, State.COMPLETED, "1 microsecond", "tick")
    ticks, others = await aged(database, 5, kind="tick"), await aged(database, 5)
    assert await pruned(database) == [("rewritten", part)]
    assert await known(database, ticks + others) == others


async def test_nothing_is_copied_when_there_is_nothing_to_forget(database: Connection) -> None:
    part = await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    await keep(database, State.COMPLETED, "7 days", "report")
    jobs = await aged(database, 130, kind="report", count=10)
    before = await file_of(database, part)
    assert await pruned(database) == [("kept", part)]
    assert await file_of(database, part) == before
    assert await known(database, jobs) == jobs


async def test_hours_of_which_little_is_kept_become_a_day(database: Connection) -> None:
    """Each partition costs whoever looks for an id."""
    await keep(database, State.COMPLETED, "30 days", "report")
    since_midnight = (
        int(await database.fetchval("SELECT extract(hour FROM now() AT TIME ZONE 'UTC')::int"))
        * HOUR
    )
    jobs = []
    for hour in (3, 4, 6):  # with a gap, in which there is a stray
        closes = since_midnight + 2 * DAY - hour * HOUR
        await partition(database, COMPLETED, closes + HOUR, closes)
        jobs += await aged(database, closes + 30, kind="report") + await aged(database, closes + 30)
        if hour == 4:
            jobs += await aged(database, closes - 30, kind="report")
    said = await pruned(database)
    assert [what for what, _ in said] == ["rewritten", "rewritten", "rewritten", "merged"]
    assert re.fullmatch(r"archive_completed_\d{8}02_\d{8}06", said[-1][1])
    kept = [jobs[0], jobs[2], jobs[4], jobs[5]]
    assert await known(database, jobs) == kept
    assert await database.fetchval(f"SELECT count(*) FROM hybrid_runner.{said[-1][1]}") == 4
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.archive_scans") == 1
    assert await pruned(database) == []


async def test_what_found_no_partition_is_forgotten_too(database: Connection) -> None:
    old, young = await aged(database, 30 * DAY), await aged(database, 30 * DAY, kind="report")
    await keep(database, State.COMPLETED, "60 days", "report")
    assert await pruned(database) == []
    assert await known(database, old + young) == young


async def test_a_call_is_bounded(database: Connection) -> None:
    for hours in range(3, 8):
        await partition(database, COMPLETED, hours * HOUR, (hours - 1) * HOUR)
    assert len(await worker_calls.prune(database, 2)) == 2
    assert len(await worker_calls.prune(database, 20)) == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("'queued', '1 hour'", "state must be completed, failed or cancelled, not queued"),
        ("NULL, '1 hour'", "state must be completed, failed or cancelled, not NULL"),
        ("'failed', '0'", "keep must be more than zero and at most ten years, not 00:00:00"),
        ("'failed', '11 years'", "keep must be more than zero and at most ten years, not 11 years"),
        ("'failed', NULL", "keep is missing: only the exception of a kind can be removed"),
        ("'failed', '1 hour', NULL", "kind must be 0 to 128 characters"),
    ],
)
async def test_a_rule_that_makes_no_sense_is_refused(
    arguments: str, complaint: str, database: Connection
) -> None:
    with pytest.raises(asyncpg.PostgresError) as refusal:
        await database.execute(f"SELECT hybrid_runner.keep({arguments})")
    assert str(refusal.value) == complaint


async def test_a_producer_has_no_say_in_it_and_a_worker_prunes(database: Connection) -> None:
    part = await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    await database.execute("SET ROLE hybrid_runner_producer")
    for call in ("keep('failed', '1 hour')", "prune()", "find_growth()"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await database.execute(f"SELECT hybrid_runner.{call}")
    await database.execute("SET ROLE hybrid_runner_worker")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await database.execute(f"DROP TABLE hybrid_runner.{part}")
    await worker_calls.keep_jobs(
        database,
        [(State.FAILED, "", timedelta(days=3650)), (State.COMPLETED, "work", timedelta(1))],
    )
    assert await pruned(database) == [("kept", part)]


async def test_partitions_are_as_wide_as_what_is_kept_allows(database: Connection) -> None:
    width = (
        "SELECT DISTINCT upper - lower FROM hybrid_runner.archive_partitions WHERE half ="
        " 'archive_completed' AND upper = (SELECT max(upper) FROM hybrid_runner.archive_partitions"
        " WHERE half = 'archive_completed')"
    )
    assert await database.fetchval(width) == timedelta(hours=1)
    for kept, wide in (("7 days", timedelta(days=1)), ("1 year", timedelta(days=27))):
        await keep(database, State.COMPLETED, kept)
        for newest in await database.fetch(
            "SELECT partition FROM hybrid_runner.archive_partitions WHERE half ="
            " 'archive_completed' AND NOT is_default"
        ):
            await database.execute(f"DROP TABLE hybrid_runner.{newest[0]}")
        assert await worker_calls.make_archive_partitions(database, 7) > 0
        assert await database.fetchval(width) >= wide


async def test_few_partitions_are_there_at_a_time(database: Connection) -> None:
    """Each costs whoever looks for an id."""
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.archive_partitions") < 16


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
async def test_pruning_by_an_older_snapshot_is_refused(
    isolation: str, database: Connection
) -> None:
    """What is kept would be copied as that snapshot saw it, and the rest dropped."""
    await database.execute(f"SET default_transaction_isolation = '{isolation}'")
    with pytest.raises(asyncpg.PostgresError, match="call it in READ COMMITTED"):
        await database.fetch("SELECT what FROM hybrid_runner.prune()")
