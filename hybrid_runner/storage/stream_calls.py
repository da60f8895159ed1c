"""The storage calls of event streams: what changed, and that somebody reads it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import asyncpg

from hybrid_runner.errors import DatabaseError
from hybrid_runner.model.jobs import JobSnapshot, State
from hybrid_runner.model.messages import Channel, JobsChanged, changes_channel
from hybrid_runner.storage.connections.statements import Fetches, fetch
from hybrid_runner.storage.times import with_zone


class NewIds(NamedTuple):
    """The jobs that were inserted since a certain id."""

    id: int
    """The newest id of all jobs."""
    wanted: list[int]
    """The new ones that match, ascending."""


async def announce_readers(on: Fetches, lasting: timedelta) -> None:
    """Say that somebody reads for so long; workers that listen are notified."""
    await fetch(on, "announce_readers", round(lasting.total_seconds() * 1000))


class StreamReaders(NamedTuple):
    """Whether event streams are read."""

    left: timedelta
    """For how much longer; zero: nobody does."""
    channel: Channel[JobsChanged]
    """Where they hear of changes."""


async def stream_readers(on: Fetches) -> StreamReaders:
    """For how much longer somebody reads event streams, and where they hear of changes."""
    [(left_ms, channel)] = await fetch(on, "stream_readers")
    return StreamReaders(timedelta(milliseconds=left_ms), changes_channel(channel))


async def job_snapshots(on: Fetches, ids: Sequence[int]) -> list[JobSnapshot]:
    """A snapshot of each of these jobs that exists."""
    try:
        rows = await fetch(on, "job_snapshots", ids, True)  # as the SQL has it
    except DatabaseError:  # the progress of one of them cannot be read
        rows = await fetch(on, "job_snapshots", ids, False)  # as above
    return [_snapshot(row) for row in rows]


async def find_new_jobs(
    on: Fetches,
    behind: int,
    queues: Sequence[str] | None,
    kinds: Sequence[str] | None,
    deepest: int,
) -> NewIds:
    """The live jobs with larger ids, of these queues and kinds; None: of any.

    At most `deepest` ids back from the newest are read.
    """
    row = (await fetch(on, "find_new_jobs", behind, queues, kinds, deepest))[0]
    return NewIds(row["newest"], row["wanted"])


def _snapshot(row: asyncpg.Record) -> JobSnapshot:
    snapshot = JobSnapshot(*row[: len(JobSnapshot._fields)])
    return snapshot._replace(state=State(snapshot.state), run_at=with_zone(snapshot.run_at))
