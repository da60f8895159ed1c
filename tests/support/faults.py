"""A server of a test's own, to be stopped, killed and started again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from hybrid_runner.embedded import EmbeddedPostgres
from hybrid_runner.embedded.folder import Folder
from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.support.server import QUICK, embedded
from tools.roles import make_groups

DURABLE = QUICK | {"synchronous_commit": "on"}
"""What was committed outlives the death of the server's processes, if not the machine's."""


class OwnServer:
    """An embedded Postgres; its keeper would start it again at once, so it is held while the server
    has to be away.
    """

    def __init__(self, postgres: EmbeddedPostgres) -> None:
        self.dsn = postgres.dsn
        self.data = Folder(postgres.directory).data
        self._keeper: int | None = None

    async def stop(self, number: signal.Signals) -> None:
        """Signal the postmaster (SIGINT: fast, SIGQUIT: immediate); return when it has ended."""
        postmaster = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        self._keeper = int(_status(postmaster)["PPid"])
        os.kill(self._keeper, signal.SIGSTOP)
        while _status(self._keeper)["State"][0] != "T":  # it may be about to wait for its child
            await asyncio.sleep(0.01)
        os.kill(postmaster, number)
        while _status(postmaster)["State"][0] != "Z":  # nobody has waited for it yet
            await asyncio.sleep(0.01)

    async def start(self) -> None:
        """Let the keeper start it again; return when it serves."""
        self.let_go()
        while True:
            try:
                connection = await connect(self.dsn)
            except DatabaseUnavailable:
                await asyncio.sleep(0.02)
            else:
                await connection.close()
                return

    def let_go(self) -> None:
        """The keeper goes on."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            os.kill(keeper, signal.SIGCONT)


@asynccontextmanager
async def own_server(settings: Mapping[str, str] = DURABLE) -> AsyncIterator[OwnServer]:
    """Migrated, and up."""
    with embedded(settings) as postgres:
        server = OwnServer(postgres)
        connection = await connect(server.dsn)
        await make_groups(connection)
        await migrate(connection)
        await connection.close()
        try:
            yield server
        finally:
            server.let_go()


async def end_sessions(
    database: Connection, name: str = "hybrid-runner%", role: str | None = None
) -> int:
    """Terminate other sessions of this database, by application name and role; how many."""
    rows = await database.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE $1 AND usename = coalesce($2, usename) AND pid <>"
        " pg_backend_pid()",
        name,
        role,
    )
    return len(rows)


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
