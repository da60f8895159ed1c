"""What the demo has seen so far, as plain values; the view and the summary are drawn from it."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime

BURST_KIND = "tick"
ROUTINE_KINDS = ("greeting", "thumbnail", "checksum")
"""They arrive all the time: the first of each is an event."""
LATER_KINDS = ("payment", "upload", "reminder")
"""Picked up when a time comes, not when a row arrives."""


@dataclass
class Ended:
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
    """The many jobs of one INSERT."""

    jobs: int
    seconds: float
    p50: float
    p99: float


@dataclass
class Figures:
    """Written by the watcher, read by the view."""

    started: float = field(default_factory=time.monotonic)
    sent: int = 0
    """Jobs that the producer says it inserted."""
    ended: dict[int, Ended] = field(default_factory=dict)
    """All but the burst's."""
    ticks: int = 0
    live: Counter[str] = field(default_factory=Counter)
    settled: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    burst: Burst | None = None
    statement: str = ""
    latest: str = ""
    """What became of the last job that ended."""
    keyed: set[int] = field(default_factory=set)
    events: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=200))
    newest: datetime | None = None
    producing: bool = True
    final: Counter[str] | None = None
    """All jobs of this run by state, counted once everything has ended."""

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def done(self) -> int:
        """Jobs that have ended."""
        return len(self.ended) + self.ticks

    def add_event(self, text: str) -> None:
        """Something worth a line."""
        self.events.append((self.elapsed, text))

    def single(self) -> list[float]:
        """Pickups of rows that arrived one by one, in their order."""
        return [job.pickup for _, job in sorted(self.ended.items()) if job.kind not in LATER_KINDS]

    def later(self) -> list[float]:
        """Pickups of jobs that waited for a time."""
        return [job.pickup for job in self.ended.values() if job.kind in LATER_KINDS]

    def outcomes(self) -> Counter[str]:
        """How many ended how."""
        if self.final is not None:
            return self.final
        return Counter(job.state for job in self.ended.values()) + Counter(
            {"completed": self.ticks}
        )
