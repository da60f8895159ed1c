"""What the rounds of a process know of services that are well, so that it is not read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from hybrid_runner.model.monitors import Decision, Known, Service, Unchanged
from hybrid_runner.policy.monitors import is_well

_MOST: Final = 20_000
"""Services that are remembered, of those hosts that were polled last."""


class Memory:
    """Nothing depends on it: Postgres says what of it still holds, each time it is used."""

    def __init__(self) -> None:
        self._hosts: dict[str, dict[int, Known]] = {}
        self._count = 0

    def of(self, host: str) -> Mapping[int, Known]:
        """What is known of its services, by their ids."""
        return self._hosts.get(host, {})

    def keep(self, host: str, known: Iterable[Known]) -> None:
        """From now on these are known of it, too."""
        services = self._hosts.pop(host, {})
        self._hosts[host] = services  # the last one that was polled
        before = len(services)
        services.update((each.service.id, each) for each in known)
        self._count += len(services) - before
        while self._count > _MOST and len(self._hosts) > 1:
            self._count -= len(self._hosts.pop(next(iter(self._hosts))))

    def forget(self, host: str, service_ids: Iterable[int]) -> None:
        """These are not as they were."""
        services = self._hosts.get(host, {})
        for service_id in service_ids:
            if services.pop(service_id, None) is not None:
                self._count -= 1


def known_after(service: Service, decision: Decision, version: int) -> Known | None:
    """What is known of a service after this decision; None: not all that is needed."""
    polled, after = decision.polled, decision.after
    if polled is None or not polled.ok or decision.dependencies or decision.gone:
        return None
    service = replace(service, standing=after, is_asked=False)
    if not is_well(service):
        return None
    return Known(service, version, after.due_at, after.polled_at, after.latency_ms)


def note(known: Known, unchanged: Unchanged, version: int) -> None:
    """It was polled and is as it was."""
    known.standing_version = version
    known.due_at = unchanged.due_at
    known.polled_at = unchanged.polled_at
    known.latency_ms = unchanged.latency_ms


def as_it_is(known: Known) -> Service:
    """The service with the times of its last poll."""
    standing = known.service.standing
    if standing is None:
        return known.service
    standing = replace(
        standing, due_at=known.due_at, polled_at=known.polled_at, latency_ms=known.latency_ms
    )
    return replace(known.service, standing=standing)
