"""Measures schedules in one worker for the whole fleet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from hybrid_runner.durations import duration_text
from hybrid_runner.model.ticks import ScheduleMeasures
from hybrid_runner.storage import tick_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.metrics import tick_instruments as table
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty

MOST_NAMED = 5
"""Schedules that a complaint names."""


class Schedules(Duty):
    """Its row in the table of duties is there while there are schedules. Nothing fires because of
    it: what it measures must be true when nobody fires.
    """

    name = "schedules"
    every = timedelta(seconds=30)
    held = True

    def __init__(self) -> None:
        self._measures: ScheduleMeasures | None = None

    @property
    def complaints(self) -> tuple[str, ...] | None:
        """What somebody should look at; None while another worker holds the duty, or nobody. May be
        called from any thread.
        """
        measures = self._held()
        return None if measures is None else tuple(complaints_of(measures))

    def metric_values(self) -> MetricValues:
        """How schedules stand, if this worker holds the duty. May be called from any thread."""
        measures = self._held()
        if measures is None:
            return {}
        next_in = measures.next_in
        return {
            table.SCHEDULES.name: {
                ("active",): measures.active,
                ("paused",): measures.paused,
                ("undeclared",): measures.undeclared,
            },
            table.SCHEDULES_OVERDUE.name: {(): measures.overdue},
            **({} if next_in is None else {table.SCHEDULE_NEXT.name: {(): next_in}}),
        }

    def end_hold(self) -> None:
        """Forget the figures: when the duty is held again they would be old."""
        super().end_hold()
        self._measures = None

    async def run(self, connection: Fetches) -> None:
        """Measure."""
        self._measures = await tick_calls.measure_schedules(connection, MOST_NAMED + 1)

    def _held(self) -> ScheduleMeasures | None:
        return None if time.monotonic() >= self.held_until else self._measures


def complaints_of(measures: ScheduleMeasures) -> list[str]:
    """What is wrong, a line each."""
    found = []
    if measures.overdue and measures.next_in is not None:
        late = duration_text(timedelta(seconds=round(-measures.next_in)))
        what = "schedule has" if measures.overdue == 1 else "schedules have"
        found.append(
            f"{measures.overdue:,} {what} not fired in time, {measures.latest} for {late}: the log"
            " of the workers says why, or somebody holds its row"
        )
    if measures.unknown_kinds:
        found.append(
            f"no live worker knows the kind of {_named(measures.unknown_kinds)}: their jobs wait"
        )
    if measures.failed:
        found.append(f"could not fire, and were paused: {_named(measures.failed)}")
    return found


def _named(names: Sequence[str]) -> str:
    more = " and others" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
