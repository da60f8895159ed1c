"""Rows as values: what goes into the queue, what a worker is given, what anyone can read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from hybrid_runner.answers import EnqueueAnswer

OnConflict = Literal["exists", "replace", "error"]
LARGEST_ID = 2**63 - 1
_LONGEST_ID = len(str(LARGEST_ID))


def id_in(text: str) -> int | None:
    """The id that a stranger wrote; None if no job can have it: Postgres would refuse the question."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID):
        return None
    number = int(text)
    return number if number <= LARGEST_ID else None


class State(StrEnum):
    """Where a job stands: queued → running → completed, failed or cancelled; running → queued to try again."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether a job in this state has ended."""
        return self in _FINAL


MAX_ATTEMPTS = 5
"""How often a job may be tried when neither it nor its handler says so."""

_FINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job on its way in; `payload` and `data` are JSON texts."""

    kind: str
    payload: str = "{}"
    queue: str | None = None
    """None: the queue of the kind's handler where its code is at hand, else `default`."""
    key: str | None = None
    priority: int = 5
    run_at: datetime | None = None
    delay: timedelta | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    finish_by: datetime | None = None
    data: str | None = None
    traceparent: str | None = None


class Enqueued(NamedTuple):
    """What became of a job on its way in."""

    id: int
    enqueued: EnqueueAnswer
    """`inserted`; or what became of the live job that has its key: `exists` or `replaced`."""


class JobTrace(NamedTuple):
    """A job's place in its trace."""

    trace_id: int
    root_id: int
    """The span that stands for the whole job."""
    parent_id: int | None
    """The span of whoever enqueued it."""


@dataclass(slots=True)
class Claim:
    """The right to run one attempt of one job. Columns in the order of sql/queries/claim_jobs.sql."""

    id: int
    queue: str
    kind: str
    priority: int
    payload: str
    data: str | None
    key: str | None
    run_at: datetime
    max_attempts: int
    seconds: float | None
    """Its time-out."""
    finish_by: datetime | None
    traceparent: str | None
    attempt: int
    claim: int
    started_at: datetime
    created_at: datetime | None = None
    snoozes: int = 0
    completed_by_handler: bool = False
    """Written by the handler: it completed the job in its own transaction, so finding it gone is no surprise."""
    began: float = 0.0
    """Written by the executor: when the attempt was started, by the monotonic clock; 0: it never was."""
    ended: float = 0.0
    """Written by the executor: when its outcome was known."""
    trace: JobTrace | None = None
    """Written by tracing: the job is traced."""

    @property
    def pickup(self) -> timedelta:
        """How long the job was due before this claim took it."""
        return self.started_at - self.run_at


class Taken(NamedTuple):
    """What one look came to."""

    claims: list[Claim]
    at: datetime | None
    """The server's time of the look; None: the queue is paused, and nothing was looked at."""


class Registered(NamedTuple):
    """A worker is written down."""

    first_claim: int
    """Its claims count from here; those below are somebody else's."""
    took_over: bool
    """An earlier worker of the same name did not sign off."""


class Lost(NamedTuple):
    """A running job that its worker will not bring to an end."""

    claim: Claim
    worker_id: str | None


class Ended(NamedTuple):
    """A job that ended without a worker; `error` is the JSON text of its last one."""

    claim: Claim
    state: State
    finished_at: datetime
    error: str | None


class TakenEnds(NamedTuple):
    """Ends that nobody has reported; those that are no longer archived are among the ids alone."""

    ids: list[int]
    taken_at: datetime | None
    """When they were taken; None: there were none."""
    ends: list[Ended]


@dataclass(frozen=True, slots=True)
class Keep:
    """How long ended jobs are kept, by state; None leaves it as the database has it."""

    completed: timedelta | None = None
    failed: timedelta | None = None
    cancelled: timedelta | None = None

    def rules(self, kind: str) -> list[tuple[State, str, timedelta]]:
        """What is said here, as (state, kind, how long)."""
        said = ((State.COMPLETED, self.completed), (State.FAILED, self.failed), (State.CANCELLED, self.cancelled))
        return [(state, kind, keep) for state, keep in said if keep is not None]


PruneAnswer = Literal["dropped", "emptied", "rewritten", "merged", "kept", "blocked", "busy"]
"""What became of one partition of the archive: see sql/queries/prune.sql."""


class Pruned(NamedTuple):
    """What one call did to one partition of the archive."""

    what: PruneAnswer
    partition: str
    bytes: int

    @property
    def in_vain(self) -> bool:
        """Whether somebody was in the way."""
        return self.what == "blocked" or self.what == "busy"  # noqa: PLR1714  # of a set mypy checks nothing


class Culprit(NamedTuple):
    """Who lets tables grow."""

    name: str
    complaint: str


class QueueFigures(NamedTuple):
    """How one queue stands, as Postgres has it: see sql/queries/queue_figures.sql."""

    queue: str
    due: int
    scheduled: int
    running: int
    """As the workers' last heartbeats said."""
    oldest_due: float
    """Seconds."""
    paused: bool
    workers: int


class Wanted(NamedTuple):
    """What an autoscaler asks about one queue: see sql/queries/scale.sql."""

    queue: str
    backlog: int
    running: int
    slots: int
    workers: int
    wanted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """Every column of one job, live or archived, as `hybrid_runner.all_jobs` shows it."""

    id: int
    queue: str
    kind: str
    priority: int
    payload: Any
    data: Any
    key: str | None
    run_at: datetime
    max_attempts: int | None
    timeout: timedelta | None
    finish_by: datetime | None
    traceparent: str | None
    state: State
    attempt: int
    snoozes: int
    claim: int | None
    worker_id: str | None
    started_at: datetime | None
    progress: Any
    errors: Any
    version: int
    cancel_requested_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
    result: Any


class Standing(NamedTuple):
    """Where one job stands, and nothing of what it carries. Columns in the order of sql/queries/job_snapshots.sql."""

    id: int
    queue: str
    kind: str
    state: State
    version: int
    priority: int
    attempt: int
    snoozes: int
    max_attempts: int | None
    run_at: datetime
    worker_id: str | None
    started_at: datetime | None
    finished_at: datetime | None
    progress: str | None
    """JSON text."""
    cancel_requested_at: datetime | None
    created_at: datetime

    @property
    def claimed(self) -> tuple[int, datetime | None]:
        """Which run it is in, if it is in one."""
        return self.attempt, self.started_at


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What a waiter needs to know of a job; `result` is the stored JSON text."""

    id: int
    kind: str
    state: State
    progress: Any
    errors: Any
    result: str | None
    attempt: int = 0

    @property
    def error_type(self) -> str:
        """The type of the newest error, such as an exception's class; empty without one."""
        return self._newest("type")

    @property
    def error_message(self) -> str:
        """The message of the newest error; empty without one."""
        return self._newest("message")

    def _newest(self, name: str) -> str:
        newest = self.errors[-1] if isinstance(self.errors, list) and self.errors else None
        return str(newest.get(name) or "") if isinstance(newest, dict) else ""
