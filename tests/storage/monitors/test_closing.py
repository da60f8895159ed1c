"""The end of the job of a host that has nothing to do, beside those who add services to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from hybrid_runner.errors import RowLocked
from hybrid_runner.storage import monitor_calls, service_calls, signal_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.monitored import ADD, add, play

HOST = "a.internal"
ROUNDS = "SELECT count(*) FROM hybrid_runner.jobs WHERE key = 'monitors:a.internal'"
END = "DELETE FROM hybrid_runner.jobs WHERE key = 'monitors:a.internal'"
HEARD = (
    "SELECT count(*) FROM hybrid_runner.signals AS s JOIN hybrid_runner.jobs AS j"
    " ON j.key = s.key AND s.newest_job >= j.id WHERE j.key = 'monitors:a.internal'"
)
"""Signals that its job gets."""
OPENS = "SELECT count(*) FROM hybrid_runner.jobs WHERE kind = 'monitors.open'"


@pytest.fixture
async def idle(monitored: Connection) -> Connection:
    """Its one service was removed, and nothing is left to do for its job, which is there."""
    await add(monitored, "a")
    await (await play(monitored)).poll()
    await service_calls.remove_service(monitored, "a")
    await (await play(monitored)).poll()
    await monitored.execute("DELETE FROM hybrid_runner.jobs WHERE kind = 'monitors.open'")
    return monitored


@pytest.fixture
async def other(monitors_dsn: str) -> AsyncIterator[Connection]:
    """An editor, or who opens hosts."""
    connection = await connect(monitors_dsn)
    yield connection
    await connection.close()


async def test_a_host_with_a_service_or_something_to_tell_is_not_closed(idle: Connection) -> None:
    assert await monitor_calls.close_host(idle, HOST)
    await add(idle, "b")
    assert not await monitor_calls.close_host(idle, HOST)
    await (await play(idle)).poll()
    await service_calls.remove_service(idle, "b")
    assert not await monitor_calls.close_host(idle, HOST)
    await (await play(idle)).poll()
    assert await monitor_calls.close_host(idle, HOST)


async def test_a_host_whose_services_are_all_paused_is_closed(idle: Connection) -> None:
    await add(idle, "b")
    await service_calls.pause_service(idle, "b")
    await (await play(idle)).poll()
    assert await monitor_calls.close_host(idle, HOST)


async def test_a_host_with_a_standing_of_what_was_never_polled_is_not_closed(
    idle: Connection,
) -> None:
    """Its round removes it first: nobody else does."""
    await add(idle, "b")
    await (await play(idle)).poll()
    await idle.execute("UPDATE hybrid_monitors.standings SET is_started = false")
    await service_calls.remove_service(idle, "b")
    assert not await monitor_calls.close_host(idle, HOST)
    await (await play(idle)).poll()
    assert await monitor_calls.close_host(idle, HOST)


async def test_a_host_that_is_not_written_down_is_not_closed(idle: Connection) -> None:
    """There is no row that would make whoever opens it wait: its round makes one first."""
    await idle.execute("DELETE FROM hybrid_monitors.hosts")
    assert not await monitor_calls.close_host(idle, HOST)


async def test_who_opens_a_host_waits_for_whoever_ends_its_job(
    idle: Connection, other: Connection
) -> None:
    """C1: the service was added after it was seen that there is none."""
    async with idle.transaction():
        assert await monitor_calls.close_host(idle, HOST)
        await idle.execute(END)
        await other.execute(ADD, "b", "http://a.internal/")
        with pytest.raises(RowLocked):  # it waits for half a second
            await monitor_calls.open_hosts(other, [HOST])
    assert await monitor_calls.open_hosts(other, [HOST]) == 1


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
async def test_who_saw_the_job_and_commits_when_it_has_ended_has_the_host_opened(
    idle: Connection, other: Connection, isolation: str
) -> None:
    """C1: editors wait for nobody, and nobody for them."""
    async with other.transaction(isolation=isolation):  # type: ignore[arg-type]
        assert await other.fetchval(ROUNDS) == 1
        await other.execute(ADD, "b", "http://a.internal/")
        async with idle.transaction():
            assert await monitor_calls.close_host(idle, HOST)
            await idle.execute(END)
        assert await idle.fetchval(OPENS) == 0
    assert await idle.fetchval(OPENS) == 1
    assert await monitor_calls.open_hosts(idle, [HOST]) == 1


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO hybrid_monitors.services (name, url) VALUES ('c', 'http://a.internal/c')",
        "UPDATE hybrid_monitors.services SET url = 'http://a.internal/moved' WHERE name = 'a'",
        "SELECT hybrid_monitors.ask_poll('a')",
        "UPDATE hybrid_monitors.services SET active = false WHERE name = 'a'",
        "UPDATE hybrid_monitors.services SET url = 'http://b.internal/' WHERE name = 'a'",
        "DELETE FROM hybrid_monitors.services WHERE name = 'a'",
    ],
)
async def test_change_before_the_job_of_its_host_wakes_it_when_it_commits(
    monitored: Connection, other: Connection, change: str
) -> None:
    """C1: the service was added, and its host is not opened yet."""
    await add(monitored, "a")
    await add(monitored, "b")
    await signal_calls.number_signals(monitored, 1000)
    async with other.transaction():
        await other.execute(change)
        await (await play(monitored)).poll()
        await signal_calls.number_signals(monitored, 1000)
        assert await monitored.fetchval(HEARD) == 0
    await signal_calls.number_signals(monitored, 1000)
    assert await monitored.fetchval(HEARD) == 1


async def test_a_host_that_somebody_opens_at_this_moment_is_not_closed(
    idle: Connection, other: Connection
) -> None:
    async with other.transaction():
        assert await monitor_calls.open_hosts(other, [HOST]) == 0
        assert not await monitor_calls.close_host(idle, HOST)


async def test_who_opens_a_host_and_its_round_do_not_wait_for_each_other(
    idle: Connection, other: Connection
) -> None:
    for connection in (idle, other):
        await connection.execute("SET lock_timeout = '1ms'")
    played = await play(idle)
    async with other.transaction():
        await monitor_calls.open_hosts(other, [HOST])
        await played.poll()
    async with idle.transaction():
        await played.take()
        await monitor_calls.open_hosts(other, [HOST])


async def test_a_service_that_is_resumed_or_moves_there_has_the_host_opened(
    idle: Connection,
) -> None:
    await idle.execute(
        "INSERT INTO hybrid_monitors.services (name, url, active) VALUES"
        " ('b', 'http://a.internal/', false)"
    )
    assert await idle.fetchval(OPENS) == 0
    await service_calls.resume_service(idle, "b")
    assert await idle.fetchval(OPENS) == 1
    await add(idle, "c", "http://b.internal/")
    await service_calls.update_service(idle, "c", {"url": "http://a.internal/"})
    assert await idle.fetchval(OPENS) == 4  # of b.internal, too: it has no job


async def test_only_workers_close_hosts(idle: Connection, other: Connection) -> None:
    await other.execute("SET ROLE hybrid_monitors_editor")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await other.execute("SELECT hybrid_monitors.close_host('a.internal')")
