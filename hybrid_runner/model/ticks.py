"""What became of ticks of schedules, as fire_schedules.sql says it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple


class TickOutcome(Enum):
    """What became of one tick, or of several that nobody could fire in time."""

    FIRED = "fired"
    CAUGHT_UP = "caught_up"
    """A job was made for ticks that came while no worker lived."""
    SKIPPED = "skipped"
    """The job of an earlier tick still lives, and the schedule says to skip then."""
    DROPPED = "dropped"
    """Older than the schedule's `catch_up`, or more than it makes up for."""


class FiredTick(NamedTuple):
    """What one look did about a schedule."""

    schedule: str
    tick: datetime
    outcome: TickOutcome
    ticks: int
    """How many ticks it stands for, `tick` being the newest of them."""
    job_id: int | None
    late: timedelta
    """From the tick until its job was made."""


class ScheduleMeasures(NamedTuple):
    """How the schedules stand, measured by one worker for all."""

    active: int
    """Those that may fire: not paused, and declared by a live worker or not in code at all."""
    paused: int
    undeclared: int
    """Declared in code, and no live worker declares them."""
    next_in: float | None
    """Seconds until the earliest tick, negative if it is late; None: there is none."""
    overdue: int
    """How many schedules' ticks have been due for a minute."""
    latest: str | None
    """That of them which has been due for longest."""
    failed: tuple[str, ...]
    """Some that were paused since they could not fire."""
    unknown_kinds: tuple[str, ...]
    """Some whose kind no live worker knows, as `NAME (KIND)`."""
