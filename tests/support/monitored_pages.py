"""A database with monitored services, in states that no worker has to bring about."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.monitor_schema import install_monitors
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.server import PageServer
from tests.support.ports import free_port
from tests.support.streams import Pages, pages

_ADD = """
INSERT INTO hybrid_monitors.services (name, url, labels) VALUES ($1, $2, $3::text::jsonb)
RETURNING id
"""
_STANDING = """
INSERT INTO hybrid_monitors.standings (
    service_id, due_at, polled_at, ok, is_down, since, failures, failure, error, host, name, url,
    latency_ms, breaker, opened_at, warnings
)
SELECT
    s.id, now() + interval '20 s', now() - interval '10 s', $2::text IS NULL, $2::text IS NOT NULL,
    now() - $4::int * interval '1 minute', CASE WHEN $2::text IS NULL THEN 0 ELSE 3 END, $2::text,
    $3::text, s.host, s.name, s.url, 43,
    CASE WHEN $2::text = 'timeout' THEN 'open' ELSE 'closed' END,
    CASE WHEN $2::text = 'timeout' THEN now() END, '[]'
FROM hybrid_monitors.services AS s WHERE s.id = $1
"""
_DEPENDENCY = """
INSERT INTO hybrid_monitors.dependencies (
    service_id, name, canonical_name, healthy, state, latency_ms, contact, error, error_message,
    last_checked, last_status_change
)
VALUES (
    $1, $2, $2, $3, CASE WHEN $3 THEN 0 ELSE 2 END, 7, '{"mail": "ops@secret.example"}',
    CASE WHEN NOT $3 THEN '{"code": "E1"}'::jsonb END,
    CASE WHEN NOT $3 THEN 'no route to db.secret.example' END, now(), now() - interval '7 minutes'
)
RETURNING id
"""
_EVENT = """
WITH number AS (UPDATE hybrid_monitors.event_numbers SET last = last + 1 RETURNING last)
INSERT INTO hybrid_monitors.events (id, at, kind, service_id, payload, suppressed)
SELECT number.last, now(), $1, $2, $3::text::jsonb, $4 FROM number
RETURNING id
"""


class Monitored:
    """What there is to look at."""

    def __init__(self, database: Connection) -> None:
        self.database = database

    async def add(self, name: str, **labels: Any) -> int:
        """A service that was never polled; its id."""
        number: int = await self.database.fetchval(
            _ADD, name, "http://secret.example/health", json.dumps(labels)
        )
        return number

    async def up(self, name: str, minutes: int = 90, **labels: Any) -> int:
        """A service that answers; its id."""
        number = await self.add(name, **labels)
        await self.database.execute(_STANDING, number, None, None, minutes)
        return number

    async def down(self, name: str, failure: str = "http", minutes: int = 42, **labels: Any) -> int:
        """A service that does not; its id."""
        number = await self.add(name, **labels)
        said = "http://secret.example/health answered 503"
        await self.database.execute(_STANDING, number, failure, said, minutes)
        return number

    async def depends(self, service: int, name: str, *, healthy: bool = True) -> int:
        """A dependency of a service; its id."""
        number: int = await self.database.fetchval(_DEPENDENCY, service, name, healthy)
        return number

    async def event(
        self,
        kind: str,
        service: int,
        payload: Mapping[str, Any] | None = None,
        suppressed: str | None = None,
    ) -> int:
        """An event, as a round would store it; its id."""
        body = {"serviceId": service, "serviceName": "orders"} | dict(payload or {})
        number: int = await self.database.fetchval(
            _EVENT, kind, service, json.dumps(body), suppressed
        )
        return number


async def monitored(database: Connection) -> Monitored:
    """This database, with monitors."""
    await install_monitors(database)
    return Monitored(database)


@asynccontextmanager
async def served(dsn: str, **settings: Any) -> AsyncIterator[Pages]:
    """The pages of a worker that has not started: those about monitors need none."""
    port = free_port()
    own = Settings.load(dsn=dsn, **settings)
    async with (
        PageServer("127.0.0.1", port, database=PageDatabase(own, lambda: dsn)),
        pages(port) as client,
    ):
        yield client
