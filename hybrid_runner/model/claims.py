"""What Postgres gives a worker: claims, its registration, and the jobs of dead workers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hybrid_runner.model.jobs import State
from hybrid_runner.model.signals import AttemptSignals
from hybrid_runner.model.sources import ShownRow
from hybrid_runner.model.uses import Uses


class JobTrace(NamedTuple):
    """A job's place in its trace."""

    trace_id: int
    root_id: int
    """The span that stands for the whole job."""
    parent_id: int | None
    """The span in which it was enqueued."""


@dataclass(slots=True)
class Claim:
    """The right to run one attempt of one job. Columns in the order of
    sql/queries/claim_jobs.sql.
    """

    id: int
    queue: str
    kind: str
    priority: int
    payload: str | None
    """None: it is large, and is read when there is room for it; `data` as well."""
    data: str | None
    key: str | None
    run_at: datetime
    max_attempts: int
    timeout_seconds: float | None
    finish_by: datetime | None
    traceparent: str | None
    attempt: int
    number: int
    started_at: datetime
    created_at: datetime | None = None
    snoozes: int = 0
    began_at: datetime | None = None
    """When its first attempt started; None: this is the first one."""
    max_snoozes: int | None = None
    max_duration_seconds: float | None = None
    finish_within_seconds: float | None = None
    waits_for: str | None = None
    """The key of the signal that it was put back to wait for."""
    source: int | None = None
    """The attached table whose row it is about."""
    row_key: str | None = None
    schedule: str | None = None
    """The schedule that made it."""
    tick: datetime | None = None
    """The time of that schedule that it is for; None if somebody ran it by hand."""
    start_by: datetime | None = None
    shown: ShownRow | None = None
    """Written by the executor: what became of that row when the job began; without the row."""
    signals: AttemptSignals | None = None
    """Written by the executor if the job waited, and by its handler if that calls `Job.signal`."""
    completed_by_handler: bool = False
    """Written by the handler: it completed the job in its own transaction, so the row
    may be gone.
    """
    uses: Uses | None = None
    """Written by the handler: what the values of its memory did."""
    began: float = 0.0
    """Written by the executor: when the attempt started, by the monotonic clock; 0: it did not."""
    ended: float = 0.0
    """Written by the executor: when the outcome was known, by the monotonic clock."""
    asked_at: float | None = None
    """When Postgres was asked for this claim, by the monotonic clock."""
    trace: JobTrace | None = None
    """Written by tracing, if the job is traced."""
    next_trace: JobTrace | None = None
    """Written by tracing, if the job repeats and its next run is traced."""

    @property
    def pickup(self) -> timedelta:
        """How long the job was due before this claim took it."""
        return self.started_at - self.run_at

    def server_time(self, monotonic: float) -> datetime:
        """What time the server's clock shows, as far as this claim tells: the worker's own clock
        may be minutes off.
        """
        if self.asked_at is None:
            return datetime.now(UTC)
        return self.started_at + timedelta(seconds=monotonic - self.asked_at)


class ClaimResult(NamedTuple):
    """What one look found."""

    claims: list[Claim]
    looked_at: datetime | None
    """The server's time of the look; None: the queue is paused, and nothing was looked at."""


class Registered(NamedTuple):
    """What Postgres answers when a worker registers."""

    first_claim: int
    """The number of its first claim; lower numbers belong to other workers."""
    took_over: bool
    """An earlier worker of the same name did not sign off."""


class OrphanedJob(NamedTuple):
    """A running job that no live worker will bring to an end."""

    claim: Claim
    worker_id: str | None
    found_at: datetime
    """By the server's clock."""


class CancelledInQueue(NamedTuple):
    """A job that `cancel()` ended in the queue; `error` is the JSON text of its last error."""

    claim: Claim
    state: State
    finished_at: datetime
    error: str | None


class TakenEnds(NamedTuple):
    """Ends that are to be reported; of jobs that are no longer archived there is the id alone."""

    ids: list[int]
    taken_at: datetime | None
    """When they were taken; None: there are none."""
    ends: list[CancelledInQueue]
