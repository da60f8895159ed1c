"""The runs of an AdaptiveScheduler that have not ended: one at a time for each name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from hybrid_runner.resilience.clock import Clock
from hybrid_runner.resilience.named_loop import NamedLoop, Outcome, Run

PATIENCE = timedelta(seconds=1)
"""Time for a run that was cancelled to end."""


class Runs:
    """Begins runs, and cancels those that take too long."""

    def __init__(
        self,
        clock: Clock,
        on_end: Callable[[NamedLoop, Outcome], None],
        on_stop_ignored: Callable[[NamedLoop], None],
    ) -> None:
        self._clock = clock
        self._on_end = on_end
        self._on_stop_ignored = on_stop_ignored
        self._runs: dict[str, Run] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._runs

    def begin(self, loop: NamedLoop, on_condition: Callable[[], None]) -> None:
        """Begin a run, as a task of its own."""
        # Not by the event loop's factory: one of eager tasks would call it here, before it is known
        # to run, and again if it triggers itself.
        task = asyncio.Task(
            loop.run(on_condition), name=f"loop {loop.name}", context=loop.context.copy()
        )
        run = self._runs[loop.name] = Run(loop, task)
        if loop.timeout is not None:
            run.timer = self._clock.call_later(loop.timeout, partial(self._on_timeout, run))
        task.add_done_callback(lambda _: self._ended(run))

    async def end(self, grace: timedelta) -> None:
        """Return when all have ended; they are cancelled after the grace, and left behind if that
        does not end them.
        """
        try:
            await self._all_ended(grace)
        finally:  # also if whoever waits here is cancelled
            for run in self._of_others():
                run.task.cancel()
        await self._all_ended(PATIENCE)
        for run in self._of_others():
            self._leave(run)
            self._on_stop_ignored(run.loop)

    async def _all_ended(self, limit: timedelta) -> None:
        """Return when all have ended, or after that time."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(limit, partial(over.set_result, None))
        try:
            while not over.done() and (runs := self._of_others()):
                awaited: set[asyncio.Future[Any]] = {over, *(run.task for run in runs)}
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()

    def _of_others(self) -> list[Run]:
        """All but the run that asks: one that closes its scheduler would wait for itself."""
        own = asyncio.current_task()
        return [run for run in self._runs.values() if run.task is not own]

    def _on_timeout(self, run: Run) -> None:
        run.is_timed_out = run.task.cancel()
        run.timer = self._clock.call_later(PATIENCE, partial(self._on_stop_ignored, run.loop))

    def _ended(self, run: Run) -> None:
        if self._runs.get(run.loop.name) is run:
            self._leave(run)
            self._on_end(run.loop, run.outcome())
        elif not run.task.cancelled():
            run.task.exception()  # it was left behind: nobody asks any more

    def _leave(self, run: Run) -> None:
        del self._runs[run.loop.name]
        if run.timer is not None:
            run.timer.cancel()
