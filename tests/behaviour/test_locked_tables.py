"""Somebody holds a lock on a table for longer than a lease, and a new worker starts: real
processes, real locks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import ROOT, WorkerProcess, worker
from tests.support.waiting import until_fetched

Another = Callable[[], Awaitable[Connection]]

APP = "tests.behaviour.lost_app:app"
BEGAN = "SELECT count(DISTINCT job_id) FROM public.runs WHERE what = 'began'"
LEASE = 10
"""Seconds: whoever gets no turn for so long is rightly taken for dead."""
ALL_BUT_WORKERS = "jobs, archive, queues, duties, unreported_ends, retention"


@pytest.fixture(autouse=True)
async def runs(database: Connection) -> None:
    await database.execute(
        "CREATE TABLE public.runs (job_id bigint, pid int, what text, at timestamptz DEFAULT"
        " clock_timestamp())"
    )


@asynccontextmanager
async def a_worker(dsn: str) -> AsyncIterator[WorkerProcess]:
    given = {"HYBRID_RUNNER_DSN": dsn, "HYBRID_RUNNER_LEASE": f"{LEASE}s"}
    async with worker(APP, "--queue", "default=3", cwd=ROOT, **given) as process:
        yield process


@asynccontextmanager
async def locked(connection: Connection, tables: str, mode: str) -> AsyncIterator[None]:
    await connection.execute("SET search_path = hybrid_runner, pg_catalog")
    while not await lock(connection, f"LOCK TABLE {tables} IN {mode} MODE"):
        pass
    yield
    await connection.execute("COMMIT")


async def lock(connection: Connection, statement: str) -> bool:
    """False: a worker's statement had some of the tables and wanted others."""
    await connection.execute("BEGIN")
    try:
        await connection.execute(statement)
    except asyncpg.DeadlockDetectedError:
        await connection.execute("ROLLBACK")
        return False
    return True


async def nothing_was_lost(database: Connection, workers: int) -> None:
    """Everybody lives on, and each job's first attempt goes on."""
    await until_fetched(
        database,
        "SELECT count(*) FROM hybrid_runner.workers WHERE heartbeat_at + lease >"
        " clock_timestamp() AND dead_at IS NULL AND unbroken_since + lease < clock_timestamp()",
        workers,
    )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == workers
    rows = await database.fetch("SELECT DISTINCT state::text, attempt FROM hybrid_runner.all_jobs")
    assert [tuple(row) for row in rows] == [("running", 1)]


@pytest.mark.parametrize("newcomer", ["during", "after"])
@pytest.mark.parametrize(
    ("tables", "mode"),
    [(ALL_BUT_WORKERS, "ACCESS EXCLUSIVE"), ("workers", "EXCLUSIVE")],
    ids=["all tables but that of workers", "the table of workers"],
)
async def test_a_newcomer_declares_nobody_dead_whom_a_lock_made_silent(
    dsn: str, database: Connection, another: Another, tables: str, mode: str, newcomer: str
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(a_worker(dsn))
        await until_fetched(database, "SELECT count(*) FROM hybrid_runner.workers", 2)
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, payload, max_attempts)"
            " SELECT 'once_long', '600', 1 FROM generate_series(1, 6)"
        )
        await until_fetched(database, BEGAN, 6)
        async with locked(await another(), tables, mode):
            began = await database.fetchval("SELECT clock_timestamp()")
            if newcomer == "during":
                await stack.enter_async_context(a_worker(dsn))
            # Two leases: of heartbeats, or of the silence that the lock causes.
            who = "WHERE heartbeat_at > $1 + 2 * lease" if tables != "workers" else ""
            await until_fetched(
                database,
                "SELECT count(*) >= 2 AND clock_timestamp() > $1::timestamptz"
                f" + make_interval(secs => $2) FROM hybrid_runner.workers {who}",
                True,
                began,
                2.0 * LEASE,
            )
        if newcomer == "after":
            await stack.enter_async_context(a_worker(dsn))
        await nothing_was_lost(database, 3)
