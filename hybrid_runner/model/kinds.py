"""Kinds as Postgres has them: what workers declare, for whoever does not have their code."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from hybrid_runner.model.claims import Claim


class DeclaredKind(NamedTuple):
    """What a worker says of a kind when it starts: one row of hybrid_runner.kinds."""

    name: str
    queue: str
    on_end: str | None = None
    max_snoozes: int | None = None
    max_duration: timedelta | None = None
    finish_within: timedelta | None = None
    payload_schema: str | None = None
    """JSON text; None: any payload, or one whose schema is too large to be kept."""


class KindFound(NamedTuple):
    """Where jobs of a kind go whose code is not at hand."""

    kind: str
    queue: str
    meant: str | None
    """No worker has declared the kind, and this one looks like it."""


@dataclass(frozen=True, slots=True)
class KindView:
    """One kind that a worker has declared, as `app.list_kinds()` shows it."""

    name: str
    queue: str
    on_end: str | None
    max_snoozes: int | None
    max_duration: timedelta | None
    finish_within: timedelta | None
    payload_schema: str | None
    seen_at: datetime
    """When a worker last had its code, exact to an hour."""
    workers: int
    """How many live workers have its code and work on its queue."""


class ExpiredJob(NamedTuple):
    """A job that waits although its time is over, of a kind that no live worker knows."""

    claim: Claim
    """As if it were claimed; without what it carries."""
    version: int
    found_at: datetime
    """By the server's clock."""
    reason: str | None
    """Its last error."""


class ExpiredJobs(NamedTuple):
    """What one look at the jobs of a kind found."""

    jobs: list[ExpiredJob]
    last_id: int | None
    """Behind which job to go on; None: all were read."""


@dataclass(frozen=True, slots=True)
class UnknownKind:
    """Due jobs that no live worker of their queue can run."""

    queue: str
    kind: str
    due: int
    """How many were found; where jobs are many, there may be more."""
    oldest_due: float
    """For how many seconds the first of them has been due."""
    elsewhere: bool
    """Live workers of other queues know the kind."""
    meant: str | None
    """A declared kind that looks like it; None: there is none, or it is declared itself."""

    def __str__(self) -> str:
        jobs = f"{self.due:,} due {'job' if self.due == 1 else 'jobs'} of kind {self.kind!r}"
        if self.elsewhere:
            return f"{jobs} in queue {self.queue!r}, whose workers do not know it: others do"
        guess = f": was {self.meant!r} meant?" if self.meant else ""
        return f"{jobs} in queue {self.queue!r}, which no live worker knows{guess}"
