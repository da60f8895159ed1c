"""What an answer changes of the dependencies that are stored of its service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from hybrid_runner.model.monitors import (
    Dependency,
    DependencyAfter,
    ErrorEntry,
    Event,
    Item,
    Service,
)

GONE_AFTER: Final = 3
"""So many good answers in a row without it."""
_UNHEALTHY: Final = {"unhealthy": True}
"""Stands for the error of what is unhealthy without one."""


class Found(NamedTuple):
    """What comparing them has found."""

    changed: tuple[DependencyAfter, ...]
    gone: tuple[str, ...]
    errors: tuple[ErrorEntry, ...]
    events: tuple[Event, ...]
    is_unsettled: bool

    @property
    def status_changes(self) -> list[dict[str, Any]]:
        """The payloads of those events."""
        return [event.payload for event in self.events if event.kind == "status:change"]


def compare(
    service: Service, items: Sequence[Item], stored: Mapping[str, Dependency], now: datetime
) -> Found:
    """Only what has changed, beside latencies and times, is to be written."""
    by_name = {item.name: item for item in items}
    changed, errors, events = list[DependencyAfter](), list[ErrorEntry](), list[Event]()
    gone, is_unsettled = list[str](), False
    for name, item in by_name.items():
        before = stored.get(name)
        after, told = _seen(service, item, before, now)
        events += told
        errors += _errors(service, item, before)
        is_unsettled |= after.contrary > 0 or not after.told
        if before is None or _differs(before, after):
            changed.append(after)
    for name in stored.keys() - by_name.keys():
        before = stored[name]
        if before.missing + 1 >= GONE_AFTER:
            gone.append(name)
            events.append(Event("dependency:gone", service.id, _who(service, name)))
            continue
        is_unsettled = True
        changed.append(
            DependencyAfter(
                service.id, before.item, before.contrary, before.told, before.missing + 1, False
            )
        )
    return Found(tuple(changed), tuple(sorted(gone)), tuple(errors), tuple(events), is_unsettled)


def is_healthy(item: Item) -> bool:
    """What is skipped counts as healthy."""
    return item.healthy or item.skipped


def _seen(
    service: Service, item: Item, before: Dependency | None, now: datetime
) -> tuple[DependencyAfter, Iterator[Event]]:
    """A change of health counts once it was seen so often in a row as the service asks for."""
    healthy = is_healthy(item)
    if before is None:  # what is new has not changed
        new = replace(item, healthy=healthy)
        return DependencyAfter(service.id, new, 0, True, 0, True), iter(())
    believed = before.item.healthy
    contrary = 0 if healthy is believed else before.contrary + 1
    needed = service.recover_after if healthy else service.fail_after
    has_changed = 0 < needed <= contrary
    if has_changed:
        believed, contrary = healthy, 0
    told = believed or (service.suppressed is None) or (before.told and not has_changed)
    after = DependencyAfter(
        service.id, replace(item, healthy=believed), contrary, told, 0, has_changed
    )
    is_told_now = not believed and told and not before.told
    if not (has_changed or is_told_now):
        return after, iter(())
    payload = {
        **_who(service, item.name),
        "previousHealthy": not believed,
        "currentHealthy": believed,
        "timestamp": now.isoformat(),
    }
    suppressed = None if believed else service.suppressed
    return after, iter((Event("status:change", service.id, payload, suppressed),))


def _errors(service: Service, item: Item, before: Dependency | None) -> Iterator[ErrorEntry]:
    """A history without repeats: an error when it is another one, a recovery only after one."""
    last = None if before is None else before.last_error
    if is_healthy(item):
        if last is not None:
            yield ErrorEntry(service.id, item.name, None, None)
        return
    error, message = item.error, item.error_message
    if error is None:
        error, message = _UNHEALTHY, message or "Unhealthy"
    if last is None or _json(error) != _json(last):
        yield ErrorEntry(service.id, item.name, error, message)


def _differs(before: Dependency, after: DependencyAfter) -> bool:
    counts = (before.contrary, before.told, before.missing)
    return counts != (after.contrary, after.told, after.missing) or _content(
        before.item
    ) != _content(after.item)


def digest_of(items: Sequence[Item]) -> str:
    """The same for answers that say the same, whatever the order and the latencies."""
    content = b"\n".join(sorted(map(_content, items)))
    return blake2b(content, digest_size=16).hexdigest()


def _content(item: Item) -> bytes:
    """All but what differs each time, as JSON: 1 is not true there, and the order of keys does not
    count.
    """
    return _json(
        [
            *(item.name, is_healthy(item), item.type, item.description, item.impact),
            *(item.state, item.code, item.skipped, item.contact, item.check_details),
            *(item.error, item.error_message),
        ]
    )


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _who(service: Service, name: str) -> dict[str, Any]:
    return {"serviceId": service.id, "serviceName": service.name, "dependencyName": name}
