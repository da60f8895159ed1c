"""Does the upkeep that heartbeats ask for: rescues, duties, hung jobs, schedules. Runs in the
heartbeat's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, assert_never

from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.news import (
    DutyGiven,
    EndsUnreported,
    JobHung,
    RowGone,
    UpkeepNews,
    WorkerDied,
)
from hybrid_runner.model.settlements import Settlement
from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.session_settings import FOR_UPKEEP, named
from hybrid_runner.telemetry.tracing.tracing import Tracing
from hybrid_runner.upkeep.duties import Duties
from hybrid_runner.upkeep.duty_runner import DutyRunner
from hybrid_runner.upkeep.rescuer import Rescuer
from hybrid_runner.upkeep.unreported_ends import EndReporter
from hybrid_runner.worker.identity import Name
from hybrid_runner.worker.liveness.tick_loop import TickLoop
from hybrid_runner.worker.liveness.worker_loop import WorkerLoop
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.run.executor import Executor


class UpkeepLoop:
    """Opens connections of its own while there is something to do, so that long work does not hold
    up the heartbeat.
    """

    def __init__(
        self,
        dsn: str,
        registry: Registry,
        executor: Executor,
        timeout_grace: timedelta,
        tracing: Tracing,
        on_rescued: Callable[[Sequence[Settlement]], None],
        worker_loop: WorkerLoop,
        row_check: timedelta,
    ) -> None:
        self._executor = executor
        self._timeout_grace = timeout_grace
        self._worker_loop = worker_loop
        self._connection = LazyConnection(dsn, named("upkeep", FOR_UPKEEP))
        self._rescuer = Rescuer(
            registry, on_rescued, tracing.traceparents_of, tracing.traceparents_after
        )
        self._end_reporter = EndReporter(
            tracing.on_cancelled if tracing.on else None, tracing.room_for_ends
        )
        self.duties = Duties(self._rescuer, registry, row_check)
        self._duty_runner = DutyRunner(dsn, self.duties.all)
        self.ticks = TickLoop(dsn)
        self._news: asyncio.Queue[tuple[str, list[UpkeepNews]]] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None
        """That of the heartbeat's thread, once it runs."""
        self.rescue_first = False
        """Written at the registration: an earlier worker with this id left jobs behind."""

    @property
    def rescued(self) -> int:
        """How many jobs of dead workers this one rescued."""
        return self._rescuer.rescued

    @property
    def duty_names(self) -> list[str]:
        """The duties that this worker knows."""
        return self._duty_runner.names

    @property
    def loops(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """The loops that have to run in the heartbeat's thread."""
        return (self._act_on_news, self.ticks.run, *self._duty_runner.loops)

    def give(self, news: list[UpkeepNews], name: Name) -> None:
        """Do soon what a heartbeat under this name brought."""
        duties = [one.name for one in news if isinstance(one, DutyGiven)]
        self._duty_runner.give(duties, f"{name.worker_id} {name.first_claim}")
        if self._news.empty():  # else the news before are still being dealt with
            self._news.put_nowait((name.worker_id, news))

    def ring_for_rows(self) -> None:
        """Rows of attached tables were changed, or are late. May be called from any thread."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(self._duty_runner.ring, self.duties.sources.name)

    async def close(self) -> None:
        """Close the connections, and give held duties to other workers."""
        await self._connection.close()
        await self.ticks.close()
        await self._duty_runner.close()

    async def _act_on_news(self) -> None:
        self._loop = asyncio.get_running_loop()
        outages = {step: Outage(f"upkeep ({step.value})") for step in _Step}
        while True:
            await self._connection.close()  # there may be nothing to do for days
            worker_id, news = await self._news.get()
            todo, pause = _todo(news), 0.0
            for step, outage in outages.items():
                pause = max(pause, await self._try(step, todo, worker_id, outage))
            await asyncio.sleep(pause)

    async def _try(self, step: _Step, todo: _Todo, worker_id: str, outage: Outage) -> float:
        """Do one step; returns how long to pause if it failed: the others are done all the same."""
        try:
            await self._do(step, todo, worker_id)
        except Exception as error:
            # Without a pause: only the connection was lost. The news may not come a second time.
            return outage.failed(error) or await self._try(step, todo, worker_id, outage)
        outage.over()
        return 0.0

    async def _do(self, step: _Step, todo: _Todo, worker_id: str) -> None:
        match step:
            case _Step.ROWS_GONE:
                await self._stop_without_rows(todo.gone)
            case _Step.HUNG_JOBS:
                await self._end_hung(todo.hung, worker_id)
            case _Step.RESCUES:
                if todo.rescue or self.rescue_first:
                    await self._rescuer.rescue(self._connection)
                    self.rescue_first = False
            case _Step.UNREPORTED_ENDS:
                if todo.report_ends:
                    await self._end_reporter.report(self._connection)
            case _:
                assert_never(step)

    async def _stop_without_rows(self, gone: list[tuple[int, int]]) -> None:
        running = {*self._executor.claims}
        if gone := [claim for claim in gone if claim in running]:  # most have just been settled
            # Jobs that their handlers completed themselves: those may go on.
            completed = await claim_calls.completed_claims(self._connection, gone)
            self._worker_loop.call(self._executor.stop_without_rows, {*gone} - completed)

    async def _end_hung(self, hung: list[int], worker_id: str) -> None:
        # Both must say so: a job that waits here for a process has not begun to use its time.
        overdue = self._executor.overdue(self._timeout_grace.total_seconds())
        if hung := [job_id for job_id in hung if job_id in overdue]:
            await self._rescuer.end_hung(self._connection, worker_id, hung, self._timeout_grace)


class _Step(Enum):
    """What a round does, in this order: first what concerns jobs that run here. A step that fails
    does not keep the others from being done.
    """

    ROWS_GONE = "rows gone"
    HUNG_JOBS = "hung jobs"
    RESCUES = "rescues"
    UNREPORTED_ENDS = "unreported ends"


@dataclass
class _Todo:
    rescue: bool = False
    report_ends: bool = False
    hung: list[int] = field(default_factory=list)
    gone: list[tuple[int, int]] = field(default_factory=list)


def _todo(news: Iterable[UpkeepNews]) -> _Todo:
    todo = _Todo()
    for one in news:
        match one:
            case WorkerDied():
                todo.rescue = True
            case EndsUnreported():
                todo.report_ends = True
            case JobHung(job_id):
                todo.hung.append(job_id)
            case RowGone(job_id, claim):
                todo.gone.append((job_id, claim))
            case DutyGiven():
                pass
            case _:
                assert_never(one)
    return todo
