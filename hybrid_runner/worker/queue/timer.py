"""Wakes a queue's claimer when the next job that is known to come is due."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta

from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.worker.queue.wake import Wake

MARGIN = 0.001
"""Seconds past the due time, so that "run_at <= now()" holds when the look arrives."""


class Timer:
    """Holds at most one alarm: the earliest that was asked for."""

    def __init__(self, wake: Wake, furthest: timedelta) -> None:
        self._wake = wake
        self._furthest = furthest.total_seconds()
        self._alarm: asyncio.Handle | None = None
        self._goes_off_at = math.inf
        self._told_at = math.inf

    def ask(self) -> None:
        """Postgres is asked when the next job is due: what is told meanwhile may be news to it."""
        self._told_at = math.inf

    def set(self, delay: timedelta | None) -> None:
        """Set the alarm as the answer says; None: no job is known to come."""
        self._set_at(min(math.inf if delay is None else self._after(delay), self._told_at))

    def advance(self, delay: timedelta) -> None:
        """Set the alarm to this delay, unless it goes off sooner."""
        goes_off_at = self._after(delay)
        self._told_at = min(self._told_at, goes_off_at)
        # An alarm that is late because the loop was busy has yet to go off: it is sooner, too.
        if self._alarm is None or self._goes_off_at > goes_off_at:
            self._set_at(goes_off_at)

    def _after(self, delay: timedelta) -> float:
        return asyncio.get_running_loop().time() + max(0.0, delay.total_seconds()) + MARGIN

    def clear(self) -> None:
        """Set no alarm."""
        self._told_at = math.inf
        self._cancel()

    def _cancel(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _set_at(self, goes_off_at: float) -> None:
        """A delay that is longer than the pause of the fallback poll needs no alarm."""
        self._cancel()
        loop = asyncio.get_running_loop()
        if goes_off_at - loop.time() <= self._furthest + MARGIN:
            # Of a time that is past, uvloop returns a handle that does not tell it.
            self._alarm = loop.call_at(goes_off_at, self._go_off)
            self._goes_off_at = goes_off_at

    def _go_off(self) -> None:
        self._alarm = None
        if self._told_at <= asyncio.get_running_loop().time():
            self._told_at = math.inf
        self._wake.up(Reason.TIMER)
