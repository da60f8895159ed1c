"""The storage calls of those who read how jobs move, and what says that somebody does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import NamedTuple

import asyncpg

from hybrid_runner.model.jobs import JobSnapshot, State
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value


class NewIds(NamedTuple):
    """What was put in lately."""

    id: int
    """The newest of all."""
    wanted: list[int]
    """Ascending."""


async def announce_readers(on: Fetches, lasting: timedelta) -> None:
    """Somebody reads, for so long; workers that listen are notified."""
    await fetch(on, "announce_readers", round(lasting.total_seconds() * 1000))


async def readers_left(on: Fetches) -> timedelta:
    """For how much longer somebody reads; zero: nobody does."""
    return timedelta(milliseconds=int(await fetch_value(on, "readers_left")))


async def job_snapshots(on: Fetches, ids: Sequence[int]) -> list[JobSnapshot]:
    """Where these jobs stand; those that do not exist are left out."""
    return [_standing(row) for row in await fetch(on, "job_snapshots", ids)]


async def find_new_jobs(
    on: Fetches,
    behind: int,
    queues: Sequence[str] | None,
    kinds: Sequence[str] | None,
    deepest: int,
) -> NewIds:
    """The live jobs behind an id; None: of any queue, of any kind."""
    row = (await fetch(on, "find_new_jobs", behind, queues, kinds, deepest))[0]
    return NewIds(row["newest"], row["wanted"])


def _standing(row: asyncpg.Record) -> JobSnapshot:
    standing = JobSnapshot(*row[: len(JobSnapshot._fields)])
    return standing._replace(
        state=State(standing.state),
        run_at=standing.run_at.replace(
            tzinfo=UTC
        ),  # infinity comes without a zone, all else in this one
    )
