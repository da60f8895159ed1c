from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hybrid_runner.resilience import AdaptiveScheduler, Change
from hybrid_runner.resilience.changes import log_change
from tests.support.moved_clock import MovedClock


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def changes() -> list[Change]:
    """What the scheduler has told."""
    return []


@pytest.fixture
async def scheduler(clock: MovedClock, changes: list[Change]) -> AsyncIterator[AdaptiveScheduler]:
    """Goes by the clock that tests move, without jitter."""

    def note(change: Change) -> None:
        changes.append(change)
        log_change(change)

    async with AdaptiveScheduler(clock=clock, on_change=note) as scheduler:
        yield scheduler
