"""The pages' own connection for single questions: opened with the first, closed a while after the last."""

from __future__ import annotations

import asyncio
from typing import Any

from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.storage.connections import FOR_SETTLING, Link, Rows, named
from hybrid_runner.web.source import JobSource

PATIENCE = 5.0
"""Seconds for one answer: whoever asked waits."""
LINGER = 5.0
"""Seconds after which a connection that nobody uses is closed."""
_MOST_WAITING = 64
"""Questions are answered one by one; more than so many at a time are somebody's mistake."""


class Questions:
    """Whatever can fetch; lives in the pages' loop."""

    def __init__(self, source: JobSource) -> None:
        self._source = source
        self._link: Link | None = None
        self._waiting = 0
        self._closing: asyncio.Task[None] | None = None

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement."""
        dsn = self._source.dsn()
        if dsn is None:
            raise DatabaseUnavailable("the worker has not started yet")
        if self._waiting >= _MOST_WAITING:
            raise DatabaseUnavailable("too many ask at the same time")
        if self._closing is not None:
            self._closing.cancel()
        if self._link is None:
            self._link = Link(dsn, named("pages", FOR_SETTLING), timeout=PATIENCE)
        self._waiting += 1
        try:
            return await self._link.fetch(query, *args)
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

    async def _close_later(self) -> None:
        await asyncio.sleep(LINGER)
        self._closing = None  # from here on it is not cancelled: a new question opens a new connection
        await self.close()
