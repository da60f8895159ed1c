"""Opens connections to Postgres; the only place that knows how."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import parse_qs, urlsplit
from weakref import WeakSet

import asyncpg

from hybrid_runner.errors import ConfigurationError, DatabaseUnavailable, RowLocked
from hybrid_runner.model.messages import Channel, M, Proof
from hybrid_runner.storage.connections import hosts, pooler
from hybrid_runner.storage.connections.reachability import Reachability
from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import query
from hybrid_runner.telemetry.logs.redaction import Redaction

if TYPE_CHECKING:  # generic in the stubs alone
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection
Rows = list[asyncpg.Record]
T = TypeVar("T")

CONNECT_TIMEOUT = 10.0
CLOSE_TIMEOUT = 1.0
POOL_CLOSE_TIMEOUT = 3.0
STATEMENT_TIMEOUT = 60.0
BELL_TIMEOUT = 5.0
# Plans must not depend on when they were made: a plan from the day the table was empty ruins the
# day it is not.
_SERVER_SETTINGS = {
    "application_name": "hybrid-runner",
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    # The server notices within a minute that we are gone without a word, and what we locked; and
    # routers do not forget us.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
} | pooler.MARK


FOR_CLAIMS = {
    # The claim's plan is the same for any table: planning it each time would cost more than running
    # it.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
}
"""Settings of a session that claims."""


def for_claims(*, flushed: bool) -> dict[str, str]:
    """The same, and whether each claim waits for the disk: one that is lost in a crash leaves its
    job queued.
    """
    return FOR_CLAIMS | ({} if flushed else {"synchronous_commit": "off"})


FOR_SETTLING = {"lock_timeout": "1s"}
"""Settings of a session that settles: a row that somebody holds must not hold up the others."""

FOR_UPKEEP = FOR_SETTLING
"""Settings of the heartbeat's session."""

FOR_LISTENING = {"application_name": "hybrid-runner listener", "synchronous_commit": "off"}
"""Settings of a session that listens and moves doorbells: nothing there must outlive a crash."""


