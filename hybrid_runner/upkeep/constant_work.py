"""What the holder of a duty does all the time, and not only at its turns."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from hybrid_runner.errors import ConnectionLost, RunnerError
from hybrid_runner.policy.intervals import OUTAGE
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.session_settings import FOR_UPKEEP, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.upkeep")

_LOG_EVERY = 60.0
"""Seconds between two log lines about failures."""
_REST = 5.0
"""Seconds of pause from which the connection is closed meanwhile."""


class Step(ABC):
    """One thing that is done again and again. `run` may be cut off at any line, and two workers may
    be at it at once.
    """

    name: ClassVar[str]
    session: ClassVar[Mapping[str, str]] = named("duties", FOR_UPKEEP)
    is_rung = True
    """Whether a ring is about it; else it is done after its pause alone."""

    @abstractmethod
    async def run(self, connection: Fetches) -> float:
        """Do it once; returns after how many seconds it is to be done again."""


class ConstantWork:
    """Runs a step in a loop of its own, between `start` and `stop`."""

    def __init__(self, dsn: str, step: Step) -> None:
        self._step = step
        self._connection = LazyConnection(dsn, step.session)
        self._task: asyncio.Task[None] | None = None
        self._rung = asyncio.Event()
        self._failures = 0
        self._logged_at = -_LOG_EVERY

    def start(self) -> None:
        """Begin, unless it runs."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def ring(self) -> None:
        """Do it now, instead of after the pause."""
        if self._step.is_rung:
            self._rung.set()

    async def stop(self) -> None:
        """End it, and close its connection."""
        if self._task is not None:
            self._task.cancel()
            # Not `await self._task`: its end looks like a cancellation of whoever waits here.
            await asyncio.wait([self._task])
        await self._connection.close()

    async def _run(self) -> None:
        while True:
            self._rung.clear()
            pause = await self._once()
            if pause >= _REST:
                await self._connection.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._rung.wait()

    async def _once(self) -> float:
        try:
            pause = await self._step.run(self._connection)
        except Exception as error:
            self._failures += 1
            self._log_failure(error)
            if self._failures == 1 and isinstance(error, ConnectionLost):
                return 0.0
            return OUTAGE.spread(self._failures, random.random()).total_seconds()
        self._failures = 0
        return pause

    def _log_failure(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._logged_at >= _LOG_EVERY:
            self._logged_at = now
            unexpected = None if isinstance(error, RunnerError) else error
            log.warning(
                "%s failed: %s; trying again",
                self._step.name,
                error,
                exc_info=unexpected,
                extra=log_event("upkeep.failed"),
            )
