"""What logins can do to each other by schedules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import asyncpg
import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.logins import Login, Logins
from tests.support.tick_clock import HOUR, MINUTE, NOON, Schedules

Connected = Callable[[Login], Awaitable[Connection]]
HOURLY = "SELECT hybrid_runner.schedule('s', 'work', every => '1 hour')"
INSERT = "INSERT INTO hybrid_runner.schedules (name, kind, every"
DECLARE = """
SELECT * FROM hybrid_runner.declare_schedules(
    '{s}', '{work}', '{"{}"}', ARRAY[NULL], '{2 hours}', ARRAY[NULL::timestamptz], '{UTC}',
    ARRAY[NULL], '{5}', ARRAY[NULL::int4], ARRAY[NULL::interval], '{skip}', '{one}', '{1 day}',
    '{0}', ARRAY[NULL::timestamptz], ARRAY[NULL::timestamptz])
"""


@pytest.fixture
async def connected(login: Logins) -> AsyncIterator[Connected]:
    """Connects as a login."""
    async with AsyncExitStack() as stack:

        async def connected(who: Login) -> Connection:
            connection = await connect(login(who))
            stack.push_async_callback(connection.close)
            return connection

        yield connected


@pytest.fixture
async def schedules(database: Connection) -> Schedules:
    """As their owner sees them, at noon."""
    return await Schedules(database).begin()


async def test_jobs_of_a_schedule_are_of_who_made_it(
    connected: Connected, schedules: Schedules
) -> None:
    producer = await connected(Login.PRODUCER)
    await producer.execute(HOURLY)
    await producer.execute(
        "INSERT INTO hybrid_runner.schedules (name, kind, cron) VALUES ('t', 'work', '@hourly')"
    )
    worker = await connected(Login.WORKER)
    await schedules.at(NOON + HOUR)
    assert len(await worker.fetch("SELECT * FROM hybrid_runner.fire_schedules()")) == 2
    found = await schedules.connection.fetch("SELECT enqueued_by FROM hybrid_runner.jobs")
    assert {row[0] for row in found} == {Login.PRODUCER.role}


@pytest.mark.parametrize(
    "statement",
    [
        HOURLY,
        "SELECT hybrid_runner.unschedule('s')",
        "SELECT hybrid_runner.pause_schedule('s')",
        "SELECT hybrid_runner.resume_schedule('s')",
        "SELECT hybrid_runner.run_now('s')",
    ],
)
async def test_a_producer_changes_its_own_schedules_alone(
    connected: Connected, schedules: Schedules, statement: str
) -> None:
    other = await connected(Login.OTHER_PRODUCER)
    await other.execute("SELECT hybrid_runner.schedule('s', 'work', every => '2 hours')")
    before = await schedules.row()
    producer = await connected(Login.PRODUCER)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="belongs to hybrid_runner_test"):
        await producer.execute(statement)
    assert await schedules.row() == before
    assert await producer.fetch("SELECT * FROM hybrid_runner.next_ticks_of('s')") == []
    for who in (other, await connected(Login.WORKER)):
        await who.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        f"{INSERT}, made_by) VALUES ('x', 'w', '1h', 'root')",
        f"{INSERT}, declared) VALUES ('x', 'w', '1h', true)",
        f"{INSERT}, next_at) VALUES ('x', 'w', '1h', now())",
        "UPDATE hybrid_runner.schedules SET next_at = now()",
        "DELETE FROM hybrid_runner.schedules",
        "SELECT payload FROM hybrid_runner.schedules",
        "SELECT * FROM hybrid_runner.fire_schedules()",
        "SELECT hybrid_runner.next_tick()",
        "INSERT INTO hybrid_runner.jobs (kind, schedule) VALUES ('w', 's')",
        DECLARE,
    ],
)
async def test_a_producer_cannot_say_whose_it_is_or_when_it_fires(
    connected: Connected, statement: str
) -> None:
    producer = await connected(Login.PRODUCER)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await producer.execute(statement)


async def test_a_key_that_a_producer_holds_keeps_no_tick_from_its_job(
    connected: Connected, schedules: Schedules
) -> None:
    await schedules.store(every=HOUR)
    producer = await connected(Login.PRODUCER)
    for key in ("s", "schedule:s"):
        await producer.execute("SELECT hybrid_runner.enqueue('work', key => $1)", key)
    assert await schedules.fire(NOON + HOUR) == {"fired": 1}


async def test_what_code_declares_takes_its_name_from_a_producer(
    connected: Connected, schedules: Schedules
) -> None:
    producer = await connected(Login.PRODUCER)
    await producer.execute(HOURLY)
    worker = await connected(Login.WORKER)
    assert await worker.fetch(DECLARE) == []
    row = await schedules.row()
    assert (row["declared"], row["made_by"]) == (True, Login.WORKER.role)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await producer.execute(HOURLY)


async def test_a_producers_open_transaction_keeps_no_worker_from_its_start(
    connected: Connected, schedules: Schedules
) -> None:
    producer = await connected(Login.PRODUCER)
    transaction = producer.transaction()
    await transaction.start()
    await producer.execute(HOURLY)
    worker = await connected(Login.WORKER)
    rows = await worker.fetch(DECLARE)
    assert [row["name"] for row in rows] == ["s"]
    assert "open transaction" in rows[0]["problem"]
    await transaction.rollback()
    assert await worker.fetch(DECLARE) == []
    assert (await schedules.row())["declared"]


async def test_a_producers_open_transaction_holds_up_its_own_schedule_alone(
    connected: Connected, schedules: Schedules
) -> None:
    producer = await connected(Login.PRODUCER)
    await producer.execute(HOURLY)
    await schedules.store("mine", every=HOUR)
    transaction = producer.transaction()
    await transaction.start()
    await producer.execute("SELECT hybrid_runner.run_now('s')")
    assert await schedules.fire(NOON + HOUR) == {"fired": 1}
    assert await schedules.ticks("mine") == [NOON + HOUR]
    await transaction.rollback()


@pytest.mark.parametrize("overlap", ["queue", "replace"])
async def test_a_workers_login_fires_ends_and_frees_what_waits(
    connected: Connected, schedules: Schedules, overlap: str
) -> None:
    """It has no right on the table itself."""
    await schedules.worker([])
    await schedules.store(every=HOUR, overlap=overlap)
    worker = await connected(Login.WORKER)
    for hours in (1, 2):
        await schedules.at(NOON + hours * HOUR)
        rows = await worker.fetch("SELECT outcome FROM hybrid_runner.fire_schedules()")
        assert [row["outcome"] for row in rows] == ["fired"]
        if hours == 1:
            job = await schedules.run()
    await schedules.end(job, worker)
    assert await schedules.ticks() == [NOON + 2 * HOUR]


@pytest.mark.parametrize("change", ["unschedule", "pause_schedule", "resume_schedule"])
async def test_who_changes_what_is_not_there_does_not_change_what_somebody_makes_meanwhile(
    connected: Connected, schedules: Schedules, change: str
) -> None:
    """As if it were committed between the look for its owner and the change."""
    owner = schedules.connection
    look: str = await owner.fetchval(
        "SELECT pg_get_functiondef('hybrid_runner.own_schedule'::regproc)"
    )
    await owner.execute(look.replace("own_schedule", "look_for_owner"))
    await owner.execute("""
        CREATE OR REPLACE FUNCTION hybrid_runner.own_schedule(name text)
        RETURNS hybrid_runner.schedules LANGUAGE plpgsql SECURITY DEFINER AS $$
        DECLARE its hybrid_runner.schedules := hybrid_runner.look_for_owner(name);
        BEGIN
            INSERT INTO hybrid_runner.schedules (name, kind, every, made_by, paused_at)
            VALUES (name, 'work', '1 hour', 'somebody else',
                CASE WHEN name = 'resume_schedule' THEN now() END);
            RETURN its;
        END $$
    """)
    producer = await connected(Login.PRODUCER)
    assert await producer.fetchval(f"SELECT hybrid_runner.{change}('{change}')") is False
    row = await schedules.row(change)
    assert (row["made_by"], row["paused_at"] is None) == (
        "somebody else",
        change != "resume_schedule",
    )


@pytest.mark.parametrize("paused_at", ["200000-01-01", "4000-01-01 BC", "infinity"])
async def test_since_when_it_is_paused_is_a_time_that_everybody_can_read(
    connected: Connected, schedules: Schedules, paused_at: str
) -> None:
    """Else one row would keep all others from being listed."""
    producer = await connected(Login.PRODUCER)
    with pytest.raises(asyncpg.InvalidParameterValueError, match="paused_at must be between"):
        await producer.execute(
            "INSERT INTO hybrid_runner.schedules (name, kind, every, paused_at)"
            f" VALUES ('x', 'work', '1h', '{paused_at}')"
        )
    await schedules.store(every=HOUR)
    worker = await connected(Login.WORKER)
    with pytest.raises(asyncpg.InvalidParameterValueError, match="paused_at must be between"):
        await worker.execute(f"UPDATE hybrid_runner.schedules SET paused_at = '{paused_at}'")


async def test_one_call_stores_64_mib_of_missed_jobs_of_a_schedule_at_most(
    schedules: Schedules,
) -> None:
    await schedules.store(
        every=MINUTE,
        missed="all",
        overlap="allow",
        payload=f'"{"x" * 2**19}"',
        catch_up=2 * 24 * HOUR,
    )
    assert await schedules.fire(NOON + 24 * HOUR) == {"caught_up": 127, "dropped": 1313}


async def test_what_takes_long_is_left_for_the_next_call(schedules: Schedules) -> None:
    """Whoever fires gives up after a minute, and all that it stored would be undone."""
    await schedules.connection.execute("""
        CREATE FUNCTION public.take_long() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(1.1); RETURN NULL; END';
        CREATE TRIGGER take_long AFTER INSERT ON hybrid_runner.jobs
        FOR EACH STATEMENT EXECUTE FUNCTION public.take_long();
    """)
    for name in ("a", "b"):
        await schedules.store(name, every=HOUR)
    assert await schedules.fire(NOON + 3 * HOUR) == {"caught_up": 3}
    assert await schedules.ticks("a") == [NOON + 3 * HOUR]
    assert await schedules.ticks("b") == []
    assert await schedules.fire() == {"caught_up": 3}
    assert await schedules.ticks("b") == [NOON + 3 * HOUR]


async def test_a_job_that_somebody_keeps_from_being_replaced_holds_up_no_other_schedule(
    connected: Connected, schedules: Schedules
) -> None:
    await schedules.store("r", every=HOUR, overlap="replace")
    await schedules.store("z", every=HOUR, overlap="allow")
    await schedules.fire(NOON + HOUR)
    (job,) = await schedules.connection.fetch(
        "SELECT id FROM hybrid_runner.jobs WHERE schedule = 'r'"
    )
    worker = await connected(Login.WORKER)
    transaction = worker.transaction()
    await transaction.start()
    await worker.execute("INSERT INTO hybrid_runner.unreported_ends (id) VALUES ($1)", job["id"])
    await schedules.connection.execute("SET lock_timeout = '1s'")
    await schedules.fire(NOON + 2 * HOUR)
    assert await schedules.ticks("z") == [NOON + HOUR, NOON + 2 * HOUR]
    assert await schedules.ticks("r") == [NOON + HOUR]
    await transaction.rollback()
    assert await schedules.fire() == {"fired": 1}
    assert await schedules.ticks("r") == [NOON + 2 * HOUR]
