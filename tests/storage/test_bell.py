"""What Postgres does, as far as the doorbell stands on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from hybrid_runner.model.news import MuteExpired
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.beats import told
from tests.support.jobs import living
from tests.support.rings import listening

Opens = Callable[[], Awaitable[Connection]]

INSERT = "INSERT INTO hybrid_runner.jobs (kind) VALUES ('work')"
VALUE = "SELECT pg_sequence_last_value(doorbell) FROM hybrid_runner.queues WHERE name = 'default'"
SET = "SELECT setval(doorbell, $1) FROM hybrid_runner.queues WHERE name = 'default'"
LISTED = "SELECT $1 IN (SELECT pg_snapshot_xip(pg_current_snapshot())::text::int8)"
BEYOND = "SELECT $1 >= pg_snapshot_xmax(pg_current_snapshot())::text::int8"
OWN_ID = "SELECT pg_current_xact_id()::text::int8"


@pytest.fixture
async def inserting(another: Opens) -> Connection:
    """A connection with an insert in flight."""
    connection = await another()
    await connection.execute("BEGIN")
    await connection.execute(INSERT)
    return connection


@pytest.fixture
async def bell(database: Connection) -> Connection:
    """The queue has a doorbell."""
    await worker_calls.open_queue(database, "default", timedelta(minutes=1))
    return database


# --- transactions in flight


async def test_a_snapshot_does_not_list_the_newest_transaction_in_flight(
    database: Connection, inserting: Connection
) -> None:
    """Its id is not below xmax, the next id after the last one that ended."""
    while not await database.fetchval(BEYOND, newest := await inserting.fetchval(OWN_ID)):
        await inserting.execute(f"ROLLBACK; BEGIN; {INSERT}")  # the server's own upkeep was newer
    assert not await database.fetchval(LISTED, newest)


async def test_a_snapshot_lists_it_once_a_newer_one_has_ended(
    database: Connection, inserting: Connection, another: Opens
) -> None:
    newest = await inserting.fetchval(OWN_ID)
    await (await another()).execute(INSERT)
    assert await database.fetchval(LISTED, newest)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_a_number_of_ones_own_waits_for_the_newest_transaction_too(
    end: str, database: Connection, inserting: Connection
) -> None:
    below = await worker_calls.mark_in_flight(database)
    assert not await worker_calls.inserts_ended(database, below)
    await inserting.execute(end)
    assert await worker_calls.inserts_ended(database, below)


async def test_transactions_that_begin_later_are_not_waited_for(
    database: Connection, inserting: Connection, another: Opens
) -> None:
    below = await worker_calls.mark_in_flight(database)
    later = await another()
    await later.execute("BEGIN")
    await later.execute(INSERT)
    await inserting.execute("COMMIT")
    assert await worker_calls.inserts_ended(database, below)


async def test_an_insert_within_a_savepoint_is_waited_for_until_its_transaction_ends(
    database: Connection, another: Opens
) -> None:
    inserting = await another()
    await inserting.execute("BEGIN")
    await inserting.execute("SAVEPOINT within")
    await inserting.execute(INSERT)
    below = await worker_calls.mark_in_flight(database)
    await inserting.execute("RELEASE SAVEPOINT within")
    assert not await worker_calls.inserts_ended(database, below)
    await inserting.execute("COMMIT")
    assert await worker_calls.inserts_ended(database, below)


async def test_a_transaction_that_only_reads_is_not_waited_for(
    database: Connection, another: Opens
) -> None:
    reading = await another()
    await reading.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await reading.fetch("SELECT FROM hybrid_runner.queues")
    assert await worker_calls.inserts_ended(database, await worker_calls.mark_in_flight(database))


async def test_a_transaction_in_another_database_is_waited_for_too(
    database: Connection, empty_dsn: str
) -> None:
    elsewhere = await connect(empty_dsn)
    await elsewhere.execute("BEGIN")
    await elsewhere.fetchval(OWN_ID)
    below = await worker_calls.mark_in_flight(database)
    assert not await worker_calls.inserts_ended(database, below)
    await elsewhere.execute("COMMIT")
    assert await worker_calls.inserts_ended(database, below)
    await elsewhere.close()


# --- a value outside of transactions


async def test_a_value_set_by_an_uncommitted_transaction_is_seen_at_once(
    bell: Connection, another: Opens
) -> None:
    muting = await another()
    await muting.execute("BEGIN")
    await muting.fetchval(SET, 42)
    assert await bell.fetchval(VALUE) == 42
    await muting.execute("ROLLBACK")
    assert await bell.fetchval(VALUE) == 42


async def test_it_is_seen_through_an_older_snapshot(bell: Connection, another: Opens) -> None:
    await bell.fetchval(SET, 1)
    producer = await another()
    await producer.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert await producer.fetchval(VALUE) == 1
    muting = await another()
    await muting.execute("BEGIN")
    await muting.fetchval(SET, 42)
    assert await producer.fetchval(VALUE) == 42


# --- the table of sleepers


async def asks(asking: Connection, mode: str = "full") -> bool:
    """Mute the bell; whether somebody sleeps."""
    return await worker_calls.mute_bell(
        asking, "default", timedelta(seconds=30), mode, leave_sleepers=False
    )


@pytest.mark.parametrize(("mode", "value"), [("full", 0), ("saturated", None)])
async def test_whoever_has_no_free_slot_sees_that_somebody_sleeps_and_rings_for_help(
    mode: str, value: int | None, bell: Connection, another: Opens, dsn: str
) -> None:
    await worker_calls.join_sleepers(await another(), ["default", "other"])
    async with listening(dsn) as rings:
        assert await asks(bell, mode)
        assert "help" in await rings.so_far()
    assert (await bell.fetchval(VALUE) == 0) is (value == 0)


async def test_who_looks_itself_lets_others_sleep(bell: Connection, another: Opens) -> None:
    await worker_calls.join_sleepers(await another(), ["default"])
    assert not await asks(bell, "looking")


async def test_ones_own_row_is_nobody_else(bell: Connection) -> None:
    await worker_calls.join_sleepers(bell, ["default"])
    assert not await asks(bell)


async def test_who_sleeps_on_another_queue_does_not_count(bell: Connection, another: Opens) -> None:
    await worker_calls.join_sleepers(await another(), ["other"])
    assert not await asks(bell)


async def test_a_row_counts_until_its_worker_mutes_the_bell(
    bell: Connection, another: Opens
) -> None:
    sleeper = await another()
    for _ in range(2):  # joining twice is like joining once
        await worker_calls.join_sleepers(sleeper, ["default"])
    assert await asks(bell)
    await worker_calls.mute_bell(
        sleeper, "default", timedelta(seconds=30), "looking", leave_sleepers=True
    )
    assert not await asks(bell)
    await worker_calls.join_sleepers(sleeper, ["default"])
    assert await asks(bell)
    await worker_calls.leave_sleepers(sleeper)
    assert not await asks(bell)


async def test_a_row_counts_from_when_it_is_committed(bell: Connection, another: Opens) -> None:
    """Why the bell is opened in a later transaction."""
    sleeper = await another()
    await sleeper.execute("BEGIN")
    await worker_calls.join_sleepers(sleeper, ["default"])
    await worker_calls.open_bell(sleeper, "default")
    assert not await asks(bell)
    await sleeper.execute("COMMIT")
    assert await bell.fetchval(VALUE) > 0, "muted, and somebody sleeps"
    assert await asks(bell)


async def test_a_row_ends_with_its_session_and_is_deleted_with_the_next_that_begins(
    bell: Connection, another: Opens
) -> None:
    sleeper = await another()
    await worker_calls.join_sleepers(sleeper, ["default", "other"])
    # With a time to wait, the answer comes once the session has ended.
    assert await bell.fetchval("SELECT pg_terminate_backend($1, 10000)", sleeper.get_server_pid())
    assert not await asks(bell)
    rows = "SELECT count(*) FROM hybrid_runner.sleepers"
    assert await bell.fetchval(rows) == 2
    await worker_calls.leave_sleepers(await another())
    assert await bell.fetchval(rows) == 0


async def test_a_session_does_not_inherit_the_rows_of_an_earlier_one_with_its_number(
    bell: Connection, another: Opens
) -> None:
    beginning, sleeper = await another(), await another()
    await worker_calls.join_sleepers(beginning, ["default"])
    await worker_calls.join_sleepers(sleeper, ["default"])
    await worker_calls.leave_sleepers(beginning)
    rows = await bell.fetch("SELECT pid FROM hybrid_runner.sleepers")
    assert [row["pid"] for row in rows] == [sleeper.get_server_pid()]


async def test_falling_asleep_and_waking_again_and_again_leaves_nothing_behind(
    bell: Connection, another: Opens
) -> None:
    """The row is changed in place, and its earlier versions are removed on the way."""
    sleeper = await another()
    for _ in range(1000):
        await worker_calls.join_sleepers(sleeper, ["default"])
        await worker_calls.mute_bell(
            sleeper, "default", timedelta(seconds=1), "looking", leave_sleepers=True
        )
    assert await bell.fetchval("SELECT pg_relation_size('hybrid_runner.sleepers')") == 8192
    assert await bell.fetchval("SELECT pg_relation_size('hybrid_runner.sleepers_pkey')") == 16384


async def test_a_hundred_thousand_rows_take_no_place_among_the_servers_locks(
    bell: Connection, another: Opens
) -> None:
    """That many locks would fill its table, and then nobody could connect."""
    queues = [f"queue-{number}" for number in range(10_000)]
    for sleeper in [await another() for _ in range(10)]:
        await worker_calls.join_sleepers(sleeper, queues)
    assert await bell.fetchval("SELECT count(*) FROM hybrid_runner.sleepers WHERE is_asleep") == (
        100_000
    )
    kept = "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()"
    assert await bell.fetchval(f"{kept} AND locktype <> 'virtualxid'") == 0
    await bell.execute("ANALYZE hybrid_runner.sleepers")
    assert not await asks(bell)


# --- rows that somebody deleted


@pytest.mark.parametrize("leave_sleepers", [True, False])
async def test_a_bell_whose_queue_was_deleted_is_made_anew(
    bell: Connection, leave_sleepers: bool
) -> None:
    """The session that asks is the listener of other queues as well, and an error would cost them
    theirs.
    """
    await bell.execute("DELETE FROM hybrid_runner.queues")
    await worker_calls.open_bell(bell, "default")
    assert await bell.fetchval(VALUE) == 0
    await bell.execute("DELETE FROM hybrid_runner.queues")
    assert (
        await worker_calls.mute_bell(
            bell, "default", timedelta(seconds=30), "looking", leave_sleepers=leave_sleepers
        )
        is False
    )
    assert await bell.fetchval(VALUE) > 0


# --- clocks


async def test_a_mute_by_a_clock_that_was_set_back_since_quiets_nothing(
    bell: Connection, dsn: str
) -> None:
    """No mute is longer than a minute; what seems longer would keep the queue silent until the
    clock has caught up.
    """
    now = await bell.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    async with listening(dsn) as rings:
        for value, rung in ((now + 30_000, False), (now + 3_600_000, True)):
            await bell.execute(SET, value)
            await bell.execute(INSERT)
            assert ("" in await rings.so_far()) is rung
            first = await living(bell)
            news = await told(bell, "worker-1", first, queues=["default"])
            assert (MuteExpired("default") in news) is rung
