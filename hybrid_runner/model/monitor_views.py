"""Monitored services as people see them: in lists, on pages, in streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from hybrid_runner.model.monitors import BreakerMode, EventKind, Suppressed

ServiceState: TypeAlias = Literal["down", "unknown", "maintenance", "up", "paused"]
"""As a person would say it, the worst first. `unknown`: it was never polled; `maintenance`: a
window covers it now, whether it answers or not.
"""
MOST_LISTED: Final = 1000
"""Services in one list."""
MOST_OFFSET: Final = 1_000_000
MOST_EVENTS: Final = 500
"""Events that are read at a time."""
MOST_HISTORY: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class ServiceFilter:
    """Which services are listed; None: whatever they have there."""

    state: ServiceState | None = None
    host: str | None = None
    text: str | None = None
    """A part of the name, in any case of letters."""
    label: tuple[str, str] | None = None
    """Name and value of a label, as text."""


@dataclass(frozen=True, slots=True)
class ServiceLine:
    """One service in a list."""

    id: int
    name: str
    host: str
    state: ServiceState
    since: datetime | None
    """Since when it is down, or up."""
    failure: str | None
    """What sort of failure the last poll was."""
    error: str | None
    """What it said, in one line."""
    breaker: BreakerMode
    failures: int
    """Failed polls in a row."""
    latency_ms: int | None
    polled_at: datetime | None
    due_at: datetime | None
    """When it is polled next."""
    dependencies: int
    unhealthy: int
    """How many of its dependencies are unhealthy."""
    warnings: Sequence[str]
    labels: Mapping[str, Any]


class ServiceCounts(NamedTuple):
    """How many services are in each state."""

    down: int = 0
    unknown: int = 0
    maintenance: int = 0
    up: int = 0
    paused: int = 0


@dataclass(frozen=True, slots=True)
class DependencyView:
    """One dependency of a service, as its last good answer said."""

    name: str
    canonical_name: str | None
    type: str
    description: str | None
    impact: str | None
    healthy: bool
    state: int
    """0 OK, 1 WARNING, 2 CRITICAL."""
    code: int | None
    latency_ms: int | None
    skipped: bool
    missing: int
    """In how many answers in a row it was not."""
    last_checked: datetime | None
    last_status_change: datetime | None
    contact: Any = None
    check_details: Any = None
    error: Any = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceView:
    """Everything about one service, but for its history."""

    line: ServiceLine
    url: str
    every: timedelta
    timeout: timedelta
    format: str
    mapping: Any
    expect: Any
    headers: Any
    follow: int
    fail_after: int
    recover_after: int
    depends_on: str | None
    """The name of the service that it depends on."""
    active: bool
    quiet_until: datetime | None
    opened_at: datetime | None
    """When its breaker opened."""
    certificate_ends_at: datetime | None
    created_at: datetime
    dependencies: Sequence[DependencyView] = field(default_factory=tuple)


class ErrorRow(NamedTuple):
    """A row of an error history; without error and message it is a recovery."""

    at: datetime
    dependency: str | None
    """None: of the service's own polls."""
    error: Any
    message: str | None

    @property
    def is_recovery(self) -> bool:
        return self.error is None and self.message is None


class HourRow(NamedTuple):
    """The latencies of one dependency in one hour, in milliseconds."""

    hour: datetime
    dependency: str
    answers: int
    mean_ms: float
    max_ms: int
    p50_ms: int
    p95_ms: int
    p99_ms: int


def percentile_of(buckets: Sequence[int], bounds: Sequence[int], share: float, longest: int) -> int:
    """The bound that this share of the answers does not exceed; `longest` in the last bucket, and
    wherever that is less.
    """
    left = share * sum(buckets)
    for bound, count in zip(bounds, buckets, strict=False):
        left -= count
        if left <= 0:
            return min(bound, longest)
    return longest


class ServiceHistory(NamedTuple):
    """What became of one service, the newest first."""

    errors: Sequence[ErrorRow]
    hours: Sequence[HourRow]


class MonitorEvent(NamedTuple):
    """A row of the table of events: what other programs read too."""

    id: int
    at: datetime
    kind: EventKind
    service_id: int
    payload: Mapping[str, Any]
    suppressed: Suppressed | None


class PublicDependency(NamedTuple):
    """A dependency, as anybody may know it."""

    name: str
    healthy: bool


class PublicService(NamedTuple):
    """A service, as anybody may know it."""

    name: str
    state: ServiceState
    since: datetime | None
    dependencies: Sequence[PublicDependency]


class MonitorMeasures(NamedTuple):
    """How monitors do as a whole, for metrics and health."""

    closed: int
    open: int
    half_open: int
    down: int
    warned: int
    """Services of whose last answer a part was not understood."""
    late: int
    """Services whose polls have been due for longer than 10 s."""
    oldest_late: float
    """For how many seconds the one has been due that has been so for longest."""
    upkeep_age: float | None
    """Seconds since upkeep ended; None: it never ran."""
