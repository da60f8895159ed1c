"""What a worker is to the others: a name, a range of claim numbers, a heartbeat, and help for those who have died."""

from __future__ import annotations

import asyncio
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import count
from typing import assert_never

from hybrid_runner.errors import NoAnswer
from hybrid_runner.jsontext import encode
from hybrid_runner.news import DutyGiven, EndsUnreported, JobHung, UpkeepNews, WorkerDied, WorkerNews, WorkerSilent
from hybrid_runner.outcomes import Settlement
from hybrid_runner.registry import Registry
from hybrid_runner.settings import Settings
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import FOR_UPKEEP, Fetches, Link, named
from hybrid_runner.storage.contact import Contact
from hybrid_runner.telemetry.tracing import Tracing
from hybrid_runner.upkeep.chores import Chores
from hybrid_runner.upkeep.endings import Endings
from hybrid_runner.upkeep.gauges import Gauges
from hybrid_runner.upkeep.rescuer import Rescuer
from hybrid_runner.version import VERSION
from hybrid_runner.worker.heartbeat import Heartbeat
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.watchdog import Stall, Watchdog

_GLANCE = 0.05


class Presence:
    """Made and registered in the worker's loop; the heartbeat and all that it does live in a thread of their own."""

    def __init__(
        self,
        dsn: str,
        settings: Settings,
        registry: Registry,
        queues: Iterable[str],
        kinds: str,
        worker_id: str,
        *,
        contact: Contact,
        running: Callable[[], list[int]],
        by_queue: Callable[[], dict[str, int]],
        overdue: Callable[[float], set[int]],
        proof_channel: Callable[[], str | None],
        told: Callable[[list[WorkerNews], float, int], None],
        unheard: Callable[[], None],
        stalled: Callable[[Stall], dict[str, object]],
        tracing: Tracing,
        rescued: Callable[[Sequence[Settlement]], None],
        lagged: Callable[[float], None],
    ) -> None:
        self.id = worker_id
        self._name = worker_id
        self._settings = settings
        self._queues = list(queues)
        self._kinds = kinds
        self._running = running
        self._by_queue = by_queue
        self._overdue = overdue
        self._proof_channel = proof_channel
        self._told = told
        self._unheard = unheard
        self._loop = asyncio.get_running_loop()
        self._patience = min(10.0, max(1.0, settings.lease.total_seconds() / 3))
        self._contact = contact
        self._beats = Link(dsn, named("heartbeat", {}), timeout=self._patience, contact=contact)
        self._upkeep = Link(dsn, named("upkeep", FOR_UPKEEP))
        self._rescuer = Rescuer(self._upkeep, registry, rescued, tracing.kept)
        self._endings = Endings(self._upkeep, tracing.ended if tracing.on else None)
        self._chores = Chores(dsn)
        self.gauges = Gauges(dsn)
        self._rescue_first = False
        self._duties: asyncio.Queue[tuple[str, list[UpkeepNews]]] = asyncio.Queue()
        self.watchdog = Watchdog(settings.stall_after.total_seconds(), stalled, lagged)
        self.pause = min(settings.heartbeat, settings.lease / 3).total_seconds()
        """Seconds between two beats."""
        others = (self.watchdog.run, self._do_duties, self._chores.run, self.gauges.run)
        self._heartbeat = Heartbeat(self.pause, self._beat, *others, closing=self._close)
        self._first_claim = 0
        self._numbers = count()
        self.beaten_at = time.monotonic()

    @property
    def first_claim(self) -> int:
        """Our claims count from here, until we are somebody else."""
        return self._first_claim

    async def confirmed(self) -> None:
        """Return once a heartbeat of the last lease has said that we live: what we claim otherwise may be claimed by a dead one."""
        while time.monotonic() - self.beaten_at > self._settings.lease.total_seconds():
            self._heartbeat.soon()
            await asyncio.sleep(_GLANCE)

    @property
    def rescued(self) -> int:
        """Jobs of lost workers that this one brought back."""
        return self._rescuer.rescued

    @property
    def alive(self) -> bool:
        """Whether the heartbeat goes on."""
        return self._heartbeat.alive

    @property
    def pinned(self) -> tuple[str, ...]:
        """Who keeps vacuum from cleaning up, if this worker was the last to look."""
        return self._chores.pinned

    def claim_number(self) -> int:
        """The next one."""
        return next(self._numbers)

    async def register(self, on: Fetches, queues: str) -> None:
        """Become known; what an earlier worker of this name ran is put back at the first heartbeat."""
        await self._register(on, queues, self.id)

    async def register_anew(self, on: Fetches, queues: str) -> None:
        """Under a new name: the others believe the old one dead."""
        await self._register(on, queues, f"{self._name[:180]}~{uuid.uuid4().hex[:8]}")

    async def _register(self, on: Fetches, queues: str, worker_id: str) -> None:
        host, pid = socket.gethostname(), os.getpid()
        first, took_over = await statements.register_worker(
            on, worker_id, host, pid, VERSION, queues, self._settings.lease, self._kinds
        )
        self.id, self._first_claim, self._numbers = worker_id, first, count(first)
        self._rescue_first = self._rescue_first or took_over

    async def leave_queues(self, on: Fetches) -> None:
        """Nobody shall count on this worker any more."""
        await statements.leave_queues(on, self.id, self._first_claim)

    async def retire(self, on: Fetches, *, in_order: bool) -> None:
        """Sign off; if not in order, the others look after what is left."""
        await statements.retire_worker(on, self.id, self._first_claim, in_order=in_order)

    def start(self) -> None:
        """Beat from now on."""
        self._heartbeat.start()

    def soon(self) -> None:
        """Beat now."""
        self._heartbeat.soon()

    async def stop(self) -> None:
        """No more beats."""
        await self._heartbeat.stop()

    # --- in the heartbeat's thread

    async def _beat(self) -> float | None:
        settings, worker_id, first_claim, began = self._settings, self.id, self._first_claim, time.monotonic()
        try:
            async with asyncio.timeout(self._patience):  # connecting included
                news = await statements.beat(
                    self._beats, worker_id, self._running(), self._queues, first_claim, self._proof_channel(), settings.overtime,
                    encode(self._by_queue(), "running"),
                )  # fmt: skip
        except (NoAnswer, TimeoutError) as error:
            self._pass_on(self._unheard)
            failure = error if isinstance(error, NoAnswer) else NoAnswer("Postgres does not answer in time")
            self._contact.failed(failure)
            raise failure from None
        self.beaten_at = time.monotonic()
        others = [one for one in news if isinstance(one, WorkerNews)]
        ours = [one for one in news if isinstance(one, UpkeepNews)]
        self._pass_on(lambda: self._told(others, began, first_claim))
        duties = [one.name for one in ours if isinstance(one, DutyGiven)]
        self._chores.give(duties)
        if "gauges" in duties:
            self.gauges.give(f"{worker_id} {first_claim}")
        if self._duties.empty():  # else those of the beat before are still being done
            self._duties.put_nowait((worker_id, ours))
        return min((one.dead_in.total_seconds() for one in ours if isinstance(one, WorkerSilent)), default=None)

    def _pass_on(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the worker's loop was closed: nobody is left to beat for
            raise asyncio.CancelledError from None

    async def _do_duties(self) -> None:
        """Beside the heartbeat, on a connection of its own: what takes long must not keep it from beating."""
        outage = Outage("upkeep")
        while True:
            worker_id, news = await self._duties.get()
            try:
                await self._do(news, worker_id)
            except Exception as error:
                await outage.pause(error)
            else:
                outage.over()

    async def _close(self) -> None:
        await self._beats.close()
        await self._upkeep.close()
        await self._chores.close()
        await self.gauges.close()

    async def _do(self, news: list[UpkeepNews], worker_id: str) -> None:
        is_rescue_due, are_ends_unreported, hung = self._rescue_first, False, []
        for one in news:
            match one:
                case WorkerDied():
                    is_rescue_due = True
                case DutyGiven(name):
                    is_rescue_due = is_rescue_due or name == "lost"
                case EndsUnreported():
                    are_ends_unreported = True
                case JobHung(job_id):
                    hung.append(job_id)
                case WorkerSilent():
                    pass
                case _:
                    assert_never(one)
        if is_rescue_due:
            await self._rescuer.rescue()
            self._rescue_first = False
        if are_ends_unreported:
            await self._endings.tell()
        # Both: what waits here for a process is claimed, and its time has not begun.
        overdue = self._overdue(self._settings.overtime.total_seconds())
        if hung := [job_id for job_id in hung if job_id in overdue]:
            await self._rescuer.end_hung(worker_id, hung, self._settings.overtime)


def heard_within(settings: Settings) -> timedelta:
    """How long after a heartbeat the listener may take to hear the ring that it sent."""
    return min(timedelta(seconds=5), settings.lease / 3)
