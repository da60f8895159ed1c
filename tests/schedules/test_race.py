"""Many sessions fire at once, and none of them leads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from hybrid_runner.storage.connections.connection import Connection
from tests.support.tick_clock import NOON, Schedules

SESSIONS = 8
SCHEDULES = 60
SECONDS = 8
FIRE = "SELECT schedule, tick, outcome FROM hybrid_runner.fire_schedules(7)"


async def test_sessions_that_race_make_one_job_a_tick(
    schedules: Schedules, another: Callable[[], Awaitable[Connection]]
) -> None:
    await schedules.connection.execute(
        "INSERT INTO hybrid_runner.schedules (name, kind, every, overlap)"
        " SELECT 's' || n, 'work', '1 second', 'allow' FROM generate_series(1, $1::int) AS n",
        SCHEDULES,
    )
    sessions = [await another() for _ in range(SESSIONS)]

    async def fire(session: Connection) -> list[tuple[Any, ...]]:
        """Until nothing is left to it."""
        fired: list[tuple[Any, ...]] = []
        while rows := await session.fetch(FIRE):
            fired += [tuple(row) for row in rows]
        return fired

    for second in range(1, SECONDS + 1):
        await schedules.at(NOON + timedelta(seconds=second))
        fired = [tick for found in await asyncio.gather(*map(fire, sessions)) for tick in found]
        fired += await fire(sessions[0])  # what another one held as they looked
        assert sorted(fired) == sorted(
            (f"s{n}", NOON + timedelta(seconds=second), "fired") for n in range(1, SCHEDULES + 1)
        )
    counted = await schedules.connection.fetch(
        "SELECT count(*), count(DISTINCT (schedule, tick)) FROM hybrid_runner.jobs"
    )
    assert tuple(counted[0]) == (SCHEDULES * SECONDS, SCHEDULES * SECONDS)
