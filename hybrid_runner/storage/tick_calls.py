"""The storage calls about ticks of schedules: each runs the file of sql/queries of its name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from hybrid_runner.model.schedules import DeclaredSchedule
from hybrid_runner.model.ticks import FiredTick, ScheduleMeasures, TickOutcome
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value


async def declare_schedules(on: Fetches, schedules: Sequence[DeclaredSchedule]) -> dict[str, str]:
    """Store what an application declares; what is stored already and the same is left alone.

    Returns those that cannot be written now, by name and why: an open transaction has the name.
    """
    if not schedules:
        return {}
    columns = map(list, zip(*schedules, strict=True))
    rows = await fetch(on, "declare_schedules", *columns)
    return {row["name"]: row["problem"] for row in rows}


async def fire_schedules(on: Fetches, most: int) -> list[FiredTick]:
    """Make the jobs of schedules that are due, of so many at most; what became of each."""
    return [
        FiredTick(name, tick, TickOutcome(outcome), ticks, job_id, late)
        for name, tick, outcome, ticks, job_id, late in await fetch(on, "fire_schedules", most)
    ]


async def next_tick(on: Fetches, *, past: bool = True) -> timedelta | None:
    """How long until the earliest tick of all schedules that may fire; None: there is none.

    Without `past`, of those that are not due yet.
    """
    delay: timedelta | None = await fetch_value(on, "next_tick", past)
    return delay


async def measure_schedules(on: Fetches, most: int) -> ScheduleMeasures:
    """How the schedules stand; of those that are in disorder so many are named."""
    (row,) = await fetch(on, "measure_schedules", most)
    active, paused, undeclared, next_in, overdue, latest, failed, unknown_kinds = row
    return ScheduleMeasures(
        active, paused, undeclared, next_in, overdue, latest, tuple(failed), tuple(unknown_kinds)
    )
