"""The storage calls of those who make schedules and look at them: each runs the file of sql/queries
that has its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from typing import Any

from hybrid_runner.errors import ConfigurationError, EnqueueError
from hybrid_runner.jsontext import decode
from hybrid_runner.model.schedules import (
    MOST_LISTED,
    DeclaredSchedule,
    ScheduleSummary,
    ScheduleView,
    Tick,
)
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.times import with_zone

_SUMMARY = [each.name for each in fields(ScheduleSummary)]


async def store_schedule(on: Fetches, schedule: DeclaredSchedule) -> datetime | None:
    """Make one that fires whether or not a worker declares it; its next tick, None if it never
    fires.
    """
    with _refusals():
        next_at: datetime | None = with_zone(await fetch_value(on, "store_schedule", *schedule))
        return next_at


async def remove_schedule(on: Fetches, name: str) -> bool:
    """Forget one; False: there is none of that name."""
    with _refusals():
        return bool(await fetch_value(on, "remove_schedule", name))


async def pause_schedule(on: Fetches, name: str) -> bool:
    """Let it fire no more; False: it was paused."""
    with _refusals():
        return bool(await fetch_value(on, "pause_schedule", name))


async def resume_schedule(on: Fetches, name: str) -> bool:
    """Let it fire again; False: it was not paused."""
    with _refusals():
        return bool(await fetch_value(on, "resume_schedule", name))


async def run_now(on: Fetches, name: str) -> tuple[int, bool]:
    """Store a job of it beside its ticks: the job's id; and whether that is one that lives already,
    and nothing was stored, since two of them may not.
    """
    with _refusals():
        [(job_id, lived)] = await fetch(on, "run_now", name)
    return job_id, lived


async def list_schedules(
    on: Fetches, most: int = MOST_LISTED, offset: int = 0
) -> list[ScheduleSummary]:
    """Schedules by name."""
    rows = await fetch(on, "list_schedules", None, most, offset)
    return [ScheduleSummary(**{name: with_zone(row[name]) for name in _SUMMARY}) for row in rows]


async def get_schedule(on: Fetches, name: str) -> ScheduleView | None:
    """One of them."""
    rows = await fetch(on, "list_schedules", name, 1, 0)
    if not rows:
        return None
    columns: dict[str, Any] = {name: with_zone(rows[0][name]) for name in _SUMMARY}
    return ScheduleView(**columns, payload=decode(rows[0]["payload"]))


async def next_ticks(on: Fetches, cron: str, timezone: str, most: int) -> Sequence[datetime]:
    """The next times that an expression names."""
    with _refusals():
        return [row[0] for row in await fetch(on, "next_ticks", cron, timezone, most)]


async def next_ticks_of(on: Fetches, name: str, most: int) -> Sequence[Tick]:
    """The next ticks of a schedule."""
    with _refusals():
        return [Tick(*row) for row in await fetch(on, "next_ticks_of", name, most)]


def no_schedule(name: str) -> ConfigurationError:
    """What is said of a name that no schedule has."""
    return ConfigurationError(f"there is no schedule {name!r}")


@contextmanager
def _refusals() -> Iterator[None]:
    """What Postgres says of bad input is the caller's to mend."""
    try:
        yield
    except EnqueueError as error:
        raise ConfigurationError(str(error)) from error
