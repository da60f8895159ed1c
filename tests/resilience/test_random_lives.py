"""E1 to E8: laws that hold for loops whatever is done with them, and in whatever order."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.resilience import Adapt, AdaptiveScheduler, Breaker, BreakerState
from hybrid_runner.resilience.loop_state import LoopRules, Result
from tests.support.moved_clock import MovedClock

NAMES = "abcd"
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


class Life:
    """Random operations on a scheduler, and what its functions saw of each other."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = MovedClock()
        self.scheduler = AdaptiveScheduler(
            clock=self.clock, jitter=0.1, chance=self.chance.random, on_change=lambda _: None
        )
        self.running = dict.fromkeys(NAMES, 0)
        self.tasks: dict[str, asyncio.Task[object] | None] = {}
        self.triggered = set[str]()
        self.slower = set[str]()
        self.paused = self.closed = False
        self.broken: list[str] = []
        self.runs = 0

    async def fn(self, name: str) -> object:
        self.runs += 1
        self.running[name] += 1
        self.tasks[name] = asyncio.current_task()
        if self.running[name] > 1:
            self.broken.append(f"{name} overlaps itself")
        if self.paused and name not in self.triggered | self.slower:
            self.broken.append(f"{name} begins while paused")
        if self.closed:
            self.broken.append(f"{name} begins after the end")
        self.triggered.discard(name)
        try:
            if self.chance.random() < 0.3:
                passed = asyncio.Event()
                delay = timedelta(seconds=self.chance.choice([0.5, 3, 50]))
                self.clock.call_later(delay, passed.set)
                await passed.wait()
            if self.chance.random() < 0.3:
                raise OSError("lost")
            return self.chance.choice([True, False, None, "a", "b"])
        finally:
            self.running[name] -= 1

    def condition(self, name: str) -> bool:
        if self.chance.random() < 0.8:
            return True
        self.triggered.discard(name)
        return False

    def step(self) -> None:
        name, chance = self.chance.choice(NAMES), self.chance
        match chance.choice(["schedule", "trigger", "trigger", "pause", "resume", "reset", "kill"]):
            case "schedule":
                self.schedule(name)
            case "trigger":
                if self.scheduler.trigger(name):
                    self.triggered.add(name)
                    assert not self.running[name]
            case "pause":
                self.scheduler.pause()
                self.paused = True
            case "resume":
                self.scheduler.resume()
                self.paused = False
            case "reset":
                self.scheduler.reset_backoff(name)
                state = self.scheduler.backoff_state(name)
                assert state is None or (state.failures, state.multiplier) == (0, 1)
            case "kill" if (task := self.tasks.get(name)) is not None:
                task.cancel()

    def schedule(self, name: str) -> None:
        chance = self.chance
        slower = chance.choice([None, None, "7s"])
        if name in self.triggered:
            return  # which of both begins would be anybody's guess
        self.slower = self.slower - {name} | ({name} if slower else set())
        self.scheduler.schedule(
            name,
            lambda: self.fn(name),
            chance.choice([1, 2.5, 10]),
            chance.choice([None, lambda: self.condition(name)]),
            at_once=chance.random() < 0.3,
            breaker=chance.choice([None, Breaker(failures=2, cooldown="20s")]),
            adapt=chance.choice([None, Adapt("1s", "10s")]),
            while_paused=slower,
            timeout=chance.choice([None, "5s"]),
        )

    def check(self) -> None:
        assert self.broken == []
        for name in NAMES:
            state = self.scheduler.backoff_state(name)
            if state is None:
                continue
            assert state.multiplier == min(8, 2**state.failures)
            if state.next_at is not None:
                longest = timedelta(seconds=max(20, 10 * 8 * 1.1))
                assert state.next_at <= self.clock.now() + longest
            elif not self.running[name]:
                assert self.paused


@pytest.mark.parametrize("seed", range(40))
async def test_no_order_of_events_breaks_a_law(seed: int) -> None:
    """E1 to E8"""
    life = Life(seed)
    for _ in range(150):
        life.step()
        await life.clock.forward(life.chance.choice([0, 0.1, 1, 10]))
        life.check()
    life.scheduler.resume()
    life.paused = False
    before = life.runs
    await life.clock.forward(500)
    life.check()
    assert life.runs > before, "it went on to its end"
    closing = asyncio.create_task(life.scheduler.close())
    await life.clock.forward(6)
    life.closed = True
    await closing
    await life.clock.forward(500)
    assert not any(life.running.values())
    assert life.broken == []


@pytest.mark.parametrize("seed", range(40))
def test_the_next_run_is_never_before_the_end_nor_later_than_the_longest_pause(seed: int) -> None:
    """E2, E3: random outcomes at random times"""
    chance = random.Random(seed)
    factor, cap, jitter = chance.choice([1, 1.001, 2, 100]), chance.choice([1, 8, 1000]), 0.5
    rules = LoopRules(timedelta(seconds=10), factor, cap, jitter)
    now, failures = NEW_YEAR, 0
    state = rules.first(now, chance.random(), at_once=False)
    for _ in range(2000):
        now = max(now, state.due_at) + timedelta(seconds=chance.choice([0, 0.1, 100]))
        result = chance.choice([*Result, Result.FAILED, Result.FAILED])
        state = rules.after(state, result, now, chance.random(), changed=None)
        failures += result is Result.FAILED
        failures = 0 if result is Result.OK else failures
        assert state.failures == failures
        multiplier = rules.multiplier(failures)
        assert 1 <= multiplier <= cap
        pause = (state.due_at - now).total_seconds()
        assert 10 * multiplier * 0.5 - 0.001 <= pause <= 10 * multiplier * 1.5 + 0.001
    assert state.breaker == BreakerState()


@pytest.mark.parametrize("factor", [1, 1.0000001, 2, 1000])
def test_no_number_of_failures_is_too_large(factor: float) -> None:
    """E2"""
    rules = LoopRules(timedelta(days=3650), factor, cap=1000)
    assert [rules.multiplier(failures) for failures in (0, 10**9)] == [
        1,
        1 if factor == 1 else 1000,
    ]
    state = rules.first(NEW_YEAR, 0.5, at_once=True)
    for _ in range(20):
        state = rules.after(state, Result.FAILED, NEW_YEAR, 1.0, changed=None)
    assert state.due_at <= NEW_YEAR + timedelta(days=3650)
