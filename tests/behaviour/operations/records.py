"""What clients were answered, and what is in the tables in the end, as values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hybrid_runner.storage.connections.connection import Connection

SCHEMA = """
CREATE SCHEMA operations;
CREATE TABLE operations.runs (id bigint, claim bigint, attempt int, mark bigint);
CREATE TABLE operations.effects (id bigint, claim bigint);
"""
_ENDED = """
SELECT id, kind, queue, priority, state::text, (payload ->> 'mark')::bigint AS mark, attempt,
    max_attempts, snoozes, claim, run_at, started_at, result::text
FROM hybrid_runner.archive WHERE kind NOT IN ('child', 'clean_up') AND source IS NULL ORDER BY id
"""
_FOLLOWERS = """
SELECT kind, coalesce(payload ->> 'of', payload ->> 'id')::bigint AS of,
    (payload ->> 'claim')::bigint AS claim, payload ->> 'state' AS said
FROM hybrid_runner.archive
WHERE kind IN ('child', 'clean_up') AND state = 'completed'
ORDER BY id
"""
_LEFT = "SELECT id, kind, state::text FROM hybrid_runner.jobs WHERE source IS NULL ORDER BY id"


@dataclass(slots=True)
class Known:
    """What the clients know of one job that they committed."""

    claimable: datetime
    """No earlier could it be seen: when its transaction had committed, by the server's clock."""
    marks: set[int] = field(default_factory=set)
    """What its payload may be."""
    touched: bool = False
    """It was cancelled, retried, amended or replaced, or somebody tried to."""
    answers: list[str] = field(default_factory=list)
    """Of committed cancels and retries, in no order."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A row of the archive."""

    id: int
    kind: str
    queue: str
    priority: int
    state: str
    mark: int
    attempt: int
    max_attempts: int | None
    """None: it never ran."""
    snoozes: int
    claim: int | None
    run_at: datetime
    started_at: datetime | None
    result: Any = None


@dataclass(frozen=True, slots=True)
class Run:
    """That a handler began."""

    id: int
    claim: int
    attempt: int
    mark: int


@dataclass(frozen=True, slots=True)
class Follower:
    """A job that the end of another has stored, and that ran."""

    kind: str
    of: int
    claim: int | None
    """Under which that one ended, as this one was told."""
    said: str | None
    """How that one ended, as this one was told."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal that was committed, by then, for a job."""

    job_id: int
    sent_before: datetime


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue was surely paused from then to then, by the server's clock."""

    queue: str
    since: datetime
    until: datetime


@dataclass
class Records:
    """All that the laws judge."""

    known: dict[int, Known] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    """Ids that rolled-back transactions were given."""
    pauses: list[Pause] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    left: list[tuple[int, str, str]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    effects: list[tuple[int, int]] = field(default_factory=list)
    followers: list[Follower] = field(default_factory=list)
    signals: dict[int, Signal] = field(default_factory=dict)
    """By their marks."""
    gathering: list[int] = field(default_factory=list)
    """Committed jobs that wait for signals."""

    async def read(self, database: Connection) -> None:
        """Add what is in the tables."""
        self.ended = [
            replace(ended, result=json.loads(ended.result or "null"))
            for ended in (Ended(*row) for row in await database.fetch(_ENDED))
        ]
        self.followers = [Follower(*row) for row in await database.fetch(_FOLLOWERS)]
        self.left = [tuple(row) for row in await database.fetch(_LEFT)]
        self.runs = [
            Run(*row)
            for row in await database.fetch("SELECT id, claim, attempt, mark FROM operations.runs")
        ]
        self.effects = [
            tuple(row) for row in await database.fetch("SELECT id, claim FROM operations.effects")
        ]
