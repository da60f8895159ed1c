"""What is forgotten when, by dropping partitions, and what stays readable."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest

from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.outcomes import Finished
from hybrid_runner.model.upkeep import Pruned
from hybrid_runner.storage import client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.duties.prune import Prune
from tests.support.archive import aged, exists, keep, partition, pruned
from tests.support.jobs import claim, running
from tests.support.waiting import until_blocked

Another = Callable[[], Awaitable[Connection]]
COMPLETED, FAILED = "archive_completed", "archive_failed"
HOUR, DAY = 60, 24 * 60


async def known(connection: Connection, ids: list[int]) -> list[int]:
    """Which of them can still be read, one by one and by those who wait."""
    found = [job for job in ids if await client_calls.get_job(connection, job)]
    assert sorted(status.id for status in await client_calls.watch_jobs(connection, ids)) == found
    return found


async def file_of(connection: Connection, table: str) -> int:
    return int(
        await connection.fetchval(
            "SELECT pg_relation_filenode('hybrid_runner.' || $1::text)", table
        )
    )


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
    scans = (
        "SELECT coalesce(seq_scan, 0) FROM pg_stat_all_tables WHERE relid = ('hybrid_runner.' ||"
        " $1::text)::regclass"
    )
    before = await database.fetchval(scans, part)
    assert await pruned(database) == []
    await database.execute("SELECT pg_stat_clear_snapshot()")
    assert await database.fetchval(scans, part) == before
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


async def test_a_reader_makes_pruning_give_up_soon_and_another_round_succeeds(
    database: Connection, another: Another
) -> None:
    whole, some = (
        await partition(database, COMPLETED, 4 * HOUR, 3 * HOUR),
        await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR),
    )
    forgotten, kept = await aged(database, 190), await aged(database, 130, kind="report")
    both = forgotten + await aged(database, 130)
    past = await database.fetchval(
        "SELECT floor(extract(epoch FROM now() - date_trunc('hour', now())))::int"
    )
    await keep(database, State.COMPLETED, f"{3 * 3600 + past} seconds", "report")
    reader = await another()
    async with reader.transaction():
        assert await reader.fetchval("SELECT count(*) FROM hybrid_runner.archive") == 3
        task = asyncio.ensure_future(pruned(database))
        await until_blocked(reader, database)
        assert await asyncio.wait_for(task, 20) == [("blocked", whole), ("blocked", some)]
        assert await known(reader, sorted(both + kept)) == sorted(both + kept)
    assert not await exists(database, "archive_successor")
    # What would have to be copied again waits a few minutes.
    assert await pruned(database) == [("dropped", whole)]
    await database.execute("UPDATE hybrid_runner.archive_scans SET not_before = now()")
    assert await pruned(database) == [("rewritten", some)]
    assert await known(database, sorted(both + kept)) == kept


PAUSE = """
    CREATE FUNCTION pause() RETURNS event_trigger LANGUAGE plpgsql SET lock_timeout = 0
    AS 'BEGIN PERFORM pg_advisory_xact_lock(77); END';
    CREATE EVENT TRIGGER pauses ON ddl_command_start WHEN tag IN ('ALTER TABLE') EXECUTE FUNCTION pause();
