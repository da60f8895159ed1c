"""The time that an AdaptiveScheduler goes by: a test gives it one that it moves itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Timer(Protocol):
    """What was put off."""

    def cancel(self) -> None:
        """It must not happen any more."""
        ...


class Clock(Protocol):
    """Says what time it is, and calls when some has passed."""

    def now(self) -> datetime:
        """The time, with its zone; it never goes back."""
        ...

    def call_later(self, delay: timedelta, call: Callable[[], None]) -> Timer:
        """Call that after the delay, in the event loop."""
        ...


class SteadyClock:
    """The time of day when it was made, and what has passed since by the monotonic clock: somebody
    who sets the system's clock changes no interval.
    """

    def __init__(self) -> None:
        self._made_at = datetime.now(UTC)
        self._began = time.monotonic()

    def now(self) -> datetime:
        return self._made_at + timedelta(seconds=time.monotonic() - self._began)

    def call_later(self, delay: timedelta, call: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay.total_seconds(), call)
