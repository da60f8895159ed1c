"""A delay is as long as it says, whatever a time zone does to its clocks meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import NewJob, Retry, Runner, Snooze
from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import until
from tests.support.working import runner, working

DELAYS = [timedelta(days=30 * n) for n in range(1, 12)]
"""Some of them cross a change of the clocks, whatever the day."""
NEAR = timedelta(minutes=5)


@pytest.fixture
async def app(dsn: str, database: Connection) -> AsyncIterator[Runner]:
    """All sessions of its database are in a time zone that changes its clocks."""
    name = await database.fetchval("SELECT quote_ident(current_database())")
    await database.execute(f"ALTER DATABASE {name} SET timezone = 'Europe/Berlin'")
    async with runner(dsn) as app:
        yield app


async def assert_due_after_delays(database: Connection) -> None:
    rows = await database.fetch("SELECT run_at, created_at FROM hybrid_runner.jobs ORDER BY run_at")
    waits = [row["run_at"] - row["created_at"] for row in rows]
    assert len(waits) == len(DELAYS)
    for wait, delay in zip(waits, DELAYS, strict=True):
        assert abs(wait - delay) < NEAR


async def test_of_one_job(app: Runner, database: Connection) -> None:
    for delay in DELAYS:
        await app.enqueue("nobody", {}, delay=delay)
    await assert_due_after_delays(database)


async def test_of_many_jobs_that_are_alike(app: Runner, database: Connection) -> None:
    for delay in DELAYS:
        await app.enqueue_many("nobody", [{}], delay=delay)
    await assert_due_after_delays(database)


@pytest.mark.parametrize("key", [None, "k"])
async def test_of_many_jobs_that_differ(app: Runner, database: Connection, key: str | None) -> None:
    await app.enqueue_many(
        "nobody",
        [NewJob("nobody", delay=delay, key=key and f"{key}{delay}") for delay in DELAYS],
    )
    await assert_due_after_delays(database)


async def test_in_sql(app: Runner, database: Connection) -> None:
    await database.execute("SET timezone = 'Europe/Berlin'")
    for delay in DELAYS:
        await database.execute(
            f"SELECT hybrid_runner.enqueue('nobody', delay => '{delay.days} days')"
        )
    await assert_due_after_delays(database)


@pytest.mark.parametrize("says", [Snooze, lambda delay: Retry(after=delay)])
async def test_of_a_snooze_and_a_retry(app: Runner, database: Connection, says: Any) -> None:
    @app.job("later")
    async def later(days: int) -> None:
        raise says(timedelta(days=days))

    async with working(app):
        await app.enqueue_many(later, [delay.days for delay in DELAYS])
        await until(lambda: _all_put_back(database))
    await assert_due_after_delays(database)


async def _all_put_back(database: Connection) -> bool:
    return bool(
        await database.fetchval(
            "SELECT bool_and(state = 'queued' AND run_at > now()) FROM hybrid_runner.jobs"
        )
    )
