"""Many named loops in one process, each with its own timer, failures and backoff."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Self

from hybrid_runner.durations import Duration, parse_named, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.resilience.adapt import Adapt
from hybrid_runner.resilience.arguments import (
    checked_function,
    checked_growth,
    checked_jitter,
    checked_name,
    checked_rules,
)
from hybrid_runner.resilience.breaker import Breaker
from hybrid_runner.resilience.changes import Change, What, log, log_change
from hybrid_runner.resilience.clock import Clock, SteadyClock
from hybrid_runner.resilience.log_events import log_event
from hybrid_runner.resilience.loop_state import BackoffState, LoopState
from hybrid_runner.resilience.named_loop import NOTHING, NamedLoop, Outcome
from hybrid_runner.resilience.runs import Runs


class AdaptiveScheduler:
    """Calls functions again and again, in one event loop, until it is closed. What fails is called
    less often: 2, 4, then 8 intervals after its last run (`factor`, `cap`), and after a success
    again after one.
    """

    def __init__(
        self,
        *,
        cap: float = 8.0,
        factor: float = 2.0,
        jitter: float = 0.0,
        stagger: Duration = "150ms",
        clock: Clock | None = None,
        on_change: Callable[[Change], None] = log_change,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._growth = (checked_growth("factor", factor), checked_growth("cap", cap))
        self._jitter = checked_jitter(jitter)
        self._stagger = parse_named("stagger", stagger) or timedelta(0)
        self._clock = SteadyClock() if clock is None else clock
        self._on_change = checked_function("on_change", on_change)
        self._chance = checked_function("chance", chance)
        self._loops: dict[str, NamedLoop] = {}
        """By name, in order of registration."""
        self._runs = Runs(self._clock, self._on_end, lambda loop: self._tell("stop_ignored", loop))
        self._is_paused = False
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def schedule(
        self,
        name: str,
        fn: Callable[[], object],
        interval: Duration,
        condition: Callable[[], object] | None = None,
        *,
        at_once: bool = False,
        jitter: float | None = None,
        breaker: Breaker | None = None,
        adapt: Adapt | None = None,
        while_paused: Duration | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Call `fn` after each `interval`, `async` or not; under a name that there is, instead of
        that loop. False or an exception is a failure, all else a success.
        """
        rules = checked_rules(
            interval=interval,
            growth=self._growth,
            jitter=self._jitter if jitter is None else jitter,
            breaker=breaker,
            adapt=adapt,
            while_paused=while_paused,
        )
        loop = NamedLoop(
            name=checked_name(name),
            fn=checked_function("fn", fn),
            condition=None if condition is None else checked_function("condition", condition),
            rules=rules,
            timeout=None if timeout is None else parse_positive("timeout", timeout),
            state=rules.first(self._clock.now(), self._chance(), at_once=at_once),
        )
        self._check_open()
        if (replaced := self._loops.pop(name, None)) is not None:
            replaced.cancel_timer()
        self._loops[name] = loop
        self._tell("scheduled", loop)
        self._set_timer(loop)

    def pause(self) -> None:
        """Begin no runs, other than those that are triggered; what runs goes on."""
        if not self._is_paused:
            self._is_paused = True
            for loop in self._loops.values():
                self._set_timer(loop)
            self._tell("paused")

    def resume(self) -> None:
        """Go on: loops that would have run meanwhile run now, one after the other."""
        if not self._is_paused:
            return
        self._is_paused = False
        now = self._clock.now()
        self._tell("resumed")
        due_at = now
        for loop in self._loops.values():
            if loop.name not in self._runs and loop.rules.has_missed_a_run(loop.state, now):
                loop.state = replace(loop.state, due_at=due_at)
                due_at += self._stagger
            self._set_timer(loop)

    def trigger(self, name: str) -> bool:
        """Begin a run now, paused or not. False: there is no such loop, it runs, or its breaker is
        open.
        """
        loop = self._loops.get(name)
        if loop is None or name in self._runs or self._is_closed:
            return False
        return self._begin(loop)

    def backoff_state(self, name: str) -> BackoffState | None:
        """How a loop stands; None if there is no such loop."""
        loop = self._loops.get(name)
        if loop is None:
            return None
        state, next_at = loop.state, loop.rules.due_at(loop.state, paused=self._is_paused)
        return BackoffState(
            failures=state.failures,
            multiplier=loop.rules.multiplier(state.failures),
            next_at=None if name in self._runs or self._is_closed else next_at,
            last_ok_at=state.last_ok_at,
        )

    def reset_backoff(self, name: str) -> bool:
        """Go on as if the last run had succeeded, and close the breaker. False: there is no such
        loop.
        """
        loop = self._loops.get(name)
        if loop is None:
            return False
        if loop.state.failures:
            loop.state = loop.rules.reset(loop.state, self._clock.now())
            self._tell("reset", loop)
            self._set_timer(loop)
        return True

    async def close(self, grace: Duration = "5s") -> None:
        """End all loops. What runs has so long to end, then it is cancelled; what goes on all the
        same is left behind, and the log says so.
        """
        patience = parse_named("grace", grace) or timedelta(0)
        is_first, self._is_closed = not self._is_closed, True
        for loop in self._loops.values():
            loop.cancel_timer()
        await self._runs.end(patience)
        if is_first:
            self._tell("closed")

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConfigurationError("this AdaptiveScheduler is closed: make another one")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise ConfigurationError(
                "call schedule() while an event loop runs, such as in an async function"
            ) from None

    def _set_timer(self, loop: NamedLoop) -> None:
        """Wake it when it is due, unless it runs: the end of the run sets the timer then."""
        loop.cancel_timer()
        if self._is_closed or self._loops[loop.name] is not loop:
            return  # on_change has ended it, or replaced it
        due_at = loop.rules.due_at(loop.state, paused=self._is_paused)
        if due_at is None or loop.name in self._runs:
            return
        pause = max(timedelta(0), due_at - self._clock.now())
        loop.timer = self._clock.call_later(pause, partial(self._on_timer, loop))

    def _on_timer(self, loop: NamedLoop) -> None:
        if not self._begin(loop):  # the breaker is open: a moment too early
            self._set_timer(loop)

    def _begin(self, loop: NamedLoop) -> bool:
        _, may_run = loop.rules.may_run(loop.state, self._clock.now())
        if may_run:
            loop.cancel_timer()
            self._runs.begin(loop, partial(self._on_condition, loop))
        return may_run

    def _on_condition(self, loop: NamedLoop) -> None:
        """Its condition is true, if it has one: the breaker counts this run."""
        before = loop.state
        loop.state, _ = loop.rules.may_run(before, self._clock.now())
        self._tell_changes(loop, before)

    def _on_end(self, loop: NamedLoop, outcome: Outcome) -> None:
        """It may have been replaced meanwhile: the one that did so has waited for this."""
        if self._loops[loop.name] is loop:
            if outcome.seen is not NOTHING:
                loop.seen = outcome.seen
            self._rest(loop, outcome)
        else:
            self._set_timer(self._loops[loop.name])

    def _rest(self, loop: NamedLoop, outcome: Outcome) -> None:
        """Until its next run."""
        before, now = loop.state, self._clock.now()
        loop.state = loop.rules.after(
            before, outcome.result, now, self._chance(), changed=outcome.changed
        )
        self._tell_changes(loop, before, outcome.error)
        self._set_timer(loop)

    # --- changes

    def _tell_changes(
        self, loop: NamedLoop, before: LoopState, error: BaseException | None = None
    ) -> None:
        state, multiplier = loop.state, loop.rules.multiplier
        slower = multiplier(state.failures) > multiplier(before.failures)
        if slower or (state.failures and not before.failures):
            self._tell("failing", loop, error)
        elif before.failures and not state.failures:
            self._tell("recovered", loop, failures=before.failures)
        if state.breaker.mode != before.breaker.mode:
            self._tell("breaker", loop, error)
        if state.interval != before.interval:
            self._tell("interval", loop)

    def _tell(
        self,
        what: What,
        loop: NamedLoop | None = None,
        error: BaseException | None = None,
        failures: int | None = None,
    ) -> None:
        change = Change(what, self._clock.now())
        if loop is not None:
            state = loop.state
            change = replace(
                change,
                name=loop.name,
                failures=state.failures if failures is None else failures,
                pause=loop.rules.pause(state),
                breaker=state.breaker.mode,
                error=error,
            )
        try:
            self._on_change(change)
        except Exception:
            log.exception(
                "on_change failed; the loops go on", extra=log_event("scheduler.listener_failed")
            )
