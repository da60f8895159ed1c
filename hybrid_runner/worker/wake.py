"""One flag per queue, with the strongest reason to look; lowered before the look, so that a ring during it is kept."""

from __future__ import annotations

import asyncio
from enum import IntEnum


class Reason(IntEnum):
    """Why a worker looks, weakest first. A stronger reason hides a weaker one."""

    SLOT = 1  # a slot came free while there was more to do
    RING = 2  # an insert rang
    TIMER = 3  # a job that was known to come is due
    LATER = 4  # an insert rang for a job due soon: the timer has to be set
    SWEEP = 5  # the fallback poll, a reconnect, a help ring, the start

    @property
    def way(self) -> str:
        """The label of what a look for this reason finds."""
        return self.name.lower()

    @property
    def sets_timer(self) -> bool:
        """Whether the next due time must be asked for after such a look."""
        return self >= Reason.TIMER


class Wake:
    """Raised by anyone, waited for and lowered by the claimer alone."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._reason: Reason | None = None
        self.resting = asyncio.Event()
        """Set while the claimer waits and nobody gave it a reason."""

    def up(self, reason: Reason) -> None:
        """Give a reason to look."""
        if self._reason is None or reason > self._reason:
            self._reason = reason
        self._event.set()
        self.resting.clear()

    async def wait(self) -> Reason:
        """Wait for a reason, and lower the flag."""
        if not self._event.is_set():
            self.resting.set()
        await self._event.wait()
        self._event.clear()
        reason, self._reason = self._reason, None
        return reason or Reason.SWEEP
