"""Who may signal, and what nobody can do by it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from hybrid_runner import Job, Snooze
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.logins import Login, Logins
from tests.support.waiting import until
from tests.support.working import runner, working

Connected = Callable[[Login], Awaitable[Connection]]
WAITING = "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'queued' AND waits_for IS NOT NULL"
INSERT = "INSERT INTO hybrid_runner.signals (key, payload) VALUES ('k', '1')"


@pytest.fixture
async def connected(login: Logins) -> AsyncIterator[Connected]:
    """Connects as a login."""
    async with AsyncExitStack() as stack:

        async def connected(who: Login) -> Connection:
            connection = await connect(login(who))
            stack.push_async_callback(connection.close)
            return connection

        yield connected


@pytest.mark.parametrize("who", [Login.NOBODY, Login.PRODUCER, Login.READER])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT hybrid_runner.signal('k', '1')",
        "SELECT hybrid_runner.wake_waiting(ARRAY[1])",
        "SELECT hybrid_runner.signals_channel()",
        INSERT,
        "DELETE FROM hybrid_runner.waits",
        "INSERT INTO hybrid_runner.jobs (kind, waits_for) VALUES ('work', 'k')",
    ],
)
async def test_who_was_not_granted_it_can_neither_signal_nor_wait_nor_wake(
    connected: Connected, who: Login, statement: str
) -> None:
    connection = await connected(who)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute(statement)


async def test_who_was_granted_it_can_signal_and_say_nothing_else(
    connected: Connected, database: Connection
) -> None:
    role = Login.PRODUCER.role
    await database.execute(f"GRANT EXECUTE ON FUNCTION hybrid_runner.signal TO {role}")
    await database.execute(f"GRANT INSERT (key, payload) ON hybrid_runner.signals TO {role}")
    sender = await connected(Login.PRODUCER)
    await sender.fetchval("SELECT hybrid_runner.signal('k', '1')")
    await sender.execute(INSERT)
    sent_by = await database.fetch("SELECT sent_by FROM hybrid_runner.signals")
    assert [row[0] for row in sent_by] == [role] * 2
    for forged in ("sent_at", "sent_by", "once", "newest_job", "id"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await sender.execute(
                f"INSERT INTO hybrid_runner.signals (key, {forged}) VALUES ('k', DEFAULT)"
            )
    for statement in ("SELECT FROM", "DELETE FROM"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await sender.execute(f"{statement} hybrid_runner.signals")


@pytest.mark.parametrize(
    ("key", "payload", "rule"),
    [
        ("", "1", "signals_key_is_1_to_512_bytes"),
        ("k" * 513, "1", "signals_key_is_1_to_512_bytes"),
        ("k", '"' + "x" * 65536 + '"', "signals_payload_is_at_most_64_kib_as_text"),
        ("k", "1e60000", None),
        ("k", "[" + ",".join(["1e60000"] * 2) + "]", "signals_payload_is_at_most_64_kib_as_text"),
    ],
    ids=["no key", "a long key", "a long payload", "a long number", "long numbers"],
)
async def test_what_is_too_large_is_refused_and_the_rule_named(
    database: Connection, key: str, payload: str, rule: str | None
) -> None:
    insert = "INSERT INTO hybrid_runner.signals (key, payload) VALUES ($1, $2)"
    if rule is None:
        await database.execute(insert, key, payload)
        return
    with pytest.raises(asyncpg.CheckViolationError, match=rule):
        await database.execute(insert, key, payload)


async def test_a_worker_needs_no_more_than_the_worker_role(
    login: Logins, database: Connection
) -> None:
    """From the wait to the clean-up, without a right of the owner."""
    app = runner(login(Login.WORKER))

    @app.job("wait")
    async def wait(payload: dict[str, str], job: Job) -> Any:
        return job.signalled if job.snoozes else Snooze("1h", wake_on="k")

    async with working(app) as worker:
        handle = await app.enqueue("wait", {})
        await until(lambda: database.fetchval(WAITING), lambda found: found == 1)
        await app.signal("k", {"a": 1})
        assert await handle.wait(timeout=120) == {"a": 1}
        await worker.idle()


async def test_keys_are_not_told_to_whoever_listens(
    connected: Connected, database: Connection
) -> None:
    """A key may be a secret; the channel's name is one."""
    heard: list[Any] = []
    stranger = await connected(Login.NOBODY)
    channels = ("~signals", "default", "~readers")
    for channel in channels:
        await stranger.add_listener(f"hybrid_runner.{channel}", lambda *said: heard.append(said))
    await database.execute("SELECT hybrid_runner.signal('secret')")
    await stranger.fetchval("SELECT 1")
    assert not heard


async def test_many_keys_in_one_statement_are_a_bounded_number_of_notifications(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    heard: list[str] = []
    channel = await database.fetchval("SELECT hybrid_runner.signals_channel()")
    listening = await another()
    await listening.add_listener(channel, lambda *said: heard.append(str(said[-1])))
    many = "INSERT INTO hybrid_runner.signals (key) SELECT 'k' || n FROM generate_series(1, $1) n"
    await database.execute(many, 3)
    await database.execute(many, 1000)
    await listening.fetchval("SELECT 1")
    assert sorted(heard) == ["", "k1", "k2", "k3"]
