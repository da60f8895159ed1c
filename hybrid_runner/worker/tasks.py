"""The background tasks of one worker: named, started again when they fail, ended together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

from hybrid_runner.resilience import AdaptiveScheduler
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.tracing.current import context_without_instrumentation
from hybrid_runner.worker.loops import keep

log = logging.getLogger("hybrid_runner.worker")

RESTARTED = 5.0
"""Seconds after which a loop that ended by itself is started again: long enough for the health page
to show it.
"""
CANCELLED = 0.1
"""The same, after a handler has cancelled it, as one does that cancels all tasks: also while the
worker stops.
"""


class Tasks:
    """Loops that should never end, and single calls that nobody waits for."""

    def __init__(self, owner: Callable[[], str]) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended: list[str] = []
        """Names of loops that ended by themselves and are not started again yet."""
        self._ending = False
        self._closed = False
        self._told_to_end = set[asyncio.Task[None]]()
        self._context = context_without_instrumentation()
        self._periodic = AdaptiveScheduler(cap=1)
        """What it calls fails alone, and is due again all the same: nothing waits for it."""

    def loop(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a loop, and start it again when it raises or ends by itself."""
        task = asyncio.get_running_loop().create_task(
            keep(name, run), name=name, context=self._context.copy()
        )
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._on_loop_end(task, run))

    def every(self, name: str, interval: timedelta, call: Callable[[], object]) -> None:
        """Call it again and again, whatever it raises and handlers cancel."""
        self._context.copy().run(self._periodic.schedule, name, call, interval)

    def soon(self, call: Coroutine[Any, Any, None]) -> None:
        """Run it in the background."""
        task = asyncio.get_running_loop().create_task(call, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def insist(self, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run it in the background, again if a handler cancels it, as one does that cancels all
        tasks.
        """
        task = asyncio.get_running_loop().create_task(call(), context=self._context.copy())
        self._tasks.add(task)

        def on_end(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if task.cancelled() and not self._ending:
                self.insist(call)

        task.add_done_callback(on_end)

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
        """Cancel the tasks whose names start with one of the words; '' stands for all, and ends the
        starting of loops that handlers cancel, and what is called again and again.
        """
        self._closed = self._closed or "" in words
        tasks = [task for word in words for task in self.named(word)]
        self._told_to_end.update(tasks)
        for task in tasks:
            task.cancel()
        if self._closed:
            await self._periodic.close(grace=0)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_loop_end(self, task: asyncio.Task[None], run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.discard(task)
        was_told = task in self._told_to_end
        self._told_to_end.discard(task)
        is_cancelled = task.cancelled() and not was_told
        if was_told or (self._ending and not is_cancelled):
            return
        name, error = task.get_name(), None if task.cancelled() else task.exception()
        pause = CANCELLED if is_cancelled else RESTARTED
        self.ended.append(name)
        log.error(
            "worker %s: its %s %s: it is started again in %g s",
            self._owner(),
            name,
            "was cancelled, by a handler perhaps" if is_cancelled else "has ended",
            pause,
            exc_info=error,
            extra=log_event("worker.loop_ended"),
        )
        asyncio.get_running_loop().call_later(pause, self._again, name, run, is_cancelled)

    def _again(self, name: str, run: Callable[[], Awaitable[None]], is_cancelled: bool) -> None:  # noqa: FBT001  # call_later
        if not (self._closed or (self._ending and not is_cancelled)):
            self.ended.remove(name)
            self.loop(name, run)
