"""Monitored services in a database, and rounds that are played by a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from hybrid_runner.model.monitors import (
    Decision,
    Dependency,
    DependencyAfter,
    Event,
    Item,
    Polled,
    Recorded,
    Service,
    Standing,
    Stopped,
    Subscription,
    Taken,
)
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection

ADD = "INSERT INTO hybrid_monitors.services (name, url) VALUES ($1, $2) RETURNING id"
ADD_MANY = (
    "INSERT INTO hybrid_monitors.services (name, url)"
    " SELECT 's' || n, 'http://h' || n % $2 || '.internal/' || n FROM generate_series(1, $1) AS n"
)
RUN = (
    "UPDATE hybrid_runner.jobs SET state = 'running', worker_id = 'test', started_at = now(),"
    " claim = nextval('hybrid_runner.claims') WHERE key = $1 RETURNING id, claim"
)


@dataclass(frozen=True)
class PlayedRound:
    """A claimed job of a host."""

    on: Connection
    host: str
    job_id: int
    claim: int

    async def take(self, most: int = 200) -> Taken:
        """What is due, of a round that is not stale."""
        taken = await monitor_calls.take_round(self.on, self.host, self.job_id, self.claim, most)
        assert taken is not None
        return taken

    async def record(
        self,
        decisions: Sequence[Decision] = (),
        stopped: Sequence[tuple[Stopped, Sequence[Event]]] = (),
        subscriptions: Sequence[Subscription] = (),
        *,
        keeps_polls: bool = False,
        last: bool = True,
    ) -> Recorded:
        """What came of it, of a round that is not stale."""
        recorded = await monitor_calls.record_round(
            self.on,
            self.host,
            self.job_id,
            self.claim,
            decisions,
            stopped,
            subscriptions,
            keeps_polls=keeps_polls,
            last=last,
        )
        assert recorded is not None
        return recorded

    async def poll(self) -> Taken:
        """One round in which all that is due is well."""
        taken = await self.take()
        await self.record(
            [good(each, taken.now) for each in taken.services],
            [(each, ()) for each in taken.stopped],
        )
        return taken


async def add(on: Connection, name: str, url: str = "http://a.internal/") -> int:
    """Store a service by plain SQL; its id."""
    added: int = await on.fetchval(ADD, name, url)
    return added


async def play(on: Connection, host: str = "a.internal") -> PlayedRound:
    """Open the host, if it is not, and claim its job anew."""
    await monitor_calls.open_hosts(on, [host])
    job_id, claim = await on.fetchrow(RUN, f"monitors:{host}") or (0, 0)
    return PlayedRound(on, host, job_id, claim)


def good(service: Service, now: datetime, **changes: Any) -> Decision:
    """What a good poll decides; with changes of the standing."""
    before = service.standing or Standing(now, service.url)
    after = replace(
        before,
        due_at=now + service.every,
        url=service.url,
        polled_at=now,
        ok=True,
        latency_ms=7,
        **changes,
    )
    return Decision(service.id, after, polled=Polled(service.id, service.url, 7))


async def one(on: Connection, name: str = "orders") -> tuple[PlayedRound, Service, Decision]:
    """A round with one service, and what a good poll of it decides."""
    await add(on, name)
    played = await play(on)
    taken = await played.take()
    [service] = taken.services
    return played, service, good(service, taken.now)


def stored(item: Item, service_id: int, *, status_changed: bool = False) -> DependencyAfter:
    """A dependency that is as an answer says."""
    return DependencyAfter(service_id, item, 0, True, 0, status_changed)


async def dependency(on: Connection, service_id: int, name: str) -> Dependency:
    """It as it is stored."""
    return (await monitor_calls.dependencies_of(on, [service_id]))[service_id][name]


async def due(on: Connection, name: str, seconds: float) -> None:
    """Make a service due so many seconds from now."""
    await on.execute(
        "UPDATE hybrid_monitors.standings SET due_at = now() + make_interval(secs => $2)"
        " WHERE name = $1",
        name,
        seconds,
    )


async def age(on: Connection, seconds: float) -> None:
    """As if all that is stored of polls had been stored so much earlier."""
    await on.execute(
        "UPDATE hybrid_monitors.standings SET due_at = due_at - make_interval(secs => $1),"
        " polled_at = polled_at - make_interval(secs => $1),"
        " since = since - make_interval(secs => $1),"
        " contrary_since = contrary_since - make_interval(secs => $1),"
        " opened_at = opened_at - make_interval(secs => $1)",
        seconds,
    )
    await on.execute(
        "UPDATE hybrid_monitors.hosts SET looked_at = looked_at - make_interval(secs => $1)",
        seconds,
    )
