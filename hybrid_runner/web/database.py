"""The pages' own connection for single questions: opened with the first, closed a while after the
last.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from typing import Any

from hybrid_runner.errors import DatabaseUnavailable, RunnerError
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.page_database import PageDatabase

PATIENCE = 5.0
"""Seconds for one answer, with connecting and the questions before it: whoever asked waits."""
LINGER = 5.0
"""Seconds after which a connection that nobody uses is closed."""
MOST_WAITING = 64
"""Questions are answered one by one; more than so many at a time are somebody's mistake."""
FEW = 4
"""So many may wait while nothing is answered for SLOW seconds; nobody else has to find out that the
database hangs.
"""
SLOW = 1.0
_COMPLAIN = 60.0
"""Seconds between two log lines about what Postgres refuses."""

log = logging.getLogger("hybrid_runner.web")


class PageConnection:
    """Whatever can fetch; lives in the pages' loop."""

    def __init__(
        self,
        source: PageDatabase,
        about: str = "pages about jobs",
        *,
        session: Mapping[str, str] = named("pages", FOR_SETTLING),
        patience: float = math.inf,
        linger: float = LINGER,
    ) -> None:
        self._source = source
        self._about = about
        self._session = session
        self._patience = patience
        self._linger = linger
        self._link: LazyConnection | None = None
        self._waiting = 0
        self._moved_at = 0.0
        """When a question was last answered, or asked with none before it."""
        self._complained_at = -math.inf
        self._closing: asyncio.Task[None] | None = None

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement."""
        dsn = self._source.dsn()
        if dsn is None:
            raise DatabaseUnavailable("the embedded Postgres is not started yet")
        if self._is_crowded():
            raise DatabaseUnavailable("too many ask at the same time")
        if self._closing is not None:
            self._closing.cancel()
        if self._link is None:
            self._link = LazyConnection(dsn, self._session, timeout=PATIENCE)
        if not self._waiting:
            self._moved_at = time.monotonic()
        self._waiting += 1
        patience = min(PATIENCE, self._patience)
        try:
            async with asyncio.timeout(patience):  # connecting included
                rows = await self._link.fetch(query, *args)
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
        """Close it now."""
        if self._closing is not None:
            self._closing.cancel()
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def _is_crowded(self) -> bool:
        hangs = time.monotonic() - self._moved_at > SLOW
        return self._waiting >= (FEW if hangs else MOST_WAITING)

    def _complain(self, error: RunnerError) -> None:
        """A server that is away shows elsewhere; what it refuses, only here."""
        now = time.monotonic()
        if not isinstance(error, DatabaseUnavailable) and now - self._complained_at >= _COMPLAIN:
            self._complained_at = now
            log.warning("%s: %s", self._about, error, extra=log_event("web.database_unavailable"))

    async def _close_later(self) -> None:
        await asyncio.sleep(self._linger)
        self._closing = (
            None  # from here on it is not cancelled: a new question opens a new connection
        )
        await self.close()
