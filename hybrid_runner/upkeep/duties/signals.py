"""Finds waiting jobs whose signal is there and that nobody has woken, and forgets old signals."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from hybrid_runner.storage import signal_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.series import Counter
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.upkeep")

KEPT = timedelta(days=7)
"""How long signals are kept."""
WAITS_KEPT = KEPT + timedelta(days=1)
"""How long what a job was given is kept at least: for longer than the signal."""
_AT_ONCE = 5000
"""Waiting jobs that a round looks at."""
_RECENT = timedelta(minutes=1)
_MOST_RECENT = 500
MOST_WOKEN = 200
"""Jobs that one statement wakes: it has locks on them meanwhile."""
_NUMBERED = 5000
"""Signals that one statement numbers."""
_FORGET_EVERY = 600.0
"""Seconds."""
_FORGOTTEN = 5000
_FORGET_CALLS = 50
"""Rows that one statement deletes, and statements of a round."""


_START = ("", 0)


async def number_signals(connection: Fetches) -> None:
    """Number all signals that are committed: before the jobs that wait for them are looked for."""
    while await signal_calls.number_signals(connection, _NUMBERED) == _NUMBERED:
        pass


class SweepWaiting:
    """Walks through all waiting jobs, a bounded part in each round, again and again."""

    def __init__(self) -> None:
        self._place = _START

    @property
    def is_through(self) -> bool:
        """Whether the last round came to the end."""
        return self._place == _START

    async def round(self, connection: Fetches) -> int:
        """First what was signalled lately, then the next part of all; how many were woken."""
        await number_signals(connection)
        woken = 0
        if keys := await signal_calls.recent_keys(connection, _RECENT, _MOST_RECENT):
            woken += await signal_calls.wake_by_keys(connection, keys, MOST_WOKEN)
        swept = await signal_calls.sweep_waiting(connection, *self._place, _AT_ONCE)
        if swept is None:
            self._place = _START
            return woken
        for start in range(0, len(swept.open), MOST_WOKEN):
            some = swept.open[start : start + MOST_WOKEN]
            woken += len(await signal_calls.wake_waiting(connection, some))
        self._place = (swept.key, swept.job_id)
        return woken


class Signals(Duty):
    """The guarantee behind the rings: no job waits long for a signal that is there."""

    name = "signals"
    every = timedelta(seconds=30)
    held = True

    def __init__(self) -> None:
        self._sweep = SweepWaiting()
        self._forget_at = time.monotonic()
        self.found = 0
        """How many jobs had to be woken by it."""
        self._dropped = Counter(table.SIGNALS_DROPPED)
        self._dropped.add((), 0)

    def metric_values(self) -> MetricValues:
        """How many signals nobody took. May be called from any thread."""
        return {table.SIGNALS_DROPPED.name: self._dropped.read()}

    async def run(self, connection: Fetches) -> None:
        self.found += await self._sweep.round(connection)
        if time.monotonic() >= self._forget_at:
            await self.forget(connection)
            self._forget_at = time.monotonic() + _FORGET_EVERY

    async def forget(self, connection: Fetches) -> None:
        """Delete signals that are too old, and what was given of them."""
        dropped = 0
        for _ in range(_FORGET_CALLS):
            forgotten = await signal_calls.forget_signals(connection, KEPT, _FORGOTTEN)
            dropped += forgotten.dropped
            if forgotten.signals < _FORGOTTEN:
                break
        for _ in range(_FORGET_CALLS):
            if await signal_calls.forget_waits(connection, WAITS_KEPT, _FORGOTTEN) < _FORGOTTEN:
                break
        if dropped:
            self._dropped.add((), dropped)
            log.warning(
                "%d signals that nobody took in %d days were dropped",
                dropped,
                KEPT.days,
                extra=log_event("signals.dropped", dropped=dropped),
            )
