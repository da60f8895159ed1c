"""The background tasks of one worker: kept alive, named, and ended together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hybrid_runner.telemetry.current import quiet
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.loops import keep

log = logging.getLogger("hybrid_runner.worker")

RESTARTED = 5.0
"""Seconds after which a loop that ended by itself is started again: long enough to be seen on the health page."""


class Tasks:
    """Loops that should never end, and small things done soon."""

    def __init__(self, owner: Callable[[], str]) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended: list[str] = []
        """Loops that ended although nobody ended them, until they are started again."""
        self._ending = False
        self._context = quiet()

    def loop(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a loop; what it raises starts it again, and so does an end that nobody asked for."""
        task = asyncio.get_running_loop().create_task(keep(name, run), name=name, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._on_loop_end(task, run))

    def soon(self, call: Coroutine[Any, Any, None]) -> None:
        """Do it without waiting for it."""
        task = asyncio.get_running_loop().create_task(call, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def ending(self) -> bool:
        """Whether the worker stops."""
        return self._ending

    def named(self, word: str) -> list[asyncio.Task[None]]:
        """Those whose names start with it."""
        return [task for task in self._tasks if task.get_name().startswith(word)]

    def expect_ends(self) -> None:
        """From now on an end is no surprise."""
        self._ending = True

    async def end(self, *words: str) -> None:
        """End those whose names start with one of the words, or with anything: ''."""
        tasks = [task for word in words for task in self.named(word)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_loop_end(self, task: asyncio.Task[None], run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.discard(task)
        if self._ending:
            return
        name, error = task.get_name(), None if task.cancelled() else task.exception()
        self.ended.append(name)
        log.error(
            "worker %s: its %s has ended: it is started again in %.0f s",
            self._owner(),
            name,
            RESTARTED,
            exc_info=error,
            extra=log_event("worker.loop_ended"),
        )
        asyncio.get_running_loop().call_later(RESTARTED, self._again, name, run)

    def _again(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        if not self._ending:
            self.ended.remove(name)
            self.loop(name, run)
