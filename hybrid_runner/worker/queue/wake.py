"""One flag for each queue, with the strongest reason to look. The flag is lowered before the look,
so that a ring during the look is kept.
"""

from __future__ import annotations

import asyncio

from hybrid_runner.policy.doorbell import Reason


class Wake:
    """Raised by anything that is a reason to look; lowered by the claimer alone."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._reason: Reason | None = None
        self._later = False
        self.resting = asyncio.Event()
        """Set while the claimer waits for a reason, without a time limit, and there is none."""

    def up(self, reason: Reason) -> None:
        """Raise the flag."""
        if self._reason is None or reason > self._reason:
            self._reason = reason
        if reason in (Reason.TIMER, Reason.LATER):
            self._later = True  # stronger reasons must not hide that the timer has to be set
        self._event.set()
        self.resting.clear()

    async def wait(self, longest: float | None = None) -> Reason:
        """Wait until the flag is raised, at most so many seconds, and lower it."""
        if not self._event.is_set() and longest != 0:
            await self._rest(longest)
        self._event.clear()
        reason, self._reason = self._reason, None
        return Reason.PAUSE if reason is None else reason

    def later(self) -> bool:
        """Whether a reason that requires setting the timer was given since the last call."""
        later, self._later = self._later, False
        return later

    async def _rest(self, longest: float | None) -> None:
        if longest is None:
            self.resting.set()
            await self._event.wait()
            return
        alarm = asyncio.get_running_loop().call_later(longest, self._event.set)
        try:
            await self._event.wait()
        finally:
            alarm.cancel()
