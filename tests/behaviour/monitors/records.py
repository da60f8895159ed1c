"""What was stored, as the laws want it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hybrid_runner.storage.connections.connection import Connection

_FIRST = "database"
"""The dependency whose latencies say which visits were stored."""


class Told(NamedTuple):
    """An event."""

    id: int
    kind: str
    service: str
    payload: dict[str, Any]


@dataclass
class Records:
    stored: dict[str, list[int]] = field(default_factory=dict)
    """For each service, the numbers of its good visits in the order in which they were stored."""
    events: list[Told] = field(default_factory=list)
    jobs: Counter[int] = field(default_factory=Counter)
    """How many jobs tell of each event."""
    told: Counter[int] = field(default_factory=Counter)
    """How often a handler was told of each event."""
    unhealthy: set[tuple[str, str]] = field(default_factory=set)
    """Services and their dependencies, as the table says."""
    open: set[str] = field(default_factory=set)
    """Services whose breaker is open, as the table says."""


async def read(connection: Connection) -> Records:
    records, stored = Records(), defaultdict[str, list[int]](list)
    for name, number in await connection.fetch(
        """
        SELECT service.name, history.ms - 1
        FROM hybrid_monitors.latency_history AS history
        JOIN hybrid_monitors.dependencies AS dependency ON dependency.id = history.dependency_id
        JOIN hybrid_monitors.services AS service ON service.id = dependency.service_id
        WHERE dependency.name = $1
        ORDER BY history.at, history.ms
        """,
        _FIRST,
    ):
        stored[name].append(number)
    records.stored = dict(stored)
    for event_id, kind, name, payload in await connection.fetch(
        """
        SELECT event.id, event.kind, service.name, event.payload::text
        FROM hybrid_monitors.events AS event
        LEFT JOIN hybrid_monitors.services AS service ON service.id = event.service_id
        ORDER BY event.id
        """
    ):
        records.events.append(Told(event_id, kind, name, json.loads(payload)))
    for event_id, count in await connection.fetch(
        """
        SELECT (payload ->> 'id')::bigint, count(*)::int4 FROM hybrid_runner.all_jobs
        WHERE kind LIKE 'monitors.on:%' GROUP BY 1
        """
    ):
        records.jobs[event_id] = count
    for event_id, count in await connection.fetch(
        "SELECT event_id, count(*)::int4 FROM public.told GROUP BY 1"
    ):
        records.told[event_id] = count
    records.unhealthy = {
        (name, dependency)
        for name, dependency in await connection.fetch(
            """
            SELECT service.name, dependency.name
            FROM hybrid_monitors.dependencies AS dependency
            JOIN hybrid_monitors.services AS service ON service.id = dependency.service_id
            WHERE NOT dependency.healthy
            """
        )
    }
    records.open = {
        name
        for (name,) in await connection.fetch(
            """
            SELECT service.name FROM hybrid_monitors.standings AS standing
            JOIN hybrid_monitors.services AS service ON service.id = standing.service_id
            WHERE standing.breaker <> 'closed'
            """
        )
    }
    return records
