"""What a worker is given: claims, and the jobs of workers that are gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from hybrid_runner.model.jobs import State


class JobTrace(NamedTuple):
    """A job's place in its trace."""

    trace_id: int
    root_id: int
    """The span that stands for the whole job."""
    parent_id: int | None
    """The span of whoever enqueued it."""


@dataclass(slots=True)
class Claim:
    """The right to run one attempt of one job. Columns in the order of
    sql/queries/claim_jobs.sql.
    """

    id: int
    queue: str
    kind: str
    priority: int
    payload: str
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
    completed_by_handler: bool = False
    """Written by the handler: it completed the job in its own transaction, so finding it gone is no
    surprise.
    """
    began: float = 0.0
    """Written by the executor: when the attempt was started, by the monotonic clock; 0: it never
    was.
    """
    ended: float = 0.0
    """Written by the executor: when its outcome was known."""
    trace: JobTrace | None = None
    """Written by tracing: the job is traced."""

    @property
    def pickup(self) -> timedelta:
        """How long the job was due before this claim took it."""
        return self.started_at - self.run_at


class ClaimResult(NamedTuple):
    """What one look came to."""

    claims: list[Claim]
    looked_at: datetime | None
    """The server's time of the look; None: the queue is paused, and nothing was looked at."""


class Registered(NamedTuple):
    """A worker is written down."""

    first_claim: int
    """Its claims count from here; those below are somebody else's."""
    took_over: bool
    """An earlier worker of the same name did not sign off."""


class OrphanedJob(NamedTuple):
    """A running job that its worker will not bring to an end."""

    claim: Claim
    worker_id: str | None


class CancelledInQueue(NamedTuple):
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
    ends: list[CancelledInQueue]
