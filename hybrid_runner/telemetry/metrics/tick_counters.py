"""Counts what one worker does about ticks of schedules."""

from __future__ import annotations

from collections.abc import Iterable

from hybrid_runner.model.ticks import FiredTick, TickOutcome
from hybrid_runner.telemetry.metrics import tick_instruments as table
from hybrid_runner.telemetry.metrics.series import Counter, Histogram
from hybrid_runner.telemetry.metrics.values import MetricValues


class TickCounters:
    """Written in the heartbeat's thread, read from any."""

    def __init__(self) -> None:
        self._ticks = Counter(table.TICKS)
        self._late = Histogram(table.TICK_LATE)
        self._late.series(())

    def count(self, fired: Iterable[FiredTick]) -> None:
        """Count what one look did."""
        late = []
        for one in fired:
            self._ticks.add((one.schedule, one.outcome.value), one.ticks)
            if one.outcome is TickOutcome.FIRED:
                late.append(max(0.0, one.late.total_seconds()))
        if late:
            self._late.series(()).add_all(late)

    def metric_values(self) -> MetricValues:
        """A copy of all values; from any thread."""
        return {each.instrument.name: each.read() for each in (self._ticks, self._late)}
