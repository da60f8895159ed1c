"""Connections by way of a pooler that lends a server's session for one transaction: PgBouncer in
transaction mode and its like.

Nothing that belongs to a session survives there: each statement runs in a transaction of its own,
which begins with its settings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import asyncpg

if TYPE_CHECKING:  # generic in the stubs alone
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection
T = TypeVar("T")

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
MARK = {"hybrid_runner.session": "own"}
"""A setting of no meaning: nobody has it by default, so a session that has it is the one that was
asked for it.
"""
_IS_OWN = "SELECT WHERE current_setting('hybrid_runner.session', true) = 'own'"
_PROBES = {"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count"}
_NOT_LOCAL = {"application_name", "default_transaction_isolation", *_PROBES, *MARK}
"""Settings that poolers know, that the BEGIN says, that speak of the pooler's own connections, or
that would not be true.
"""

_known: dict[str, bool] = {}
"""DSN: whether it leads through such a pooler. Once found out, it holds for the life of this
process.
"""


class PooledConnection(Connection):
    """A connection to a pooler; outside a transaction, each statement is one."""

    begin = _BEGIN

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        """Rows."""
        return await self._alone(super().fetch, query, *args, **options)

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        """A row."""
        return await self._alone(super().fetchrow, query, *args, **options)

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        """A value."""
        return await self._alone(super().fetchval, query, *args, **options)

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """A status; without arguments the query is one message, which a pooler does not tear
        apart.
        """
        if not args:
            return await super().execute(query, timeout=timeout)
        return await self._alone(super().execute, query, *args, timeout=timeout)

    def get_reset_query(self) -> str:
        """Nothing: a session that the pool resets would be somebody else's."""
        return ""

    async def _alone(
        self, run: Callable[..., Awaitable[T]], query: str, *args: Any, **options: Any
    ) -> T:
        if self.is_in_transaction():
            return await run(query, *args, **options)
        timeout = options.get("timeout")
        try:
            await super().execute(self.begin, timeout=timeout)
            answer = await run(query, *args, **options)
            await super().execute("COMMIT", timeout=timeout)
        except asyncpg.PostgresError:
            await self._roll_back()
            raise
        except BaseException:  # cancelled or out of time, nobody knows how far it came
            self.terminate()
            raise
        return answer

    async def _roll_back(self) -> None:
        try:
            if not self.is_closed() and self.is_in_transaction():
                await super().execute("ROLLBACK")
        except BaseException:
            self.terminate()


OPTIONS: Mapping[str, Any] = {
    "connection_class": PooledConnection,
    "server_settings": {"application_name": "hybrid-runner"},
    # a prepared statement would be in a session of which nobody knows who has it next
    "statement_cache_size": 0,
}
"""How such a connection is opened."""


def prepared(connection: Connection, settings: Mapping[str, str]) -> Connection:
    """The same, with what its transactions begin with."""
    local = (
        f"SET LOCAL {name} = '{value}'"
        for name, value in settings.items()
        if name not in _NOT_LOCAL
    )
    cast("PooledConnection", connection).begin = "; ".join((_BEGIN, *local))
    return connection


def is_known(dsn: str) -> bool:
    """Whether this DSN was found to lead through a pooler."""
    return _known.get(dsn, False)


def is_pooled(connection: Connection) -> bool:
    """Whether it lends its sessions."""
    return type(connection) is PooledConnection  # asyncpg's own answer to isinstance is always yes


@contextmanager
def noting_refusal(dsn: str) -> Iterator[None]:
    """PgBouncer refuses settings that it cannot keep apart; from then on they are not sent."""
    try:
        yield
    except asyncpg.exceptions.ProtocolViolationError as error:
        if "startup parameter" not in str(error):
            raise
        _known[dsn] = True


async def keeps_settings(dsn: str, connection: Connection) -> bool:
    """Whether the session has the settings that it was opened with: some poolers drop them without
    a word. Asked once a DSN.
    """
    if dsn not in _known:
        # Without arguments, so that nothing is prepared in a session that may be somebody else's.
        _known[dsn] = await connection.execute(_IS_OWN) != "SELECT 1"
    return not _known[dsn]
