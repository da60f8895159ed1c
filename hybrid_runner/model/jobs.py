"""Jobs as values: new ones, and what can be read of stored ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.answers import EnqueueAnswer

OnConflict = Literal["exists", "replace", "error", "follow", "collect"]
"""What if a live job has the key: docs/keys.md."""

LARGEST_ID = 2**63 - 1
_LONGEST_ID = len(str(LARGEST_ID))


def parse_job_id(text: str) -> int | None:
    """A job id from outside; None if no job can have it."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID):
        return None
    number = int(text)
    return number if number <= LARGEST_ID else None


def check_signal_key(key: object) -> None:
    """ConfigurationError unless it can be the key of a signal."""
    if not isinstance(key, str) or "\x00" in key or not 1 <= _length(key) <= 512:
        raise ConfigurationError("the key of a signal must be a text of 1 to 512 bytes")


def _length(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:  # half of a surrogate pair
        return 0


class State(StrEnum):
    """queued → running → completed, failed or cancelled; running → queued to try again."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether a job in this state has ended."""
        return self in _FINAL


LARGEST_JOB = 2 * 1024 * 1024
"""Bytes of a job's payload and data together, at most."""

MAX_ATTEMPTS = 5
"""Attempts of a job when neither it nor its handler says how many."""


_FINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job that is to be stored; `payload` and `data` are JSON texts."""

    kind: str
    payload: str = "{}"
    queue: str | None = None
    """None: the queue of the kind's handler if this process has it, else `default`."""
    key: str | None = None
    priority: int = 5
    run_at: datetime | None = None
    delay: timedelta | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    finish_by: datetime | None = None
    data: str | None = None
    traceparent: str | None = None
    max_snoozes: int | None = None
    max_duration: timedelta | None = None
    finish_within: timedelta | None = None
    start_by: datetime | None = None


class KeyLimits(NamedTuple):
    """How far a call may go with a key; None: no limit, and for items what SQL says."""

    max_wait: timedelta | None = None
    """So long after the first call it is due, however often later ones put it off."""
    unique_for: timedelta | None = None
    """For so long the key is taken, also once the job has ended."""
    max_items: int | None = None
    """So many items one job collects."""


NO_LIMITS = KeyLimits()


class Enqueued(NamedTuple):
    """What became of a job that was to be stored."""

    id: int
    enqueued: EnqueueAnswer
    """`inserted`, or what became of the job because another one has its key."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How long ended jobs are kept, by state; None leaves it as the database has it."""

    completed: timedelta | None = None
    failed: timedelta | None = None
    cancelled: timedelta | None = None

    def rules(self, kind: str) -> list[tuple[State, str, timedelta]]:
        """The times that are set, as (state, kind, how long)."""
        times = (
            (State.COMPLETED, self.completed),
            (State.FAILED, self.failed),
            (State.CANCELLED, self.cancelled),
        )
        return [(state, kind, keep) for state, keep in times if keep is not None]


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
    start_by: datetime | None
    max_snoozes: int | None
    max_duration: timedelta | None
    finish_within: timedelta | None
    traceparent: str | None
    enqueued_by: str
    """The login that put it in."""
    state: State
    attempt: int
    snoozes: int
    began_at: datetime | None
    """When its first attempt started; None until that was put back or the job has ended."""
    waits_for: str | None
    """The key of the signal that it waits for."""
    claim: int | None
    worker_id: str | None
    started_at: datetime | None
    progress: Any
    errors: Any
    history: Any
    """The last attempts that were put back, and why."""
    version: int
    cancel_requested_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
    result: Any
    followed_by: Sequence[int] | None
    """The jobs that were stored by its end."""
    source: int | None = None
    """The attached table that it came from."""
    row_key: str | None = None
    schedule: str | None = None
    """The schedule that made it."""
    tick: datetime | None = None
    """The time of that schedule that it is for."""
    table_name: str | None = None
    """As it was when it was attached."""
    behind: int | None = None
    """The job that has its key: it begins once that one has ended."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Columns that Postgres could not read, and why; they are None here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """One job of a list: without what it carries, which may be large."""

    id: int
    queue: str
    kind: str
    priority: int
    key: str | None
    run_at: datetime
    max_attempts: int | None
    timeout: timedelta | None
    finish_by: datetime | None
    traceparent: str | None
    enqueued_by: str
    state: State
    attempt: int
    snoozes: int
    waits_for: str | None
    """The key of a signal."""
    claim: int | None
    worker_id: str | None
    started_at: datetime | None
    version: int
    cancel_requested_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
    progress: Any
    error: Any
    """The newest one."""
    result: str | None
    """The first 200 characters of its JSON text."""
    source: int | None = None
    """The attached table that it came from."""
    row_key: str | None = None
    table_name: str | None = None
    """As it was when it was attached."""
    behind: int | None = None
    """The job that has its key: it begins once that one has ended."""


class JobSnapshot(NamedTuple):
    """The state of one job without its payload, result and errors.

    Fields in the order of sql/queries/job_snapshots.sql.
    """

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
    followed_by: list[int] | None = None
    """The jobs that its end has stored: follow-ups, and what its kind names as `on_end`."""

    @property
    def claimed(self) -> tuple[int, datetime | None]:
        """Equal as long as the job is in the same run."""
        return self.attempt, self.started_at


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What `handle.wait()` needs to know of a job; `result` is the stored JSON text."""

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
