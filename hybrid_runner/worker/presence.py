"""What a worker is to the others: registered, with a heartbeat, and help for those who have died."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from hybrid_runner.errors import NoAnswer
from hybrid_runner.jsontext import encode
from hybrid_runner.news import DutyGiven, EndsUnreported, JobHung, RowGone, UpkeepNews, WorkerDied, WorkerNews, WorkerSilent
from hybrid_runner.outcomes import Settlement
from hybrid_runner.registry import Registry
from hybrid_runner.settings import Settings
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import FOR_UPKEEP, Fetches, Link, named
from hybrid_runner.storage.contact import Contact
from hybrid_runner.telemetry.tracing import Tracing
from hybrid_runner.upkeep.duties import Duties
from hybrid_runner.upkeep.duty_runner import DutyRunner
from hybrid_runner.upkeep.endings import Endings
from hybrid_runner.upkeep.rescuer import Rescuer
from hybrid_runner.version import VERSION
from hybrid_runner.worker.executor import Executor
from hybrid_runner.worker.heartbeat import Heartbeat
from hybrid_runner.worker.identity import Identity, Name
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.watchdog import Watchdog

OnNews = Callable[[list[WorkerNews], float, Name], None]


class Presence:
    """Made and registered in the worker's loop; the heartbeat and all that it does live in a thread of their own."""

    def __init__(
        self,
        dsn: str,
        settings: Settings,
        registry: Registry,
        queues: Iterable[str],
        kinds: str,
        identity: Identity,
        *,
        contact: Contact,
        executor: Executor,
        listener: Listener,
        tracing: Tracing,
        rescued: Callable[[Sequence[Settlement]], None],
        lagged: Callable[[float], None],
    ) -> None:
        self._identity = identity
        self._settings = settings
        self._queues = list(queues)
        self._kinds = kinds
        self._executor = executor
        self._listener = listener
        self._on_news: OnNews | None = None
        self._on_silence: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self._patience = min(10.0, max(1.0, settings.lease.total_seconds() / 3))
        self._contact = contact
        self._beats = Link(dsn, named("heartbeat", {}), timeout=self._patience, contact=contact)
        self._upkeep = Link(dsn, named("upkeep", FOR_UPKEEP))
        self._rescuer = Rescuer(registry, rescued, tracing.kept)
        self._endings = Endings(self._upkeep, tracing.ended if tracing.on else None)
        self.duties = Duties(self._rescuer)
        self._duty_runner = DutyRunner(dsn, self.duties.all)
        self._rescue_first = False
        self._news: asyncio.Queue[tuple[str, list[UpkeepNews]]] = asyncio.Queue()
        self.watchdog = Watchdog(settings.stall_after.total_seconds(), executor.mark_stall, lagged)
        self.pause = min(settings.heartbeat, settings.lease / 3).total_seconds()
        """Seconds between two beats."""
        others = (self.watchdog.run, self._act_on_news, *self._duty_runner.loops)
        self._heartbeat = Heartbeat(self.pause, self._beat, *others, closing=self._close)

    @property
    def rescued(self) -> int:
        """Jobs of lost workers that this one brought back."""
        return self._rescuer.rescued

    @property
    def alive(self) -> bool:
        """Whether the heartbeat goes on."""
        return self._heartbeat.alive

    async def register(self, on: Fetches, queues: str) -> None:
        """Become known; what an earlier worker of this name ran is put back at the first heartbeat."""
        await self._register(on, queues, self._identity.id)

    async def register_anew(self, on: Fetches, queues: str) -> None:
        """Under a new name: the others believe the old one dead."""
        await self._register(on, queues, self._identity.new_id())

    async def _register(self, on: Fetches, queues: str, worker_id: str) -> None:
        host, pid = socket.gethostname(), os.getpid()
        first, took_over = await statements.register_worker(
            on, worker_id, host, pid, VERSION, queues, self._settings.lease, self._kinds
        )
        self._identity.register(worker_id, first)
        self._rescue_first = self._rescue_first or took_over

    async def leave_queues(self, on: Fetches) -> None:
        """Nobody shall count on this worker any more."""
        await statements.leave_queues(on, *self._identity.name)

    async def retire(self, on: Fetches, *, in_order: bool) -> None:
        """Sign off; if not in order, the others look after what is left."""
        await statements.retire_worker(on, *self._identity.name, in_order=in_order)

    def start(self, on_news: OnNews, on_silence: Callable[[], None]) -> None:
        """Beat from now on.

        In the worker's loop, `on_news` is given what each heartbeat brought, when it was sent, and under which name;
        `on_silence` is called when one got no answer.
        """
        self._on_news, self._on_silence = on_news, on_silence
        self._heartbeat.start()

    def soon(self) -> None:
        """Beat now."""
        self._heartbeat.soon()

    async def stop(self) -> None:
        """No more beats."""
        await self._heartbeat.stop()

    # --- in the heartbeat's thread

    async def _beat(self) -> float | None:
        settings, name, began = self._settings, self._identity.name, time.monotonic()
        worker_id, first_claim = name
        try:
            async with asyncio.timeout(self._patience):  # connecting included
                news = await statements.beat(
                    self._beats, worker_id, self._executor.claims, self._queues, first_claim, self._listener.proof_channel,
                    settings.overtime,
                    encode(self._executor.by_queue(), "running"), self._duty_runner.names,
                )  # fmt: skip
        except (NoAnswer, TimeoutError) as error:
            self._pass_on(self._on_silence)
            failure = error if isinstance(error, NoAnswer) else NoAnswer("Postgres does not answer in time")
            self._contact.failed(failure)
            raise failure from None
        self._identity.confirmed_at = time.monotonic()
        others = [one for one in news if isinstance(one, WorkerNews)]
        ours = [one for one in news if isinstance(one, UpkeepNews)]
        if (on_news := self._on_news) is not None:
            self._pass_on(lambda: on_news(others, began, name))
        duties = [one.name for one in ours if isinstance(one, DutyGiven)]
        self._duty_runner.give(duties, f"{worker_id} {first_claim}")
        if self._news.empty():  # else those of the beat before are still being dealt with
            self._news.put_nowait((worker_id, ours))
        return min((one.dead_in.total_seconds() for one in ours if isinstance(one, WorkerSilent)), default=None)

    def _pass_on(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the worker's loop was closed: nobody is left to beat for
            raise asyncio.CancelledError from None

    async def _act_on_news(self) -> None:
        """Beside the heartbeat, on a connection of its own: what takes long must not keep it from beating."""
        outage = Outage("upkeep")
        while True:
            worker_id, news = await self._news.get()
            try:
                await self._do(news, worker_id)
            except Exception as error:
                await outage.pause(error)
            else:
                outage.over()

    async def _close(self) -> None:
        await self._beats.close()
        await self._upkeep.close()
        await self._duty_runner.close()

    async def _do(self, news: list[UpkeepNews], worker_id: str) -> None:
        todo = _sorted(news)
        if todo.rescue or self._rescue_first:
            await self._rescuer.rescue(self._upkeep)
            self._rescue_first = False
        if todo.report_ends:
            await self._endings.tell()
        if todo.gone:
            completed = await statements.completed_claims(self._upkeep, todo.gone)  # by their handlers, which may go on
            self._pass_on(lambda: self._executor.stop_without_rows({*todo.gone} - completed))
        # Both: what waits here for a process is claimed, and its time has not begun.
        overdue = self._executor.overdue(self._settings.overtime.total_seconds())
        if hung := [job_id for job_id in todo.hung if job_id in overdue]:
            await self._rescuer.end_hung(self._upkeep, worker_id, hung, self._settings.overtime)


@dataclass
class _Todo:
    rescue: bool = False
    report_ends: bool = False
    hung: list[int] = field(default_factory=list)
    gone: list[tuple[int, int]] = field(default_factory=list)


def _sorted(news: Iterable[UpkeepNews]) -> _Todo:
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
            case WorkerSilent() | DutyGiven():
                pass
            case _:
                assert_never(one)
    return todo


def heard_within(settings: Settings) -> timedelta:
    """How long after a heartbeat the listener may take to hear the ring that it sent."""
    return min(timedelta(seconds=5), settings.lease / 3)
