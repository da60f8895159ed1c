"""What a heartbeat's questions can bring. Each type stands for a word of sql/queries/ask_news.sql
or ask_queues.sql.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker that lives, this one included, and what it works on. `kinds` is equal for workers
    that know the same kinds.
    """

    worker_id: str
    kinds: str
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody asked to cancel a job that runs on this worker."""

    job_id: int


@dataclass(frozen=True, slots=True)
class MuteExpired:
    """The worker that muted the queue's doorbell did not renew the mute: it died."""

    queue: str


@dataclass(frozen=True, slots=True)
class JobsOverdue:
    """A job of the queue has been due for a second or longer, the oldest for `due_for`, and nobody
    has claimed it.
    """

    queue: str
    due_for: timedelta


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
class LookAgain:
    """Whether another worker is dead can be said `after` so long, unless it is heard of before."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class ShortestLease:
    """No worker that lives, or may, has a shorter lease."""

    lease: timedelta


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


@dataclass(frozen=True, slots=True)
class NextTick:
    """The earliest schedule that may fire is due after `delay`, which is negative if it is late."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class LanesRead:
    """How long Postgres took to read the queues' lanes."""

    took: timedelta


QueueNews = MuteExpired | JobsOverdue | NextDue
"""News for the station of one queue."""
WorkerNews = CancelRequested | QueueNews
"""News for the worker's event loop."""
UpkeepNews = WorkerDied | JobHung | RowGone | DutyGiven | EndsUnreported
"""News for those who do upkeep in the heartbeat's thread."""
TickNews = NextTick
"""News for the timer of schedules, in the heartbeat's thread."""
BeatNews = LiveWorker | ShortestLease | LookAgain | LanesRead
"""News for the heartbeat itself."""
HeartbeatNews = WorkerNews | UpkeepNews | TickNews | BeatNews
