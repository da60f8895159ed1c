"""The server under test: in a folder, durable, with a role for each who uses it: a limit can be set
for the workers alone.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import pytest

from hybrid_runner.embedded import EmbeddedPostgres, use_embedded
from hybrid_runner.embedded.binaries import BINARIES_VARIABLE, find_binaries
from hybrid_runner.embedded.folder import Folder
from hybrid_runner.embedded.probe import NAME
from hybrid_runner.errors import RunnerError
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.behaviour.chaos.clock import ServerClock
from tools.roles import make_groups

WORKER, PRODUCER, CLIENT = "chaos_worker", "chaos_producer", "chaos_client"
_RIGHTS = {
    WORKER: "hybrid_runner_worker",
    PRODUCER: "hybrid_runner_producer",
    CLIENT: "hybrid_runner_worker",
}
AWAY = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    RunnerError,
)
"""What a client may get to see while faults happen."""
_BACK_WITHIN = 60.0
T = TypeVar("T")


_SETTINGS = {"max_wal_size": "2GB", "checkpoint_timeout": "1min"}
_SMALLEST_QUEUE = {"max_notify_queue_pages": "64"}
"""Half a megabyte of notifications; older servers have room for eight gigabytes."""
_SIZE_CAN_BE_SET_SINCE = 17


def can_fill_queue() -> bool:
    """Whether the queue of notifications can be made small enough to be filled."""
    return int(find_binaries().major_version()) >= _SIZE_CAN_BE_SET_SINCE


class Postgres:
    """Statements of the harness are tried again until the server takes them."""

    def __init__(self, embedded: EmbeddedPostgres, clock: ServerClock | None) -> None:
        self.clock = clock
        """None: it cannot be set."""
        self._embedded = embedded

    @classmethod
    @asynccontextmanager
    async def running(cls, folder: Path, *, with_clock: bool = False) -> AsyncIterator[Postgres]:
        """A new one; `fsync` stays on, since it will be killed. A clock that can be set makes each
        statement slower.
        """
        clock = ServerClock(folder.with_name("clock")) if with_clock else None
        embedded = _start(folder, clock)
        try:
            postgres = cls(embedded, clock)
            async with postgres.connected() as connection:
                await make_groups(connection)
                await migrate(connection)
                for role, right in _RIGHTS.items():
                    await connection.execute(f"CREATE ROLE {role} LOGIN IN ROLE {right}")
            yield postgres
        finally:
            embedded.close()

    def dsn(self, role: str) -> str:
        """The way in for a role."""
        return self._embedded.dsn.replace(f"//{NAME}@", f"//{role}@")

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        """A superuser's connection."""
        connection = await connect(self._embedded.dsn, {"application_name": "chaos"})
        try:
            yield connection
        finally:
            connection.terminate()

    async def fetch(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        """Rows, from a connection of its own."""

        async def once(connection: Connection) -> list[asyncpg.Record]:
            return await connection.fetch(query, *arguments)

        return await self.insist(once)

    async def insist(self, call: Callable[[Connection], Awaitable[T]]) -> T:
        """Try until it works."""
        async with asyncio.timeout(_BACK_WITHIN):
            while True:
                try:
                    async with self.connected() as connection:
                        return await call(connection)
                except AWAY:
                    await asyncio.sleep(0.1)

    async def until_up(self) -> None:
        """Return when it answers."""
        await self.fetch("SELECT 1")

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Meanwhile there is no server: its keeper is held, which would start it again at once."""
        keeper = int(Folder(self._embedded.directory).lock("keeper").read_text())
        async with asyncio.timeout(_BACK_WITHIN):
            while (pid := self._postmaster()) is None:
                await asyncio.sleep(0.02)
        os.kill(keeper, signal.SIGSTOP)
        try:
            os.kill(pid, signal.SIGINT)
            yield
        finally:
            os.kill(keeper, signal.SIGCONT)
        await self._until_another_serves(pid)

    async def end(self, number: signal.Signals) -> None:
        """Signal the postmaster, whose keeper starts it again; return when a new one answers."""
        async with asyncio.timeout(_BACK_WITHIN):
            while (pid := self._postmaster()) is None:
                await asyncio.sleep(0.02)
            os.kill(pid, number)
        await self._until_another_serves(pid)

    async def _until_another_serves(self, pid: int) -> None:
        async with asyncio.timeout(_BACK_WITHIN):
            while self._postmaster() in (pid, None):
                await asyncio.sleep(0.02)
        await self.until_up()

    def _postmaster(self) -> int | None:
        try:
            return int(
                (self._embedded.directory / "data" / "postmaster.pid").read_text().split("\n", 1)[0]
            )
        except (FileNotFoundError, ValueError):  # none runs, or one is about to
            return None


def _start(folder: Path, clock: ServerClock | None) -> EmbeddedPostgres:
    settings = _SETTINGS | (_SMALLEST_QUEUE if can_fill_queue() else {})
    if clock is None:
        return use_embedded(folder, settings=settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BINARIES_VARIABLE, str(clock.wrap(find_binaries())))
        return use_embedded(folder, settings=settings)
