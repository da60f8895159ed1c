"""Services, polls and standings for tests of what is decided of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hybrid_runner.model.monitors import (
    Decision,
    Dependency,
    Event,
    Item,
    Polled,
    PollFailure,
    Service,
    Standing,
)
from hybrid_runner.policy.monitors import PollRules, decide, needs_dependencies, try_breaker

NOW = datetime(2030, 1, 1, tzinfo=UTC)
EVERY = timedelta(seconds=30)
URL = "http://orders.internal/dependencies"
RULES = PollRules()


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def service(standing: Standing | None = None, **changes: Any) -> Service:
    usual = Service(
        id=7,
        name="orders",
        url=URL,
        every=EVERY,
        timeout=seconds(10),
        format="dependencies",
        mapping=None,
        expect=None,
        headers=None,
        follow=0,
        fail_after=1,
        recover_after=1,
        is_asked=False,
        suppressed=None,
        standing=standing,
    )
    return replace(usual, **changes)


def good(*items: Item, **changes: Any) -> Polled:
    return replace(Polled(7, URL, 12, items=items), **changes)


def bad(error: str = "it answered 503, no 2xx", failure: PollFailure = "http") -> Polled:
    return Polled(7, URL, 9, failure=failure, error=error)


def item(name: str = "db", **changes: Any) -> Item:
    return replace(Item(name, healthy=True, latency_ms=3), **changes)


def kinds(events: tuple[Event, ...] | list[Event]) -> list[str]:
    return [event.kind for event in events]


@dataclass
class World:
    """One service that is polled again and again, with a clock that tests move, and what is stored
    of it.
    """

    rules: PollRules = RULES
    now: datetime = NOW
    service: Service = field(default_factory=service)
    stored: dict[str, Dependency] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    errors: list[tuple[str | None, Any, str | None]] = field(default_factory=list)
    reads: int = 0
    """How often the dependencies were read."""

    @property
    def standing(self) -> Standing:
        assert self.service.standing is not None
        return self.service.standing

    def change(self, **changes: Any) -> None:
        """Somebody edits the service, or asks for it."""
        self.service = replace(self.service, **changes)

    def poll(self, polled: Polled) -> Decision:
        """As a round does it, whatever its due time is."""
        tried = try_breaker(self.service, self.now, self.rules)
        if tried.put_off is not None:
            self.change(standing=tried.put_off.after)
            return tried.put_off
        self.change(standing=tried.service.standing)
        stored = None
        if needs_dependencies(self.service, polled):
            self.reads += 1
            stored = dict(self.stored)
        return self.keep(decide(self.service, polled, stored, self.now, self.rules, chance=0.5))

    def poll_when_due(self, polled: Polled) -> Decision:
        """The clock goes to its due time."""
        self.now = max(self.now, self.standing.due_at)
        return self.poll(polled)

    def keep(self, decision: Decision) -> Decision:
        """As record_round does it."""
        self.change(standing=decision.after, is_asked=False)
        self.events += decision.events
        for entry in decision.errors:
            self.errors.append((entry.name, entry.error, entry.message))
        for after in decision.dependencies:
            before = self.stored.get(after.item.name)
            changed = self.now if after.status_changed else before and before.last_status_change
            self.stored[after.item.name] = Dependency(
                id=1,
                service_id=7,
                item=after.item,
                contrary=after.contrary,
                told=after.told,
                missing=after.missing,
                last_status_change=changed or None,
                last_error=None if before is None else before.last_error,
            )
        for entry in decision.errors:
            if entry.name is not None:
                known = self.stored[entry.name]
                self.stored[entry.name] = replace(known, last_error=entry.error)
        for name in decision.gone:
            del self.stored[name]
        return decision

    def told(self, *wanted: str) -> list[Event]:
        """Those that became jobs, of these kinds."""
        return [event for event in self.events if event.suppressed is None and event.kind in wanted]
