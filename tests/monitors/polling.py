"""A worker that polls fake services, and what is stored of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from examples.status_monitor.fake.server import FakeServices
from hybrid_runner import Runner, Worker
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.monitors import Monitors
from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import until
from tests.support.working import runner, working

INSERT = "INSERT INTO hybrid_monitors.services (name, url) VALUES ($1, $2) RETURNING id"
EVENTS = "SELECT kind, payload::text FROM hybrid_monitors.events ORDER BY id"
POLLED = "SELECT count(*) FROM hybrid_monitors.standings WHERE polled_at IS NOT NULL"
ROUNDS = "SELECT count(*) FROM hybrid_runner.jobs WHERE kind = 'monitors.round'"
IDLE = f"{ROUNDS} AND state = 'queued' AND waits_for IS NOT NULL"


def app_of(dsn: str, **options: Any) -> tuple[Runner, Monitors]:
    """A runner with monitors. Its worker beats often: reconcilers are given out by beats. It lives
    on however long the machine stands still.
    """
    app = runner(dsn, Registry(), heartbeat="500ms", lease="5m", monitors_tick="200ms")
    return app, Monitors(app, **options)


@asynccontextmanager
async def polling(dsn: str, **options: Any) -> AsyncIterator[tuple[Monitors, Worker]]:
    """A worker of monitors."""
    app, monitors = app_of(dsn, **options)
    async with working(app) as worker:
        yield monitors, worker


async def store(connection: Connection, fakes: FakeServices, *names: str) -> list[int]:
    """By plain SQL, one statement each."""
    return [await connection.fetchval(INSERT, name, fakes.url(name)) for name in names]


async def events(connection: Connection, *wanted: str) -> list[tuple[str, dict[str, Any]]]:
    """Those of these kinds, or all."""
    return [
        (row["kind"], json.loads(row["payload"]))
        for row in await connection.fetch(EVENTS)
        if not wanted or row["kind"] in wanted
    ]


async def told(connection: Connection, kind: str, count: int = 1) -> list[dict[str, Any]]:
    """The payloads of the events of a kind, once there are so many."""
    found = await until(lambda: events(connection, kind), lambda found: len(found) >= count)
    return [payload for _, payload in found]


def visits(fakes: FakeServices, name: str) -> int:
    """How often it was asked."""
    return sum(visit.service == name for visit in fakes.journal.visits)
