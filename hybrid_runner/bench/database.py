"""The Postgres that is measured on: emptied between scenarios, and put back as it was."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path

from hybrid_runner.bench import processor
from hybrid_runner.bench.child import BenchError, Child, module, started
from hybrid_runner.bench.producer import INSERT_VARIABLE
from hybrid_runner.bench.texts import text
from hybrid_runner.embedded import use_embedded
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate, require_schema

SERVER_SETTINGS = {
    "max_connections": "600",
    "max_wal_size": "4GB",
    "shared_preload_libraries": "pg_stat_statements",
}
"""Settings of the benchmark's own server. All that makes commits safe stays on."""
AT_REST = {"pg_stat_statements.track": "none"}
"""Set while statements are not counted. Not given to the server when it starts: what is given then
cannot be altered.
"""
FLUSH = {"commit_delay": "1000", "commit_siblings": "0"}
"""Settings that let every commit wait for a millisecond, as if its flush went to a real disk or a
synchronous standby.
"""
_LONG = 600.0
_DISK = Path("/var/tmp")  # noqa: S108  # the folder made there is private; unlike the usual one it is never memory


class BenchDatabase:
    """The database that is measured on, and a connection for everything that is not measured."""

    def __init__(self, dsn: str, connection: Connection, *, superuser: bool) -> None:
        self.dsn = dsn
        self.connection = connection
        self.superuser = superuser

    async def clear(self) -> None:
        """Delete all jobs."""
        await self.connection.execute(
            "TRUNCATE hybrid_runner.jobs, hybrid_runner.archive", timeout=_LONG
        )
        await self.vacuum()

    async def vacuum(self) -> None:
        """Vacuum, analyse and write a checkpoint, so that none of it falls into the measurement."""
        await self.connection.execute("VACUUM ANALYZE hybrid_runner.jobs", timeout=_LONG)
        if self.superuser:
            await self.connection.execute("CHECKPOINT", timeout=_LONG)

    async def vacuum_all(self) -> None:
        """Do the same to all tables, as far as that is permitted."""
        await self.connection.execute("VACUUM ANALYZE", timeout=_LONG)
        if self.superuser:
            await self.connection.execute("CHECKPOINT", timeout=_LONG)

    async def fill(
        self, kind: str, jobs: int, *, priority: int = 5, delay: timedelta = timedelta()
    ) -> None:
        """Queue jobs in one statement."""
        await self.connection.execute(text("fill"), kind, priority, delay, jobs, timeout=_LONG)

    async def left(self) -> int:
        """Jobs that have not ended."""
        return int(
            await self.connection.fetchval("SELECT count(*) FROM hybrid_runner.jobs", timeout=_LONG)
        )

    async def must_be_empty(self, name: str) -> None:
        """Wait until every job is archived; BenchError if some are left after ten seconds."""
        for _ in range(200):
            if not (left := await self.left()):
                return
            await asyncio.sleep(0.05)
        raise BenchError(f"{name} left {left} jobs behind")

    def worker(
        self, slots: int = 0, workers: int = 1, variables: Mapping[str, str] = {}
    ) -> AbstractAsyncContextManager[Child]:
        """A worker process; without slots, with the default ones."""
        return started(
            "the worker", module("worker", str(slots), str(workers)), self.dsn, variables
        )

    def collector(self) -> AbstractAsyncContextManager[Child]:
        """A process that takes spans and forgets them."""
        return started("the collector", module("collector"), self.dsn)

    def bare(self) -> AbstractAsyncContextManager[Child]:
        """The bare loop in a process, with sessions set up as the runner does."""
        return started("the bare loop", module("bare"), self.dsn)

    def plain(self) -> AbstractAsyncContextManager[Child]:
        """The bare loop in a process, with sessions as asyncpg opens them."""
        return started("the plain loop", module("bare", "plain"), self.dsn)

    def producer(
        self, connections: int, insert: str | None = None
    ) -> AbstractAsyncContextManager[Child]:
        """A process that inserts at a pace."""
        command = module("producer", str(connections))
        return started(
            "the producer", command, self.dsn, {INSERT_VARIABLE: insert or text("insert_stamp")}
        )

    @asynccontextmanager
    async def flush(self, *, imitated: bool) -> AsyncIterator[None]:
        """Apply FLUSH to the whole server until the block ends."""
        if not imitated:
            yield
            return
        before = await self._altered()
        await self.alter(FLUSH)
        try:
            yield
        finally:
            await self.alter(before)

    @asynccontextmanager
    async def counting_statements(self) -> AsyncIterator[bool]:
        """Let pg_stat_statements count; False where it is not loaded."""
        loaded = "pg_stat_statements" in await self.connection.fetchval(
            "SHOW shared_preload_libraries"
        )
        if not (loaded and self.superuser):
            yield False
            return
        made = not await self.connection.fetchval(
            "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements')"
        )
        if made:
            await self.connection.execute("CREATE EXTENSION pg_stat_statements SCHEMA public")
        await self.connection.execute(text("find_statements"))
        before = await self._altered("pg_stat_statements.track")
        await self.alter({"pg_stat_statements.track": "top"})
        try:
            yield True
        finally:
            await self.alter(before)
            if made:
                await self.connection.execute("DROP EXTENSION pg_stat_statements")

    @asynccontextmanager
    async def copies(self) -> AsyncIterator[None]:
        """Make copies of the table jobs with other triggers, until the block ends."""
        await self.connection.execute("DROP SCHEMA IF EXISTS hybrid_runner_bench CASCADE")
        await self.connection.execute(text("copies"))
        try:
            yield
        finally:
            await self.connection.execute("DROP SCHEMA hybrid_runner_bench CASCADE")

    def server_seconds(self) -> float | None:
        """Processor seconds of the whole Postgres, if it runs on this machine."""
        return processor.seconds_of_server(self.connection.get_server_pid())

    async def _altered(self, *names: str) -> dict[str, str | None]:
        """The values that ALTER SYSTEM has set for these settings; None where it has set none."""
        names = names or tuple(FLUSH)
        rows = await self.connection.fetch(
            "SELECT name, setting FROM pg_file_settings WHERE sourcefile LIKE"
            " '%postgresql.auto.conf' AND name = ANY ($1)",
            names,
        )
        return dict.fromkeys(names) | {row["name"]: row["setting"] for row in rows}

    async def alter(self, settings: Mapping[str, str | None]) -> None:
        """Change settings of the whole server; None puts back what its configuration says."""
        for name, value in settings.items():
            change = f"SET {name} = '{value}'" if value is not None else f"RESET {name}"
            await self.connection.execute(f"ALTER SYSTEM {change}")
        await self.connection.execute("SELECT pg_reload_conf()")
        await asyncio.sleep(0.2)  # every process reads it when it is next idle


