"""The storage calls of those who look at monitored services: each runs the file of
sql/monitors/queries that has its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

import asyncpg

from hybrid_runner.jsontext import decode
from hybrid_runner.model.monitor_views import (
    MOST_EVENTS,
    DependencyView,
    ErrorRow,
    HourRow,
    MonitorEvent,
    MonitorMeasures,
    PublicDependency,
    PublicService,
    ServiceCounts,
    ServiceFilter,
    ServiceHistory,
    ServiceLine,
    ServiceView,
    percentile_of,
)
from hybrid_runner.model.monitors import LATENCY_BOUNDS
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.times import with_zone

_SHARES = (0.5, 0.95, 0.99)
_LINE = [each.name for each in fields(ServiceLine)]


async def has_monitors(on: Fetches) -> bool:
    """Whether this database has monitors."""
    return bool(await fetch_value(on, "has_monitors"))


async def count_services(on: Fetches) -> ServiceCounts:
    """How many services are in each state."""
    counted = {row["state"]: row["services"] for row in await fetch(on, "count_services")}
    return ServiceCounts(**counted)


async def list_services(
    on: Fetches, wanted: ServiceFilter, most: int, offset: int = 0
) -> list[ServiceLine]:
    """Services in the order of what should be looked at first, then of their names."""
    label = wanted.label or (None, None)
    rows = await fetch(
        on, "list_services", wanted.state, wanted.host, wanted.text, *label, most, offset
    )
    return [_line(row) for row in rows]


async def known_services(on: Fetches, names: Sequence[str]) -> frozenset[str]:
    """Those of these names that services have."""
    return frozenset(row["name"] for row in await fetch(on, "known_services", names))


async def show_service(on: Fetches, name: str) -> ServiceView | None:
    """Everything about one service but its history."""
    rows = await fetch(on, "show_service", name)
    if not rows:
        return None
    row = {name: with_zone(value) for name, value in rows[0].items()}
    line = _line(rows[0])
    for column in ("mapping", "expect", "headers"):
        row[column] = decode(row[column])
    found = await fetch(on, "show_dependencies", line.id)
    own = {
        each.name: row[each.name]
        for each in fields(ServiceView)
        if each.name not in ("line", "dependencies")
    }
    return ServiceView(line=line, dependencies=[_dependency(one) for one in found], **own)


async def service_history(
    on: Fetches, service_id: int, lasting: timedelta, most: int, dependency: str | None = None
) -> ServiceHistory:
    """What became of a service, and of one of its dependencies if it is named."""
    errors = await fetch(on, "service_errors", service_id, lasting, dependency, most)
    hours = await fetch(on, "service_hours", service_id, lasting, dependency, most)
    return ServiceHistory(
        [
            ErrorRow(row["at"], row["dependency"], decode(row["error"]), row["message"])
            for row in errors
        ],
        [_hour(row) for row in hours],
    )


async def newest_event(on: Fetches) -> int:
    """The id of the newest event; 0: there is none."""
    return int(await fetch_value(on, "newest_event"))


async def events_after(on: Fetches, event_id: int, most: int = MOST_EVENTS) -> list[MonitorEvent]:
    """The events behind this one, the oldest first."""
    return [_event(row) for row in await fetch(on, "events_after", event_id, most)]


async def newest_events(on: Fetches, most: int = MOST_EVENTS) -> list[MonitorEvent]:
    """The newest events, the oldest of them first."""
    return [_event(row) for row in await fetch(on, "newest_events", most)]


async def announce_event_readers(on: Fetches, lasting: timedelta) -> None:
    """Say that somebody reads events for so long: good polls are stored meanwhile."""
    await fetch(on, "announce_event_readers", round(lasting.total_seconds() * 1000))


async def public_services(
    on: Fetches, label: tuple[str, str] | None, most: int
) -> list[PublicService]:
    """What anybody may know, of the services that have this label."""
    rows = await fetch(on, "public_services", *(label or (None, None)), most)
    return [
        PublicService(
            row["name"],
            row["state"],
            row["since"],
            [
                PublicDependency(name, healthy)
                for name, healthy in zip(row["dependencies"], row["healthy"], strict=True)
            ],
        )
        for row in rows
    ]


async def measure_monitors(on: Fetches) -> MonitorMeasures:
    """How monitors do as a whole."""
    [row] = await fetch(on, "measure_monitors")
    return MonitorMeasures(*row)


def _line(row: asyncpg.Record) -> ServiceLine:
    columns: dict[str, Any] = {name: with_zone(row[name]) for name in _LINE}
    columns["warnings"] = _texts(decode(columns["warnings"]))
    labels = decode(columns["labels"])
    columns["labels"] = labels if isinstance(labels, dict) else {}
    return ServiceLine(**columns)


def _hour(row: asyncpg.Record) -> HourRow:
    answers, longest = row["answers"], row["max_ms"]
    return HourRow(
        row["hour"],
        row["dependency"],
        answers,
        round(row["sum_ms"] / max(1, answers), 1),
        longest,
        *(percentile_of(row["buckets"], LATENCY_BOUNDS, share, longest) for share in _SHARES),
    )


def _texts(value: object) -> Sequence[str]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _dependency(row: asyncpg.Record) -> DependencyView:
    columns: dict[str, Any] = {name: with_zone(value) for name, value in row.items()}
    for column in ("contact", "check_details", "error"):
        columns[column] = decode(columns[column])
    return DependencyView(**columns)


def _event(row: asyncpg.Record) -> MonitorEvent:
    payload = decode(row["payload"])
    return MonitorEvent(
        row["id"],
        row["at"],
        row["kind"],
        row["service_id"],
        payload if isinstance(payload, dict) else {"payload": payload},
        row["suppressed"],
    )
