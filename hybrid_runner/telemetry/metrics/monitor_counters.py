"""Counts what rounds of monitored services do in one worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from hybrid_runner.model.monitors import EventKind, PollFailure
from hybrid_runner.telemetry.feature_report import FeatureReport
from hybrid_runner.telemetry.metrics import monitor_instruments as table
from hybrid_runner.telemetry.metrics.instrument import OTHER
from hybrid_runner.telemetry.metrics.series import Counter, Histogram
from hybrid_runner.telemetry.metrics.values import MetricValues

PollOutcome: TypeAlias = Literal["ok", "missed"] | PollFailure
OUTCOMES: Final[tuple[str, ...]] = ("ok", *get_args(PollFailure), "missed")
PHASES: Final = ("resolve", "connect", "first_byte", "body")
"""The parts of a request; TLS is a part of `connect`."""


class MonitorCounters(FeatureReport):
    """Written by the rounds, in the worker's loop; read from any thread.

    All series are known at the start, and begin at 0: rates need that.
    """

    def __init__(self) -> None:
        self._polls = Counter(table.MONITOR_POLLS)
        self._durations = Histogram(table.MONITOR_POLL_DURATION)
        self._host_waits = Histogram(table.MONITOR_HOST_WAIT)
        self._coalesced = Counter(table.MONITOR_COALESCED)
        self._events = Counter(table.MONITOR_EVENTS)
        for outcome in OUTCOMES:
            self._polls.add((outcome,), 0)
        for kind in get_args(EventKind):
            self._events.add((kind,), 0)
        self._host_waits.series(())
        self._coalesced.add((), 0)

    def count_poll(self, outcome: PollOutcome, times: int = 1) -> None:
        """Count what so many polls of a service came to."""
        self._polls.add((outcome,), times)

    def count_request(self, phases: Mapping[str, float]) -> None:
        """Count how long one request took: seconds by the words of PHASES; any of them may be
        missing.
        """
        for phase, seconds in phases.items():
            self._durations.series((phase if phase in PHASES else OTHER,)).add(max(0.0, seconds))

    def count_host_wait(self, seconds: float) -> None:
        """Count how long a request waited for a place at its host."""
        self._host_waits.series(()).add(max(0.0, seconds))

    def count_coalesced(self, polls: int) -> None:
        """Count polls that were answered by the request of another service."""
        self._coalesced.add((), polls)

    def count_event(self, kind: EventKind, times: int = 1) -> None:
        """Count events that were stored."""
        self._events.add((kind,), times)

    def metric_values(self) -> MetricValues:
        return {
            each.instrument.name: each.read()
            for each in (
                self._polls,
                self._durations,
                self._host_waits,
                self._coalesced,
                self._events,
            )
        }
