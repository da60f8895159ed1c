"""A connection that is opened when it is needed, and again after it was lost."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import asyncpg

from hybrid_runner.errors import DatabaseUnavailable, RowLocked
from hybrid_runner.storage.connections import pooler
from hybrid_runner.storage.connections.connection import STATEMENT_TIMEOUT, Connection, connect
from hybrid_runner.storage.connections.reachability import Reachability
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import query

CLOSE_TIMEOUT = 1.0


class LazyConnection:
    """One connection for one purpose: opened at first use, again after it was lost, one statement
    at a time.
    """

    def __init__(
        self,
        dsn: str,
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        timeout: float = STATEMENT_TIMEOUT,
        reachability: Reachability | None = None,
    ) -> None:
        self._dsn = dsn
        self._settings = settings
        self._timeout = timeout
        self._reachability = reachability or Reachability()
        self._connection: Connection | None = None
        self._busy = asyncio.Lock()
        self._asked_at = math.inf
        self._orphan: int | None = None
        """The server's process for a session that was left with a statement on its way."""
        self._opened = 0

    @property
    def generation(self) -> int:
        """The number of the open connection, counted from 1; 0 while none is open."""
        return 0 if self._connection is None or self._connection.is_closed() else self._opened

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement; a lost connection is DatabaseUnavailable, and the next call opens a
        new one.
        """
        async with self._busy:
            connection = self._connection
            if connection is None or connection.is_closed():
                connection = self._connection = await self._opened_again()
            try:
                self._asked_at = time.monotonic()
                rows = await connection.fetch(query, *args, timeout=self._timeout)
            except (
                asyncio.CancelledError
            ):  # its answer may still come, and the next statement must not wait for it
                self._leave(connection)
                raise
            except (
                Exception
            ) as error:  # nothing leaves untranslated: the loops know RunnerError alone
                failure = translate(error)
                if isinstance(failure, DatabaseUnavailable) and not isinstance(failure, RowLocked):
                    self._reachability.failed(failure)
                    self._leave(connection)
                elif getattr(
                    error, "severity", None
                ):  # only the server gives one: what the driver refuses never came there
                    self._reachability.answered()
                raise failure from error
            finally:
                self._asked_at = math.inf
            self._reachability.answered()
            return rows

    def suspect(self, patience: float) -> None:
        """The network may have swallowed something: reconnect before the next statement; give one
        on its way so many seconds.
        """
        connection, asked_at = self._connection, self._asked_at
        if connection is None:
            return
        if asked_at == math.inf:
            self._drop()
            return
        left = asked_at + patience - time.monotonic()
        asyncio.get_running_loop().call_later(max(0.0, left), self._give_up, connection, asked_at)

    async def close(self) -> None:
        """Close the connection politely, for a moment at most."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=CLOSE_TIMEOUT)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                connection.terminate()

    async def _opened_again(self) -> Connection:
        try:
            connection = await self._open()
        except DatabaseUnavailable as error:
            self._reachability.failed(error)
            raise
        self._opened += 1
        return connection

    async def _open(self) -> Connection:
        """A new connection. A statement that was left on its way must not arrive after what
        follows: its session is ended first.
        """
        connection = await connect(self._dsn, self._settings)
        if self._orphan is not None:
            try:
                await connection.fetch(query("end_session"), self._orphan, timeout=self._timeout)
            except BaseException as error:
                connection.terminate()
                if isinstance(error, Exception):
                    raise translate(error) from error
                raise
            self._orphan = None
        return connection

    def _give_up(self, connection: Connection, asked_at: float) -> None:
        if self._connection is connection and self._asked_at == asked_at:
            self._leave(connection)

    def _leave(self, connection: Connection) -> None:
        """Drop it while a statement may be on its way."""
        if not connection.is_closed() and not pooler.is_pooled(connection):
            self._orphan = connection.get_server_pid()
        self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            connection.terminate()
