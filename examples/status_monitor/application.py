"""What the shop does: it keeps its list of services by plain SQL, as somebody who may do that and
nothing else. No call into any worker, no restart.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import asyncpg

from examples.status_monitor.fake.server import FakeServices
from examples.status_monitor.services import SERVICES, Service

_ADD = """
INSERT INTO hybrid_monitors.services
    (name, url, every, timeout, format, mapping, expect, follow, fail_after, recover_after)
VALUES ($1, $2, '5 s', '2 s', $3, $4, $5, $6, $7, $8)
"""
_DEPEND = """
UPDATE hybrid_monitors.services
SET depends_on = (SELECT id FROM hybrid_monitors.services WHERE name = $2) WHERE name = $1
"""
_STATE = """
SELECT
    service.name, service.active, standing.polled_at IS NOT NULL AS is_polled, standing.ok,
    standing.latency_ms, standing.breaker, standing.error, standing.warnings::text,
    count(dependency.id) AS dependencies,
    count(dependency.id) FILTER (WHERE NOT dependency.healthy) AS unhealthy
FROM hybrid_monitors.services AS service
LEFT JOIN hybrid_monitors.standings AS standing ON standing.service_id = service.id
LEFT JOIN hybrid_monitors.dependencies AS dependency ON dependency.service_id = service.id
GROUP BY service.id, standing.service_id ORDER BY service.id
"""
_EVENTS = """
SELECT event.id, event.kind, coalesce(event.payload ->> 'serviceName', service.name) AS service,
       event.payload::text, event.suppressed
FROM hybrid_monitors.events AS event
LEFT JOIN hybrid_monitors.services AS service ON service.id = event.service_id
WHERE event.id > $1 ORDER BY event.id LIMIT 1000
"""


class State(NamedTuple):
    """A row of what the shop sees."""

    name: str
    active: bool
    is_polled: bool
    ok: bool | None
    latency_ms: int | None
    breaker: str | None
    error: str | None
    warnings: list[str]
    dependencies: int
    unhealthy: int


class Event(NamedTuple):
    id: int
    kind: str
    service: str
    payload: dict[str, Any]
    suppressed: str | None


class Shop:
    """One connection."""

    def __init__(self, connection: asyncpg.Connection[Any], fakes: FakeServices) -> None:
        self._connection = connection
        self.fakes = fakes
        self._last_event = 0
        self.edits: list[str] = []
        """What it did to its list, in words."""

    async def add_all(self, services: Sequence[Service] = SERVICES) -> None:
        """All or none; workers see them when it has committed."""
        async with self._connection.transaction():
            await self._connection.execute("DELETE FROM hybrid_monitors.services")
            for service in services:
                await self._add(service)
            for service in services:
                if parent := service.options.get("depends_on"):
                    await self._connection.execute(_DEPEND, service.name, parent)

    async def _add(self, service: Service) -> None:
        options = service.options
        await self._connection.execute(
            _ADD,
            service.name,
            self.fakes.url(service.address_of or service.name),
            options.get("format", "dependencies"),
            _json(options.get("mapping")),
            _json(options.get("expect")),
            options.get("follow", 0),
            options.get("fail_after", 1),
            options.get("recover_after", 1),
        )

    async def edit_for_ever(self, pause: float = 4.0) -> None:
        """Now and then somebody changes something."""
        for turn in itertools.count():
            await asyncio.sleep(pause)
            match turn % 6:
                case 0:
                    await self.change(
                        "newsletter moves to an address that works",
                        "UPDATE hybrid_monitors.services SET url = $1 WHERE name = 'newsletter'",
                        self.fakes.url("prices"),
                    )
                case 1:
                    await self.change(
                        "payments is quiet for a minute: nobody is told of it",
                        "UPDATE hybrid_monitors.services"
                        " SET quiet_until = now() + interval '1 minute' WHERE name = 'payments'",
                    )
                case 2:
                    await self.change(
                        "forum and blog are paused",
                        "UPDATE hybrid_monitors.services SET active = false"
                        " WHERE name IN ('forum', 'blog')",
                    )
                case 3:
                    await self.change(
                        "chat is given up",
                        "DELETE FROM hybrid_monitors.services WHERE name = 'chat'",
                    )
                case 4:
                    await self.change(
                        "forum and blog go on",
                        "UPDATE hybrid_monitors.services SET active = true"
                        " WHERE name IN ('forum', 'blog')",
                    )
                case 5:
                    await self.change(
                        "newsletter moves back",
                        "UPDATE hybrid_monitors.services SET url = $1 WHERE name = 'newsletter'",
                        self.fakes.url("newsletter"),
                    )

    async def change(self, words: str, statement: str, *values: object) -> None:
        await self._connection.execute(statement, *values)
        self.edits.append(words)

    async def states(self) -> list[State]:
        rows = await self._connection.fetch(_STATE)
        return [
            State(**{**dict(row), "warnings": json.loads(row["warnings"] or "[]")}) for row in rows
        ]

    async def new_events(self) -> list[Event]:
        """In the order of commits: an outbox that anybody may read by id."""
        rows = await self._connection.fetch(_EVENTS, self._last_event)
        events = [Event(**{**dict(row), "payload": json.loads(row["payload"])}) for row in rows]
        self._last_event = events[-1].id if events else self._last_event
        return events

    async def skip_events(self) -> None:
        """What was before is not shown."""
        newest = "SELECT coalesce(max(id), 0) FROM hybrid_monitors.events"
        self._last_event = await self._connection.fetchval(newest)


@asynccontextmanager
async def open_shop(dsn: str, fakes: FakeServices) -> AsyncIterator[Shop]:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(dsn)
    try:
        yield Shop(connection, fakes)
    finally:
        await connection.close()


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)
