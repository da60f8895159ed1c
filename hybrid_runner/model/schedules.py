"""Schedules as values: what an application declares, and what can be read of stored ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from hybrid_runner.display import moment_text
from hybrid_runner.durations import duration_text

Overlap: TypeAlias = Literal["skip", "queue", "allow", "replace"]
"""What a tick does while the last job of its schedule lives."""
Missed: TypeAlias = Literal["one", "all", "none"]
"""What becomes of ticks that nobody could fire."""
ScheduleState: TypeAlias = Literal["on", "overdue", "unknown kind", "undeclared", "paused", "never"]
"""Whether it fires: it does; its tick is a minute past, and nobody has fired it; it does, and no
live worker has a handler for its jobs; it was declared in code, and no live worker declares it; it
is paused; no tick is left.
"""

SHORTEST: Final = timedelta(seconds=1)
"""No schedule fires more often."""
MOST_TICKS: Final = 1000
"""Ticks that one question about the future may ask for."""
MOST_DECLARED: Final = 1000
"""Schedules of one application."""
MOST_LISTED: Final = 1000
CATCH_UP: Final = timedelta(days=1)


class DeclaredSchedule(NamedTuple):
    """What an application says of a schedule: one row of hybrid_runner.schedules."""

    name: str
    kind: str
    payload: str = "{}"
    """JSON text."""
    cron: str | None = None
    every: timedelta | None = None
    at: datetime | None = None
    """Of the three, one is given."""
    timezone: str = "UTC"
    queue: str | None = None
    """None: that of the kind's handler."""
    priority: int = 5
    max_attempts: int | None = None
    timeout: timedelta | None = None
    overlap: Overlap = "skip"
    missed: Missed = "one"
    catch_up: timedelta = CATCH_UP
    jitter: timedelta = timedelta(0)
    starts_at: datetime | None = None
    ends_at: datetime | None = None


class Tick(NamedTuple):
    """A time at which a schedule will fire."""

    tick: datetime
    run_at: datetime
    """When its job is due: later by the schedule's jitter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSummary:
    """One schedule of a list: without its payload, which may be large."""

    name: str
    state: ScheduleState
    kind: str
    queue: str | None
    """None: that of the kind's handler."""
    cron: str | None
    every: timedelta | None
    at: datetime | None
    timezone: str
    next_at: datetime | None
    """The next tick, whether or not it will fire; None: there is none."""
    last_tick: datetime | None
    last_job: int | None
    waiting: int
    """Ticks that wait until the last job has ended."""
    overlap: Overlap
    missed: Missed
    catch_up: timedelta
    jitter: timedelta
    starts_at: datetime | None
    ends_at: datetime | None
    paused_at: datetime | None
    note: str | None
    """Why it was paused, if that was not asked for."""
    declared: bool
    """In code: it fires while a live worker declares it."""
    workers: int
    """How many live workers declare it."""
    made_by: str
    """The login that made it, under which its jobs are stored."""
    fired: int
    caught_up: int
    skipped: int
    dropped: int
    priority: int
    max_attempts: int | None
    timeout: timedelta | None

    @property
    def when(self) -> str:
        """What it goes by, as people read it."""
        if self.every is not None:
            return f"every {duration_text(self.every)}"
        if self.at is not None:
            return f"at {moment_text(self.at)}"
        cron = self.cron or ""
        return cron if self.timezone == "UTC" else f"{cron} {self.timezone}"

    @property
    def why(self) -> str:
        """Why it does not fire, or its jobs do not run; empty when all is well."""
        match self.state:
            case "on":
                return ""
            case "overdue":
                return "its tick was not fired: does a worker live?"
            case "unknown kind":
                return f"no live worker knows the kind {self.kind!r}"
            case "undeclared":
                return "declared in code, and no live worker declares it"
            case "paused":
                return self.note or ""
            case "never":
                return "it never fires again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView(ScheduleSummary):
    """One schedule with all that is known of it."""

    payload: Any
