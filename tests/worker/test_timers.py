"""The timer of a queue by a clock that jumps: an alarm is never lost, and never late by more than a
hair.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace

import pytest
import uvloop

from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.worker.queue.timer import MARGIN, Timer
from hybrid_runner.worker.queue.wake import Wake

FURTHEST = timedelta(seconds=60)


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands until it is moved."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let so much time go by, and everything happen that is due by then."""
        self.now += seconds
        self.turn()

    def turn(self) -> None:
        """Run what is due."""
        self.call_soon(self.stop)
        self.run_forever()

    def call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call it in the loop; alarms that are overdue have not rung yet."""

        async def inside() -> None:
            function(*arguments)

        self.run_until_complete(inside())


class NotedRings(Wake):
    """A flag that notes when it was raised."""

    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop
        self.rang: list[float] = []

    def up(self, reason: Reason) -> None:
        assert reason is Reason.TIMER
        self.rang.append(self._loop.time())
        super().up(reason)


@pytest.fixture
def loop() -> Iterator[JumpingLoop]:
    loop = JumpingLoop()
    yield loop
    loop.close()


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_the_timer_rings_a_hair_after_the_time_that_was_asked_for(loop: JumpingLoop) -> None:
    wake = NotedRings(loop)
    loop.call(Timer(wake, FURTHEST).set, seconds(1))
    loop.pass_by(1)
    assert wake.rang == []
    loop.pass_by(MARGIN * 1.01)
    assert len(wake.rang) == 1


def test_what_comes_after_the_fallback_poll_needs_no_alarm(loop: JumpingLoop) -> None:
    wake = NotedRings(loop)
    loop.call(Timer(wake, FURTHEST).set, FURTHEST + seconds(1))
    loop.pass_by(1000)
    assert wake.rang == []


@pytest.mark.parametrize(("first", "then"), [(5, 2), (2, 5)])
def test_the_earlier_of_two_times_rings(loop: JumpingLoop, first: float, then: float) -> None:
    wake = NotedRings(loop)
    timer = Timer(wake, FURTHEST)
    loop.call(timer.set, seconds(first))
    loop.call(timer.advance, seconds(then))
    loop.pass_by(2.01)
    assert len(wake.rang) == 1


def test_an_alarm_that_is_overdue_in_a_busy_loop_is_not_put_off_by_a_later_time(
    loop: JumpingLoop,
) -> None:
    """A handler held up the loop; the heartbeat's news of a later job came before the alarm of the
    one that is due.
    """
    wake = NotedRings(loop)
    timer = Timer(wake, FURTHEST)
    loop.call(timer.set, seconds(1))
    loop.now += 2
    loop.call_soon(timer.advance, seconds(30))
    loop.turn()
    loop.turn()
    assert len(wake.rang) == 1


def test_alarm_for_a_time_that_is_past_can_be_advanced_in_uvloop() -> None:
    async def set_and_advance() -> bool:
        rang = asyncio.Event()
        timer = Timer(SimpleNamespace(up=lambda _: rang.set()), FURTHEST)  # type: ignore[arg-type]  # a part of it
        timer.advance(seconds(0))
        time.sleep(2 * MARGIN)  # noqa: ASYNC251  # the loop is busy
        timer.set(seconds(5))
        timer.advance(seconds(1))
        return await rang.wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(set_and_advance())


def test_what_was_told_while_postgres_was_asked_is_not_put_off_by_its_answer(
    loop: JumpingLoop,
) -> None:
    """A job was put back, due in 2 s, after the statement had begun that says: in 5 s."""
    wake = NotedRings(loop)
    timer = Timer(wake, FURTHEST)
    loop.call(timer.ask)
    loop.call(timer.advance, seconds(2))
    loop.call(timer.set, seconds(5))
    loop.pass_by(2.01)
    assert len(wake.rang) == 1
    loop.call(timer.ask)
    loop.call(timer.set, seconds(5))
    loop.pass_by(4.9)
    assert len(wake.rang) == 1


def test_an_alarm_that_rang_does_not_stand_in_the_way_of_the_next(loop: JumpingLoop) -> None:
    wake = NotedRings(loop)
    timer = Timer(wake, FURTHEST)
    for _ in range(3):
        loop.call(timer.advance, seconds(1))
        loop.pass_by(1.01)
    assert len(wake.rang) == 3


@pytest.mark.parametrize("seed", range(50))
def test_whatever_order_times_come_in_each_has_a_ring_in_time_and_none_rings_for_nothing(
    loop: JumpingLoop, seed: int
) -> None:
    """Every time that was asked for, and not taken back by another answer, is followed by a ring
    within the hair.
    """
    chance, wake = random.Random(seed), NotedRings(loop)  # not for secrets
    timer = Timer(wake, FURTHEST)
    wanted: set[float] = set()
    asked: set[float] = set()
    for _ in range(200):
        delay = chance.uniform(0, 5)
        match chance.choice(["set", "advance", "advance", "clear", "wait", "wait"]):
            case "set":
                loop.call(timer.ask)
                wanted = {loop.now + delay}  # the answer of Postgres is all that is to come
                if chance.random() < 0.5:  # but what it could not know yet
                    told = chance.uniform(0, 5)
                    loop.call(timer.advance, seconds(told))
                    wanted.add(loop.now + told)
                loop.call(timer.set, seconds(delay))
                asked |= wanted
            case "advance":
                loop.call(timer.advance, seconds(delay))
                wanted.add(loop.now + delay)
                asked.add(loop.now + delay)
            case "clear":
                loop.call(timer.clear)
                wanted.clear()
            case _:
                loop.pass_by(chance.choice([0.0005, 0.01, 1, 7]))
        overdue = [at for at in wanted if at + MARGIN * 1.01 < loop.now]
        if overdue:
            loop.turn()
            # The look that a ring causes sets the timer anew: only the earliest time has to have
            # rung.
            assert any(rang >= min(overdue) for rang in wake.rang), (seed, min(overdue), wake.rang)
            wanted = set()
    assert all(any(at <= rang for at in asked) for rang in wake.rang)
