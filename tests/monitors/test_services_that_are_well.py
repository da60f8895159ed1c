"""Services that go on answering the same are polled in short, and whatever changes is noticed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hybrid_runner.monitors import round as rounds
from hybrid_runner.policy.monitors import unchanged
from hybrid_runner.storage.connections.connection import Connection
from tests.monitors.answers.hostile import Server, serving
from tests.monitors.polling import events, polling, told
from tests.support.waiting import until, until_fetched

STORE = (
    "INSERT INTO hybrid_monitors.services (name, url, every, format)"
    " VALUES ($1, $2, '200 ms', 'dependencies') RETURNING id"
)
LATENCIES = """
SELECT count(*) > 1 FROM hybrid_monitors.latency_history AS l
JOIN hybrid_monitors.dependencies AS d ON d.id = l.dependency_id
WHERE d.name = 'db' AND l.ms > $1
"""


class Answers:
    """Says of one dependency what it is told to; each time its latency is another one."""

    def __init__(self) -> None:
        self.healthy = True
        self.given = 0

    async def behave(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.given += 1
        body = json.dumps([{"name": "db", "healthy": self.healthy, "latencyMs": self.given}])
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()


@asynccontextmanager
async def answering(on: Connection) -> AsyncIterator[tuple[Server, Answers]]:
    """Services may be polled as often as a test wants."""
    await on.execute("ALTER TABLE hybrid_monitors.services DISABLE TRIGGER check_service")
    answers = Answers()
    async with serving(answers.behave) as server:
        yield server, answers


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The services that were polled in short."""
    found = list[int]()

    def noting(*arguments: Any) -> Any:
        same = unchanged(*arguments)
        if same is not None:
            found.append(same.service_id)
        return same

    monkeypatch.setattr(rounds, "unchanged", noting)
    return found


async def test_times_and_latencies_are_stored_on_and_on(
    monitors_dsn: str, monitored: Connection, short: list[int]
) -> None:
    async with answering(monitored) as (server, answers), polling(monitors_dsn):
        service_id = await monitored.fetchval(STORE, "a", f"{server.url}a")
        await until(lambda: len(short) >= 5)
        given = answers.given
        before = await monitored.fetchval("SELECT polled_at FROM hybrid_monitors.standings")
        await until(lambda: answers.given > given + 2)
        await until_fetched(
            monitored, "SELECT polled_at > $1 FROM hybrid_monitors.standings", True, before
        )
        await until_fetched(monitored, LATENCIES, True, given)
    assert set(short) == {service_id}


async def test_a_change_of_its_answer_is_told_and_so_is_its_recovery(
    monitors_dsn: str, monitored: Connection, short: list[int]
) -> None:
    async with answering(monitored) as (server, answers), polling(monitors_dsn):
        await monitored.fetchval(STORE, "a", f"{server.url}a")
        for number, healthy in enumerate((False, True), 1):
            short.clear()
            await until(lambda: len(short) >= 2)
            answers.healthy = healthy
            changes = await told(monitored, "status:change", number)
            assert changes[-1]["currentHealthy"] is healthy
        short.clear()
        await until(lambda: len(short) >= 2)
    assert len(await told(monitored, "status:change", 2)) == 2


async def test_what_an_editor_changes_holds_from_the_next_poll_on(
    monitors_dsn: str, monitored: Connection, short: list[int]
) -> None:
    """C1: by plain SQL, of a service that the worker knows by heart."""
    async with answering(monitored) as (server, _), polling(monitors_dsn):
        await monitored.fetchval(STORE, "a", f"{server.url}a")
        await until(lambda: len(short) >= 2)
        await monitored.execute(
            "UPDATE hybrid_monitors.services SET url = url || '/new', headers = '{\"X-A\": \"1\"}'"
        )
        await until(lambda: b"GET /a/new " in server.requests[-1])
        assert b"X-A: 1" in server.requests[-1]
        short.clear()
        await until(lambda: len(short) >= 2)
        assert b"GET /a/new " in server.requests[-1]
        await monitored.execute("UPDATE hybrid_monitors.services SET active = false")
        await told(monitored, "service:stopped")
        await monitored.execute("UPDATE hybrid_monitors.services SET active = true")
        short.clear()
        await until(lambda: len(short) >= 2)


async def test_a_failure_is_told_and_a_good_poll_afterwards_is_one_of_many_again(
    monitors_dsn: str, monitored: Connection, short: list[int]
) -> None:
    async with answering(monitored) as (server, _), polling(monitors_dsn):
        await monitored.fetchval(STORE, "a", f"{server.url}a")
        await until(lambda: len(short) >= 2)
        await monitored.execute(
            """UPDATE hybrid_monitors.services SET expect = '{"status": {"equals": 204}}'"""
        )
        [down] = await told(monitored, "service:down")
        assert down["error"] == "expect.status: found 200, wanted equals 204"
        await monitored.execute("UPDATE hybrid_monitors.services SET expect = NULL")
        await told(monitored, "service:up")
        short.clear()
        await until(lambda: len(short) >= 2)


async def test_while_somebody_reads_events_each_of_their_polls_is_told(
    monitors_dsn: str, monitored: Connection, short: list[int]
) -> None:
    """C13"""
    async with answering(monitored) as (server, _), polling(monitors_dsn):
        await monitored.fetchval(STORE, "a", f"{server.url}a")
        await until(lambda: len(short) >= 2)
        assert not await events(monitored, "poll:complete")
        await monitored.execute(
            "SELECT setval('hybrid_monitors.event_readers_until',"
            " (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 50000)"
        )
        await told(monitored, "poll:complete", 3)
