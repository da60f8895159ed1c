"""The claimer alone, with a table that is a list of answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.messages import Channel, QueueMessage
from hybrid_runner.policy import doorbell
from hybrid_runner.policy.doorbell import BellState, Doorbell, Mode, Reason, Woken
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.policy.look_rate import LONGEST_TOGETHER, TOGETHER
from hybrid_runner.settings import Settings
from hybrid_runner.storage.queries import query
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.queue.claimer import Claimer, Reasons
from hybrid_runner.worker.queue.members import Members
from hybrid_runner.worker.queue.poller import Poller
from hybrid_runner.worker.queue.slots import Slots
from hybrid_runner.worker.queue.timer import Timer
from hybrid_runner.worker.queue.wake import Wake
from tests.support import inside

Look = Callable[[int], Awaitable[list[Claim]]]
DUE = datetime(2030, 1, 1, tzinfo=UTC)


class QuietBell:
    """A listener's session under which nobody sleeps and nothing is in flight."""

    def __init__(self, *, hearing: bool) -> None:
        self.hearing = hearing
        self._answers = {
            query("mark_in_flight"): 1,
            query("inserts_ended"): True,
            query("mute_bell"): False,
        }

    async def fetch(self, text: str, /, *_args: Any) -> Any:
        return [[self._answers.get(text)]]

    async def send(self, channel: Channel[QueueMessage], message: QueueMessage) -> None: ...

    async def join_sleepers(self, queue: str) -> None: ...


class Answers:
    """What the database says to a claimer."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.took = 0.001

    async def claim(self, slots: int, *, sweep: bool) -> list[Claim]:  # noqa: ARG002
        return await self._look(slots)

    def started(self) -> None: ...

    async def next_due(self) -> timedelta | None:
        return None

    async def reconcile(self) -> None: ...

    def refused(self) -> tuple[int, tuple[str, ...]]:
        return 0, ()


@asynccontextmanager
async def claiming(wake: Wake, look: Look, *, hearing: bool = False) -> AsyncIterator[Claimer]:
    """A claimer that runs."""
    settings, pace = Settings(), GrowingPause(timedelta(seconds=60), timedelta(seconds=60), 1)
    reasons = Reasons(
        wake,
        Slots(5),
        Timer(wake, furthest=timedelta(seconds=60)),
        Poller(wake, deaf=pace, hearing=pace),
    )
    members = Members(Identity("alone", settings.work.lease), "kinds")
    members.kinds_differ = False
    bell = QuietBell(hearing=hearing)
    claimer = Claimer(
        "default", settings, reasons, Answers(look), bell, members, lambda _claims, _slots: None, ()
    )
    task = asyncio.create_task(claimer.run())
    yield claimer
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_stronger_reason_does_not_hide_that_the_timer_has_to_be_set() -> None:
    """A job for later was announced, and before anybody listened a poll came: its time must be
    asked for all the same.
    """
    wake = Wake()
    wake.up(Reason.LATER)
    wake.up(Reason.SWEEP)
    assert [wake.later(), wake.later()] == [True, False]
    asleep = BellState(Mode.ASLEEP, is_sleeper=True)
    assert Doorbell().step(asleep, Woken(Reason.SWEEP, later=True)) == (
        asleep,
        doorbell.Look(sweep=True, timer=True),
    )


async def test_a_ring_during_a_look_causes_another_look() -> None:
    """The flag is lowered before the look: what was inserted during it may not have been seen by
    it.
    """
    wake, looks = Wake(), asyncio.Queue[int]()

    async def look(free: int) -> list[Claim]:
        looks.put_nowait(free)
        if looks.qsize() == 1:
            wake.up(Reason.RING)
        return []

    async with claiming(wake, look):
        await asyncio.wait_for(wake.resting.wait(), 120)
    assert looks.qsize() == 2


async def test_a_look_that_failed_is_repeated_after_a_pause_without_another_reason() -> None:
    """A9: the ring that caused it is gone."""
    wake, looks, paused = Wake(), list[int](), list[Exception]()

    async def look(free: int) -> list[Claim]:
        looks.append(free)
        if len(looks) == 1:
            raise DatabaseUnavailable("away")
        return []

    async def pause(error: Exception) -> None:
        paused.append(error)

    async with claiming(wake, look) as claimer:
        inside.never_pause(claimer, pause)  # time is not what is tested
        await asyncio.wait_for(wake.resting.wait(), 120)
    assert (len(looks), len(paused), claimer.seen.consecutive_errors) == (2, 1, 0)


class NotedWake(Wake):
    """A flag whose waits with an end are over at once, and noted; one without an end is over by a
    ring.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self.enough = asyncio.Event()

    async def wait(self, longest: float | None = None) -> Reason:
        await asyncio.sleep(0)
        if longest is None:
            return Reason.RING
        self.pauses.append(longest)
        if len(self.pauses) == 100:
            self.enough.set()
        return Reason.PAUSE


def due_job(known_for: timedelta) -> Claim:
    """A job that was put in so long before it was due."""
    return Claim(
        1,
        "default",
        "noop",
        5,
        "{}",
        None,
        None,
        DUE,
        5,
        None,
        None,
        None,
        1,
        1,
        DUE,
        DUE - known_for,
    )


class LooksTakeAMillisecond:
    """The claimer's clock, which a busy machine cannot move: each look takes a millisecond, and
    nothing else takes any time.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = 1000.0
        inside.set_claimers_clock(monkeypatch, lambda: self._now)

    async def look(self) -> None:
        self._now += 0.001
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("known_for", "least", "most"),
    [(timedelta(seconds=1), TOGETHER, LONGEST_TOGETHER), (timedelta(0), 0.0, 0.0)],
)
async def test_jobs_whose_time_was_known_are_found_together_and_others_at_once(
    known_for: timedelta, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snoozed jobs come due one by one; a look for each costs more than they do. An insert that is
    due at once does not wait.
    """
    wake, clock = NotedWake(), LooksTakeAMillisecond(monkeypatch)

    async def look(_free: int) -> list[Claim]:
        await clock.look()
        return [due_job(known_for)]

    async with claiming(wake, look, hearing=True) as claimer:
        await asyncio.wait_for(wake.enough.wait(), 120)
        assert claimer.mode is Mode.AWAKE
    assert all(least <= pause <= most for pause in wake.pauses[50:])


async def test_known_jobs_are_not_kept_waiting_while_more_are_due_than_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand snoozed jobs that are due at once are claimed as fast as slots come free."""
    wake, clock = NotedWake(), LooksTakeAMillisecond(monkeypatch)

    async def look(free: int) -> list[Claim]:
        await clock.look()
        return [due_job(timedelta(seconds=1))] * free

    async with claiming(wake, look, hearing=True):
        await asyncio.wait_for(wake.enough.wait(), 120)
    assert max(wake.pauses) < TOGETHER
