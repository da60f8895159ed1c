"""The names of the log events of an AdaptiveScheduler; `telemetry` has all the others."""

from __future__ import annotations

from typing import Literal

SchedulerEvent = Literal[
    "scheduler.breaker",
    "scheduler.closed",
    "scheduler.failing",
    "scheduler.interval",
    "scheduler.listener_failed",
    "scheduler.paused",
    "scheduler.recovered",
    "scheduler.reset",
    "scheduler.resumed",
    "scheduler.scheduled",
    "scheduler.stop_ignored",
]


def log_event(name: SchedulerEvent, **fields: object) -> dict[str, object]:
    """For `extra`: the event that a line is about, and its fields."""
    return {"event": name, **fields}
