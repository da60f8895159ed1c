"""Connections by way of a pooler that lends a server's session for one transaction: PgBouncer in
transaction mode and its like.

Settings of a session do not last there: each statement runs in a transaction of its own, which
begins by making them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import asyncpg

from hybrid_runner.storage.connections.types_known import TypesKnown

if TYPE_CHECKING:  # generic in the stubs alone
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection
T = TypeVar("T")

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
MARK = {"hybrid_runner.session": "own"}
"""A setting without a meaning: a session that has it is the one that was opened with it."""
_IS_OWN = "SELECT WHERE current_setting('hybrid_runner.session', true) = 'own'"
_PROBES = {"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count"}
_NOT_LOCAL = {"application_name", "default_transaction_isolation", *_PROBES, *MARK}
"""Settings that are not repeated in each transaction: a pooler keeps them itself, BEGIN says them,
or they are about the connection to the pooler.
"""

_known: dict[str, bool] = {}
"""By DSN: whether it leads through such a pooler. Found out once in the life of the process."""


class PooledConnection(TypesKnown):
    """A connection to a pooler; outside a transaction, each statement is one."""

    begin = _BEGIN

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._alone(super().fetch, query, *args, **options)

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._alone(super().fetchrow, query, *args, **options)

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._alone(super().fetchval, query, *args, **options)

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        if not args:  # sent as one message, which a pooler gives to one session
            return await super().execute(query, timeout=timeout)
        return await self._alone(super().execute, query, *args, timeout=timeout)

    def get_reset_query(self) -> str:
        return ""  # the session that a pool would reset may be somebody else's

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
        except BaseException:  # cancelled or timed out: how far it came is unknown
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
    # A prepared statement would stay in a session that the pooler gives to others.
    "statement_cache_size": 0,
}
"""Arguments of `asyncpg.connect` for a pooler."""


def prepared(connection: Connection, settings: Mapping[str, str]) -> Connection:
    """Let each transaction of a connection to a pooler begin with these settings."""
    local = (
        # Parts by themselves: in one pair of quotes, two schemas would be one name.
        "SET LOCAL {} = {}".format(name, ", ".join(f"'{part}'" for part in value.split(", ")))
        for name, value in settings.items()
        if name not in _NOT_LOCAL
    )
    cast("PooledConnection", connection).begin = "; ".join((_BEGIN, *local))
    return connection


def is_known(dsn: str) -> bool:
    """Whether this DSN was found to lead through a pooler."""
    return _known.get(dsn, False)


def is_pooled(connection: Connection) -> bool:
    """Whether it was opened by way of a pooler."""
    return type(connection) is PooledConnection  # for asyncpg's classes isinstance is always true


@contextmanager
def noting_refusal(dsn: str) -> Iterator[None]:
    """PgBouncer refuses settings that it does not know; remember, and send none from then on."""
    try:
        yield
    except asyncpg.exceptions.ProtocolViolationError as error:
        if "startup parameter" not in str(error):
            raise
        _known[dsn] = True


async def keeps_settings(dsn: str, connection: Connection) -> bool:
    """Whether the session has the settings that it was opened with; some poolers drop them.

    Postgres is asked once for each DSN.
    """
    if dsn not in _known:
        # Without arguments, so that nothing is prepared in a session that may be somebody else's.
        _known[dsn] = await connection.execute(_IS_OWN) != "SELECT 1"
    return not _known[dsn]
