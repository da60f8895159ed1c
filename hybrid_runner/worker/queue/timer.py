"""Wakes a queue's claimer when the next job that is known to come is due."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.worker.queue.wake import Wake

# Past the due moment by a hair, so that "run_at <= now()" holds when the look arrives.
HAIR = 0.001


class Timer:
    """At most one alarm, for the earliest time asked for."""

    def __init__(self, wake: Wake, furthest: timedelta) -> None:
        self._wake = wake
        self._furthest = furthest.total_seconds()
        self._alarm: asyncio.TimerHandle | None = None

    def set(self, delay: timedelta | None) -> None:
        """Go off after `delay`; None: nothing is known to come. Beyond the fallback poll there is
        no need.
        """
        self.clear()
        if delay is not None and (seconds := max(0.0, delay.total_seconds())) <= self._furthest:
            self._alarm = asyncio.get_running_loop().call_later(seconds + HAIR, self._ring)

    def advance(self, delay: timedelta) -> None:
        """Go off after `delay`, unless something comes sooner."""
        rings_at = asyncio.get_running_loop().time() + delay.total_seconds() + HAIR
        # An alarm that is overdue because the loop was busy has yet to ring: it is sooner, too.
        if self._alarm is None or self._alarm.when() > rings_at:
            self.set(delay)

    def clear(self) -> None:
        """Forget the alarm."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        self._wake.up(Reason.TIMER)
