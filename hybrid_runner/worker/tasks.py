"""The background tasks of one worker: named, started again when they fail, ended together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.tracing.current import context_without_instrumentation
from hybrid_runner.worker.loops import keep

log = logging.getLogger("hybrid_runner.worker")

RESTARTED = 5.0
"""Seconds after which a loop that ended by itself is started again: long enough for the health page
to show it.
"""


class Tasks:
    """Loops that should never end, and single calls that nobody waits for."""

    def __init__(self, owner: Callable[[], str]) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended: list[str] = []
        """Names of loops that ended by themselves and are not started again yet."""
        self._ending = False
        self._context = context_without_instrumentation()

    def loop(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a loop, and start it again when it raises or ends by itself."""
        task = asyncio.get_running_loop().create_task(
            keep(name, run), name=name, context=self._context.copy()
        )
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._on_loop_end(task, run))

    def soon(self, call: Coroutine[Any, Any, None]) -> None:
        """Run it in the background."""
        task = asyncio.get_running_loop().create_task(call, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def ending(self) -> bool:
        """Whether the worker is being stopped."""
        return self._ending

    def named(self, word: str) -> list[asyncio.Task[None]]:
        """The tasks whose names start with this word."""
        return [task for task in self._tasks if task.get_name().startswith(word)]

    def expect_ends(self) -> None:
        """The worker is being stopped: loops that end are not started again."""
        self._ending = True

    async def end(self, *words: str) -> None:
        """Cancel the tasks whose names start with one of the words; '' stands for all."""
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
