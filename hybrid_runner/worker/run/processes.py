"""Processes for handlers that need a core of their own. Each runs one job at a time, and is killed
when its attempt is stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from hybrid_runner.handlers.job import JobPort
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Left, Outcome
from hybrid_runner.worker.run.handler_process import HandlerProcess

_LAST_DEATHS = 1.0
"""Seconds that killed processes have to end."""


class ProcessPool:
    """Processes for handlers, started when needed and kept."""

    def __init__(self, port: JobPort) -> None:
        self._port = port
        self._free: list[HandlerProcess] = []
        self._all: set[HandlerProcess] = set()

    async def prepare(self, kind: JobKind[Any, Any]) -> None:
        """Make sure that a process that has imported the handler's module is free."""
        while self._free and not self._free[-1].is_usable():
            self._end(self._free.pop())
        if not self._free:
            process = HandlerProcess(kind.function.__module__)
            self._all.add(process)
            try:
                await process.ready()
            except BaseException:
                self._end(process)
                raise
            self._free.append(process)

    async def run(self, kind: JobKind[Any, Any], claim: Claim) -> tuple[Outcome, Left]:
        """Run one attempt in a process, right after `prepare`. Cancelling it kills the process."""
        process = self._free.pop()
        try:
            ended = await process.run(kind, claim, self._port)
        except BaseException:
            self._end(process)
            raise
        if process.is_usable():
            self._free.append(process)
        else:
            self._end(process)
        return ended

    async def close(self) -> None:
        """Kill all processes."""
        ending = list(self._all)
        for process in ending:
            self._end(process)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_DEATHS):
                for process in ending:
                    await process.ended.wait()

    def _end(self, process: HandlerProcess) -> None:
        self._all.discard(process)
        process.end()
