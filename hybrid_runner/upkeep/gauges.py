"""Measures the queues for the whole fleet: one worker at a time, the same one for as long as it lives.

The chore `gauges` is given by the heartbeat to somebody when nobody has renewed it for 30 s. Whoever has it renews it every 10 s,
and shows figures for 25 s from the last time that this worked: with two workers' clocks and any delay, no two show them at a time.
Who fails to measure three times in a row leaves it to somebody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time

from hybrid_runner.errors import RunnerError
from hybrid_runner.models import QueueFigures
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import FOR_SETTLING, Link, named
from hybrid_runner.telemetry import instruments as table
from hybrid_runner.telemetry.figures import Figures
from hybrid_runner.telemetry.instruments import OTHER
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.upkeep")

PAUSE = 10.0
SHOWN = 25.0
"""Less than the pause of the chore."""
_SHARE = 20
"""The next try comes no sooner than this many times what the last one took: a bloated table is not walked all the time."""
_MOST_FAILURES = 3
_PATIENCE = 5.0
_MOST_QUEUES = 300
_SESSION = named("gauges", FOR_SETTLING | {"statement_timeout": "4s"})


class Gauges:
    """`give` makes this worker the one; it is so until it says so itself, or until it finds that somebody else is."""

    def __init__(self, dsn: str) -> None:
        self._link = Link(dsn, _SESSION, timeout=_PATIENCE)
        self._holder: str | None = None
        self._given = asyncio.Event()
        self._shown: tuple[float, Figures] = (-math.inf, {})
        """Until when, by the monotonic clock; and what. Replaced as one: other threads read it."""
        self._due_at = -math.inf
        """When to measure again; it holds from one office to the next."""
        self._complained_at = -math.inf

    def figures(self) -> Figures:
        """What this worker measured for all; nothing while it is another's to do."""
        until, figures = self._shown
        return figures if time.monotonic() < until else {}

    def give(self, holder: str) -> None:
        """From now on it is ours."""
        self._holder = holder
        self._given.set()

    async def run(self) -> None:
        """Measure while it is ours, until cancelled."""
        while True:
            await self._given.wait()
            self._given.clear()
            try:
                await self._measure_while_ours()
            finally:
                self._shown = (-math.inf, {})
            await self._link.close()

    async def close(self) -> None:
        """Let somebody else do it, and close the connection."""
        await self._leave()
        await self._link.close()

    async def _leave(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None:
            with contextlib.suppress(RunnerError, TimeoutError):
                async with asyncio.timeout(1):
                    await statements.release_duty(self._link, "gauges", holder)

    async def _measure_while_ours(self) -> None:
        figures: Figures = {}
        failures = 0
        while self._holder is not None:
            asked_at = time.monotonic()
            try:
                if not await statements.renew_duty(self._link, "gauges", self._holder):
                    self._holder = None
                    return
                if asked_at >= self._due_at:
                    figures, failures = {}, failures + 1  # if it fails, what was measured before is not shown as new
                    figures, failures = await self._measure(), 0
            except RunnerError as error:
                self._complain(error)
                if failures == _MOST_FAILURES:
                    await self._leave()
                    return
            else:
                self._shown = (asked_at + SHOWN, figures)
            await asyncio.sleep(PAUSE)

    async def _measure(self) -> Figures:
        began = time.monotonic()
        try:
            queues = await statements.queue_figures(self._link)
            return as_figures(queues, await statements.horizon_age(self._link))
        finally:
            ended = time.monotonic()
            self._due_at = began + _SHARE * (ended - began)

    def _complain(self, error: RunnerError) -> None:
        now = time.monotonic()
        if now - self._complained_at > 60:
            self._complained_at = now
            log.warning("the queues were not measured: %s; trying again", error, extra=log_event("upkeep.failed"))


def as_figures(queues: list[QueueFigures], horizon_age: float) -> Figures:
    """By instrument; of very many queues the last ones are shown together."""
    queues, rest = queues[:_MOST_QUEUES], queues[_MOST_QUEUES:]
    if rest:
        _, due, scheduled, running, oldest, paused, workers = zip(*rest, strict=True)
        queues.append(QueueFigures(OTHER, sum(due), sum(scheduled), sum(running), max(oldest), all(paused), max(workers)))
    return {
        table.QUEUE_JOBS.name: {
            (queue.queue, state): count
            for queue in queues
            for state, count in (("due", queue.due), ("scheduled", queue.scheduled), ("running", queue.running))
        },
        table.QUEUE_OLDEST_DUE.name: {(queue.queue,): queue.oldest_due for queue in queues},
        table.QUEUE_WORKERS.name: {(queue.queue,): queue.workers for queue in queues},
        table.QUEUE_PAUSED.name: {(queue.queue,): int(queue.paused) for queue in queues},
        table.HORIZON_AGE.name: {(): horizon_age},
    }
