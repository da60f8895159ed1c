"""One loop of an AdaptiveScheduler, and one run of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from datetime import timedelta

from hybrid_runner.resilience.clock import Timer
from hybrid_runner.resilience.loop_state import LoopRules, LoopState, Result

NOTHING = object()
"""No run has returned anything yet."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    result: Result
    seen: object = NOTHING
    """What it returned, if that says something about the data."""
    changed: bool | None = None
    """Whether that is not what the run before had returned; None: it does not say."""
    error: BaseException | None = None


@dataclass(slots=True, eq=False)
class NamedLoop:
    """As it was scheduled once; scheduled again under its name, it is another one."""

    name: str
    fn: Callable[[], object]
    condition: Callable[[], object] | None
    rules: LoopRules
    timeout: timedelta | None
    state: LoopState
    timer: Timer | None = None
    """Until its next run begins."""
    seen: object = NOTHING
    """What its last success returned."""
    context: Context = field(default_factory=copy_context)
    """Of whoever scheduled it: a run has nothing to do with the request that triggers it."""

    def cancel_timer(self) -> None:
        timer, self.timer = self.timer, None
        if timer is not None:
            timer.cancel()

    async def run(self, on_condition: Callable[[], None]) -> Outcome:
        """One run; `on_condition` is called once it is clear that there will be one."""
        if self.condition is not None and not await _result_of(self.condition):
            return Outcome(Result.SKIPPED)
        on_condition()
        value = await _result_of(self.fn)
        if value is False:
            return Outcome(Result.FAILED)
        if self.rules.adapt is None or value is None or value is True:
            return Outcome(Result.OK)
        # Here, where what cannot be compared is a failure of the run: arrays compare to arrays.
        changed = None if self.seen is NOTHING else bool(self.seen != value)
        return Outcome(Result.OK, value, changed)


@dataclass(slots=True, eq=False)
class Run:
    """A run that has not ended."""

    loop: NamedLoop
    task: asyncio.Task[Outcome]
    timer: Timer | None = None
    """Until its time-out."""
    is_timed_out: bool = False

    def outcome(self) -> Outcome:
        """What it came to, now that it has ended."""
        if self.is_timed_out:
            return Outcome(Result.FAILED, error=TimeoutError("it took longer than its time-out"))
        if self.task.cancelled():
            return Outcome(Result.CANCELLED)
        error = self.task.exception()
        return self.task.result() if error is None else Outcome(Result.FAILED, error=error)


async def _result_of(fn: Callable[[], object]) -> object:
    result = fn()
    return await result if inspect.isawaitable(result) else result
