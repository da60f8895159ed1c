"""The events of monitored services for all who read them here: one look at the table for all of
them, and no connection while nobody reads.

Ids are dense and in the order of the commits. So a reader is a number, that of the last event it
was given; what is newer is in memory or is read for it from the table. Nothing waits for a reader
that lags, and nothing is left out for it but what the table no longer has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from hybrid_runner.errors import DatabaseUnavailable, RunnerError
from hybrid_runner.model.monitor_views import MonitorEvent
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.seldom import Seldom

LOOK = 0.3
"""Seconds between two looks at the table while somebody reads."""
_LONGEST_PAUSE = 5.0
_PAUSE_WHILE_AWAY = 1.0
_SHARE = 4
"""The pause is so many times as long as the look took, so that a slow database is read less often.
"""
KEPT = 2000
"""Events that are kept in memory."""
_AT_A_TIME = 4
"""Readers that read in the table at a time; the others wait for their turn."""
LAMP = timedelta(seconds=6)
"""For how long polls are stored that nobody else wants, after a page server has died."""
RENEWAL = 2.0
"""Seconds between two renewals of the lamp."""

log = logging.getLogger("hybrid_runner.web")


class MonitorFeed:
    """Looks from the first reader until the last one has left."""

    def __init__(self, connection: PageConnection) -> None:
        self._connection = connection
        self._readers = 0
        self._kept: deque[MonitorEvent] = deque(maxlen=KEPT)
        self._newest: int | None = None
        """The id of the last event that was seen; None: nobody has looked."""
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._lit_at = float("-inf")
        self._complained = Seldom()
        self._catching_up = asyncio.Semaphore(_AT_A_TIME)
        self.is_away = False
        """Whether the database does not answer."""

    async def join(self) -> int:
        """Look from now on; the id of the newest event there is."""
        self._readers += 1
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._run())
        return await self._newest_id()

    def leave(self) -> None:
        """One reader less."""
        self._readers -= 1
        if not self._readers and self._looking is not None:
            self._looking.cancel()
            self._looking = None
            self._forget()

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
            self._looking = None

    async def after(self, event_id: int) -> Sequence[MonitorEvent]:
        """What came behind this event, the oldest first, as much as is read at a time."""
        if self._newest is not None and event_id >= self._newest:
            return ()
        if self._kept and event_id + 1 >= self._kept[0].id:
            return [event for event in self._kept if event.id > event_id]
        async with self._catching_up:  # after a restart all come back at once
            return await monitor_view_calls.events_after(self._connection, event_id)

    async def wait(self, patience: float) -> bool:
        """Wait until something may have changed; False: it has not, for so many seconds."""
        changed = self._changed
        try:
            async with asyncio.timeout(patience):
                await changed.wait()
        except TimeoutError:
            return False
        return True

    async def _run(self) -> None:
        while True:
            began = time.monotonic()
            try:
                await self._look()
            except Exception as error:  # whoever reads is told, and a later look may succeed
                self._note_away(error)
                pause = _PAUSE_WHILE_AWAY
            else:
                if self.is_away:
                    self.is_away = False
                    self._wake()
                pause = min(_LONGEST_PAUSE, max(LOOK, _SHARE * (time.monotonic() - began)))
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        await self._light()
        newest = await self._newest_id()
        events = await monitor_view_calls.events_after(self._connection, newest)
        if events:
            self._kept.extend(events)
            self._saw(events[-1].id)
            self._wake()

    async def _newest_id(self) -> int:
        if self._newest is None:
            return self._saw(await monitor_view_calls.newest_event(self._connection))
        return self._newest

    def _saw(self, event_id: int) -> int:
        """Others may have looked meanwhile, and seen more."""
        self._newest = event_id if self._newest is None else max(event_id, self._newest)
        return self._newest

    async def _light(self) -> None:
        """Say that somebody reads: good polls are stored meanwhile. Who may not say so sees the
        other events.
        """
        now = time.monotonic()
        if now - self._lit_at < RENEWAL:
            return
        self._lit_at = now
        with contextlib.suppress(RunnerError):
            await monitor_view_calls.announce_event_readers(self._connection, LAMP)

    def _note_away(self, error: Exception) -> None:
        if not isinstance(error, DatabaseUnavailable) and self._complained.is_due():
            if isinstance(error, RunnerError):
                log.warning(
                    "events of monitors cannot be read: %s",
                    error,
                    extra=log_event("web.database_unavailable"),
                )
            else:
                log.error(
                    "the stream of monitors' events failed",
                    exc_info=error,
                    extra=log_event("web.stream_failed"),
                )
        if not self.is_away:
            self.is_away = True
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _forget(self) -> None:
        self._kept.clear()
        self._newest, self._lit_at, self.is_away = None, float("-inf"), False
