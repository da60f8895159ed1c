"""What a heartbeat's answer can say. Each type is one word of sql/queries/beat.sql: its
own name.
"""

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
    """The cancelling of a job that runs here was asked for."""

    job_id: int


@dataclass(frozen=True, slots=True)
class DeclaredDead:
    """Others believe this worker dead and run its jobs again, or another took its name."""


@dataclass(frozen=True, slots=True)
class ProofSent:
    """A notification went to this channel; the listener must hear it now."""

    channel: str


@dataclass(frozen=True, slots=True)
class MuteExpired:
    """The queue's doorbell was muted by a worker that did not renew the mute: it died."""

    queue: str


@dataclass(frozen=True, slots=True)
class JobsOverdue:
    """A job of the queue has been due for a second and nobody took it."""

    queue: str


@dataclass(frozen=True, slots=True)
class NextDue:
    """The next job of the queue that waits for its time is due after `delay`."""

    queue: str
    delay: timedelta


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker was declared dead; this one is to put back what it ran."""

    worker_id: str


@dataclass(frozen=True, slots=True)
class WorkerSilent:
    """After `dead_in` a worker may be declared dead, unless it speaks."""

    dead_in: timedelta


@dataclass(frozen=True, slots=True)
class JobHung:
    """A job of this worker ran past its time-out and the time granted beyond it."""

    job_id: int


@dataclass(frozen=True, slots=True)
class RowGone:
    """A job runs here and has no running row under this claim: it was deleted, taken away, or
    completed by its handler.
    """

    job_id: int
    claim: int


@dataclass(frozen=True, slots=True)
class DutyGiven:
    """A duty is this worker's to do now."""

    name: str


@dataclass(frozen=True, slots=True)
class EndsUnreported:
    """Jobs ended while no worker had them, and somebody is to report that."""


QueueNews = MuteExpired | JobsOverdue | NextDue
"""For whoever works on the queue."""
WorkerNews = QueueMember | CancelRequested | DeclaredDead | ProofSent | QueueNews
"""For the worker's own loop."""
UpkeepNews = WorkerDied | WorkerSilent | JobHung | RowGone | DutyGiven | EndsUnreported
"""For the thread of the heartbeat."""
HeartbeatNews = WorkerNews | UpkeepNews
