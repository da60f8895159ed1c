"""Monitored services: what is asked of them, what a poll found, where they stand, what is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Format: TypeAlias = Literal["dependencies", "mapping", "status"]
"""What a service answers: a list of dependencies, another shape that its mapping explains, or
nothing that is read.
"""
BreakerMode: TypeAlias = Literal["closed", "open", "half_open"]
EventKind: TypeAlias = Literal[
    "status:change",
    "poll:complete",
    "poll:error",
    "service:started",
    "service:stopped",
    "service:down",
    "service:up",
    "dependency:gone",
    "circuit:open",
    "circuit:close",
]
PollFailure: TypeAlias = Literal[
    "http",
    "timeout",
    "dns",
    "tls",
    "refused",
    "network",
    "redirect",
    "address",
    "too_large",
    "parse",
    "expect",
    "secret",
    "definition",
]
"""Why a poll failed: a status that is not 2xx; no answer in time; …; `definition`: what is stored
of the service cannot be used.
"""
Suppressed: TypeAlias = Literal["maintenance", "parent"]
"""Why bad news is stored and not told: a maintenance window, or the service it depends on is down.
"""

ROUND_KIND: Final = "monitors.round"
OPEN_KIND: Final = "monitors.open"
"""Stores the jobs of hosts that have none, after somebody has changed services; payload
{"hosts": […]}. It has no key: whoever changes services waits for nobody.
"""
UPKEEP_KIND: Final = "monitors.upkeep"
QUEUE: Final = "monitors"
EVENT_KIND_PREFIX: Final = "monitors.on:"
"""Kinds of jobs that tell somebody of an event: `monitors.on:status:change:page`."""
LATENCY_BOUNDS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1_000, 2_000, 5_000, 10_000, 20_000, 60_000),
)
"""Milliseconds: the n-th place of `hours.buckets` counts what is at most the n-th of these and more
than the one before; one more place counts what is above them all.
"""


def host_key(host: str) -> str:
    """The key of a host's job, and of the signal that makes it look at once."""
    return f"monitors:{host}"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a service stands since its last poll; written by rounds alone."""

    due_at: datetime
    url: str
    """That was polled."""
    polled_at: datetime | None = None
    ok: bool | None = None
    latency_ms: int | None = None
    failures: int = 0
    """Failed polls in a row."""
    breaker: BreakerMode = "closed"
    opened_at: datetime | None = None
    is_down: bool = False
    """After `fail_after` failed polls in a row, until `recover_after` good ones in a row."""
    recoveries: int = 0
    """Good polls in a row while it is down."""
    since: datetime | None = None
    """Since when it is down, or up: the first failed poll of those that brought it down, the first
    good one of those that brought it back, or the first poll of all.
    """
    contrary_since: datetime | None = None
    """Of the polls in a row that say the contrary of `is_down`, the first."""
    told_down: bool = False
    """Whether the event `service:down` was told: not while suppressed."""
    error: str | None = None
    failure: PollFailure | None = None
    warnings: tuple[str, ...] = ()
    certificate_ends_at: datetime | None = None
    digest: str | None = None
    """Of the last answer, without what differs each time: an equal one need not be compared."""
    is_unsettled: bool = False
    """Some dependency is to be looked at again although the answer is the same."""


@dataclass(frozen=True, slots=True)
class Service:
    """What a round is given of one service."""

    id: int
    name: str
    url: str
    every: timedelta
    timeout: timedelta
    format: Format
    mapping: dict[str, Any] | None
    expect: dict[str, Any] | None
    headers: dict[str, str] | None
    follow: int
    """How many redirects are followed."""
    fail_after: int
    recover_after: int
    is_asked: bool
    """Somebody wants it polled now."""
    suppressed: Suppressed | None
    standing: Standing | None
    """None: it was never polled."""
    version: int | None = None
    """Of its row: another one as soon as somebody writes it. None: it has no row."""
    dependency_ids: Mapping[str, int] | None = None
    """Ids of its dependencies by name; None: they are not known to be those of its last answer."""


@dataclass(slots=True)
class Known:
    """A service that is well, as the last round in this process has left it, for the next one."""

    service: Service
    """Of its standing, what is below may be older."""
    standing_version: int
    """Of the row of its standing."""
    due_at: datetime
    polled_at: datetime | None
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class Item:
    """One dependency, as an answer of its service says."""

    name: str
    healthy: bool
    type: str = "other"
    description: str | None = None
    impact: str | None = None
    state: int = 0
    """0 OK, 1 WARNING, 2 CRITICAL."""
    code: int = 200
    latency_ms: int = 0
    skipped: bool = False
    contact: dict[str, Any] | None = None
    check_details: dict[str, Any] | None = None
    error: Any = None
    error_message: str | None = None
    last_checked: datetime | None = None
    """As the service says; None: now."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """One dependency, as it is stored."""

    id: int
    service_id: int
    item: Item
    contrary: int = 0
    """How often in a row an answer said the contrary of `item.healthy`."""
    told: bool = True
    """Whether the last change to unhealthy was told: not while suppressed."""
    missing: int = 0
    """In how many answers in a row it was not; after three it is gone."""
    last_status_change: datetime | None = None
    last_error: Any = None
    """As the newest row of its error history says; None: healthy, or no row."""


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll of one service found."""

    service_id: int
    url: str
    latency_ms: int
    failure: PollFailure | None = None
    error: str | None = None
    """One line; None when the poll is good."""
    items: tuple[Item, ...] = ()
    warnings: tuple[str, ...] = ()
    certificate_ends_at: datetime | None = None
    is_local: bool = False
    """The fault may be on this side: no route, no network, or names are not resolved for now."""
    is_put_off: bool = False
    """It was redirected to where too many are asked already: nothing is known of it."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds of the request by phase: resolve, connect (with TLS), first_byte, body; empty for
    those that shared another one's request.
    """

    same: Same | None = None
    """Set instead of the items when they are those of the last answer."""

    @property
    def ok(self) -> bool:
        return self.failure is None


