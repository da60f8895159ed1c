"""What is known of one loop of an AdaptiveScheduler, and what its runs change: time and chance are
arguments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import assert_never

from hybrid_runner.durations import LONGEST
from hybrid_runner.resilience.adapt import Adapt
from hybrid_runner.resilience.breaker import Breaker, BreakerState


class Result(Enum):
    """What a run came to."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class BackoffState:
    """How a loop stands."""

    failures: int
    """So many in a row."""
    multiplier: float
    """Its interval is multiplied by that."""
    next_at: datetime | None
    """When its next run begins; None while it runs, and while nothing begins because of a pause."""
    last_ok_at: datetime | None
    """When its last success ended."""


@dataclass(frozen=True, slots=True)
class LoopState:
    """Of one loop, between two runs."""

    interval: timedelta
    """As it was given, or as it was adapted since."""
    rested_since: datetime
    """When its last run ended or was skipped; before that, when it was scheduled."""
    due_at: datetime
    failures: int = 0
    last_ok_at: datetime | None = None
    breaker: BreakerState = field(default_factory=BreakerState)


@dataclass(frozen=True, slots=True)
class LoopRules:
    """How one loop goes on."""

    interval: timedelta
    factor: float = 2.0
    cap: float = 8.0
    jitter: float = 0.0
    breaker: Breaker | None = None
    adapt: Adapt | None = None
    while_paused: timedelta | None = None

    def first(self, now: datetime, chance: float, *, at_once: bool) -> LoopState:
        """The state of a loop that has just been scheduled."""
        state = LoopState(self.interval, rested_since=now, due_at=now)
        return state if at_once else self._rest(state, now, chance)

    def multiplier(self, failures: int) -> float:
        """By how much so many failures in a row multiply the interval."""
        if failures * math.log(self.factor) >= math.log(self.cap):  # the power might overflow
            return self.cap
        return self.factor**failures

    def may_run(self, state: LoopState, now: datetime) -> tuple[LoopState, bool]:
        """Whether the breaker lets a run begin now, and the state when it has begun."""
        if self.breaker is None:
            return state, True
        breaker, may = self.breaker.before(state.breaker, now)
        return replace(state, breaker=breaker), may

    def after(
        self,
        state: LoopState,
        result: Result,
        now: datetime,
        chance: float,
        *,
        changed: bool | None,
    ) -> LoopState:
        """The state after a run; `changed`: whether it found other data than the one before, if it
        says so.
        """
        match result:
            case Result.OK:
                interval = state.interval
                if self.adapt is not None and changed is not None:
                    interval = self.adapt.interval(interval, changed=changed)
                state = replace(state, failures=0, last_ok_at=now, interval=interval)
                state = self._told(state, now, ok=True)
            case Result.FAILED:
                state = self._told(replace(state, failures=state.failures + 1), now, ok=False)
            case Result.CANCELLED | Result.SKIPPED:
                pass
            case _:
                assert_never(result)
        return self._rest(state, now, chance)

    def reset(self, state: LoopState, now: datetime) -> LoopState:
        """As if its last run had succeeded."""
        state = replace(state, failures=0, breaker=BreakerState())
        return replace(state, due_at=max(now, state.rested_since + state.interval))

    def has_missed_a_run(self, state: LoopState, now: datetime) -> bool:
        """Whether it would have run during a pause that is over now."""
        stale_at = self._not_before(state, state.rested_since + self.pause(state), now)
        return min(stale_at, state.due_at) <= now

    def due_at(self, state: LoopState, *, paused: bool) -> datetime | None:
        """When its timer has to wake it; None: not at all."""
        if not paused:
            return state.due_at
        if self.while_paused is None:
            return None
        return max(state.due_at, state.rested_since + self.while_paused)

    def _told(self, state: LoopState, now: datetime, *, ok: bool) -> LoopState:
        if self.breaker is None:
            return state
        return replace(state, breaker=self.breaker.after(state.breaker, ok, now))

    def _rest(self, state: LoopState, now: datetime, chance: float) -> LoopState:
        pause = self.pause(state) * (1 + self.jitter * (2 * chance - 1))
        due_at = self._not_before(state, now + pause, now)
        return replace(state, rested_since=now, due_at=due_at)

    def pause(self, state: LoopState) -> timedelta:
        """From the end of one run to the next, before it is spread."""
        seconds = state.interval.total_seconds() * self.multiplier(state.failures)
        return timedelta(seconds=min(LONGEST.total_seconds(), seconds))

    def _not_before(self, state: LoopState, at: datetime, now: datetime) -> datetime:
        if self.breaker is None:
            return at
        return max(at, self.breaker.ends_at(state.breaker, now))
