"""Functions for loops, which note when they were called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import ClassVar

from tests.support.moved_clock import MovedClock


class Noted:
    """Notes when it is called, and returns or raises what it was given, the last of it for ever."""

    def __init__(self, clock: MovedClock, *results: object) -> None:
        self._clock = clock
        self._results: Iterator[object] = iter(results)
        self._last: object = None
        self.at: list[float] = []

    def __call__(self) -> object:
        self.at.append(self._clock.seconds)
        self._last = next(self._results, self._last)
        if isinstance(self._last, BaseException):
            raise self._last
        return self._last


class Held:
    """Runs until it is let go; with `stubborn` even if it is cancelled."""

    made: ClassVar[list[Held]] = []

    def __init__(self, clock: MovedClock, *, stubborn: bool = False) -> None:
        self._clock = clock
        self.stubborn = stubborn
        self._go = asyncio.Event()
        self.result: object = True
        self.at: list[float] = []
        self.running = 0
        self.most = 0
        self.cancelled = 0
        self.made.append(self)

    def let_go(self) -> None:
        self._go.set()

    @classmethod
    def let_all_go(cls) -> None:
        """At the end of a test, which may have failed before it did so itself."""
        while cls.made:
            held = cls.made.pop()
            held.stubborn = False
            held.let_go()

    async def __call__(self) -> object:
        self.at.append(self._clock.seconds)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            while not self._go.is_set():
                try:
                    await self._go.wait()
                except asyncio.CancelledError:
                    self.cancelled += 1
                    if not self.stubborn:
                        raise
            self._go.clear()
            return self.result
        finally:
            self.running -= 1
