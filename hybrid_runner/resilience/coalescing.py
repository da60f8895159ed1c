"""Callers who want the same thing at the same time share one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from hybrid_runner.errors import RunnerError

T = TypeVar("T")


class Coalescing:
    """One call at a time for each key. Whoever comes while it is on its way gets its result, or its
    exception; whoever comes afterwards makes a new one: nothing is kept.

    Share what was read, not what was done with it: two callers that write the one result write it
    twice, or one of them not at all.
    """

    def __init__(self) -> None:
        self._calls: dict[Hashable, _Call] = {}
        self.made = 0
        """How many calls were made."""
        self.shared = 0
        """How many callers were given a result for which another one had asked."""

    @property
    def on_their_way(self) -> int:
        """How many calls have not ended."""
        return len(self._calls)

    async def run(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """What `make` brings, called by whoever asks first for that key.

        A caller that is cancelled leaves the call to the others; with the last one it is cancelled.
        """
        while (call := self._calls.get(key)) is not None and call.is_given_up:
            await asyncio.wait([call.task])  # it cleans up: two at a time are not wanted
        if call is None or call.task.done():
            call = self._begin(key, make)
        elif call.task is asyncio.current_task():
            raise RunnerError(f"the call for {key!r} waits for itself: give this one another key")
        else:
            self.shared += 1
        call.callers += 1
        try:
            await asyncio.wait([call.task])
        finally:
            call.callers -= 1
            if not call.callers:
                call.task.cancel()
        result: T = call.task.result()
        return result

    def _begin(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> _Call:
        # Not by the event loop's factory: one of eager tasks would make the call here, before those
        # who ask within it could be told that it is on its way.
        call = self._calls[key] = _Call(asyncio.Task(_awaited(make)))
        self.made += 1

        def on_end(task: asyncio.Task[Any]) -> None:
            if self._calls.get(key) is call:
                del self._calls[key]
            if not task.cancelled():
                task.exception()  # nobody may be left to be told

        call.task.add_done_callback(on_end)
        return call


class _Call:
    __slots__ = ("callers", "task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.callers = 0

    @property
    def is_given_up(self) -> bool:
        """Whether all who waited for it have left."""
        return not self.callers and not self.task.done()


async def _awaited(make: Callable[[], Awaitable[T]]) -> T:
    return await make()
