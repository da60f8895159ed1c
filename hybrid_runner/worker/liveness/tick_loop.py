"""Fires schedules when they are due. Runs in the heartbeat's thread: no handler can hold it up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from hybrid_runner.model.news import HeartbeatNews, LiveWorker, NextTick
from hybrid_runner.model.schedules import DeclaredSchedule
from hybrid_runner.model.ticks import FiredTick, TickOutcome
from hybrid_runner.policy.tick_order import TickTimer, looks, place
from hybrid_runner.storage import tick_calls
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.session_settings import FOR_TICKS, named
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics.tick_counters import TickCounters
from hybrid_runner.worker.loops import Outage

log = logging.getLogger("hybrid_runner.schedules")

MOST: Final = 100
"""Schedules that one look fires: it has locks on their rows meanwhile."""
_LINGER = 75.0
"""Seconds for which the connection is kept: whoever fires every minute need not connect each time.
"""
_MARGIN = 0.001
"""Seconds past the tick, so that it is due when the look arrives."""


class TickLoop:
    """Holds one timer. A heartbeat brings when the next tick is due, a ring that this may have
    changed, and a look tells it too.
    """

    def __init__(self, dsn: str) -> None:
        self._connection = LazyConnection(dsn, named("ticks", FOR_TICKS), linger=_LINGER)
        self._timer = TickTimer()
        self._place = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        """That of the heartbeat's thread, once it runs."""
        self._woken = asyncio.Event()
        self._is_rung = False
        self._to_declare: list[DeclaredSchedule] = []
        self.counters = TickCounters()

    def declare_later(self, schedules: Sequence[DeclaredSchedule], held: Mapping[str, str]) -> None:
        """Store with the next heartbeats those of the application's schedules that could not be: by
        name, and why. Called before the thread starts.
        """
        self._to_declare = [each for each in schedules if each.name in held]
        for name, why in held.items():
            log.warning(
                "schedule %s cannot be stored yet: %s; trying again with each heartbeat",
                name,
                why,
                extra=log_event("schedule.not_declared", schedule=name),
            )

    def hear(self, news: Iterable[HeartbeatNews], worker_id: str, asked_at: float) -> None:
        """Take what a heartbeat brought that was sent at that time, by the monotonic clock."""
        members, until = [], None
        for one in news:
            match one:
                case LiveWorker():
                    members.append(one.worker_id)
                case NextTick(delay):
                    until = delay.total_seconds()
                case _:
                    pass
        self._place = place(worker_id, members)
        self._timer.learn(until, self._place, asked_at)
        self._is_rung = self._is_rung or bool(self._to_declare)
        self._woken.set()

    def ring(self) -> None:
        """Somebody changed a schedule, or says so. May be called from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._on_ring)

    async def run(self) -> None:
        """Look when a tick is due, until cancelled."""
        self._loop = asyncio.get_running_loop()
        outage = Outage("firing schedules")
        while True:
            await self._until_due()
            try:
                await self._look()
            except Exception as error:
                await asyncio.sleep(outage.failed(error))
            else:
                outage.over()

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    def _on_ring(self) -> None:
        # Those who look tell each other nothing, so all of them ask; the others need not know.
        if looks(self._place):
            self._is_rung = True
            self._woken.set()

    async def _until_due(self) -> None:
        """Wait for a ring, or until a look is due."""
        while not self._is_rung:
            at, now = self._timer.looks_at, time.monotonic()
            if at is not None and at + _MARGIN <= now:
                return
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if at is None else at + _MARGIN - now):
                    await self._woken.wait()

    async def _look(self) -> None:
        at, fired = self._timer.looks_at, list[FiredTick]()
        is_rung, self._is_rung = self._is_rung, False
        is_due = at is not None and at <= time.monotonic()
        try:
            if is_due:
                fired = await tick_calls.fire_schedules(self._connection, MOST)
                self._tell(fired)
            await self._declare()  # last: somebody may hold a name
            asked_at = time.monotonic()
            until = _seconds(await tick_calls.next_tick(self._connection))
            to_come = None
            if is_due and not fired and until is not None and until <= 0:
                to_come = _seconds(await tick_calls.next_tick(self._connection, past=False))
        except BaseException:
            self._is_rung = is_rung or self._is_rung
            raise
        if is_due:
            now = time.monotonic()
            self._timer.looked(
                until, self._place, asked_at, now, has_fired=bool(fired), to_come=to_come
            )
        else:
            self._timer.learn(until, self._place, asked_at)

    async def _declare(self) -> None:
        held = await tick_calls.declare_schedules(self._connection, self._to_declare)
        self._to_declare = [each for each in self._to_declare if each.name in held]

    def _tell(self, fired: list[FiredTick]) -> None:
        self.counters.count(fired)
        for one in fired:
            level = logging.DEBUG if one.outcome is TickOutcome.FIRED else logging.INFO
            log.log(
                level,
                "schedule %s: %d ticks %s, the last of %s",
                one.schedule,
                one.ticks,
                one.outcome.value.replace("_", " "),
                one.tick.isoformat(),
                extra=log_event(
                    "schedule.ticked",
                    schedule=one.schedule,
                    outcome=one.outcome.value,
                    job_id=one.job_id,
                ),
            )


def _seconds(delay: timedelta | None) -> float | None:
    return None if delay is None else delay.total_seconds()
