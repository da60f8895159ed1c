"""What the answer to a heartbeat can say. Each type stands for a word of sql/queries/beat.sql."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class QueueMember:
    """A live worker of the queue. `kinds` is equal for workers that know the same kinds."""

    queue: str
    worker_id: str
    kinds: str


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody asked to cancel a job that runs on this worker."""

    job_id: int


@dataclass(frozen=True, slots=True)
class DeclaredDead:
    """Others believe this worker dead and run its jobs again, or another took its name."""


@dataclass(frozen=True, slots=True)
class ProofSent:
    """A notification was sent to this channel; the listener should hear it now."""

    channel: str


@dataclass(frozen=True, slots=True)
class MuteExpired:
    """The worker that muted the queue's doorbell did not renew the mute: it died."""

    queue: str


@dataclass(frozen=True, slots=True)
class JobsOverdue:
    """A job of the queue has been due for a second, and nobody has claimed it."""

    queue: str


@dataclass(frozen=True, slots=True)
class NextDue:
    """The next job of the queue that waits for its time is due after `delay`."""

    queue: str
    delay: timedelta


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker was declared dead; this one is to rescue its jobs."""

    worker_id: str


@dataclass(frozen=True, slots=True)
class WorkerSilent:
    """A worker may be declared dead after `dead_in`, unless its heartbeat comes before."""

    dead_in: timedelta


@dataclass(frozen=True, slots=True)
class JobHung:
    """A job of this worker ran longer than its time-out and `timeout_grace` together."""

    job_id: int


@dataclass(frozen=True, slots=True)
class RowGone:
    """A job runs on this worker, but no running row has its claim: the row was deleted, another
    worker has it, or the handler completed it.
    """

    job_id: int
    claim: int


@dataclass(frozen=True, slots=True)
class DutyGiven:
    """This worker is to do a duty now."""

    name: str


@dataclass(frozen=True, slots=True)
class EndsUnreported:
    """`cancel()` ended jobs in the queue; this worker is to report their ends."""


QueueNews = MuteExpired | JobsOverdue | NextDue
"""News for the station of one queue."""
WorkerNews = QueueMember | CancelRequested | DeclaredDead | ProofSent | QueueNews
"""News for the worker's event loop."""
UpkeepNews = WorkerDied | WorkerSilent | JobHung | RowGone | DutyGiven | EndsUnreported
"""News for the heartbeat's thread."""
HeartbeatNews = WorkerNews | UpkeepNews
