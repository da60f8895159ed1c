"""What a program under measurement notes of its handlers, and how it is asked for it (see
child.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from array import array
from collections.abc import Awaitable, Callable
from typing import Any

from hybrid_runner.worker.interpreter import fastest_loop

MARKS = 20
Command = Callable[[list[str]], Awaitable[dict[str, Any] | None]]


class Stopwatch:
    """When the handlers of one kind were called."""

    def __init__(self) -> None:
        self.at = array("q")
        self.latencies = array("q")
        self._expected = 0
        self._reached = asyncio.Event()

    def note(self, sent: int | None = None) -> None:
        """A handler was called; `sent` is when its job was put in, by the clock that all processes
        share.
        """
        now = time.monotonic_ns()
        self.at.append(now)
        if sent is not None:
            self.latencies.append((now - sent) // 1000)
        if len(self.at) == self._expected:
            self._reached.set()

    async def expect(self, count: int, patience: float | None = None) -> dict[str, Any]:
        """Wait until so many were called, or patience ends; then when, and how late."""
        self._reached.clear()
        self._expected = count
        if len(self.at) < count:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._reached.wait()
        return self.report()

    def report(self) -> dict[str, Any]:
        """Nanoseconds of the clock, at equal shares of the calls; microseconds of each latency."""
        last = len(self.at) - 1
        marks = [self.at[last * part // MARKS] for part in range(MARKS + 1)] if last >= 0 else []
        return {"handled": last + 1, "marks": marks, "latencies": list(self.latencies)}

    def clear(self) -> None:
        """Forget what was noted."""
        del self.at[:], self.latencies[:]


def say(answer: dict[str, Any]) -> None:
    """One line of JSON to whoever asks."""
    print(json.dumps(answer), flush=True)  # noqa: T201  # this is how we are asked


async def obey(commands: dict[str, Command]) -> None:
    """Do what the lines on stdin say until there are no more; a command runs to its end before the
    next.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        name, *arguments = line.decode().split()
        if (answer := await commands[name](arguments)) is not None:
            say(answer)


def run_fast(main: Callable[[], Awaitable[None]]) -> None:
    """Run as the worker command does: on uvloop where there is one."""

    async def run() -> None:
        await main()

    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(run())
