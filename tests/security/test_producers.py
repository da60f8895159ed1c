"""What one producer can do to the jobs of another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import asyncpg
import pytest

from hybrid_runner import KeyTaken, Runner
from hybrid_runner.errors import RowLocked
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.logins import Login, Logins
from tests.support.working import runner

Connected = Callable[[Login], Awaitable[Connection]]
ENQUEUE = (
    "SELECT hybrid_runner.enqueue_job('slow', $1::text::jsonb, key => 'payment:42',"
    " delay => '1 hour', on_conflict => $2)"
)
AMOUNT = "SELECT payload ->> 'amount' FROM hybrid_runner.jobs WHERE key = 'payment:42'"


@pytest.fixture
async def connected(login: Logins) -> AsyncIterator[Connected]:
    """Connects as a login."""
    async with AsyncExitStack() as stack:

        async def connected(who: Login) -> Connection:
            connection = await connect(login(who))
            stack.push_async_callback(connection.close)
            return connection

        yield connected


async def test_who_enqueued_a_job_is_recorded_and_cannot_be_chosen(
    connected: Connected, database: Connection, dsn: str
) -> None:
    producer = await connected(Login.PRODUCER)
    await producer.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('plain')")
    await producer.fetchval("SELECT hybrid_runner.enqueue('called')")
    rows = await database.fetch("SELECT kind, enqueued_by FROM hybrid_runner.jobs ORDER BY id")
    assert [tuple(row) for row in rows] == [
        ("plain", Login.PRODUCER.role),
        ("called", Login.PRODUCER.role),
    ]
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await producer.execute(
            "INSERT INTO hybrid_runner.jobs (kind, enqueued_by) VALUES ('forged', 'alice')"
        )
    async with runner(dsn) as app:
        views = await app.list_jobs()
        await app.cancel(views[0].id)
        ended = await app.get(views[0].id)
        assert ended is not None
        assert ended.enqueued_by == views[0].enqueued_by == Login.PRODUCER.role
        assert await app.retry(ended.id) == "queued"
        again = await app.get(ended.id)
        assert again is not None
        assert again.enqueued_by == Login.PRODUCER.role


async def test_a_producer_replaces_its_own_jobs_and_nobody_else_s(
    connected: Connected, database: Connection
) -> None:
    producer, other = await connected(Login.PRODUCER), await connected(Login.OTHER_PRODUCER)
    await producer.fetchval(ENQUEUE, '{"amount": 10}', "exists")
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="takes the right UPDATE"):
        await other.fetchval(ENQUEUE, '{"amount": 10000}', "replace")
    assert await database.fetchval(AMOUNT) == "10"
    await producer.fetchval(ENQUEUE, '{"amount": 11}', "replace")
    assert await database.fetchval(AMOUNT) == "11"


async def test_a_refused_replace_locks_nothing(connected: Connected, database: Connection) -> None:
    producer, other = await connected(Login.PRODUCER), await connected(Login.OTHER_PRODUCER)
    await producer.fetchval(ENQUEUE, '{"amount": 10}', "exists")
    async with other.transaction():
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with other.transaction():
                await other.fetchval(ENQUEUE, '{"amount": 10000}', "replace")
        unlocked = (
            "SELECT count(*) FROM (SELECT FROM hybrid_runner.jobs FOR UPDATE SKIP LOCKED) AS j"
        )
        assert await database.fetchval(unlocked) == 1


async def test_whoever_may_write_payloads_replaces_jobs_of_others(
    connected: Connected, database: Connection
) -> None:
    producer, worker = await connected(Login.PRODUCER), await connected(Login.WORKER)
    await producer.fetchval(ENQUEUE, '{"amount": 10}', "exists")
    await worker.fetchval(ENQUEUE, '{"amount": 12}', "replace")
    assert await database.fetchval(AMOUNT) == "12"
    await producer.fetchval(ENQUEUE, '{"amount": 13}', "replace")
    assert await database.fetchval(AMOUNT) == "13"


async def test_a_runner_says_whose_the_key_is(login: Logins) -> None:
    async with runner(login(Login.PRODUCER)) as app, runner(login(Login.OTHER_PRODUCER)) as other:
        await app.enqueue("slow", {}, key="payment:42", delay="1h")
        with pytest.raises(KeyTaken, match=f"which {Login.PRODUCER.role} enqueued"):
            await other.enqueue("slow", {}, key="payment:42", on_conflict="replace")
        with pytest.raises(KeyTaken, match="takes the right UPDATE"):
            await other.enqueue_many(
                "slow", [{}], key=lambda _: "payment:42", on_conflict="replace"
            )


async def test_a_key_in_an_open_transaction_is_waited_for_and_then_said(
    connected: Connected, login: Logins
) -> None:
    """A transaction that stays open for ever would otherwise hold up whoever wants the key."""
    holder = await connected(Login.OTHER_PRODUCER)
    app: Runner
    async with runner(login(Login.PRODUCER)) as app, holder.transaction():
        await holder.fetchval(ENQUEUE, '{"amount": 10}', "exists")
        with pytest.raises(RowLocked, match="open transaction has stored a job with the same key"):
            await app.enqueue("slow", {}, key="payment:42")
