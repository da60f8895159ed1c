from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hybrid_runner.resilience import AdaptiveScheduler, Change
from hybrid_runner.resilience.changes import log_change
from tests.resilience.loops import Held
from tests.support.moved_clock import MovedClock, turn


@pytest.fixture(autouse=True)
async def nothing_held_goes_on() -> AsyncIterator[None]:
    yield
    Held.let_all_go()
    await turn()


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

    scheduler = AdaptiveScheduler(clock=clock, on_change=note)
    yield scheduler
    closing = asyncio.create_task(scheduler.close(grace=0))
    await clock.forward(10)  # what a test that failed left running would be waited for
    await closing
