"""What is tried again while Postgres does not answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.policy.intervals import OUTAGE
from hybrid_runner.telemetry.log_events import log_event

T = TypeVar("T")

log = logging.getLogger("hybrid_runner")


async def outlast(call: Callable[[], Awaitable[T]], wait: Duration | None) -> T:
    """Call again while Postgres does not answer, for so long at most; None: call once."""
    deadline = time.monotonic() + (0 if wait is None else parse_duration(wait).total_seconds())
    failures = 0
    while True:
        try:
            return await call()
        except DatabaseUnavailable as error:
            failures += 1
            pause = OUTAGE.after(failures).total_seconds()
            if time.monotonic() + pause > deadline:
                raise
            log.warning(
                "%s; trying again in %.0f s", error, pause, extra=log_event("postgres.unavailable")
            )
            await asyncio.sleep(pause)
