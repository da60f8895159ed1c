"""The connections and tasks of a runner, which belong to one event loop and end with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from hybrid_runner.client.waiting import Look, Watcher
from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError, OpenInAnotherLoop
from hybrid_runner.model.jobs import JobStatus
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.pool import Pool


class Session:
    """The connections of one event loop, and the task that waits for jobs on them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, look: Look) -> None:
        self.loop = loop
        self.opening = asyncio.Lock()
        self.pool: Pool | None = None
        self.watcher = Watcher(look)
        self._until_loop_ends: AsyncGenerator[None, None] | None = None

    async def hold(self, pool: Pool) -> None:
        """Keep the connections until `close`, or until the loop comes to its end."""
        self.pool = pool
        self._until_loop_ends = self._close_with_loop()
        await anext(self._until_loop_ends)

    async def close(self) -> None:
        """Close the watcher and the connections; each even if the other fails."""
        pool, self.pool = self.pool, None
        ending, self._until_loop_ends = self._until_loop_ends, None
        try:
            await self.watcher.close()
        finally:
            try:
                if pool is not None:
                    await pool.close()
            finally:
                if ending is not None:
                    await ending.aclose()

    def abandon(self) -> None:
        """Close the sockets of a loop that no longer runs, in which nothing can be awaited."""
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.abandon()

    async def _close_with_loop(self) -> AsyncGenerator[None, None]:
        # asyncio.run and the like close open generators (loop.shutdown_asyncgens). Nowhere else
        # does a loop that ends let others still await.
        try:
            yield
        finally:
            self._until_loop_ends = None
            await self.close()


class Sessions:
    """At most one session at a time, in the event loop that opened it."""

    def __init__(self, make_pool: Callable[[Duration | None], Awaitable[Pool]]) -> None:
        self._make_pool = make_pool
        self._guard = threading.Lock()
        self._session: Session | None = None

    @property
    def is_open(self) -> bool:
        """Whether there are connections in a loop that is not closed."""
        session = self._session
        return session is not None and session.pool is not None and not session.loop.is_closed()

    def here(self) -> Session:
        """The session of the running loop; OpenInAnotherLoop when another loop has one."""
        loop, session = asyncio.get_running_loop(), self._session
        if session is not None and session.loop is loop:
            return session
        with self._guard:
            session = self._session
            if session is not None:
                if not session.loop.is_closed():
                    raise OpenInAnotherLoop
                session.abandon()
            self._session = session = Session(loop, self._look)
            return session

    async def pool(self, wait: Duration | None = None) -> Pool:
        """The connections of the running loop, opened when there are none."""
        while True:
            session = self.here()
            if session.pool is not None:
                return session.pool
            async with session.opening:
                if session is not self._session:  # dropped while this task waited for the lock
                    continue
                if session.pool is None:
                    await self._open(session, wait)

    def release(self) -> Session | None:
        """What the caller has to close, if anything; then any loop may open connections.
        OpenInAnotherLoop leaves everything as it is.
        """
        with self._guard:
            session = self._session
            if session is None:
                return None
            elsewhere = session.loop is not asyncio.get_running_loop()
            if elsewhere and session.loop.is_running():
                raise OpenInAnotherLoop
            self._session = None
            if not elsewhere:
                return session
            session.abandon()
            return None

    def drop_if_unused(self, session: Session) -> None:
        """Forget a session without connections and waits, so that another loop may open one."""
        if session.pool is None and session.watcher.idle:
            with self._guard:
                if self._session is session:
                    self._session = None

    async def _open(self, session: Session, wait: Duration | None) -> None:
        try:
            pool = await self._make_pool(wait)
        except BaseException:
            self.drop_if_unused(session)
            raise
        if session is not self._session:
            await pool.close()
            raise ConfigurationError("the runner was closed while it was being opened")
        await session.hold(pool)

    async def _look(self, ids: Sequence[int]) -> Sequence[JobStatus]:
        return await client_calls.watch_jobs(await self.pool(), ids)
