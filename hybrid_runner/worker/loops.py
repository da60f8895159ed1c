"""Background loops that are started again when they fail, pauses after failures, and a wait with a
deadline.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hybrid_runner.errors import ConnectionLost, DatabaseError, DatabaseUnavailable
from hybrid_runner.policy.intervals import OUTAGE
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.worker")


class Outage:
    """Counts consecutive failures, says how long to pause after each, and logs it (A9)."""

    def __init__(self, what: str, longest: float = math.inf) -> None:
        self._what = what
        self._longest = longest
        self.failures = 0

    async def pause(self, error: Exception) -> None:
        """Log the failure and wait before the next try."""
        await asyncio.sleep(self.failed(error))

    def failed(self, error: Exception, longest: float = math.inf) -> float:
        """Log the failure; returns how many seconds to wait before the next try, `longest` at
        most: none after a connection that worked was lost, since the next one most likely works.
        """
        self.failures += 1
        delay = OUTAGE.spread(self.failures, random.random()).total_seconds()
        delay = min(self._longest, longest, delay)
        if self.failures == 1 and isinstance(error, ConnectionLost):
            delay = 0.0
        if isinstance(error, (DatabaseUnavailable, DatabaseError)):
            # A refused login or a missing right may be mended while we run: expired credentials, a
            # failover.
            log.warning(
                "%s: %s; trying again %s",
                self._what,
                error,
                f"in {delay:.1f} s" if delay else "at once",
                extra=log_event("outage.failed"),
            )
        else:
            log.error(
                "%s failed; trying again in %.1f s",
                self._what,
                delay,
                exc_info=error,
                extra=log_event("outage.failed"),
            )
        return delay

    def over(self) -> None:
        """Log that it works again, if it had failed, and count from zero."""
        if self.failures:
            log.info(
                "%s: works again after %d failures",
                self._what,
                self.failures,
                extra=log_event("outage.over"),
            )
        self.failures = 0


async def keep(what: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a loop; whenever it raises, log that and run it again after a pause."""
    outage = Outage(what)
    while True:
        try:
            await run()
        except Exception as error:
            await outage.pause(error)
        else:
            return


async def within(deadline: float, waiting: Coroutine[Any, Any, None]) -> bool:
    """Wait until the deadline at most, by the monotonic clock; False if that was too short."""
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            await waiting
    except TimeoutError:
        return False
    return True
