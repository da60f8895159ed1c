"""What a worker knows of itself, as frozen values; health pages, the command line and tests read
the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid_runner.policy.last_minute import QUIET, LastMinute
from hybrid_runner.telemetry.metrics.values import MetricValues


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue as this worker sees it."""

    queue: str
    mode: str
    """deaf, falling, asleep, awake or full: see policy/doorbell.py."""
    slots: int
    running: int
    looks: int
    empty_looks: int
    sweeps: int
    """Looks from the start of the lanes."""
    found: dict[str, int]
    consecutive_errors: int
    polls: int
    empty_polls: int
    next_poll: float
    errors: int = 0
    """Looks that failed."""
    rings: int = 0
    """Heard, whatever they asked for."""
    overdue: float = 0.0
    """Seconds by which the next fallback poll is late."""
    busy: float = 0.0
    """Seconds for which the claimer has waited for an answer from Postgres."""
    missed: int = 0
    """Jobs that a fallback poll found although a ring was due."""
    missed_ago: float | None = None
    """Seconds since the last of them."""
    last_minute: LastMinute = QUIET


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a worker's health is judged by, beside its queues."""

    heartbeat_age: float = 0.0
    """Seconds since Postgres last took a heartbeat."""
    heartbeat_every: float = 10.0
    deaf: float | None = None
    """Seconds for which no ring could arrive; None: rings arrive."""
    proof_overdue: bool = False
    """Whether the listener is connected, and yet did not hear a ring of our own."""
    away: float | None = None
    """Seconds for which Postgres has answered nobody here; None: it answers."""
    complaint: str = ""
    """What the last one that got no answer was told."""
    loop_lag: float = 0.0
    """Seconds that the event loop last took for what it was asked to do at once."""
    pinned: tuple[str, ...] = ()
    """Who keeps vacuum from cleaning up, if this worker was the last to look."""


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker."""

    id: str
    hearing: bool
    stopping: bool
    running: int
    pending_settlements: int
    settled: dict[str, int]
    stale: int
    rescued: int
    """Jobs of lost workers that this one brought back."""
    stalls: int
    """How often a handler held up the event loop for too long."""
    stalled: bool
    """Whether one does so now."""
    ended_loops: tuple[str, ...]
    """Background loops that ended although nobody stopped the worker."""
    queues: tuple[QueueStatus, ...]
    listeners_lost: int = 0
    """Connections that listened and were lost."""
    figures: MetricValues = field(default_factory=dict)
    """What was counted, and what this worker measured for all: see
    telemetry/metrics/instruments.py.
    """
    vitals: Vitals = Vitals()
    waiting: int = 0
    """How many of `running` wait for a thread or a process, and have not begun."""
