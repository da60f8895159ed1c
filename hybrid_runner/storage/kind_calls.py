"""The storage calls about kinds: each runs the file of sql/queries that has its name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from hybrid_runner.errors import DatabaseError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import MAX_ATTEMPTS
from hybrid_runner.model.kinds import (
    DeclaredKind,
    ExpiredJob,
    ExpiredJobs,
    KindFound,
    KindView,
    UnknownKind,
)
from hybrid_runner.storage.connections.statements import Fetches, fetch
from hybrid_runner.storage.times import with_zone


async def declare_kinds(on: Fetches, kinds: Sequence[DeclaredKind]) -> None:
    """Write down what this worker says of its kinds."""
    if kinds:
        await fetch(on, "declare_kinds", *map(list, zip(*kinds, strict=True)))


async def find_circle(on: Fetches, kinds: Sequence[DeclaredKind]) -> list[str]:
    """The way on which kinds would follow each other's ends for ever if these were declared; empty:
    there is none.
    """
    if not any(kind.on_end for kind in kinds):
        return []
    names, on_ends = [kind.name for kind in kinds], [kind.on_end for kind in kinds]
    rows = await fetch(on, "find_circle", names, on_ends)
    return list(rows[0]["names"]) if rows else []


async def look_up_kinds(on: Fetches, kinds: Collection[str]) -> list[KindFound]:
    """Of each of these kinds where its jobs go, and whether it looks like a typo."""
    return [KindFound(*row) for row in await fetch(on, "look_up_kinds", [*kinds])]


async def list_kinds(on: Fetches) -> list[KindView]:
    """All kinds that workers have declared, by name."""
    return [KindView(*map(with_zone, row)) for row in await fetch(on, "list_kinds")]


async def unknown_kinds(on: Fetches, due_for: timedelta) -> list[UnknownKind]:
    """Kinds of which jobs have been due for longer and that no live worker of their queue knows."""
    return [UnknownKind(*row) for row in await fetch(on, "unknown_kinds", due_for)]


async def note_known_kinds(on: Fetches, forgotten_after: timedelta) -> None:
    """Note which kinds live workers know, and forget what nobody has known for so long."""
    await fetch(on, "note_known_kinds", forgotten_after)


async def find_expired_kinds(on: Fetches, most: int, behind: str = "") -> list[str]:
    """Kinds of jobs that wait and may have a limit of time, and that no live worker knows; by name,
    from behind one on.
    """
    return [row[0] for row in await fetch(on, "find_expired_kinds", most, behind)]


async def find_expired(
    on: Fetches, kind: str, after_id: int, past: timedelta, most: int
) -> ExpiredJobs:
    """Jobs of a kind that wait although their time has been over for longer than `past`, among the
    next `most` behind `after_id`.
    """
    try:
        rows = await fetch(
            on, "find_expired", kind, after_id, past, most, True
        )  # as the SQL has it
    except DatabaseError:  # one of them cannot be read
        rows = await fetch(on, "find_expired", kind, after_id, past, most, False)  # as above
    jobs = [_expired(*map(with_zone, row)) for row in rows if row["id"] is not None]
    return ExpiredJobs(jobs, rows[0]["last_id"])


def _expired(
    _last_id: int | None,
    job_id: int,
    queue: str,
    kind: str,
    priority: int,
    key: str | None,
    run_at: datetime,
    finish_by: datetime | None,
    traceparent: str | None,
    attempt: int,
    created_at: datetime,
    snoozes: int,
    began_at: datetime | None,
    max_duration: float | None,
    version: int,
    found_at: datetime,
    reason: str | None,
) -> ExpiredJob:
    claim = Claim(
        job_id,
        queue,
        kind,
        priority,
        None,
        None,
        key,
        run_at,
        MAX_ATTEMPTS,
        None,
        finish_by,
        traceparent,
        attempt + 1,  # the one that cannot begin counts
        0,
        found_at,
        created_at,
        snoozes,
        began_at,
        max_duration_seconds=max_duration,
    )
    return ExpiredJob(claim, version, found_at, reason)


async def end_expired(on: Fetches, ended: Sequence[tuple[ExpiredJob, str]]) -> set[int]:
    """End these jobs as failed, each with an error; the ids of those that still waited."""
    ids = [job.claim.id for job, _ in ended]
    versions = [job.version for job, _ in ended]
    rows = await fetch(on, "end_expired", ids, versions, [error for _, error in ended])
    return {row[0] for row in rows}
