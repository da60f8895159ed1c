"""The claimer alone, with a table that is a list of answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.models import Claim
from hybrid_runner.worker.claimer import Claimer
from hybrid_runner.worker.slots import Slots
from hybrid_runner.worker.wake import Reason, Wake

Look = Callable[[str, int], Awaitable[list[Claim]]]


async def _nothing_lost(_queue: str) -> set[int]:
    return set()


async def _nothing_later(_queue: str) -> timedelta | None:
    return None


@asynccontextmanager
async def claiming(wake: Wake, look: Look) -> AsyncIterator[Claimer]:
    """A claimer that runs."""
    claimer = Claimer(
        "default", wake=wake, slots=Slots(5), claim=look, release_lost=_nothing_lost,
        next_due=_nothing_later, start=lambda _claims, _slots: None,
        room=lambda: 10, looked=lambda _reason, _found: None, set_timer=lambda _delay: None,
    )  # fmt: skip
    task = asyncio.create_task(claimer.run())
    yield claimer
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_ring_during_a_look_causes_another_look() -> None:
    """The flag is lowered before the look: what was inserted during it may not have been seen by it."""
    wake, looks = Wake(), asyncio.Queue[int]()

    async def look(_queue: str, free: int) -> list[Claim]:
        looks.put_nowait(free)
        if looks.qsize() == 1:
            wake.up(Reason.RING)
        return []

    async with claiming(wake, look):
        wake.up(Reason.RING)
        await asyncio.wait_for(wake.resting.wait(), 5)
    assert looks.qsize() == 2


async def test_a_look_that_failed_is_repeated_after_a_pause_without_another_reason() -> None:
    """A9: the ring that caused it is gone."""
    wake, looks, paused = Wake(), list[int](), list[Exception]()

    async def look(_queue: str, free: int) -> list[Claim]:
        looks.append(free)
        if len(looks) == 1:
            raise DatabaseUnavailable("away")
        return []

    async def pause(error: Exception) -> None:
        paused.append(error)

    async with claiming(wake, look) as claimer:
        claimer._outage.pause = pause  # type: ignore[method-assign]  # time is not what is tested
        wake.up(Reason.RING)
        await asyncio.wait_for(wake.resting.wait(), 5)
    assert (len(looks), len(paused), claimer.seen.consecutive_errors) == (2, 1, 0)
