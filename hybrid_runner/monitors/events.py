"""What handlers of `@monitors.on(…)` are given: one class for each kind of event."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from hybrid_runner.model.monitors import EventKind


class _Said(BaseModel):
    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore"
    )


class MonitorEvent(_Said):
    """What all of them have. `id` grows in the order in which they were stored, without gaps: a
    handler that is told again, after a crash, can tell by it.
    """

    id: int
    kind: EventKind
    at: datetime
    service_id: int


class ServiceEvent(MonitorEvent):
    """One that names its service."""

    service_name: str


class Change(_Said):
    """A dependency is healthy now and was not before, or the other way round."""

    service_id: int
    service_name: str
    dependency_name: str
    previous_healthy: bool | None
    current_healthy: bool
    timestamp: datetime


class StatusChange(ServiceEvent):
    """status:change: the same as an event."""

    dependency_name: str
    previous_healthy: bool | None
    current_healthy: bool
    timestamp: datetime


class PollComplete(MonitorEvent):
    """poll:complete: a poll has ended, well or not."""

    success: bool
    dependencies_updated: int
    status_changes: tuple[Change, ...]
    latency_ms: int
    error: str | None = None
    warnings: tuple[str, ...] = ()


class PollError(ServiceEvent):
    """poll:error: a poll has failed."""

    error: str


class ServiceStarted(ServiceEvent):
    """service:started: it is polled from now on."""


class ServiceStopped(ServiceEvent):
    """service:stopped: it is polled no longer."""


class ServiceDown(ServiceEvent):
    """service:down: as many polls in a row have failed as `fail_after` says."""

    error: str | None
    since: datetime | None
    """Of the first of them."""


class ServiceUp(ServiceEvent):
    """service:up: as many polls in a row were good as `recover_after` says."""

    error: str | None = None
    since: datetime | None
    """Of the first of them."""


class DependencyGone(ServiceEvent):
    """dependency:gone: three good answers in a row do not name it any more."""

    dependency_name: str


class CircuitOpen(ServiceEvent):
    """circuit:open: it is not polled until the cool-down is over."""


class CircuitClose(ServiceEvent):
    """circuit:close: it is polled again."""


EVENTS: Final[dict[EventKind, type[MonitorEvent]]] = {
    "status:change": StatusChange,
    "poll:complete": PollComplete,
    "poll:error": PollError,
    "service:started": ServiceStarted,
    "service:stopped": ServiceStopped,
    "service:down": ServiceDown,
    "service:up": ServiceUp,
    "dependency:gone": DependencyGone,
    "circuit:open": CircuitOpen,
    "circuit:close": CircuitClose,
}
"""The class of each kind."""
