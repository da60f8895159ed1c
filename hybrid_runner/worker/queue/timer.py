"""Wakes a queue's claimer when the next job that is known to come is due."""

from __future__ import annotations

import asyncio
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
        self._alarm: asyncio.TimerHandle | None = None

    def set(self, delay: timedelta | None) -> None:
        """Set the alarm anew; None: no job is known to come. A delay that is longer than the pause
        of the fallback poll needs no alarm.
        """
        self.clear()
        if delay is not None and (seconds := max(0.0, delay.total_seconds())) <= self._furthest:
            self._alarm = asyncio.get_running_loop().call_later(seconds + MARGIN, self._go_off)

    def advance(self, delay: timedelta) -> None:
        """Set the alarm to this delay, unless it goes off sooner."""
        goes_off_at = asyncio.get_running_loop().time() + delay.total_seconds() + MARGIN
        # An alarm that is late because the loop was busy has yet to go off: it is sooner, too.
        if self._alarm is None or self._alarm.when() > goes_off_at:
            self.set(delay)

    def clear(self) -> None:
        """Set no alarm."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _go_off(self) -> None:
        self._alarm = None
        self._wake.up(Reason.TIMER)
