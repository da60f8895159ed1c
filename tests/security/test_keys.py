"""What logins can do to each other by keys of jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import asyncpg
import pytest

from hybrid_runner.storage import key_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.logins import Login, Logins

Connected = Callable[[Login], Awaitable[Connection]]
TAKE = (
    "SELECT id, outcome FROM hybrid_runner.enqueue_job('work', key => 'k', unique_for => '1 hour')"
)


@pytest.fixture
async def connected(login: Logins) -> AsyncIterator[Connected]:
    """Connects as a login."""
    async with AsyncExitStack() as stack:

        async def connected(who: Login) -> Connection:
            connection = await connect(login(who))
            stack.push_async_callback(connection.close)
            return connection

        yield connected


@pytest.mark.parametrize("key", [">", ">>>", ""])
@pytest.mark.parametrize("run_at", ["now", "infinity"])
async def test_a_job_that_waits_for_no_key_at_all_is_refused(
    connected: Connected, database: Connection, key: str, run_at: str
) -> None:
    """No worker could give it one, and the others that are claimed with it would not begin."""
    producer = await connected(Login.PRODUCER)
    with pytest.raises(asyncpg.CheckViolationError, match="jobs_key_is_1_to_512_bytes"):
        await producer.execute(
            "INSERT INTO hybrid_runner.jobs (kind, key, run_at)"
            f" VALUES ('work', $1, '{run_at}'::timestamptz)",
            key,
        )
    assert await key_calls.give_free_keys(database) == 0


async def test_who_is_told_that_a_key_was_taken_keeps_it_from_nobody(connected: Connected) -> None:
    """Else whoever asked in a transaction that stays open would hold up all that take it."""
    owner = await connected(Login.OTHER_PRODUCER)
    (taken,) = await owner.fetch(TAKE)
    producer = await connected(Login.PRODUCER)
    transaction = producer.transaction()
    await transaction.start()
    assert tuple(*await producer.fetch(TAKE)) == (taken["id"], "exists")
    assert tuple(*await owner.fetch(TAKE)) == (taken["id"], "exists")
    await transaction.rollback()
