"""The storage calls of applications: each runs the file of sql/queries that has its name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, repeat
from typing import Any, cast

import asyncpg

from hybrid_runner.errors import DatabaseError, DatabaseUnavailable
from hybrid_runner.jsontext import decode
from hybrid_runner.model.answers import AmendAnswer, CancelAnswer, RetryAnswer
from hybrid_runner.model.jobs import (
    NO_LIMITS,
    Enqueued,
    JobStatus,
    JobSummary,
    JobView,
    KeyLimits,
    NewJob,
    OnConflict,
    State,
)
from hybrid_runner.storage.alike import Alike, alike
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.times import with_zone


async def enqueue_job(
    on: Fetches,
    job: NewJob,
    on_conflict: OnConflict,
    limits: KeyLimits = NO_LIMITS,
) -> Enqueued:
    """Store one job."""
    rows = await fetch(
        on,
        "enqueue_job",
        job.kind,
        job.payload,
        job.queue,
        job.key,
        job.priority,
        job.run_at,
        job.delay,
        job.max_attempts,
        job.timeout,
        job.finish_by,
        job.data,
        job.traceparent,
        on_conflict,
        job.max_snoozes,
        job.max_duration,
        job.finish_within,
        job.start_by,
        *limits,
    )
    return Enqueued(*rows[0])


async def enqueue_many(
    on: Fetches, jobs: Sequence[NewJob], on_conflict: OnConflict, limits: KeyLimits = NO_LIMITS
) -> list[Enqueued]:
    """Store many jobs in one statement, in order."""
    return await enqueue_groups(on, alike(jobs), on_conflict, limits)


async def enqueue_groups(
    on: Fetches,
    groups: Sequence[Alike],
    on_conflict: OnConflict,
    limits: KeyLimits = NO_LIMITS,
) -> list[Enqueued]:
    """Store groups of jobs in one statement, in order.

    Of a single group without keys, what its jobs share is sent once.
    """
    match groups:
        case []:
            return []
        case [Alike(pattern, payloads, None)]:
            rows = await fetch(on, "enqueue_alike", *_pattern(pattern, payloads))
            return [Enqueued(row[0], "inserted") for row in rows]
    columns = _columns(groups)
    if any(group.keys is not None for group in groups):
        keys = [key for group in groups for key in group.keys or [None] * len(group.payloads)]
        rows = await fetch(on, "enqueue_many_keyed", *columns, keys, on_conflict, *limits)
        return [Enqueued(*row) for row in rows]
    return [Enqueued(row[0], "inserted") for row in await fetch(on, "enqueue_many", *columns)]


def _pattern(job: NewJob, payloads: Sequence[str]) -> list[Any]:
    """The arguments of sql/queries/enqueue_alike.sql."""
    return [
        job.kind,
        payloads,
        job.queue or "default",
        job.priority,
        job.run_at,
        job.traceparent,
        job.max_attempts,
        job.timeout,
        job.finish_by,
        job.data,
        job.delay,
        job.max_snoozes,
        job.max_duration,
        job.finish_within,
        job.start_by,
    ]


def _columns(groups: Sequence[Alike]) -> list[list[Any] | None]:
    """The arguments of sql/queries/enqueue_many.sql: for each of `_pattern` a value per job, None
    for a budget that no job has.
    """
    counts = [len(group.payloads) for group in groups]
    shared = [*zip(*(_pattern(group.pattern, ()) for group in groups), strict=True)]
    columns: list[list[Any] | None] = [
        list(chain.from_iterable(map(repeat, values, counts))) for values in shared
    ]
    columns[1] = list(chain.from_iterable(group.payloads for group in groups))
    for number in range(-_BUDGETS, 0):
        if not any(value is not None for value in shared[number]):
            columns[number] = None
    return columns


_BUDGETS = 4
"""How many of the last arguments are budgets: few jobs have any."""
_OUT_OF_MEMORY = "53200"
CARRIED = ("payload", "data", "progress", "errors", "history", "result")
"""The columns of a job that may be large."""


async def get_job(on: Fetches, job_id: int, carried: Collection[str] = CARRIED) -> JobView | None:
    """One job, live or archived; those of the `CARRIED` columns that are not asked for are None."""
    try:
        rows = await fetch(on, "get_job", job_id, [*carried])
    except DatabaseUnavailable as error:
        if error.sqlstate != _OUT_OF_MEMORY:
            raise
    except DatabaseError:
        pass
    else:
        return _view(dict(rows[0])) if rows else None
    return await _get_readable(on, job_id, carried)


async def _get_readable(on: Fetches, job_id: int, carried: Collection[str]) -> JobView | None:
    """One of its columns cannot be read: all others, one by one."""
    rows = await fetch(on, "get_job", job_id, [])
    if not rows:
        return None
    columns, unreadable = dict(rows[0]), dict[str, str]()
    for name in carried:
        try:
            [row] = await fetch(on, "get_job", job_id, [name])
        except (DatabaseError, DatabaseUnavailable) as error:
            unreadable[name] = str(error)
        except ValueError:  # it has ended meanwhile, and is forgotten
            return None
        else:
            columns[name] = row[name]
    return replace(_view(columns), unreadable=unreadable)


async def get_public_job(on: Fetches, job_id: int) -> dict[str, Any] | None:
    """The columns of one job that everybody may see: not its key, nor what it carries."""
    rows = await fetch(on, "get_public_job", job_id)
    if not rows:
        return None
    row = rows[0]
    return dict(row) | {name: decode(row[name]) for name in ("progress", "history")}


async def list_jobs(
    on: Fetches, state: State | None, queue: str | None, kind: str | None, most: int
) -> list[JobSummary]:
    """The newest jobs first."""
    try:
        rows = await fetch(on, "list_jobs", state, queue, kind, most, True)  # as the SQL has it
    except DatabaseError:  # one of them cannot be read
        rows = await fetch(on, "list_jobs", state, queue, kind, most, False)  # as above
    return [_summary(row) for row in rows]


async def watch_jobs(on: Fetches, ids: Sequence[int]) -> list[JobStatus]:
    """The status of each of these jobs that exists."""
    return [
        JobStatus(row[0], row[1], State(row[2]), decode(row[3]), decode(row[4]), row[5], row[6])
        for row in await fetch(on, "watch_jobs", ids)
    ]


async def cancel_job(on: Fetches, job_id: int, reason: str | None) -> CancelAnswer:
    """End a queued job, ask a running one to stop."""
    return cast("CancelAnswer", await fetch_value(on, "cancel_job", job_id, reason))


async def retry_job(on: Fetches, job_id: int) -> RetryAnswer:
    """Run a finished job again, a waiting one now."""
    return cast("RetryAnswer", await fetch_value(on, "retry_job", job_id))


async def amend_job(
    on: Fetches,
    job_id: int,
    version: int,
    payload: str | None,
    priority: int | None,
    run_at: datetime | None,
    data: str | None,
) -> AmendAnswer:
    """Change a queued job if it is still at this version."""
    return cast(
        "AmendAnswer",
        await fetch_value(on, "amend_job", job_id, version, payload, priority, run_at, data),
    )


async def pause_queue(on: Fetches, queue: str) -> bool:
    """Stop claims from the queue; False when it was paused already."""
    return bool(await fetch_value(on, "pause_queue", queue))


async def resume_queue(on: Fetches, queue: str) -> bool:
    """Allow claims again; False when the queue was not paused."""
    return bool(await fetch_value(on, "resume_queue", queue))


def _summary(row: asyncpg.Record) -> JobSummary:
    columns = {name: with_zone(value) for name, value in row.items()}
    for name in ("progress", "error"):
        columns[name] = decode(columns[name])
    return JobSummary(**(columns | {"state": State(columns["state"])}))


def _view(columns: dict[str, Any]) -> JobView:
    columns = {name: with_zone(value) for name, value in columns.items()}
    for name in CARRIED:
        columns[name] = decode(columns[name])
    return JobView(**(columns | {"state": State(columns["state"])}))