class Same(NamedTuple):
    """An answer that says what the last one said: nothing but latencies and times is another."""

    names: tuple[str, ...]
    latencies: list[int]
    """Milliseconds, of each name."""


class Unchanged(NamedTuple):
    """What a poll changes of a service that is as it was: its times, and the latencies it told."""

    service_id: int
    due_at: datetime
    polled_at: datetime
    latency_ms: int
    dependency_ids: list[int]
    latencies: list[int]
    """Milliseconds above zero, of each of these dependencies."""


class Event(NamedTuple):
    """Something to be told; `payload` has the names that docs/monitors.md lists."""

    kind: EventKind
    service_id: int
    payload: dict[str, Any]
    suppressed: Suppressed | None = None


class ErrorEntry(NamedTuple):
    """A row of an error history: of a dependency, or of the service's polls when `name` is None.

    `error` and `message` None: it has recovered.
    """

    service_id: int
    name: str | None
    error: Any
    message: str | None


class Latency(NamedTuple):
    """What one answer said of the latency of one dependency."""

    service_id: int
    name: str
    milliseconds: int


@dataclass(frozen=True, slots=True)
class DependencyAfter:
    """What is to be stored of a dependency."""

    service_id: int
    item: Item
    contrary: int
    told: bool
    missing: int
    status_changed: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """What one poll of one service changes. Made by policy/monitors.py, stored by record_round."""

    service_id: int
    after: Standing
    dependencies: tuple[DependencyAfter, ...] = ()
    """Only those of which something has changed."""
    gone: tuple[str, ...] = ()
    """Names that are forgotten."""
    errors: tuple[ErrorEntry, ...] = ()
    latencies: tuple[Latency, ...] = ()
    events: tuple[Event, ...] = ()
    polled: Polled | None = None
    """What was found; None: it was not polled, and is only due at another time."""


class Stopped(NamedTuple):
    """A service that was polled and no longer is: paused, deleted, or moved to another host."""

    service_id: int
    name: str
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """What a round has to do, by the clock of Postgres."""

    now: datetime
    services: tuple[Service, ...] = ()
    """Due, or asked for; those that were polled longest ago first."""
    stopped: tuple[Stopped, ...] = ()
    next_due: timedelta | None = None
    """Until the next of the others; None: there are none."""
    polls_are_read: bool = False
    """Whether somebody reads events live, and good polls are to be stored as events too."""
    recognised: Mapping[int, Known] = field(default_factory=dict)
    """Those of the services, by their ids, of which nobody has written a row since."""

    @property
    def has_more(self) -> bool:
        """Whether more was due than is taken at a time."""
        return self.next_due is not None and self.next_due <= timedelta()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of storing a round."""

    next_due: timedelta | None
    event_ids: tuple[int, ...] = ()
    status_changes: int = 0
    version: int = 0
    """Of all rows of standings that were written."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A handler of events: each event of this kind becomes a job of that kind."""

    event: EventKind
    job_kind: str
    queue: str
    max_attempts: int = field(default=5)


@dataclass(frozen=True, slots=True)
class NewService:
    """What somebody wants to be monitored."""

    name: str
    url: str
    every: timedelta = timedelta(seconds=30)
    timeout: timedelta = timedelta(seconds=10)
    format: Format | None = None
    """None: `mapping` if there is one, else `dependencies`."""
    mapping: Mapping[str, Any] | None = None
    expect: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None
    follow: int = 0
    fail_after: int = 1
    recover_after: int = 1
    depends_on: str | None = None
    """The name of another service."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    active: bool = True


@dataclass(frozen=True, slots=True)
class PollAnswer:
    """What became of a poll that somebody asked for."""

    is_pending: bool
    is_there: bool
    """False: nobody has such a service any more."""
    standing: Standing | None


@dataclass(frozen=True, slots=True)
class MonitorsUpkeep:
    """What one round of upkeep of monitors has done."""

    partitions_made: int
    partitions_dropped: int
    partitions_blocked: int
    """Could not be dropped, since somebody reads the table in a long transaction."""
    hours_rolled_up: int
    leftovers: int
    """Rows of services that are gone, and of what is over."""
    renamed: int
    """Dependencies whose canonical name was another one since somebody changed aliases."""
