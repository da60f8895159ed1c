"""C6: callers who want the same thing at the same time share one call."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress

import pytest

from hybrid_runner import RunnerError
from hybrid_runner.resilience import Coalescing, HostLimits
from tests.support.moved_clock import turn


class Calls:
    """Calls that end when they are told to."""

    def __init__(self) -> None:
        self.made = 0
        self.cancelled = 0
        self.answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.cleans_up = asyncio.Event()
        self.cleans_up.set()

    async def __call__(self) -> object:
        self.made += 1
        try:
            return await asyncio.shield(self.answer)
        except asyncio.CancelledError:
            self.cancelled += 1
            await self.cleans_up.wait()
            raise


@pytest.fixture
async def calls() -> Calls:
    return Calls()


def ask(coalescing: Coalescing, calls: Calls, key: str = "k") -> asyncio.Task[object]:
    return asyncio.create_task(coalescing.run(key, calls))


async def test_callers_at_the_same_time_share_one_call_and_its_result(calls: Calls) -> None:
    """C6"""
    coalescing, answer = Coalescing(), object()
    callers = [ask(coalescing, calls) for _ in range(20)]
    await turn()
    assert (calls.made, coalescing.on_their_way) == (1, 1)
    calls.answer.set_result(answer)
    assert all(result is answer for result in await asyncio.gather(*callers))
    assert (coalescing.made, coalescing.shared, coalescing.on_their_way) == (1, 19, 0)


async def test_all_get_the_same_exception(calls: Calls) -> None:
    """C6"""
    coalescing, lost = Coalescing(), OSError("lost")
    callers = [ask(coalescing, calls) for _ in range(3)]
    await turn()
    calls.answer.set_exception(lost)
    assert await asyncio.gather(*callers, return_exceptions=True) == [lost] * 3


async def test_nothing_is_kept_afterwards(calls: Calls) -> None:
    """C6: nothing is cached across ticks, failures neither"""
    coalescing = Coalescing()
    calls.answer.set_exception(OSError("lost"))
    for number in (1, 2):
        with pytest.raises(OSError, match="lost"):
            await coalescing.run("k", calls)
        assert calls.made == number
    assert coalescing.shared == 0


async def test_whoever_asks_in_the_moment_in_which_a_call_ends_makes_a_new_one() -> None:
    """C6"""
    coalescing, ends, results = Coalescing(), asyncio.Event(), iter(["old", "new"])

    async def make() -> str:
        ends.set()
        return next(results)

    async def ask_late() -> str:
        await ends.wait()
        return await coalescing.run("k", make)

    late = asyncio.create_task(ask_late())
    await turn()
    assert [await coalescing.run("k", make), await late] == ["old", "new"]


async def test_another_key_is_another_call(calls: Calls) -> None:
    """C6"""
    coalescing = Coalescing()
    callers = [ask(coalescing, calls, key) for key in ("a", "b", "a")]
    await turn()
    calls.answer.set_result(None)
    await asyncio.gather(*callers)
    assert (calls.made, coalescing.shared) == (2, 1)


async def test_a_caller_that_is_cancelled_leaves_the_call_to_the_others(calls: Calls) -> None:
    """C6: the one that made it too"""
    coalescing = Coalescing()
    first, second, third = (ask(coalescing, calls) for _ in range(3))
    await turn()
    first.cancel()
    third.cancel()
    await turn()
    calls.answer.set_result("answer")
    assert await second == "answer"
    assert (first.cancelled(), third.cancelled(), calls.cancelled) == (True, True, 0)


async def test_the_last_callers_cancellation_cancels_the_call(calls: Calls) -> None:
    """C6"""
    coalescing = Coalescing()
    callers = [ask(coalescing, calls) for _ in range(2)]
    await turn()
    for caller in callers:
        caller.cancel()
    await turn()
    assert (calls.cancelled, coalescing.on_their_way) == (1, 0)


async def test_while_a_cancelled_call_cleans_up_no_second_one_is_on_its_way(calls: Calls) -> None:
    """C6"""
    coalescing, others = Coalescing(), Calls()
    calls.cleans_up.clear()
    first = ask(coalescing, calls)
    await turn()
    first.cancel()
    await turn()
    late = [ask(coalescing, others) for _ in range(3)]
    await turn()
    assert (calls.cancelled, others.made) == (1, 0)
    calls.cleans_up.set()
    await turn()
    assert others.made == 1
    others.answer.set_result("new")
    assert await asyncio.gather(*late) == ["new"] * 3


async def test_a_failure_that_nobody_waits_for_any_more_is_no_warning(calls: Calls) -> None:
    """C6"""

    async def fail_as_it_is_cancelled() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("lost")

    coalescing = Coalescing()
    caller = asyncio.create_task(coalescing.run("k", fail_as_it_is_cancelled))
    await turn()
    caller.cancel()
    await turn()
    assert coalescing.on_their_way == 0


async def test_a_function_that_raises_before_it_waits_is_shared_as_well() -> None:
    """C6"""

    def refuse() -> asyncio.Future[None]:
        raise OSError("lost")

    coalescing = Coalescing()
    callers = [asyncio.create_task(coalescing.run("k", refuse)) for _ in range(2)]
    errors = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(error) for error in errors] == [OSError, OSError]


async def test_a_call_that_would_wait_for_itself_is_refused() -> None:
    """C6"""
    coalescing = Coalescing()

    async def again() -> None:
        await coalescing.run("k", again)

    with pytest.raises(RunnerError, match="the call for 'k' waits for itself: give this one anoth"):
        await coalescing.run("k", again)


async def test_services_of_one_address_take_one_place_of_its_host(calls: Calls) -> None:
    """C5, C6: twenty of them are one request, and one place"""
    coalescing, limits = Coalescing(), HostLimits(per_host=1)

    async def get() -> object:
        async with limits.place("orders"):
            return await calls()

    callers = [asyncio.create_task(coalescing.run("http://orders", get)) for _ in range(20)]
    await turn()
    assert (limits.held("orders"), limits.waits) == (1, 0)
    calls.answer.set_result("answer")
    assert await asyncio.gather(*callers) == ["answer"] * 20


@pytest.mark.parametrize("seed", range(20))
async def test_random_callers_and_cancellations_never_make_two_calls_for_one_key(seed: int) -> None:
    """C6"""
    chance, coalescing = random.Random(seed), Coalescing()
    running = Counter[str]()

    async def answer(key: str) -> str:
        running[key] += 1
        assert running[key] == 1
        try:
            for _ in range(chance.randint(0, 4)):
                await asyncio.sleep(0)
            if chance.random() < 0.3:
                raise OSError(key)
            return key
        finally:
            try:
                await asyncio.sleep(0)
            finally:
                running[key] -= 1

    async def caller(key: str) -> None:
        with suppress(OSError):
            assert await coalescing.run(key, lambda: answer(key)) == key

    tasks = []
    for _ in range(200):
        tasks.append(asyncio.create_task(caller(chance.choice("abc"))))
        if chance.random() < 0.4:
            chance.choice(tasks).cancel()
        if chance.random() < 0.5:
            await asyncio.sleep(0)
    await asyncio.wait(tasks)
    assert not [task for task in tasks if not task.cancelled() and task.exception()]
    await turn()
    assert (coalescing.on_their_way, +running) == (0, Counter())
    assert coalescing.made + coalescing.shared >= sum(not task.cancelled() for task in tasks)
