"""C5: at most so many calls at a time to one host."""

from __future__ import annotations

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.resilience import HostLimits
from tests.support.moved_clock import turn


class Callers:
    """Calls to hosts, each of which holds its place until it is told to end."""

    def __init__(self, limits: HostLimits) -> None:
        self._limits = limits
        self.began: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def call(self, name: str, host: str = "orders") -> None:
        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._call(name, host))
        await turn()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await turn()

    async def _call(self, name: str, host: str) -> None:
        async with self._limits.place(host):
            self.began.append(name)
            await self.ends[name].wait()


@pytest.fixture
def limits() -> HostLimits:
    return HostLimits(per_host=2)


@pytest.fixture
def callers(limits: HostLimits) -> Iterator[Callers]:
    callers = Callers(limits)
    yield callers
    for task in callers.tasks.values():
        task.cancel()


async def test_five_calls_at_a_time_go_to_one_host_and_others_do_not_count() -> None:
    """C5"""
    limits = HostLimits()
    callers = Callers(limits)
    for number in range(7):
        await callers.call(f"a{number}")
    await callers.call("b0", host="stock")
    assert callers.began == ["a0", "a1", "a2", "a3", "a4", "b0"]
    assert (limits.held("orders"), limits.held("stock"), limits.held("nobody")) == (5, 1, 0)
    for name in callers.tasks:
        await callers.end(name)
    assert (len(callers.began), limits.hosts) == (8, 0)


async def test_whoever_waits_is_served_in_order(limits: HostLimits, callers: Callers) -> None:
    """C5"""
    for name in "abcdef":
        await callers.call(name)
    for name in "bacd":
        await callers.end(name)
    assert callers.began == ["a", "b", "c", "d", "e", "f"]
    assert limits.waits == 4


async def test_each_place_is_given_back_when_its_own_call_ends(
    limits: HostLimits, callers: Callers
) -> None:
    """C5: not all together after the slowest one"""
    for name in ("slow", "fast", "next", "last"):
        await callers.call(name)
    await callers.end("fast")
    assert callers.began == ["slow", "fast", "next"]
    await callers.end("next")
    assert callers.began == ["slow", "fast", "next", "last"]


async def test_a_place_is_given_back_by_an_exception_and_by_a_cancellation(
    limits: HostLimits, callers: Callers
) -> None:
    """C5"""
    with pytest.raises(OSError, match="lost"):
        async with limits.place("orders"):
            raise OSError("lost")
    await callers.call("a")
    callers.tasks["a"].cancel()
    await turn()
    assert (limits.held("orders"), limits.hosts) == (0, 0)


async def test_whoever_stops_waiting_takes_no_place(limits: HostLimits, callers: Callers) -> None:
    """C5"""
    for name in "abcd":
        await callers.call(name)
    callers.tasks["c"].cancel()
    await turn()
    await callers.end("a")
    assert callers.began == ["a", "b", "d"]


async def test_whoever_stops_waiting_is_forgotten_though_the_place_stays_taken() -> None:
    """C5: a host that hangs for hours keeps nothing of those who gave up"""

    def futures() -> int:
        gc.collect()
        return sum(type(each) is asyncio.Future for each in gc.get_objects())

    limits = HostLimits(per_host=1)
    with await limits.take("orders"):
        before = futures()
        waiting = [asyncio.create_task(limits.take("orders")) for _ in range(100)]
        await turn()
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        del waiting, task
        assert futures() - before < 10


async def test_whoever_is_cancelled_as_he_is_given_the_place_passes_it_on(
    limits: HostLimits, callers: Callers
) -> None:
    """C5"""
    for name in "abcd":
        await callers.call(name)
    callers.ends["a"].set()
    # The turn in which `a` gives its place to `c`, which is cancelled before it goes on.
    while limits.held("orders") == 2 and not callers.tasks["a"].done():
        await asyncio.sleep(0)
    callers.tasks["c"].cancel()
    await turn()
    assert callers.began == ["a", "b", "d"]
    await callers.end("b")
    await callers.end("d")
    assert limits.hosts == 0


async def test_try_place_does_not_wait(limits: HostLimits) -> None:
    """C5: whoever gets no place waits for the next tick"""
    first, second = limits.try_place("orders"), limits.try_place("ORDERS.")
    assert first is not None
    assert second is not None
    assert limits.try_place("orders") is None
    assert (limits.refusals, limits.waits) == (1, 0)
    with first:
        pass
    first.give_back()
    assert limits.held("orders") == 1
    with second, limits.try_place("orders") or pytest.fail("there is one"):
        assert limits.held("orders") == 2
    assert limits.hosts == 0


async def test_try_place_does_not_overtake_those_who_wait(
    limits: HostLimits, callers: Callers
) -> None:
    """C5"""
    for name in "abc":
        await callers.call(name)
    callers.ends["a"].set()
    taken = []
    while "c" not in callers.began:
        taken.append(limits.try_place("orders"))
        await asyncio.sleep(0)
    assert not any(taken)


async def test_hosts_that_nobody_calls_are_forgotten(limits: HostLimits) -> None:
    """C5"""
    for number in range(1000):
        async with limits.place(f"host-{number}"):
            assert limits.hosts == 1
    assert limits.try_place("one") is not None
    assert limits.hosts == 1


@pytest.mark.parametrize("seed", range(20))
async def test_random_calls_and_cancellations_exceed_no_limit_and_lose_no_place(seed: int) -> None:
    """C5"""
    chance, limits = random.Random(seed), HostLimits(per_host=3)
    running, most = Counter[str](), Counter[str]()

    async def call(host: str) -> None:
        async with limits.place(host):
            running[host] += 1
            most[host] = max(most[host], running[host])
            try:
                for _ in range(chance.randint(0, 5)):
                    await asyncio.sleep(0)
            finally:
                running[host] -= 1

    tasks = []
    for _ in range(200):
        tasks.append(asyncio.create_task(call(chance.choice("abc"))))
        if chance.random() < 0.4:
            chance.choice(tasks).cancel()
        if chance.random() < 0.5:
            await asyncio.sleep(0)
        if chance.random() < 0.2 and (place := limits.try_place("a")):
            with place:
                assert limits.held("a") <= 3
    await asyncio.wait(tasks)
    assert max(most.values()) == 3
    assert limits.hosts == 0


@pytest.mark.parametrize("per_host", [0, -1, True, 2.5, "5", None])
def test_a_limit_that_cannot_be_is_refused_in_one_line(per_host: int) -> None:
    """C5"""
    with pytest.raises(
        ConfigurationError, match=r"^per_host must be a whole number from 1 on, not"
    ):
        HostLimits(per_host)


async def test_what_is_no_host_is_refused_in_one_line(limits: HostLimits) -> None:
    """C5"""
    with pytest.raises(ConfigurationError, match=r"^host must be the name of a host, not ''"):
        limits.try_place("")
    with pytest.raises(ConfigurationError, match=r"^host must be the name of a host, not None"):
        async with limits.place(None):  # type: ignore[arg-type]
            pass