"""
"""Holds up whoever has copied the survivors, for as long as somebody has that lock."""


async def test_while_survivors_are_copied_readers_go_on_and_writers_wait(
    database: Connection, another: Another
) -> None:
    part = await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    kept, [gone] = await aged(database, 130, kind="report", count=2), await aged(database, 130)
    await keep(database, State.COMPLETED, "7 days", "report")
    holder, reader, writer = await another(), await another(), await another()
    await database.execute(PAUSE)
    async with holder.transaction():
        await holder.execute("SELECT pg_advisory_xact_lock(77)")
        rewriting = asyncio.ensure_future(pruned(database))
        await until_blocked(holder, database)
        assert await known(reader, [*kept, gone]) == [*kept, gone]
        writing = asyncio.ensure_future(
            writer.execute("DELETE FROM hybrid_runner.archive WHERE id = $1", kept[0])
        )
        await until_blocked(holder, writer)
        assert not writing.done()
    # They are in each other's way: the one that can try again gives in.
    assert await rewriting == [("blocked", part)]
    assert await writing == "DELETE 1"
    await database.execute(
        "DROP EVENT TRIGGER pauses; UPDATE hybrid_runner.archive_scans SET not_before = now()"
    )
    assert await pruned(database) == [("rewritten", part)]
    assert await known(database, [*kept, gone]) == kept[1:]


async def test_that_somebody_is_in_the_way_is_said_once(
    database: Connection, another: Another, caplog: pytest.LogCaptureFixture
) -> None:
    part = await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    await aged(database, 130)
    pruner, reader = Prune(), await another()
    async with reader.transaction():
        await reader.execute("SELECT count(*) FROM hybrid_runner.archive")
        await pruner.run(database)
        await pruner.run(database)
    [line] = caplog.messages
    assert (
        line
        == f"archive: {part} cannot be pruned while a transaction holds it; trying again at each"
        " turn"
    )


async def test_while_a_reader_is_waited_for_jobs_end_all_the_same(
    database: Connection, another: Another
) -> None:
    await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    await aged(database, 130)
    reader, settler = await another(), await another()
    taken = await running(settler)
    async with reader.transaction():
        await reader.execute("SELECT count(*) FROM hybrid_runner.archive")
        task = asyncio.ensure_future(pruned(database))
        await until_blocked(reader, database)
        assert await worker_calls.finish_jobs(settler, [Finished(taken, State.COMPLETED)]) == {
            taken.id
        }
        await task


async def test_a_long_transaction_that_archives_does_not_keep_the_past(
    database: Connection, another: Another
) -> None:
    part = await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    jobs = await aged(database, 130)
    writer = await another()
    taken = await running(writer)
    async with writer.transaction():
        await worker_calls.finish_jobs(writer, [Finished(taken, State.COMPLETED)])
        assert await pruned(database) == [("emptied", part)]
        assert await known(database, jobs) == []
        assert await pruned(database) == []
    assert await pruned(database) == [("dropped", part)]
    assert await known(database, [taken.id]) == [taken.id]


async def test_of_many_that_prune_at_once_one_does_and_the_others_say_that_they_did_not(
    database: Connection, another: Another
) -> None:
    part = await partition(database, COMPLETED, 3 * HOUR, 2 * HOUR)
    async with database.transaction():
        assert [one[:2] for one in await worker_calls.prune(database, 20)] == [("dropped", part)]
        other = await another()
        assert await worker_calls.prune(other, 20) == [Pruned("busy", "", 0)]
    parts = {
        await partition(database, COMPLETED, hours * HOUR, (hours - 1) * HOUR)
        for hours in range(3, 9)
    }
    connections = [await another() for _ in range(5)]
    said = [each for done in await asyncio.gather(*map(pruned, connections)) for each in done]
    said += await pruned(database)
    assert sorted(name for what, name in said if what == "dropped") == sorted(parts)


async def test_nothing_that_ends_meanwhile_is_lost_or_refused(
    database: Connection, another: Another
) -> None:
    settlers = [await another() for _ in range(3)]
    maker = await another()
    over = asyncio.Event()

    async def settle(connection: Connection) -> list[int]:
        mine = []
        while not over.is_set():
            taken = await claim(connection, 5)
            mine += [each.id for each in taken]
            assert len(
                await worker_calls.finish_jobs(
                    connection, [Finished(each, State.COMPLETED) for each in taken]
                )
            ) == len(taken)
        return mine

    await keep(database, State.COMPLETED, "6 hours", "report")
    await client_calls.enqueue_many(database, [NewJob("work")] * 3000, "exists")
    settling = [asyncio.ensure_future(settle(connection)) for connection in settlers]
    for _ in range(10):
        for hours in (3, 5):
            await partition(maker, COMPLETED, hours * HOUR, (hours - 1) * HOUR)
            await aged(maker, hours * HOUR - 5, kind="report")
            await aged(maker, hours * HOUR - 5)
        said = await pruned(database)
        assert [what for what, _ in said] == ["rewritten", "rewritten"]
        await keep(database, State.COMPLETED, None, "report")
        assert [what for what, _ in await pruned(database)] == ["dropped", "dropped"]
        await keep(database, State.COMPLETED, "6 hours", "report")
    over.set()
    settled = [job for each in await asyncio.gather(*settling) for job in each]
    assert len(settled) == len(set(settled)) > 0
    assert await database.fetchval(
        "SELECT count(*) FROM hybrid_runner.archive WHERE id = ANY ($1)", settled
    ) == len(settled)


async def test_a_job_that_is_being_retried_is_not_forgotten(
    database: Connection, another: Another
) -> None:
    part = await partition(database, FAILED, 40 * DAY, 39 * DAY)
    [job] = await aged(database, 39 * DAY + 5, State.FAILED)
    other = await another()
    async with other.transaction():
        assert await client_calls.retry_job(other, job) == "queued"
        assert await pruned(database) == [("busy", "")]
    assert await pruned(database) == [("dropped", part)]
    view = await client_calls.get_job(database, job)
    assert view is not None
    assert view.state is State.QUEUED
    assert [taken.id for taken in await claim(database)] == [job]


async def test_a_retry_waits_for_a_partition_that_is_written_anew_and_finds_its_job_there(
    database: Connection, another: Another
) -> None:
    await partition(database, FAILED, 40 * DAY, 39 * DAY)
    [job], _ = (
        await aged(database, 39 * DAY + 5, State.FAILED, "report"),
        await aged(database, 39 * DAY + 5, State.FAILED),
    )
    await keep(database, State.FAILED, "60 days", "report")
    other = await another()
    async with database.transaction():
        assert [one.what for one in await worker_calls.prune(database, 20)] == ["rewritten"]
        task = asyncio.ensure_future(client_calls.retry_job(other, job))
        await until_blocked(database, other)
    assert await task == "queued"
    assert (
        await database.fetchval("SELECT count(*) FROM hybrid_runner.all_jobs WHERE id = $1", job)
        == 1
    )


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
