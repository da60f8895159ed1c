"""An application's own table, for the scenarios that attach one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.texts import text
from hybrid_runner.bench.worker import QUEUE
from hybrid_runner.model.sources import Columns, Words
from hybrid_runner.runner import Runner

KIND = "order"
ATTACHED, PLAIN = "hybrid_runner_bench.orders", "hybrid_runner_bench.plain"
_LONG = 600.0
_WORDS = Words(queued="pending", running="processing", completed="completed", failed="failed")
_COLUMNS = Columns(
    status="status",
    worker_id="worker_id",
    started_at="started_at",
    finished_at="finished_at",
    retry_count="retry_count",
    result="result",
    error="error",
)


@asynccontextmanager
async def tables(database: BenchDatabase) -> AsyncIterator[None]:
    """Two tables of an application, alike and empty, until the block ends."""
    await database.connection.execute("DROP SCHEMA IF EXISTS hybrid_runner_bench CASCADE")
    await database.connection.execute(text("orders"))
    try:
        yield
    finally:
        await database.clear()
        await database.connection.execute("DROP SCHEMA hybrid_runner_bench CASCADE")


@asynccontextmanager
async def attached(database: BenchDatabase) -> AsyncIterator[None]:
    """One of them is attached until the block ends."""
    async with Runner(database.dsn) as app:
        await app.attach(
            ATTACHED,
            kind=KIND,
            queue=QUEUE,
            when="status = 'pending'",
            words=_WORDS,
            columns=_COLUMNS,
        )
        try:
            yield
        finally:
            await database.clear()
            await database.connection.execute(text("drop_late_rows"))
            await app.detach(ATTACHED)


async def fill(database: BenchDatabase, rows: int) -> None:
    """So many rows that are wanted."""
    await database.connection.execute(text("fill_orders"), rows, timeout=_LONG)
    await database.connection.execute(f"VACUUM ANALYZE {ATTACHED}", timeout=_LONG)


async def empty(database: BenchDatabase) -> None:
    """No rows and no jobs are left."""
    await database.connection.execute(f"TRUNCATE {ATTACHED}, {PLAIN} RESTART IDENTITY")
    await database.clear()
