"""Connections that are shared: each statement gets one that is free."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any
from weakref import WeakSet

import asyncpg

from hybrid_runner.storage.connections.connection import Connection, check_dsn, connect
from hybrid_runner.storage.connections.statements import Rows

CLOSE_TIMEOUT = 3.0


async def open_pool(dsn: str, *, largest: int) -> Pool:
    """A pool that opens connections as they are needed; none before the first use."""
    check_dsn(dsn)
    opened = WeakSet[Connection]()

    async def connect_and_remember(dsn: str, **_: object) -> Connection:
        connection = await connect(dsn)
        opened.add(connection)
        return connection

    opens: Any = connect_and_remember
    pool = await asyncpg.create_pool(
        dsn,
        connect=opens,
        reset=_leave,
        min_size=0,
        max_size=largest,
        max_inactive_connection_lifetime=60.0,
    )
    return Pool(pool, opened)


async def _leave(_: object) -> None:
    """Statements that are run one by one leave nothing in a session: another round trip after each
    would be for nothing.
    """


class Pool:
    """Connections that are opened by need, and shared."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], opened: WeakSet[Connection]) -> None:
        self._pool = pool
        self._opened = opened

    async def fetch(self, query: str, /, *args: Any, timeout: float | None = None) -> Rows:
        """Run one statement on a connection that is free."""
        async with self._pool.acquire() as connection:
            try:
                return await connection.fetch(query, *args, timeout=timeout)
            except asyncpg.exceptions.ReadOnlySQLTransactionError:
                connection.terminate()  # a session that began read-only stays so
                raise

    async def close(self) -> None:
        """Let statements end for up to 3 seconds, then close the connections."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    def abandon(self) -> None:
        """Close the sockets without awaiting: the event loop of these connections has ended."""
        for connection in self._opened:
            transport: Any = getattr(connection, "_transport", None)
            with contextlib.suppress(RuntimeError):  # a closed loop refuses the rest of it
                connection.terminate()
            with contextlib.suppress(OSError, AttributeError):
                transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
