"""A worker's status as frozen values: what health pages, the command line and tests read."""

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
    """How many of the looks read the lanes from their start."""
    found: dict[str, int]
    consecutive_errors: int
    polls: int
    empty_polls: int
    next_poll: float
    errors: int = 0
    """Looks that failed."""
    rings: int = 0
    """Messages on the queue's channel, of any sort."""
    overdue: float = 0.0
    """How many seconds the next fallback poll is late."""
    busy: float = 0.0
    """For how many seconds the claimer has waited for an answer from Postgres."""
    missed: int = 0
    """Jobs that a fallback poll found although a ring was due."""
    missed_ago: float | None = None
    """Seconds since the last missed job was found."""
    refused_jobs: int = 0
    """Jobs that are left out for a while, because Postgres refuses their claims."""
    refused_kinds: tuple[str, ...] = ()
    """Kinds that are left out for a while, because Postgres refuses claims of their jobs."""
    last_minute: LastMinute = QUIET


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a worker's health is judged by, beside its queues."""

    heartbeat_age: float = 0.0
    """Seconds since Postgres last took a heartbeat."""
    heartbeat_every: float = 10.0
    deaf: float | None = None
    """Seconds for which no ring could arrive; None: rings arrive."""
    disturbance: str | None = None
    """What somebody does that keeps rings from arriving; None: nobody does."""
    proof_overdue: bool = False
    """Whether the listener is connected and has not heard its own proof in time."""
    away: float | None = None
    """For how many seconds Postgres has answered none of the worker's connections; None: it
    answers.
    """
    complaint: str = ""
    """The last error of a connection that got no answer."""
    loop_lag: float = 0.0
    """Seconds that the event loop took to answer the last check."""
    refusal: str = ""
    """Which jobs' outcomes Postgres refuses, and why; empty: none."""
    pinned: tuple[str, ...] = ()
    """What keeps vacuum, or prune(), from cleaning up, if this worker was the last to look for
    that.
    """
    unknown_kinds: tuple[str, ...] = ()
    """Due jobs that no live worker of their queue knows, if this worker looks for them."""
    sources: tuple[str, ...] = ()
    """What is wrong with attached tables, if this worker looks after their rows."""
    monitors: tuple[str, ...] | None = None
    """What is wrong with monitors, if this worker measures them; None: it does not."""
    schedules: tuple[str, ...] | None = None
    """What is wrong with schedules, if this worker measures them; None: it does not."""


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    id: str
    hearing: bool
    stopping: bool
    running: int
    pending_settlements: int
    settled: dict[str, int]
    stale: int
    rescued: int
    """How many jobs of dead workers this one rescued."""
    stalls: int
    """How often a handler blocked the event loop."""
    stalled: bool
    """Whether a handler blocks the event loop now."""
    ended_loops: tuple[str, ...]
    """Background loops that ended by themselves."""
    queues: tuple[QueueStatus, ...]
    listeners_lost: int = 0
    """How many connections were lost after they had listened."""
    metric_values: MetricValues = field(default_factory=dict)
    """The values of all metrics, those included that this worker measures for the whole fleet: see
    telemetry/metrics/instruments.py.
    """
    vitals: Vitals = Vitals()
    refused_settlements: int = 0
    """How many of `pending_settlements` wait because Postgres refused them."""
    waiting: int = 0
    """How many of `running` wait for a thread, a process or room for a large payload."""
