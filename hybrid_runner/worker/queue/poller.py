"""The fallback poll of one queue: seldom while rings arrive, often while they cannot, and less
often with each empty poll (A2, A3).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time

from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.worker.queue.wake import Wake


class Poller:
    """Causes a sweep whenever its pause has passed. A change of the pause starts it anew."""

    def __init__(self, wake: Wake, *, deaf: GrowingPause, hearing: GrowingPause) -> None:
        self._wake = wake
        self._deaf = deaf
        self._hearing = hearing
        self._pace = deaf
        self._changed = asyncio.Event()
        self._answered = asyncio.Event()
        self._due_at = math.inf
        self.empty_polls = 0
        self.polls = 0

    @property
    def pause(self) -> float:
        """Seconds between two polls."""
        return self._pace.after(self.empty_polls).total_seconds()

    @property
    def overdue(self) -> float:
        """How many seconds the next poll is late."""
        return max(0.0, time.monotonic() - self._due_at)

    def hears(self, *, hearing: bool) -> None:
        """Rings arrive from now on, or no longer do."""
        self._pace = self._hearing if hearing else self._deaf
        self.empty_polls = 0
        self._changed.set()

    def looked(self, reason: Reason, found: int | None) -> None:
        """Take the result of a look: finding work shortens the pause to its base, an empty poll
        lengthens it. None: there was no look, all slots are taken.
        """
        self._answered.set()
        if found is None:
            return
        if found:
            if self.empty_polls:
                self.empty_polls = 0
                self._changed.set()
        elif reason is Reason.SWEEP:
            self.empty_polls += 1

    async def run(self) -> None:
        """Poll for ever."""
        while True:
            self._changed.clear()
            self._due_at = time.monotonic() + self.pause
            try:
                async with asyncio.timeout(self.pause):
                    await self._changed.wait()
            except TimeoutError:
                await self._poll()

    async def _poll(self) -> None:
        self.polls += 1
        self._answered.clear()
        self._due_at = time.monotonic() + self.pause
        self._wake.up(Reason.SWEEP)
        # What the poll finds decides the next pause. While Postgres is away no answer comes: poll
        # again after the pause.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.pause):
                await self._answered.wait()
