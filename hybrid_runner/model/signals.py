"""Signals, which jobs wait for, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Literal, NamedTuple

LONGEST_KEY = 512
"""Bytes of a key."""
LARGEST_PAYLOAD = 64 * 1024
"""Bytes of a payload as JSON text."""
WITHOUT_END = timedelta(days=3650)
"""How long a job waits that waits without a time-out."""


class Given(NamedTuple):
    """What a job that waited was given."""

    signal_id: int | None
    """None: its time-out."""
    payload: str | None = None
    """JSON text."""


class Wanted(NamedTuple):
    """What a job is to wait for, and how long."""

    key: str
    timeout: timedelta


@dataclass(slots=True)
class AttemptSignals:
    """What one attempt has to do with signals."""

    woke: Given | None = None
    """What woke its job."""
    given: Given | None = None
    """The same; once `Job.signal` was called, what the last call was given."""
    calls: dict[str, int] = field(default_factory=dict)
    """How often `Job.signal` was called, by key."""
    waits_for: Wanted | None = None
    """What a call has unwound the handler for."""


class NotGiven(Enum):
    """Why a job was given nothing: there is no signal yet, somebody has a lock on its row, or the
    attempt has lost it.
    """

    NOT_YET = "not yet"
    LOCKED = "locked"
    STALE = "stale"


class Swept(NamedTuple):
    """How far a sweep of waiting jobs came, and for which of them a signal is there."""

    key: str
    job_id: int
    open: list[int]


class Forgotten(NamedTuple):
    """Signals that were deleted because of their age."""

    signals: int
    dropped: int
    """How many of them nobody ever took."""


CallbackAnswer = Literal["sent", "again", "unknown"]
"""sent: the job gets the signal; again: this callback was used before, and nothing has changed;
unknown: the job has ended, or never was.
"""
