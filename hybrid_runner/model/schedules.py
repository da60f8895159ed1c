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
ScheduleState: TypeAlias = Literal["on", "paused", "never", "undeclared", "unknown kind"]
"""Whether it fires: it does; somebody has paused it; no tick is left; it was declared in code, and
no live worker declares it; it does, and no live worker has a handler for its jobs.
"""

SHORTEST: Final = timedelta(seconds=1)
"""No schedule fires more often."""
MOST_TICKS: Final = 1000
"""Ticks that one question about the future may ask for."""
MOST_DECLARED: Final = 1000
"""Schedules of one application."""
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
class ScheduleView:
    """One schedule, as `app.schedules()` shows it."""

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
    """The next tick; None: it never fires again."""
    last_tick: datetime | None
    last_job: int | None
    overlap: Overlap
    missed: Missed
    catch_up: timedelta
    jitter: timedelta
    starts_at: datetime | None
    ends_at: datetime | None
    paused_at: datetime | None
    declared: bool
    """In code: it fires while a live worker declares it."""
    workers: int
    """How many live workers declare it."""
    made_by: str
    """The login under which its jobs are stored."""
    fired: int
    caught_up: int
    skipped: int
    dropped: int
    priority: int
    max_attempts: int | None
    timeout: timedelta | None
    payload: Any
    note: str | None = None
    """Why it was paused, if it was not a person who did."""

    @property
    def when(self) -> str:
        """Its expression, as people read it."""
        if self.every is not None:
            return f"every {duration_text(self.every)}"
        if self.at is not None:
            return f"at {moment_text(self.at)}"
        return f"{self.cron} ({self.timezone})"
