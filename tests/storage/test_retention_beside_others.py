"""Pruning while others read the archive, write to it, retry jobs or prune."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.model.upkeep import Pruned
from hybrid_runner.storage import claim_calls, client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.duties.prune import Prune
from tests.support.archive import aged, exists, keep, known, partition, pruned
from tests.support.jobs import claim, running
from tests.support.waiting import until, until_blocked

pytestmark = pytest.mark.usefixtures("partitions_of_now")

Another = Callable[[], Awaitable[Connection]]
COMPLETED, FAILED = "archive_completed", "archive_failed"
HOUR, DAY = 60, 24 * 60


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
        pruning = asyncio.wait_for(pruned(database), 120)
        assert await pruning == [("blocked", whole), ("blocked", some)]
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
    CREATE EVENT TRIGGER pauses ON ddl_command_start WHEN tag IN ('ALTER TABLE')
        EXECUTE FUNCTION pause();
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
    # Who has waited for a second is the first to find that it waits in a circle.
    await writer.execute("SET deadlock_timeout = '10min'")
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
        waits = "SELECT cardinality(pg_blocking_pids($1)) > 0"
        pid = database.get_server_pid()
        # It waits for 300 ms, which may be over before anybody looks.
        await until(lambda: reader.fetchval(waits, pid), lambda found: found or task.done())
        assert await claim_calls.finish_jobs(settler, [Finished(taken, State.COMPLETED)]) == {
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
        await claim_calls.finish_jobs(writer, [Finished(taken, State.COMPLETED)])
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
                await claim_calls.finish_jobs(
                    connection, [Finished(each, State.COMPLETED) for each in taken]
                )
            ) == len(taken)
        return mine

    # Among those who settle all the time, one may stand still for longer than it usually waits.
    await database.execute("ALTER FUNCTION hybrid_runner.prune SET lock_timeout = '50s'")
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