def named(purpose: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The same, and what the session is for, as pg_stat_activity shows it."""
    return {**settings, "application_name": f"hybrid-runner {purpose}"}


class Fetches(Protocol):
    """Whatever can run a statement: a Link, a pool, or the caller's own asyncpg connection."""

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement and return its rows."""


async def fetch(on: Fetches, name: str, *arguments: Any) -> Rows:
    """The rows of one of sql/queries; what Postgres says against it becomes an error of ours."""
    try:
        return await on.fetch(query(name), *arguments)
    except Exception as error:
        raise translate(error) from error


async def fetch_value(on: Fetches, name: str, *arguments: Any) -> Any:
    """The first column of its first row; None without rows."""
    rows = await fetch(on, name, *arguments)
    return rows[0][0] if rows else None


async def connect(dsn: str, settings: Mapping[str, str] = MappingProxyType({})) -> Connection:
    """One new connection, direct or by way of a pooler; failures come translated."""
    check_dsn(dsn)
    wanted = _SERVER_SETTINGS | dict(settings)
    try:
        if not pooler.is_known(dsn):
            with pooler.noting_refusal(dsn):
                connection = await _open(
                    dsn, server_settings=wanted, max_cached_statement_lifetime=0
                )
                try:
                    if await pooler.keeps_settings(dsn, connection):
                        return connection
                except BaseException:  # cancelled: nobody else knows of it
                    connection.terminate()
                    raise
                connection.terminate()
        return pooler.prepared(await _open(dsn, **pooler.OPTIONS), wanted)
    except (
        ValueError,
        OverflowError,
    ) as error:  # a port beyond 65535, or a password with a slash that nobody encoded
        said = Redaction([dsn]).clean(str(error))
        raise ConfigurationError(f"the DSN cannot be used: {said}") from None
    except Exception as error:
        failure = translate(error)
        said = Redaction([dsn]).clean(str(failure))  # the driver may quote what it could not read
        if isinstance(failure, DatabaseUnavailable):
            raise type(failure)(f"{said} (at {_place(dsn)}: does it run there?)") from error
        raise type(failure)(said) from error


async def _open(dsn: str, **options: Any) -> Connection:
    return await hosts.first(dsn, CONNECT_TIMEOUT, command_timeout=STATEMENT_TIMEOUT, **options)


def _place(dsn: str) -> str:
    """Where a DSN points to, without its secrets."""
    url = urlsplit(dsn)
    named = parse_qs(url.query)
    if (
        "@" in url.path + url.fragment
    ):  # its password has a character that should have been percent-encoded
        return "a place that cannot be read: percent-encode the password"
    host = named["host"][0] if "host" in named else url.netloc.rpartition("@")[2]
    return host or "the default socket"


def check_dsn(dsn: str) -> None:
    """ConfigurationError for what cannot be a DSN."""
    if not dsn.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(
            "the DSN cannot be used: it must look like postgresql://user:password@host:5432/database"
        )


async def open_pool(dsn: str, *, largest: int) -> Pool:
    """A pool that opens connections as they are needed; nothing is tried before the first use."""
    check_dsn(dsn)
    opened = WeakSet[Connection]()

    async def remembered(
        dsn: str, **_: object
    ) -> Connection:  # the driver's arguments are of no use here
        connection = await connect(dsn)
        opened.add(connection)
        return connection

    opens: Any = remembered
    pool = await asyncpg.create_pool(
        dsn, connect=opens, min_size=0, max_size=largest, max_inactive_connection_lifetime=60.0
    )
    return Pool(pool, opened)


class Pool:
    """Connections for whoever asks, several at a time."""

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
        """Close them politely, for a moment at most."""
        try:
            async with asyncio.timeout(POOL_CLOSE_TIMEOUT):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    def abandon(self) -> None:
        """Hang up where nothing can be awaited: the event loop of these connections is gone."""
        for connection in self._opened:
            transport: Any = getattr(connection, "_transport", None)
            with contextlib.suppress(RuntimeError):  # a closed loop refuses the rest of it
                connection.terminate()
            with contextlib.suppress(OSError, AttributeError):
                transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


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
    def session(self) -> int:
        """Which of its connections this is, counted from 1; 0 while there is none."""
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


async def prove_once(dsn: str, channel: Channel[Proof]) -> None:
    """Send a proof from a session of its own."""
    connection = await connect(dsn)
    try:
        await _translated(
            connection.execute(
                "SELECT pg_notify($1, $2)", channel.name, Proof().text, timeout=BELL_TIMEOUT
            )
        )
    finally:
        connection.terminate()


class ListenConnection:
    """A connection that listens, and moves doorbells; messages come until `lost`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._busy = asyncio.Lock()
        self.lost = asyncio.Event()
        connection.add_termination_listener(lambda _: self.lost.set())

    @classmethod
    async def open(cls, dsn: str) -> ListenConnection:
        """Connect; nothing is listened to yet."""
        return cls(await connect(dsn, FOR_LISTENING))

    @property
    def pooled(self) -> bool:
        """Whether the session may be somebody else's at the next statement."""
        return pooler.is_pooled(self._connection)

    async def listen(self, channel: Channel[M], heard: Callable[[M, int], None]) -> None:
        """Subscribe to one channel; `heard` is given each message and the server process that sent
        it.
        """

        def on_ring(_connection: object, pid: int, _channel: str, payload: object) -> None:
            if (message := channel.read(str(payload))) is not None:
                heard(message, pid)

        async def subscribe() -> None:
            async with asyncio.timeout(BELL_TIMEOUT):
                await self._connection.add_listener(channel.name, on_ring)

        async with self._busy:
            await _translated(subscribe())

    async def send(self, channel: Channel[M], message: M) -> None:
        """Send a message from this very connection."""
        await self.fetch("SELECT pg_notify($1, $2)", channel.name, message.text)

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one short statement; when it fails the connection is given up: what locks it holds is
        then certain.
        """
        async with self._busy:
            try:
                return await _translated(self._connection.fetch(query, *args, timeout=BELL_TIMEOUT))
            except Exception:
                await self.close()
                raise

    @property
    def busy(self) -> bool:
        """Whether a statement waits for its answer."""
        return self._busy.locked()

    async def close(self) -> None:
        """The same as hanging up, for those who await."""
        self.hang_up()

    def hang_up(self) -> None:
        """End the connection at once."""
        # Always: the driver may know it as closed (it died in the middle of a statement), and yet
        # never have told us.
        self._connection.terminate()
        self.lost.set()


async def _translated(call: Awaitable[T]) -> T:
    try:
        return await call
    except Exception as error:
        raise translate(error) from error
