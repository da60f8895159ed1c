"""What a worker knows of itself, as frozen values; health pages, the command line and tests read the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid_runner.telemetry.figures import Figures


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
    figures: Figures = field(default_factory=dict)
    """What was counted, and what this worker measured for all: see telemetry/instruments.py."""
