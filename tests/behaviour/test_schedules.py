"""Schedules through deaths, crashes, failovers and deploys: real processes, real signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.errors import RunnerError
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.behaviour.chaos.postgres import WORKER, Postgres
from tests.behaviour.schedules.course import begin, judge, left
from tests.behaviour.schedules.fleet import PIDS, fleet, kill_some
from tests.cli.running import ROOT, WorkerProcess, worker
from tests.support.replication import Pair, pair
from tests.support.waiting import at_least, until, until_fetched
from tests.support.working import runner, working

LEASE = {"HYBRID_RUNNER_LEASE": "3s"}
APP = "tests.behaviour.schedules.deployed:app"
DOUBLE = """
    SELECT count(*) FROM (
        SELECT schedule, tick FROM (
            SELECT schedule, tick FROM hybrid_runner.archive
            UNION ALL
            SELECT schedule, tick FROM hybrid_runner.jobs
        ) AS made
        WHERE tick IS NOT NULL
        GROUP BY schedule, tick HAVING count(*) > 1
    ) AS d
"""
MISSING = """
    WITH made AS (
        SELECT a.tick FROM hybrid_runner.archive AS a WHERE a.schedule = $1
        UNION ALL
        SELECT j.tick FROM hybrid_runner.jobs AS j WHERE j.schedule = $1
    )
    SELECT count(*)
    FROM (SELECT min(tick) AS first, max(tick) AS last FROM made) AS s
    CROSS JOIN LATERAL generate_series(s.first, s.last, '1 second') AS t (tick)
    WHERE NOT EXISTS (SELECT FROM made AS m WHERE m.tick = t.tick)
