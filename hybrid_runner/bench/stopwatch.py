"""Records when handlers were called, and answers the parent's questions about it (see child.py)."""

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
        """Record a call. `sent` is when its job was enqueued, by the monotonic clock that all
        processes share.
        """
        now = time.monotonic_ns()
        self.at.append(now)
        if sent is not None:
            self.latencies.append((now - sent) // 1000)
        if len(self.at) == self._expected:
            self._reached.set()

    async def expect(self, count: int, patience: float | None = None) -> dict[str, Any]:
        """Wait until so many calls are recorded, or patience ends; then return the report."""
        self._reached.clear()
        self._expected = count
        if len(self.at) < count:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._reached.wait()
        return self.report()

    def report(self) -> dict[str, Any]:
        """The number of calls, the clock's nanoseconds at equal shares of them, and each latency in
        microseconds.
        """
        last = len(self.at) - 1
        marks = [self.at[last * part // MARKS] for part in range(MARKS + 1)] if last >= 0 else []
        return {"handled": last + 1, "marks": marks, "latencies": list(self.latencies)}

    def clear(self) -> None:
        """Delete what was recorded."""
        del self.at[:], self.latencies[:]


def say(answer: dict[str, Any]) -> None:
    """Write one line of JSON to the parent."""
    print(json.dumps(answer), flush=True)  # noqa: T201  # the parent reads it


async def obey(commands: dict[str, Command]) -> None:
    """Run the commands that come as lines on stdin, one after the other, until it is closed."""
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
