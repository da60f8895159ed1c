"""Does something when it is asked for, however often that is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hybrid_runner.policy.allowance import Allowance


class Paced:
    """Calls `act` at once while the allowance lasts. What is asked for beyond it is done together,
    by one call, as soon as it is allowed. Belongs to the worker's loop.
    """

    def __init__(self, act: Callable[[], object], allowance: Allowance) -> None:
        self._act = act
        self._allowance = allowance
        self._alarm: asyncio.TimerHandle | None = None

    def __call__(self) -> None:
        if self._alarm is not None:
            return
        loop = asyncio.get_running_loop()
        if self._allowance.take(loop.time()):
            self._act()
        else:
            self._alarm = loop.call_later(self._allowance.wait(loop.time()), self._act_late)

    def _act_late(self) -> None:
        self._alarm = None
        self()
