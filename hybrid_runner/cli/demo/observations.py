"""What the demo has seen so far, as plain values: the view and the summary are made from it."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

BURST_KIND = "tick"
ROUTINE_KINDS = ("greeting", "thumbnail", "checksum")
"""Kinds that arrive all the time: only the first of each is an event."""
LATER_KINDS = ("payment", "upload", "reminder")
"""Kinds that are picked up when a time comes, not when a row arrives."""


@dataclass
class EndedJob:
    """One job from the archive."""

    id: int
    kind: str
    state: str
    pickup: float
    """Milliseconds from due to claimed."""
    ran: float
    """Milliseconds from claimed to archived."""
    attempt: int


@dataclass
class Burst:
    """The many jobs of one INSERT; p50 and p99 of their pickup in milliseconds."""

    jobs: int
    seconds: float
    p50: float
    p99: float


class Event(NamedTuple):
    """A line for the person who watches."""

    at: float
    """Seconds since the start."""
    text: str
    colour: str


@dataclass
class Observations:
    """Written by the watcher, read by the view and the summary."""

    started: float = field(default_factory=time.monotonic)
    sent: int = 0
    """Jobs that the producer says it inserted."""
    ended: dict[int, EndedJob] = field(default_factory=dict)
    """Jobs that have ended, except the burst's, by id."""
    burst_ended: int = 0
    live: Counter[str] = field(default_factory=Counter)
    """Jobs that have not ended, by state."""
    settled: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    burst: Burst | None = None
    """Set once all its jobs are archived."""
    keyed: set[int] = field(default_factory=set)
    events: deque[Event] = field(default_factory=deque)
    """Not shown yet; the view takes them."""
    newest: datetime | None = None
    """End of the newest job in `ended`."""
    final: Counter[str] | None = None
    """All jobs of this run by state, counted once everything has ended."""

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def done(self) -> int:
        """Jobs that have ended."""
        return len(self.ended) + self.burst_ended

    def add_event(self, text: str, colour: str = "") -> None:
        self.events.append(Event(self.elapsed, text, colour))

    def single(self) -> list[float]:
        """Pickups of rows that arrived one by one, in their order."""
        return [job.pickup for _, job in sorted(self.ended.items()) if job.kind not in LATER_KINDS]

    def later(self) -> list[float]:
        """Pickups of jobs that waited for a time."""
        return [job.pickup for job in self.ended.values() if job.kind in LATER_KINDS]

    def outcomes(self) -> Counter[str]:
        """How many jobs ended in which state."""
        if self.final is not None:
            return self.final
        return Counter(job.state for job in self.ended.values()) + Counter(
            {"completed": self.burst_ended}
        )
