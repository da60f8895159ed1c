"""Runs a duty that stays with one worker for as long as that worker lives and succeeds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from dataclasses import dataclass

from hybrid_runner.errors import RunnerError
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.upkeep.constant_work import ConstantWork
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.upkeep")

RENEWAL = 1 / 3
"""How often the holder renews its hold, as a part of the duty's period."""
VALIDITY = 5 / 6
"""How long a renewal is valid for the holder, as a part of the duty's period. The rest covers
delays and differing clocks, so that no two workers take themselves for the holder.
"""
REST = 20
"""After a run the holder pauses for this many times what the run took: a bloated table is not read
all the time.
"""
_MOST_FAILURES = 3
"""After so many consecutive failures the duty is left to another worker."""
_LOG_EVERY = 60.0
"""Seconds between two log lines about failures."""


@dataclass(frozen=True, eq=False)
class _Hold:
    """One time that the duty was given to this worker; two are never equal."""

    holder: str


class HeldDuty:
    """`give` makes this worker the holder, until it releases the duty or finds that another worker
    holds it.
    """

    def __init__(self, dsn: str, duty: Duty) -> None:
        self._duty = duty
        self._connection = LazyConnection(dsn, duty.session, timeout=duty.patience.total_seconds())
        self._work = [ConstantWork(dsn, step) for step in duty.steps]
        self._hold: _Hold | None = None
        self._given = asyncio.Event()
        self._due_at = -math.inf
        self._logged_at = -math.inf

    def give(self, holder: str) -> None:
        """Hold the duty from now on, under this name."""
        self._hold = _Hold(holder)
        self._given.set()

    def ring(self) -> None:
        """There is work for its steps: if the duty is held here, they are done now."""
        for work in self._work:
            work.ring()

    async def run(self) -> None:
        """Do the duty while it is held, until cancelled."""
        while True:
            await self._given.wait()
            self._given.clear()
            try:
                await self._run_while_held()
            finally:
                self._duty.end_hold()
                await self._stop_work()
            await self._connection.close()

    async def close(self) -> None:
        """Release the duty and close the connection."""
        await self._stop_work()
        await self._release()
        await self._connection.close()

    async def _stop_work(self) -> None:
        for work in self._work:
            await work.stop()

    async def _release(self) -> None:
        hold, self._hold = self._hold, None
        self._duty.end_hold()  # before another worker can be given it
        if hold is not None:
            with contextlib.suppress(RunnerError, TimeoutError):
                async with asyncio.timeout(1):
                    await worker_calls.release_duty(self._connection, self._duty.name, hold.holder)

    async def _run_while_held(self) -> None:
        every = self._duty.every.total_seconds()
        failures = 0
        while (hold := self._hold) is not None:
            asked_at = time.monotonic()
            if await self._renew(hold, asked_at + VALIDITY * every) and asked_at >= self._due_at:
                failures = 0 if await self._run_once() else failures + 1
                if failures == _MOST_FAILURES:
                    await self._release()
            if self._hold is hold:
                for work in self._work:
                    work.start()
                await self._connection.close()
                await asyncio.sleep(RENEWAL * every)

    async def _renew(self, hold: _Hold, until: float) -> bool:
        try:
            is_ours = await worker_calls.renew_duty(self._connection, self._duty.name, hold.holder)
        except RunnerError as error:  # still held: no other worker is given it yet
            self._log_failure(error)
            return False
        if is_ours:
            self._duty.held_until = until
        else:
            self._duty.end_hold()
            if self._hold is hold:  # else it was given to us again while we asked
                self._hold = None
        return is_ours

    async def _run_once(self) -> bool:
        began = time.monotonic()
        try:
            await self._duty.run(self._connection)
        except Exception as error:
            self._log_failure(error)
            return False
        else:
            return True
        finally:
            ended = time.monotonic()
            self._due_at = began + REST * (ended - began)

    def _log_failure(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._logged_at > _LOG_EVERY:
            self._logged_at = now
            unexpected = None if isinstance(error, RunnerError) else error
            log.warning(
                "duty %s failed: %s; trying again",
                self._duty.name,
                error,
                exc_info=unexpected,
                extra=log_event("upkeep.failed"),
            )
