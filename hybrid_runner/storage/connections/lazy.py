"""A connection that is opened when it is needed, again after it was lost, and closed at rest."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import asyncpg

from hybrid_runner.errors import (
    ConnectionLost,
    DatabaseError,
    DatabaseUnavailable,
    NoConnection,
    RowLocked,
    RunnerError,
    StatementAborted,
)
from hybrid_runner.storage.connections import pooler
from hybrid_runner.storage.connections.connection import STATEMENT_TIMEOUT, Connection, connect
from hybrid_runner.storage.connections.reachability import Reachability
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import query

CLOSE_TIMEOUT = 1.0


class LazyConnection:
    """Opened at first use and again after it was lost; runs one statement at a time.

    Closed once it was not used for `linger` seconds.
    """

    def __init__(
        self,
        dsn: str,
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        timeout: float = STATEMENT_TIMEOUT,
        linger: float = math.inf,
        reachability: Reachability | None = None,
    ) -> None:
        self._dsn = dsn
        self._settings = settings
        self._timeout = timeout
        self._linger = linger
        self._used_at = -math.inf
        self._at_rest: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._reachability = reachability or Reachability()
        self._connection: Connection | None = None
        self._busy = asyncio.Lock()
        self._asked_at = math.inf
        self._orphan: int | None = None
        """The server process of a session that was given up while a statement ran."""
        self._opened = 0
        self.took = 0.0
        """Seconds of the last statement that was answered, without waiting for its turn."""

    @property
    def generation(self) -> int:
        """The number of the open connection, counted from 1; 0 while none is open."""
        return 0 if self._connection is None or self._connection.is_closed() else self._opened

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement. When the connection is lost, it raises DatabaseUnavailable, and the
        next call opens a new one.
        """
        async with self._busy:
            connection = self._connection
            if connection is None or connection.is_closed():
                connection = self._connection = await self._reopen()
            try:
                self._asked_at = asked_at = time.monotonic()
                rows = await connection.fetch(query, *args, timeout=self._timeout)
            except asyncio.CancelledError:
                self._leave(connection)  # the next statement must not wait for this answer
                raise
            except Exception as error:  # all of them: the loops of a worker know RunnerError alone
                failure = _of_a_statement(error)
                if isinstance(failure, DatabaseUnavailable) and not isinstance(
                    failure, (RowLocked, StatementAborted)
                ):
                    self._reachability.failed(failure)
                    self._leave(connection)
                # Only the server's errors have a severity: what the driver refuses is not sent.
                elif getattr(error, "severity", None):
                    self._reachability.answered()
                raise failure from error
            finally:
                self._asked_at = math.inf
                self._used_at = time.monotonic()
            self._reachability.answered()
            self.took = time.monotonic() - asked_at
            return rows

    def suspect(self, patience: float) -> None:
        """The network may have dropped packets: reconnect before the next statement.

        A statement that runs has until `patience` seconds after its start to answer.
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
        """Close the connection, within a second."""
        if self._at_rest is not None:
            self._at_rest.cancel()
            self._at_rest = None
        connection, self._connection = self._connection, None
        if connection is not None:
            await _close(connection)
        if self._closing is not None:
            await self._closing

    async def _reopen(self) -> Connection:
        try:
            connection = await self._open()
        except DatabaseUnavailable as error:
            self._reachability.failed(error)
            raise
        except DatabaseError as error:
            raise NoConnection(str(error)) from error
        self._opened += 1
        if self._linger < math.inf:
            self._close_in(self._linger)
        return connection

    async def _open(self) -> Connection:
        """A new connection. The session that was given up is ended first, so that its statement
        cannot take effect after later ones.
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

    def _close_in(self, seconds: float) -> None:
        if self._at_rest is not None:
            self._at_rest.cancel()
        loop = asyncio.get_running_loop()
        self._at_rest = loop.call_later(seconds, self._close_if_at_rest)

    def _close_if_at_rest(self) -> None:
        self._at_rest = None
        if self._connection is None:
            return
        left = self._used_at + self._linger - time.monotonic()
        if self._busy.locked() or left > 0:
            self._close_in(self._linger if self._busy.locked() else left)
            return
        connection, self._connection = self._connection, None
        self._closing = asyncio.get_running_loop().create_task(_close(connection))

    def _give_up(self, connection: Connection, asked_at: float) -> None:
        if self._connection is connection and self._asked_at == asked_at:
            self._leave(connection)

    def _leave(self, connection: Connection) -> None:
        """Give the connection up while a statement may still run."""
        if not connection.is_closed() and not pooler.is_pooled(connection):
            self._orphan = connection.get_server_pid()
        self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            connection.terminate()


def _of_a_statement(error: Exception) -> RunnerError:
    """What a statement on an open connection raised."""
    failure = translate(error)
    # Neither said by the server nor a time-out: nothing else can be sent on this connection. Where
    # the end came between two messages the driver has only words about its own state.
    if type(failure) is DatabaseUnavailable and not hasattr(error, "severity"):
        return ConnectionLost("Postgres does not answer: the connection was lost")
    return failure


async def _close(connection: Connection) -> None:
    if not connection.is_closed():
        try:
            await connection.close(timeout=CLOSE_TIMEOUT)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            connection.terminate()