@asynccontextmanager
async def own_database() -> AsyncIterator[BenchDatabase]:
    """Start a server with fsync, which is removed afterwards."""
    disk = str(_DISK) if os.access(_DISK, os.W_OK) else None
    with tempfile.TemporaryDirectory(
        prefix="hybrid-runner-bench-", dir=disk, ignore_cleanup_errors=True
    ) as folder:
        server = await asyncio.to_thread(
            use_embedded, Path(folder) / "postgres", settings=SERVER_SETTINGS
        )
        try:
            async with _connected(server.dsn) as connection:
                await migrate(connection)
                database = BenchDatabase(server.dsn, connection, superuser=True)
                await database.alter(AT_REST)
                yield database
        finally:
            await asyncio.to_thread(server.stop)


@asynccontextmanager
async def given_database(dsn: str) -> AsyncIterator[BenchDatabase]:
    """Use a given database in which there is no job; what was made in it is removed afterwards."""
    async with _connected(dsn) as connection:
        ours = await connection.fetchval("SELECT to_regnamespace('hybrid_runner') IS NULL")
        await (migrate(connection) if ours else require_schema(connection))
        if not ours and await connection.fetchval(
            "SELECT EXISTS (SELECT FROM hybrid_runner.all_jobs)"
        ):
            raise BenchError(
                "there are jobs in this database, and bench would delete them: give it an empty"
                " one, or none"
            )
        superuser = await connection.fetchval("SELECT current_setting('is_superuser')::boolean")
        try:
            yield BenchDatabase(dsn, connection, superuser=superuser)
        finally:
            await connection.execute(
                text("drop_everything") if ours else text("drop_our_jobs"), timeout=_LONG
            )


@asynccontextmanager
async def _connected(dsn: str) -> AsyncIterator[Connection]:
    connection = await connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()