"""
MADE = "SELECT count(*) FROM hybrid_runner.archive WHERE schedule = $1"


# --- deaths and crashes


@pytest.mark.timeout(240)
async def test_while_workers_are_killed_each_tick_makes_one_job(
    dsn: str, database: Connection
) -> None:
    """30 schedules a second and four processes of which none leads."""
    async with fleet(dsn, 4, **LEASE):
        await until_fetched(database, "SELECT count(*) >= 4 FROM hybrid_runner.workers", True)
        await begin(database, 30, 6)
        watch = await connect(dsn)
        killing = asyncio.create_task(kill_some(lambda: watch.fetchval(PIDS), 0.7))
        await until(lambda: left(database), lambda count: count == 0)
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        await watch.close()
    judgement = await judge(database)
    assert judgement.wanted == 180
    assert judgement.once, judgement


@pytest.mark.timeout(300)
async def test_while_the_server_crashes_each_tick_makes_one_job(tmp_path: Path) -> None:
    async with (
        Postgres.running(tmp_path / "postgres") as postgres,
        fleet(postgres.dsn(WORKER), 3, **LEASE),
    ):

        async def workers() -> int:
            rows = await postgres.fetch("SELECT count(*) FROM hybrid_runner.workers")
            return int(rows[0][0])

        await until(workers, at_least(3))
        await postgres.insist(lambda connection: begin(connection, 20, 6))
        for ticks in (20, 60):
            await until(lambda: _made(postgres), at_least(ticks))
            await postgres.end(signal.SIGQUIT)
        await until(lambda: postgres.insist(left), lambda count: count == 0)
        judgement = await postgres.insist(judge)
    assert judgement.wanted == 120
    assert judgement.once, judgement


async def _made(postgres: Postgres) -> int:
    rows = await postgres.fetch("SELECT sum(fired + caught_up)::int FROM hybrid_runner.schedules")
    return int(rows[0][0] or 0)


@pytest.fixture
def servers() -> Iterator[Pair]:
    with pair(synchronous=True) as both:
        asyncio.run(_migrate(both.dsn))
        yield both


async def _migrate(dsn: str) -> None:
    connection = await connect(dsn)
    await migrate(connection)
    await connection.close()


@asynccontextmanager
async def deployed(dsn: str, version: int, **more: str) -> AsyncIterator[WorkerProcess]:
    """A worker process of this version of the app."""
    given = {"HYBRID_RUNNER_DSN": dsn, "APP_VERSION": str(version), **LEASE, **more}
    async with worker(APP, "--queue", "default=10", cwd=ROOT, **given) as process:
        await process.says("listening on")
        yield process


@pytest.mark.timeout(300)
async def test_after_a_failover_no_tick_is_fired_twice_and_none_is_missing(servers: Pair) -> None:
    async def made() -> int:
        try:
            connection = await connect(servers.dsn)
            try:
                return int(await connection.fetchval(MADE, "stays"))
            finally:
                await connection.close()
        except (RunnerError, OSError):
            return -1

    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(deployed(servers.dsn, 1))
        await until(made, at_least(2))
        before = await made()
        await asyncio.to_thread(servers.fail_over)
        await until(made, at_least(before + 3))
    connection = await connect(servers.dsn)
    assert await connection.fetchval(DOUBLE) == 0
    assert await connection.fetchval(MISSING, "stays") == 0
    await connection.close()


# --- deploys, and a fleet that was away


@pytest.mark.timeout(300)
async def test_a_rolling_deploy_adds_changes_and_removes_schedules(
    dsn: str, database: Connection
) -> None:
    """None fires twice; what was removed fires while a worker of the old version lives."""

    async def fires(name: str, more: int = 2) -> None:
        count = await database.fetchval(MADE, name)
        await until(lambda: database.fetchval(MADE, name), at_least(count + more))

    async with AsyncExitStack() as new:
        async with deployed(dsn, 1) as first, deployed(dsn, 1) as last:
            for name in ("stays", "changes", "goes"):
                await fires(name)
            await new.enter_async_context(deployed(dsn, 2))
            await first.ends()
            for name in ("stays", "changes", "comes", "goes"):
                await fires(name)
            await new.enter_async_context(deployed(dsn, 2))
            await last.ends()
        gone = await database.fetchval("SELECT clock_timestamp()")
        for name in ("stays", "changes", "comes"):
            await fires(name, 3)
    ticks = await database.fetch("SELECT tick FROM hybrid_runner.archive WHERE schedule = 'goes'")
    assert max(row["tick"] for row in ticks) <= gone
    assert await database.fetchval(DOUBLE) == 0
    assert await database.fetchval(MISSING, "stays") == 0
    row = await database.fetchrow(
        "SELECT every, payload, next_at > clock_timestamp() AS fires FROM hybrid_runner.schedules"
        " WHERE name = 'changes'"
    )
    assert row is not None
    assert (row["every"], row["payload"]) == (timedelta(seconds=2), '{"version": 2}')
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.schedules") == 4


POLICIES: dict[str, dict[str, Any]] = {
    "one": {"missed": "one"},
    "all": {"missed": "all"},
    "none": {"missed": "none"},
    "hour": {"missed": "all", "catch_up": "1h"},
}


def away_app(dsn: str, starts_at: datetime, names: Iterable[str]) -> Runner:
    """An app that declares schedules of these names, every ten minutes."""
    app = runner(dsn)

    @app.job("tick")
    async def tick(_: Any) -> None:
        pass

    for name in names:
        app.schedule(
            name,
            tick,
            every="10m",
            starts_at=starts_at,
            overlap="allow",
            **POLICIES.get(name, {}),
        )
    return app


async def test_after_three_hours_away_each_policy_does_what_it_says(
    dsn: str, database: Connection
) -> None:
    """18 ticks were missed, the last one five minutes ago. Then the workers come back, in another
    version. The jobs of a clock that is moved are not due yet.
    """
    starts_at = datetime.now(UTC) + timedelta(minutes=5)
    old, new = (away_app(dsn, starts_at, names) for names in ([*POLICIES, "removed"], POLICIES))
    async with working(old):
        pass
    await database.execute(
        "CREATE OR REPLACE FUNCTION hybrid_runner.tick_clock() RETURNS timestamptz LANGUAGE sql"
        " VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() + interval '3 hours' $$"
    )
    expected = {
        "all": (0, 18, 0, 18),
        "hour": (0, 6, 12, 6),
        "none": (0, 0, 18, 0),
        "one": (0, 18, 0, 1),
        "removed": (0, 0, 0, 0),
    }
    async with working(new):
        await until(lambda: _outcomes(database), lambda seen: seen == expected)
    assert await database.fetchval(DOUBLE) == 0


async def _outcomes(database: Connection) -> dict[str, tuple[int, ...]]:
    rows = await database.fetch(
        "SELECT s.name, s.fired, s.caught_up, s.dropped,"
        " (SELECT count(*) FROM hybrid_runner.jobs AS j WHERE j.schedule = s.name) AS jobs"
        " FROM hybrid_runner.schedules AS s"
    )
    return {row["name"]: tuple(row)[1:] for row in rows}
