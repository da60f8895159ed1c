"""Wakes jobs whose signals have come. All workers hear of a signal, and two look at once.

What is not heard of is found by the duty `signals`, and while this worker is deaf by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.messages import SignalSent
from hybrid_runner.policy.allowance import Allowance
from hybrid_runner.policy.ring_order import Part, part, place
from hybrid_runner.policy.waking import MOST_KEYS, HeardKeys
from hybrid_runner.storage import signal_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.upkeep.duties.signals import MOST_WOKEN, SweepWaiting, number_signals
from hybrid_runner.worker.loops import Outage

_LOOK_LATER = 0.25
"""Seconds that the third one waits, in case the first two have died."""
_REST = 3
"""After a part of a sweep it pauses for so many times what that took."""
_DEAF = 2.0
"""Seconds between two looks of a worker that hears nothing."""


class Waker:
    """Belongs to the worker's loop. `members` are the ids of the workers that hear the same."""

    def __init__(
        self,
        connection: Fetches,
        worker_id: Callable[[], str],
        members: Callable[[], Collection[str]],
        is_hearing: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._worker_id = worker_id
        self._members = members
        self._is_hearing = is_hearing
        self._heard = HeardKeys()
        self._later: list[str] = []
        self._some = asyncio.Event()
        self._was_deaf = False
        self._allowance = Allowance(at_once=50, per_second=100)
        self._sweep = SweepWaiting()
        self._outage = Outage("waking jobs for signals")
        self.woken = 0
        """How many jobs were made due."""

    def heard(self, message: SignalSent, ringer: int) -> None:
        """A signal was committed, or somebody says so."""
        members = self._members()
        position = place(ringer, self._worker_id(), members)
        match part(position, max(1, len(members))):
            case Part.LOOK:
                self._look_for([message.key])
            case Part.LOOK_LATER:
                self._look_later(message.key)
            case Part.NOTHING:
                pass

    def on_turn(self) -> None:
        """The listener was lost, or hears again: signals may have come meanwhile. Those that came
        before the worker started are found by the duty.
        """
        if not self._is_hearing():
            self._was_deaf = True
        elif self._was_deaf:
            self._was_deaf = False
            self._look_for([""])

    async def run(self) -> None:
        """Look for what was heard of, for ever."""
        while True:
            await self._until_some()
            now = time.monotonic()
            if (pause := self._allowance.wait(now)) > 0:
                await asyncio.sleep(pause)
            self._allowance.take(time.monotonic())
            try:
                await self._look()
                self._outage.over()
            except RunnerError as error:  # the duty finds what is left out here
                await self._outage.pause(error)

    async def _until_some(self) -> None:
        if self._heard or not self._sweep.is_through:
            return
        self._some.clear()
        try:
            async with asyncio.timeout(None if self._is_hearing() else _DEAF):
                await self._some.wait()
        except TimeoutError:
            self._heard.add([""])

    async def _look(self) -> None:
        keys = self._heard.take()
        if keys:
            await number_signals(self._connection)
            found = await signal_calls.wake_by_keys(self._connection, keys, MOST_WOKEN)
            self.woken += found
            if found == MOST_WOKEN:  # there may be more
                self._heard.add(keys)
            return
        began = time.monotonic()
        if self._sweep.is_through:  # else what comes now may lie behind it, and it begins anew
            self._heard.is_sweep_due = False
        self.woken += await self._sweep.round(self._connection)
        await asyncio.sleep(_REST * (time.monotonic() - began))

    def _look_for(self, keys: Iterable[str]) -> None:
        self._heard.add(keys)
        self._some.set()

    def _look_later(self, key: str) -> None:
        if not self._later:
            asyncio.get_running_loop().call_later(_LOOK_LATER, self._look_now)
        if len(self._later) < MOST_KEYS:
            self._later.append(key)
        else:
            self._later[-1] = ""

    def _look_now(self) -> None:
        later, self._later = self._later, []
        self._look_for(later)
