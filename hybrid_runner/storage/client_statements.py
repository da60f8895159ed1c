"""The storage calls of applications, one per file in sql/queries, named alike. They run on whatever can fetch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import asyncpg

from hybrid_runner.jsontext import decode
from hybrid_runner.models import Enqueued, JobStatus, JobView, NewJob, OnConflict, State
from hybrid_runner.storage.connections import Fetches
from hybrid_runner.storage.fetching import fetch, fetch_value


async def enqueue_job(on: Fetches, job: NewJob, on_conflict: OnConflict) -> Enqueued:
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
    )
    return Enqueued(*rows[0])


async def enqueue_many(on: Fetches, jobs: Sequence[NewJob], on_conflict: OnConflict) -> list[Enqueued]:
    """Store many jobs in one statement, in order."""
    if jobs and jobs[0].key is None and _are_alike(jobs):
        return await enqueue_alike(on, jobs[0], [job.payload for job in jobs])
    columns: list[Any] = [
        [job.kind for job in jobs],
        [job.payload for job in jobs],
        [job.queue for job in jobs],
        [job.priority for job in jobs],
        [job.run_at for job in jobs],
        [job.traceparent for job in jobs],
        [job.max_attempts for job in jobs],
        [job.timeout for job in jobs],
        [job.finish_by for job in jobs],
        [job.data for job in jobs],
        [job.delay for job in jobs],
    ]
    if any(job.key is not None for job in jobs):
        rows = await fetch(on, "enqueue_many_keyed", *columns, [job.key for job in jobs], on_conflict)
        return [Enqueued(*row) for row in rows]
    return [Enqueued(row[0], "inserted") for row in await fetch(on, "enqueue_many", *columns)]


async def enqueue_alike(on: Fetches, pattern: NewJob, payloads: Sequence[str]) -> list[Enqueued]:
    """Store one job without a key for each payload, in order; all else is the pattern's."""
    rows = await fetch(
        on,
        "enqueue_alike",
        pattern.kind,
        payloads,
        pattern.queue,
        pattern.priority,
        pattern.run_at,
        pattern.traceparent,
        pattern.max_attempts,
        pattern.timeout,
        pattern.finish_by,
        pattern.data,
        pattern.delay,
    )
    return [Enqueued(row[0], "inserted") for row in rows]


_all_but_payload = attrgetter(*(name for name in NewJob.__slots__ if name != "payload"))


def _are_alike(jobs: Sequence[NewJob]) -> bool:
    first = _all_but_payload(jobs[0])
    return all(_all_but_payload(job) == first for job in jobs)


async def get_job(on: Fetches, job_id: int) -> JobView | None:
    """One job, live or archived."""
    rows = await fetch(on, "get_job", job_id)
    return _view(rows[0]) if rows else None


async def list_jobs(on: Fetches, state: State | None, queue: str | None, kind: str | None, most: int) -> list[JobView]:
    """The newest jobs first."""
    return [_view(row) for row in await fetch(on, "list_jobs", state, queue, kind, most)]


async def watch_jobs(on: Fetches, ids: Sequence[int]) -> list[JobStatus]:
    """Where the awaited jobs stand."""
    return [
        JobStatus(row[0], row[1], State(row[2]), decode(row[3]), decode(row[4]), row[5])
        for row in await fetch(on, "watch_jobs", ids)
    ]


async def cancel_job(on: Fetches, job_id: int, reason: str | None) -> str:
    """cancelled, requested, finished or unknown."""
    return str(await fetch_value(on, "cancel_job", job_id, reason))


async def retry_job(on: Fetches, job_id: int) -> str:
    """queued, running, key_taken or unknown."""
    return str(await fetch_value(on, "retry_job", job_id))


async def amend_job(
    on: Fetches,
    job_id: int,
    version: int,
    payload: str | None,
    priority: int | None,
    run_at: datetime | None,
    data: str | None,
) -> str:
    """amended, stale, running, finished or unknown."""
    return str(await fetch_value(on, "amend_job", job_id, version, payload, priority, run_at, data))


async def pause_queue(on: Fetches, queue: str) -> bool:
    """False when it was paused already."""
    return bool(await fetch_value(on, "pause_queue", queue))


async def resume_queue(on: Fetches, queue: str) -> bool:
    """False when it was not paused."""
    return bool(await fetch_value(on, "resume_queue", queue))


def _view(row: asyncpg.Record) -> JobView:
    columns = dict(row)
    for name in ("payload", "data", "progress", "errors", "result"):
        columns[name] = decode(columns[name])
    return JobView(**(columns | {"state": State(columns["state"])}))
