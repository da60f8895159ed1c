"""The threads, or the processes, in which a worker runs handlers, and the wait for a free one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.worker")

PATIENCE = 1.0
"""Seconds that a claimed job waits for a thread or a process before it goes back to its queue."""


class NoPlace(Exception):
    """None came free in time: the job has not begun, and is for another worker."""


class Places:
    """`total` threads or processes; each runs one handler at a time."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.claimed = 0
        """Written by the executor: attempts that have a place or wait for one, and threads that go
        on after their attempts.
        """
        self.surviving = 0
        """Threads that go on after their attempts."""
        self.is_closing = False
        """Written by the executor: the worker stops, so nobody may begin to wait."""
        self._free = asyncio.Semaphore(total)
        self._on_shortage: list[Callable[[], None]] = []
        self._on_free: list[Callable[[], None]] = []

    @property
    def free(self) -> int:
        """How many more jobs could begin at once."""
        return max(0, self.total - self.claimed)

    def watch(self, on_shortage: Callable[[], None], on_free: Callable[[], None]) -> None:
        """Call `on_shortage` when a job has waited in vain, `on_free` when there may be a place."""
        self._on_shortage.append(on_shortage)
        self._on_free.append(on_free)

    async def take(self) -> None:
        """Take a place, if need be after a moment; NoPlace when none has come free."""
        if self._free.locked() and self.is_closing:
            raise NoPlace
        try:
            async with asyncio.timeout(PATIENCE if self._free.locked() else None):
                await self._free.acquire()
        except TimeoutError:
            for on_shortage in self._on_shortage:
                on_shortage()
            raise NoPlace from None

    def give_back(self) -> None:
        """The handler has returned: the place is free."""
        self._free.release()

    def outlived_by(self, thread: asyncio.Future[Any]) -> None:
        """The attempt has ended, and its thread goes on until then."""
        self.surviving += 1
        thread.add_done_callback(self._returned)
        if self.surviving == self.total:
            log.warning(
                "all %d threads are held by sync handlers that went on after their attempts had"
                " ended: sync jobs are left to other workers until one returns; start this worker"
                " anew if none does",
                self.total,
                extra=log_event("worker.threads_lost", threads=self.total),
            )

    def _returned(self, _: object) -> None:
        self.surviving -= 1

    def leave(self) -> None:
        """An attempt has ended, and its thread."""
        self.claimed -= 1
        for on_free in self._on_free:
            on_free()
