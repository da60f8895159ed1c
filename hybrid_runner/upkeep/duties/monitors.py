"""Measures monitored services in one worker for the whole fleet, and has rounds go on when the
clock of Postgres was set back.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from hybrid_runner.durations import duration_text
from hybrid_runner.errors import SchemaMissing
from hybrid_runner.model.monitor_views import MonitorMeasures
from hybrid_runner.storage import monitor_calls, monitor_view_calls
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics import monitor_instruments as table
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.monitors")

LATE = 60.0
"""Seconds by which a poll may be late before somebody should look."""
UPKEEP_LATE = 900.0
"""Seconds after which upkeep, which is done every minute, should have ended again."""


class Monitors(Duty):
    """Its row in the table of duties is there while monitors are installed. The rounds cannot say
    that there are none: so it is no job.
    """

    name = "monitors"
    every = timedelta(seconds=30)
    held = True
    session = named("monitors", FOR_SETTLING | {"statement_timeout": "4s"})
    patience = timedelta(seconds=5)

    def __init__(self) -> None:
        self._measures: MonitorMeasures | None = None

    @property
    def complaints(self) -> tuple[str, ...] | None:
        """What somebody should look at; None while another worker holds the duty, or nobody. May be
        called from any thread.
        """
        measures = self._measures
        if measures is None or time.monotonic() >= self.held_until:
            return None
        return tuple(complaints_of(measures))

    def metric_values(self) -> MetricValues:
        """How monitors stand, if this worker holds the duty. May be called from any thread."""
        measures = self._measures
        if measures is None or time.monotonic() >= self.held_until:
            return {}
        age = measures.upkeep_age
        return {
            table.MONITOR_SERVICES.name: {
                ("closed",): measures.closed,
                ("open",): measures.open,
                ("half_open",): measures.half_open,
            },
            table.MONITOR_DOWN.name: {(): measures.down},
            table.MONITOR_WARNED.name: {(): measures.warned},
            table.MONITOR_LATE.name: {(): measures.late},
            table.MONITOR_LATE_OLDEST.name: {(): measures.oldest_late},
            **({} if age is None else {table.MONITOR_UPKEEP_AGE.name: {(): age}}),
        }

    def end_hold(self) -> None:
        """Forget the figures: when the duty is held again they would be old."""
        super().end_hold()
        self._measures = None

    async def run(self, connection: Fetches) -> None:
        """Where monitors were dropped, there is nothing to say."""
        try:
            self._measures = await monitor_view_calls.measure_monitors(connection)
            woken = await monitor_calls.wake_set_back(connection)
        except SchemaMissing:
            self._measures = None
            return
        if woken:
            log.warning(
                "Postgres's clock was set back, or another server took over whose clock is behind:"
                " %d rounds of monitors were woken",
                woken,
                extra=log_event("monitors.set_back"),
            )


def complaints_of(measures: MonitorMeasures) -> list[str]:
    """What is wrong, a line each."""
    services = measures.closed + measures.open + measures.half_open
    if not services:
        return []
    found = []
    if measures.oldest_late > LATE:
        what = "service is" if measures.late == 1 else "services are"
        found.append(
            f"{measures.late:,} {what} due and not polled, one for"
            f" {_seconds(measures.oldest_late)}: is there a worker for the queue monitors?"
        )
    if measures.upkeep_age is None:
        if measures.oldest_late > LATE:
            found.append("the upkeep of monitors has never run")
    elif measures.upkeep_age > UPKEEP_LATE:
        found.append(
            f"the upkeep of monitors last ended {_seconds(measures.upkeep_age)} ago: the log says"
            " why, or nobody runs monitors.upkeep"
        )
    return found


def _seconds(length: float) -> str:
    return duration_text(timedelta(seconds=round(length)))
