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
TRY_ALONE = "SELECT pg_try_advisory_xact_lock(1, 2)"
LIE = "SELECT pg_advisory_lock_shared(1, 2)"


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


# --- the sleepers' lock


async def test_nobody_gets_the_lock_alone_while_one_sleeps(
    database: Connection, another: Opens
) -> None:
    sleeper, second = await another(), await another()
    await sleeper.execute(LIE)
    await second.execute(LIE)
    assert not await database.fetchval(TRY_ALONE)
    await sleeper.execute("SELECT pg_advisory_unlock_shared(1, 2)")
    assert not await database.fetchval(TRY_ALONE)
    await second.execute("SELECT pg_advisory_unlock_shared(1, 2)")
    assert await database.fetchval(TRY_ALONE)


async def test_ones_own_lock_is_nobody_else(database: Connection) -> None:
    await database.execute(LIE)
    assert await database.fetchval(TRY_ALONE)


async def test_the_lock_ends_with_its_session(database: Connection, another: Opens) -> None:
    sleeper = await another()
    await sleeper.execute(LIE)
    # With a time to wait, the answer comes once the session has ended.
    assert await database.fetchval(
        "SELECT pg_terminate_backend($1, 10000)", sleeper.get_server_pid()
    )
    assert await database.fetchval(TRY_ALONE)


async def test_a_lock_taken_twice_has_to_be_given_back_twice(
    database: Connection, another: Opens
) -> None:
    """Why who lies does not lie down again."""
    sleeper = await another()
    await sleeper.execute(LIE)
    await sleeper.execute(LIE)
    await sleeper.execute("SELECT pg_advisory_unlock_shared(1, 2)")
    assert not await database.fetchval(TRY_ALONE)


# --- rows that somebody deleted


@pytest.mark.parametrize("locks", [True, False])
async def test_a_bell_whose_queue_was_deleted_is_made_anew(bell: Connection, locks: bool) -> None:
    """The session that asks is the listener of other queues as well, and an error would cost them
    theirs.
    """
    await bell.execute("DELETE FROM hybrid_runner.queues")
    await worker_calls.open_bell(bell, "default", take_sleep_lock=locks)
    assert await bell.fetchval(VALUE) == 0
    await bell.execute("DELETE FROM hybrid_runner.queues")
    assert (
        await worker_calls.mute_bell(
            bell, "default", timedelta(seconds=30), "looking", drop_sleep_lock=locks
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
