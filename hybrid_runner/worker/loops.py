"""The two shapes of background work: a loop kept alive, and something done every so often."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta

from hybrid_runner.errors import DatabaseError, DatabaseUnavailable
from hybrid_runner.policy.pace import OUTAGE

log = logging.getLogger("hybrid_runner.worker")


class Outage:
    """Counts failures in a row, says how long to pause, and logs each kind as it deserves (A9)."""

    def __init__(self, what: str, longest: float = math.inf) -> None:
        self._what = what
        self._longest = longest
        self.failures = 0

    async def pause(self, error: Exception) -> None:
        """Log the failure and wait before the next try."""
        await asyncio.sleep(self.failed(error))

    def failed(self, error: Exception) -> float:
        """Log the failure; how many seconds to wait before the next try."""
        self.failures += 1
        delay = min(self._longest, OUTAGE.outage(self.failures, random.random()).total_seconds())
        if isinstance(error, (DatabaseUnavailable, DatabaseError)):
            # A refused login or a missing right may be mended while we run: expired credentials, a failover.
            log.warning("%s: %s; trying again in %.1f s", self._what, error, delay)
        else:
            log.error("%s failed; trying again in %.1f s", self._what, delay, exc_info=error)
        return delay

    def over(self) -> None:
        """It worked."""
        if self.failures:
            log.info("%s: works again after %d failures", self._what, self.failures)
        self.failures = 0


async def keep(what: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a loop that should never end; when it does, say so and start it again."""
    outage = Outage(what)
    while True:
        try:
            await run()
        except Exception as error:
            await outage.pause(error)
        else:
            return


async def every(what: str, interval: timedelta, call: Callable[[], Awaitable[object]]) -> None:
    """Call now and then every interval, up to a twentieth early or late so that a fleet spreads."""
    outage = Outage(what)
    while True:
        try:
            await call()
        except Exception as error:
            await outage.pause(error)
            continue
        outage.over()
        await asyncio.sleep(interval.total_seconds() * (0.95 + 0.1 * random.random()))
