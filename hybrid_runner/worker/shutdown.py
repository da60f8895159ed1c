"""How a worker stops: six steps that share one budget of time."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from enum import Enum

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.loops import within
from hybrid_runner.worker.report.job_log import JobLog
from hybrid_runner.worker.station import Station
from hybrid_runner.worker.tasks import Tasks

log = logging.getLogger("hybrid_runner.worker")

OVERRUN = 5.0
"""How many seconds past the grace a stop may take, whatever Postgres and the network do."""


class Share(Enum):
    """Which part of the overrun may be spent when a step is done."""

    LAST_CLAIMS = 0.2
    HANDLERS = 0.0  # they have the grace
    STOPPED_HANDLERS = 0.4
    OUTCOMES = 0.6
    SIGN_OFF = 1.0


_LAST_CLAIMS = 5.0
"""Seconds to wait for the answers to the last claims, however long the grace is."""
_LEAST = 0.5
"""Seconds that leaving the queues and signing off get, even if the budget is spent."""


class Budget:
    """The time of one stop: the grace and the overrun, counted from when it is made."""

    def __init__(self, grace: timedelta) -> None:
        self._grace_ends = time.monotonic() + grace.total_seconds()

    def deadline(self, share: Share) -> float:
        """When a step with this share has to be done, by the monotonic clock."""
        return self._grace_ends + share.value * OVERRUN


class Shutdown:
    """The steps, in their order."""

    def __init__(self, station: Station, tasks: Tasks, job_log: JobLog, budget: Budget) -> None:
        self._station = station
        self._tasks = tasks
        self._job_log = job_log
        self._budget = budget
        self._name = station.identity.id

    async def run(self) -> None:
        """Take all steps; returns when nothing of the worker is left."""
        last_claims = min(self._budget.deadline(Share.LAST_CLAIMS), time.monotonic() + _LAST_CLAIMS)
        await self._1_end_claims(last_claims)
        await self._2_leave_queues(last_claims)
        await self._3_let_handlers_end()
        await self._4_settle()
        await self._5_end_loops()
        await self._6_sign_off()

    async def _1_end_claims(self, deadline: float) -> None:
        """Stop looking, release what has not begun, and wait for answers that are on their way:
        they may bring jobs.
        """
        for queue in self._station.queues.values():
            queue.claimer.stop()
        self._station.identity.end_claims()
        self._station.executor.stop_waiting()
        claimers = self._tasks.named("claimer")
        if claimers:  # none, if they ended by themselves
            await asyncio.wait(claimers, timeout=max(0.0, deadline - time.monotonic()))
        await self._tasks.end("claimer", "poller")

    async def _2_leave_queues(self, deadline: float) -> None:
        if not await within(max(deadline, time.monotonic() + _LEAST), self._station.leave()):
            log.info(
                "worker %s could not say in time that it leaves",
                self._name,
                extra=log_event("worker.leave_failed"),
            )

    async def _3_let_handlers_end(self) -> None:
        """Wait within the grace; then stop the handlers, whose jobs are released."""
        executor = self._station.executor
        if not await within(self._budget.deadline(Share.HANDLERS), executor.idle()):
            log.warning(
                "worker %s: %d jobs outlast the grace and go back to their queues",
                self._name,
                len(executor.running),
                extra=log_event("worker.grace_exceeded"),
            )
            executor.stop_all()
            await within(self._budget.deadline(Share.STOPPED_HANDLERS), executor.idle())

    async def _4_settle(self) -> None:
        settler = self._station.settler
        if not await within(self._budget.deadline(Share.OUTCOMES), settler.drained_at_last()):
            log.error(
                "worker %s: Postgres did not take %d outcomes in time",
                self._name,
                settler.pending,
                extra=log_event("worker.outcomes_unwritten"),
            )
        if refusal := settler.refusal():
            log.error(
                "worker %s: Postgres refuses the outcomes of %d jobs, which others will run again:"
                " %s",
                self._name,
                settler.refused,
                refusal,
                extra=log_event("worker.outcomes_refused"),
            )

    async def _5_end_loops(self) -> None:
        await self._tasks.end("")
        self._job_log.summarise()
        for queue in self._station.queues.values():
            queue.timer.clear()
        await self._station.executor.close()

    async def _6_sign_off(self) -> None:
        try:
            left = self._budget.deadline(Share.SIGN_OFF) - time.monotonic()
            async with asyncio.timeout(max(_LEAST, left)):
                await self._station.sign_off()
        except Exception as error:
            log.warning(
                "worker %s could not sign off: %s",
                self._name,
                str(error) or "Postgres did not answer in time",
                extra=log_event("worker.sign_off_failed"),
            )
        await self._station.close()
