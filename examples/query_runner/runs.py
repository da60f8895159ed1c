"""The application's own table of runs, and what is asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from pydantic import BaseModel

TABLE = Path(__file__).with_name("runs.sql").read_text(encoding="utf-8")
MOST_SHOWN = 50


class Run(BaseModel):
    """One row."""

    id: UUID
    job_id: int
    sql: str
    status: str
    row_count: int | None
    found_by: str | None
    message: str | None
    created_at: datetime
    ended_at: datetime | None
    cleaned_at: datetime | None

    @property
    def is_over(self) -> bool:
        """It has ended, and nothing of it is left in the warehouse."""
        return self.cleaned_at is not None


class Runs:
    """The table; its connections are opened when they are needed."""

    def __init__(self, dsn: Callable[[], str]) -> None:
        self._dsn = dsn
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> asyncpg.Pool:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(self._dsn(), min_size=0, max_size=4)
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def create_table(self) -> None:
        await (await self.open()).execute(TABLE)

    # --- by the page

    async def add(self, connection: PoolConnectionProxy, run: UUID, sql: str, job_id: int) -> None:
        """One more run, in the transaction in which its first job is stored."""
        await connection.execute(
            "INSERT INTO query_runner.runs (id, sql, job_id) VALUES ($1, $2, $3)", run, sql, job_id
        )

    async def newest(self) -> list[Run]:
        rows = await (await self.open()).fetch(
            "SELECT * FROM query_runner.runs ORDER BY created_at DESC LIMIT $1", MOST_SHOWN
        )
        return [Run.model_validate(dict(row)) for row in rows]

    async def get(self, run: UUID) -> Run | None:
        row = await (await self.open()).fetchrow(
            "SELECT * FROM query_runner.runs WHERE id = $1", run
        )
        return None if row is None else Run.model_validate(dict(row))

    async def live_job(self, run: UUID) -> int | None:
        """The job that works on it, if there is one now."""
        job_id: int | None = await (await self.open()).fetchval(
            "SELECT id FROM hybrid_runner.jobs WHERE key = ANY ($1)",
            [f"start-{run}", f"poll-{run}"],
        )
        return job_id

    # --- by the jobs

    async def started(self, run: str, task: str) -> None:
        await (await self.open()).execute(
            "UPDATE query_runner.runs"
            " SET status = 'running', task_id = $2, started_at = coalesce(started_at, now())"
            " WHERE id = $1 AND ended_at IS NULL",
            UUID(run),
            task,
        )

    async def ended(
        self, run: str, status: str, rows: int | None, found_by: str | None, message: str | None
    ) -> None:
        """The first word about its end stands."""
        await (await self.open()).execute(
            "UPDATE query_runner.runs"
            " SET status = $2, row_count = $3, found_by = $4, message = $5, ended_at = now()"
            " WHERE id = $1 AND ended_at IS NULL",
            UUID(run),
            status,
            rows,
            found_by,
            message,
        )

    async def cleaned(self, run: str) -> None:
        await (await self.open()).execute(
            "UPDATE query_runner.runs SET cleaned_at = coalesce(cleaned_at, now()) WHERE id = $1",
            UUID(run),
        )


def new_run() -> UUID:
    return uuid4()
