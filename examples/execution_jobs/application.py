"""The application, as it was before any worker of ours: it writes into its own tables what it
wants, and reads there what became of it. Each call is a transaction of one user, as in PostgREST.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy

HERE = Path(__file__).parent
ROLES = (HERE / "roles.sql").read_text(encoding="utf-8")
TABLES = (HERE / "tables.sql").read_text(encoding="utf-8")
MOST_SHOWN = 50


class Application:
    """Its connections are opened when they are needed."""

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

    async def create_tables(self) -> None:
        """As the owner of the tables."""
        pool = await self.open()
        await pool.execute(ROLES)
        await pool.execute(TABLES)

    @asynccontextmanager
    async def user(self, user: UUID) -> AsyncIterator[PoolConnectionProxy]:
        """A transaction of somebody who has signed in."""
        pool = await self.open()
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("SET LOCAL ROLE authenticated")
            claims = json.dumps({"sub": str(user), "role": "authenticated"})
            await connection.execute("SELECT set_config('request.jwt.claims', $1, true)", claims)
            yield connection

    async def record(self, user: UUID, name: str, steps: Sequence[str]) -> UUID:
        async with self.user(user) as connection:
            made: UUID = await connection.fetchval(
                "INSERT INTO browser_tests.recordings (name, steps) VALUES ($1, $2) RETURNING id",
                name,
                json.dumps(list(steps)),
            )
        return made

    async def start(self, user: UUID, recording: UUID, rows: Sequence[dict[str, str]]) -> UUID:
        async with self.user(user) as connection:
            made: UUID = await connection.fetchval(
                "INSERT INTO browser_tests.execution_jobs (recording_id, csv_data, total_rows)"
                " VALUES ($1, $2, $3) RETURNING id",
                recording,
                json.dumps(list(rows)),
                len(rows),
            )
        return made

    async def again(self, user: UUID, execution: UUID) -> bool:
        """Everything once more; nothing happens if it has not ended."""
        async with self.user(user) as connection:
            found = await connection.fetchval(
                "UPDATE browser_tests.execution_jobs SET status = 'queued', completed_rows = 0,"
                " version = version + 1"
                " WHERE id = $1 AND status IN ('completed', 'failed', 'cancelled') RETURNING id",
                execution,
            )
            await connection.execute(
                "DELETE FROM browser_tests.execution_results WHERE execution_job_id = $1", found
            )
        return found is not None

    async def cancel(self, user: UUID, execution: UUID) -> bool:
        """Whether there was something to cancel."""
        async with self.user(user) as connection:
            found = await connection.fetchval(
                "UPDATE browser_tests.execution_jobs"
                " SET status = 'cancelled', version = version + 1"
                " WHERE id = $1 AND status IN ('queued', 'running') RETURNING id",
                execution,
            )
        return found is not None

    async def configure(
        self, user: UUID, execution: UUID, version: int, config: dict[str, Any]
    ) -> bool:
        """Change what somebody has read at that version; False if somebody else was quicker."""
        async with self.user(user) as connection:
            found = await connection.fetchval(
                "UPDATE browser_tests.execution_jobs SET config = $3, version = version + 1"
                " WHERE id = $1 AND version = $2 RETURNING id",
                execution,
                version,
                json.dumps(config),
            )
        return found is not None

    async def delete_recording(self, user: UUID, recording: UUID) -> None:
        """And all its executions."""
        async with self.user(user) as connection:
            await connection.execute(
                "DELETE FROM browser_tests.recordings WHERE id = $1", recording
            )

    async def executions(self, user: UUID) -> list[dict[str, Any]]:
        """The newest first."""
        async with self.user(user) as connection:
            rows = await connection.fetch(
                "SELECT e.id, e.recording_id, r.name, e.status, e.total_rows, e.completed_rows,"
                " e.worker_id, e.error_message, e.version, e.started_at, e.completed_at,"
                " (SELECT count(*) FROM browser_tests.execution_results AS x"
                "  WHERE x.execution_job_id = e.id AND NOT x.is_passed) AS not_passed"
                " FROM browser_tests.execution_jobs AS e"
                " JOIN browser_tests.recordings AS r ON r.id = e.recording_id"
                " ORDER BY e.created_at DESC LIMIT $1",
                MOST_SHOWN,
            )
        return [dict(row) for row in rows]
