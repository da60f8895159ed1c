"""What rounds of monitors decide, as the JSON that sql/monitors takes, and what it answers, as
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import orjson

from hybrid_runner.jsontext import decode, printable, read
from hybrid_runner.model.monitors import (
    Decision,
    Dependency,
    DependencyAfter,
    Event,
    Item,
    Known,
    PollAnswer,
    Recorded,
    Service,
    Standing,
    Stopped,
    Subscription,
    Taken,
    Unchanged,
)

_INT4 = 2**31 - 1
_DEEPEST = 100
_ITEM = tuple(column.name for column in fields(Item))
_SERVICE = tuple(column.name for column in fields(Service))
_STANDING = tuple(column.name for column in fields(Standing))
_USUAL = {
    column.name: None if column.default is MISSING else column.default
    for column in fields(Standing)
}
_COUNTS = ("latency_ms", "failures", "recoveries")
_TIMES = (*("due_at", "polled_at", "opened_at", "certificate_ends_at", "since", "contrary_since"),)

WrittenRound = tuple[str, list[int], list[str], list[int]]
"""The round as JSON, and its latencies: service ids, names, milliseconds."""
WrittenUnchanged = tuple[str, list[datetime], list[datetime], str, str, str, str]
"""Arrays, those of numbers as text, which costs a quarter: service ids, due times, times of polls,
latencies; and those of dependencies: service ids, dependency ids, milliseconds.
"""


def read_taken(text: str, known: Mapping[int, Known]) -> Taken:
    """What take_round answers: services in full, but for those that it has recognised."""
    taken = read(text)
    in_full = {service["id"]: _service(service) for service in taken["services"]}
    recognised = {
        service_id: known[service_id]
        for service_id in taken["recognised"]
        if service_id not in in_full
    }
    both = in_full | {service_id: each.service for service_id, each in recognised.items()}
    return Taken(
        now=datetime.fromisoformat(taken["now"]),
        services=tuple(both[each] for each in taken["order"] if each in both),
        stopped=tuple(Stopped(*stopped) for stopped in taken["stopped"]),
        next_due=_seconds(taken["next_due"]),
        polls_are_read=taken["polls_are_read"],
        recognised=recognised,
    )


def read_dependencies(
    service_ids: Iterable[int], rows: Iterable[asyncpg.Record]
) -> dict[int, dict[str, Dependency]]:
    """What dependencies_of answers: an entry for each service."""
    found: dict[int, dict[str, Dependency]] = {service_id: {} for service_id in service_ids}
    for row in rows:
        found.setdefault(row["service_id"], {})[row["name"]] = _dependency(row)
    return found


def read_recorded(row: asyncpg.Record) -> Recorded:
    """What record_round answers."""
    return Recorded(
        _seconds(row["next_due"]), tuple(row["event_ids"]), row["status_changes"], row["version"]
    )


def read_answer(row: asyncpg.Record) -> PollAnswer:
    """What answer_of_poll answers."""
    standing = decode(row["standing"])
    return PollAnswer(
        row["is_pending"], row["is_there"], None if standing is None else _standing(standing)
    )


def write_round(
    decisions: Sequence[Decision],
    stopped: Sequence[tuple[Stopped, Sequence[Event]]],
    subscriptions: Sequence[Subscription],
    *,
    keeps_polls: bool,
) -> WrittenRound:
    """The arguments of record_round. Good polls that nobody wants to hear of are left out."""
    wanted = {subscription.event for subscription in subscriptions}
    stops = [_event(event, is_stop=True) for _, events in stopped for event in events]
    polls = [
        _event(event, is_stop=False)
        for decision in decisions
        for event in decision.events
        if keeps_polls or "poll:complete" in wanted or not _is_good_poll(event)
    ]
    latencies = [latency for decision in decisions for latency in decision.latencies]
    written: dict[str, Any] = {
        "standings": [
            {"service_id": decision.service_id, **_stored(decision.after)} for decision in decisions
        ],
        "dependencies": [
            _dependency_after(after) for decision in decisions for after in decision.dependencies
        ],
        "gone": [
            {"service_id": decision.service_id, "name": name}
            for decision in decisions
            for name in decision.gone
        ],
        "errors": [entry._asdict() for decision in decisions for entry in decision.errors],
        "answered": [each.service_id for each in decisions if each.polled is not None],
        "stopped": [service.service_id for service, _ in stopped],
        "events": stops + polls,
        "subscriptions": [asdict(subscription) for subscription in subscriptions],
    }
    return (
        _dumped({name: value for name, value in written.items() if value}),
        [latency.service_id for latency in latencies],
        [printable(latency.name) for latency in latencies],
        [_int4(latency.milliseconds) for latency in latencies],
    )


def write_known(known: Iterable[Known]) -> tuple[str, str, str]:
    """Arguments of take_round: ids, versions of services, versions of their standings."""
    rows = [(each.service.id, each.service.version or 0, each.standing_version) for each in known]
    return (
        _array([row[0] for row in rows]),
        _array([row[1] for row in rows]),
        _array([row[2] for row in rows]),
    )


def write_unchanged(unchanged: Sequence[Unchanged]) -> WrittenUnchanged:
    """More arguments of record_round: what is as it was."""
    return (
        _array([each.service_id for each in unchanged]),
        [each.due_at for each in unchanged],
        [each.polled_at for each in unchanged],
        _array([_int4(each.latency_ms) for each in unchanged]),
        _array([each.service_id for each in unchanged for _ in each.latencies]),
        _array([one for each in unchanged for one in each.dependency_ids]),
        _array([latency for each in unchanged for latency in each.latencies]),
    )


def _array(numbers: list[int]) -> str:
    return f"{{{str(numbers)[1:-1]}}}"


def _service(row: Mapping[str, Any]) -> Service:
    columns: dict[str, Any] = {name: row[name] for name in _SERVICE}
    for name in ("every", "timeout"):
        columns[name] = timedelta(seconds=row[name])
    for name in ("mapping", "expect", "headers"):
        columns[name] = decode(row[name])
    if columns["standing"] is not None:
        columns["standing"] = _standing(columns["standing"])
    return Service(**columns)


def _standing(row: Mapping[str, Any]) -> Standing:
    columns: dict[str, Any] = {name: row[name] for name in _STANDING}
    for name in _TIMES:
        columns[name] = None if row[name] is None else _time(row[name])
    return Standing(**(columns | {"warnings": tuple(row["warnings"])}))


def _dependency(row: asyncpg.Record) -> Dependency:
    columns: dict[str, Any] = dict(row.items())
    own = {
        name: columns.pop(name)
        for name in ("id", "service_id", "contrary", "told", "missing", "last_status_change")
    }
    last_error = decode(columns.pop("last_error"))
    for name in ("contact", "check_details", "error"):
        columns[name] = decode(columns[name])
    return Dependency(item=Item(**columns), last_error=last_error, **own)


def _stored(standing: Standing) -> dict[str, Any]:
    """What is as it is of a service that is well is left out: that is most of most."""
    columns: dict[str, Any] = {}
    for name, usual in _USUAL.items():
        value = getattr(standing, name)
        if value != usual:
            columns[name] = _int4(value) if name in _COUNTS else value
    return columns


def _dependency_after(after: DependencyAfter) -> dict[str, Any]:
    columns: dict[str, Any] = {name: getattr(after.item, name) for name in _ITEM}
    for name in ("state", "code", "latency_ms"):
        columns[name] = _int4(columns[name])
    return columns | {
        "service_id": after.service_id,
        "contrary": min(after.contrary, 32767),
        "told": after.told,
        "missing": min(after.missing, 32767),
        "status_changed": after.status_changed,
    }


def _event(event: Event, *, is_stop: bool) -> dict[str, Any]:
    return event._asdict() | {"is_stop": is_stop}


def _is_good_poll(event: Event) -> bool:
    return event.kind == "poll:complete" and bool(event.payload.get("success"))


def _seconds(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=max(seconds, 0))


def _time(text: str) -> datetime | None:
    """None for what somebody stored that Python has no date for."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _int4(number: float) -> int:
    return int(min(max(number, -_INT4), _INT4))


def _dumped(value: Any) -> str:
    """As JSON that Postgres can store. What it cannot, of what a service has answered, is changed:
    a round never fails for it.
    """
    try:
        text = orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = b""
    if not text or b"\\u0000" in text:
        text = orjson.dumps(_storable(value))
    return text.decode()


def _storable(value: Any, depth: int = 0) -> Any:
    match value:
        case str():
            return printable(value, len(value))
        case bool() | None | float() | datetime():
            return value
        case int():
            return value if abs(value) < 2**63 else str(value)[:100]
        case _ if depth >= _DEEPEST:
            return None
        case Mapping():
            return {
                printable(str(name)): _storable(part, depth + 1) for name, part in value.items()
            }
        case list() | tuple():
            return [_storable(part, depth + 1) for part in value]
        case _:
            return printable(str(value))
