"""The fallback poll's pace, without waiting for it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.worker.queue.poller import Poller
from hybrid_runner.worker.queue.wake import Wake
from tests.support import inside


def poller(wake: Wake | None = None) -> Poller:
    """One with the paces of A2 and A3."""
    deaf = GrowingPause(timedelta(seconds=5), timedelta(seconds=30), 1.5)
    hearing = GrowingPause(timedelta(seconds=30), timedelta(seconds=60), 1.5)
    return Poller(wake or Wake(), deaf=deaf, hearing=hearing)


async def test_empty_polls_lengthen_the_pause_and_empty_looks_do_not() -> None:
    """A2"""
    polling = poller()
    for _ in range(3):
        polling.looked(Reason.SWEEP, 0)
    assert polling.pause == 11.25
    polling.looked(Reason.RING, 0)
    polling.looked(Reason.SWEEP, None)
    assert polling.pause == 11.25


async def test_found_work_brings_the_pause_back_to_its_base_at_once() -> None:
    """A2: also the pause that is running."""
    polling = poller()
    polling.looked(Reason.SWEEP, 0)
    polling.looked(Reason.SWEEP, 0)
    inside.pause_changed(polling).clear()
    polling.looked(Reason.RING, 1)
    assert (polling.pause, inside.pause_changed(polling).is_set()) == (5, True)


async def test_polls_are_slow_while_rings_arrive_and_quick_while_they_do_not() -> None:
    """A2, A3"""
    polling = poller()
    assert polling.pause == 5
    polling.hears(hearing=True)
    assert polling.pause == 30
    polling.looked(Reason.SWEEP, 0)
    polling.looked(Reason.SWEEP, 0)
    polling.hears(hearing=False)
    assert polling.pause == 5


async def test_a_poll_while_all_slots_are_taken_is_answered_too() -> None:
    wake = Wake()
    polling = poller(wake)
    poll = asyncio.create_task(inside.poll_once(polling))
    assert await asyncio.wait_for(wake.wait(), 120) is Reason.SWEEP
    polling.looked(Reason.SWEEP, None)
    await asyncio.wait_for(poll, 120)
