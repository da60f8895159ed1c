"""The database that pages read from, and their connection to it: opened by the first query, closed
a while after the last.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hybrid_runner.errors import DatabaseUnavailable, RunnerError
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.telemetry.log_events import log_event

PATIENCE = 5.0
"""Seconds for one answer, including connecting and the queries before it."""
LINGER = 5.0
"""Seconds after which a connection that nobody uses is closed."""
MOST_WAITING = 64
"""Queries that may wait at a time; they are answered one by one, further ones are refused."""
MOST_WAITING_WHILE_SLOW = 4
"""Queries that may wait when none was answered for SLOW seconds: the database hangs."""
SLOW = 1.0
_COMPLAIN = 60.0
"""Seconds between two log lines about queries that Postgres refuses."""

log = logging.getLogger("hybrid_runner.web")


@dataclass(frozen=True, slots=True)
class PageDatabase:
    """Where pages find jobs; made before the worker knows its database."""

    settings: Settings
    dsn: Callable[[], str | None]
    """None while an embedded Postgres is being started."""


class PageConnection:
    """Runs the pages' queries one by one; used from the loop of the pages' thread."""

    def __init__(
        self,
        database: PageDatabase,
        about: str = "pages about jobs",
        *,
        session: Mapping[str, str] = named("pages", FOR_SETTLING),
        patience: float = math.inf,
        linger: float = LINGER,
    ) -> None:
        self._database = database
        self._about = about
        self._session = session
        self._patience = patience
        self._linger = linger
        self._connection: LazyConnection | None = None
        self._waiting = 0
        self._moved_at = 0.0
        """When a query was last answered, or began to wait with none before it."""
        self._complained_at = -math.inf
        self._closing: asyncio.Task[None] | None = None
        """Waits until nobody has asked for a while."""
        self._dropping = set[asyncio.Task[None]]()
        """Those that did, and close what they found."""

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        dsn = self._database.dsn()
        if dsn is None:
            raise DatabaseUnavailable("the embedded Postgres is not started yet")
        if self._is_crowded():
            raise DatabaseUnavailable("too many queries wait at the same time")
        if self._closing is not None:
            self._closing.cancel()
        if self._connection is None:
            self._connection = LazyConnection(dsn, self._session, timeout=PATIENCE)
        if not self._waiting:
            self._moved_at = time.monotonic()
        self._waiting += 1
        patience = min(PATIENCE, self._patience)
        try:
            async with asyncio.timeout(patience):  # connecting included
                rows = await self._connection.fetch(query, *args)
        except TimeoutError:
            raise DatabaseUnavailable(f"Postgres did not answer within {patience:g} s") from None
        except RunnerError as error:
            self._complain(error)
            raise
        else:
            self._moved_at = time.monotonic()
            return rows
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._closing = asyncio.get_running_loop().create_task(self._close_later())

    async def close(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
        await self._drop()
        if self._dropping:  # begun a moment ago: the loop must not end before it has
            await asyncio.wait(self._dropping)

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _is_crowded(self) -> bool:
        hangs = time.monotonic() - self._moved_at > SLOW
        return self._waiting >= (MOST_WAITING_WHILE_SLOW if hangs else MOST_WAITING)

    def _complain(self, error: RunnerError) -> None:
        """Log what Postgres refuses; that it is away is shown by /health already."""
        now = time.monotonic()
        if not isinstance(error, DatabaseUnavailable) and now - self._complained_at >= _COMPLAIN:
            self._complained_at = now
            log.warning("%s: %s", self._about, error, extra=log_event("web.database_unavailable"))

    async def _close_later(self) -> None:
        await asyncio.sleep(self._linger)
        # From here on closing is not cancelled: a new query opens a new connection.
        closing, self._closing = self._closing, None
        if closing is not None:
            self._dropping.add(closing)
            closing.add_done_callback(self._dropping.discard)
        await self._drop()
