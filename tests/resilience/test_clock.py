"""The time that an AdaptiveScheduler goes by, if nobody gives it another one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.resilience import clock as module
from hybrid_runner.resilience.clock import SteadyClock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Machine:
    """A machine's clocks, which a test sets."""

    def __init__(self) -> None:
        self.passed = 1000.0
        self.shown = NOON

    def monotonic(self) -> float:
        return self.passed

    def now(self, zone: object) -> datetime:
        assert zone is UTC
        return self.shown


def test_it_begins_with_the_time_of_day_and_then_nobody_can_set_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """E1: an interval is as long as it is, also if the system's clock is set meanwhile"""
    machine = Machine()
    monkeypatch.setattr(module, "datetime", machine)
    monkeypatch.setattr(module, "time", machine)
    clock = SteadyClock()
    assert clock.now() == NOON
    machine.passed += 30
    machine.shown += timedelta(days=-400)
    assert clock.now() == NOON + timedelta(seconds=30)
