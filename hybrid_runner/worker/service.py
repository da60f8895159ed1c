"""A worker: started, running, shut down. The only file that knows all the parts of one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Self, assert_never

from hybrid_runner.errors import RunnerError
from hybrid_runner.happenings import Writing
from hybrid_runner.jsontext import encode
from hybrid_runner.messages import READERS, HelpWanted, QueueMessage, WorkerCame, WorkerLeft, channel_of
from hybrid_runner.models import Keep, Taken
from hybrid_runner.news import CancelRequested, DeclaredDead, JobsOverdue, MuteExpired, NextDue, ProofSent, QueueMember, WorkerNews
from hybrid_runner.outcomes import Requeued, Stopped, split
from hybrid_runner.policy.doorbell import Mode, Reason
from hybrid_runner.policy.ranking import EVERYBODY
from hybrid_runner.registry import Registry
from hybrid_runner.settings import Settings
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import FOR_SETTLING, Link, for_claims, named
from hybrid_runner.storage.contact import Contact
from hybrid_runner.storage.statements import Lanes
from hybrid_runner.telemetry.counting import Counts
from hybrid_runner.telemetry.current import hushed
from hybrid_runner.telemetry.exporting import spans_dropped
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.observers import Observers
from hybrid_runner.telemetry.tracing import make_tracing
from hybrid_runner.worker.bell import Bell
from hybrid_runner.worker.calling import Callers
from hybrid_runner.worker.chronicle import Chronicle, tell_start
from hybrid_runner.worker.executor import Executor
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.loops import Outage, within
from hybrid_runner.worker.presence import Presence, heard_within
from hybrid_runner.worker.progress import ProgressWriter
from hybrid_runner.worker.publisher import Publisher
from hybrid_runner.worker.queue_work import QueueWork
from hybrid_runner.worker.settler import Settler
from hybrid_runner.worker.snapshot import snapshot
from hybrid_runner.worker.status import WorkerStatus
from hybrid_runner.worker.tasks import Tasks

log = logging.getLogger("hybrid_runner.worker")

_SWALLOWED = 5.0
"""Seconds after which an answer that has not come may never come, once the heartbeat's did not either."""
_OVERRUN = 5.0
"""Seconds past the grace that a stop takes at most, whatever Postgres and the network do: to write down and to sign off."""
_MANY_OUTCOMES = 50


class Worker:
    """Claims from its queues and runs what it claims, until it is stopped."""

    def __init__(self, dsn: str, settings: Settings, registry: Registry, queues: Mapping[str, int], worker_id: str) -> None:
        self.id = worker_id
        """Under which the others know it; a new one, should they believe it dead."""
        self._dsn = dsn
        self._settings = settings
        self._registry = registry
        self._totals = dict(queues)
        self._tasks = Tasks(lambda: self.id)
        self._stopping = False
        self._contact = Contact()
        self._counts = Counts(queues, [(kind.queue, kind.name) for kind in registry], spans_dropped)
        self._chronicle = Chronicle()
        self._changed = asyncio.Event()
        self._known = asyncio.Event()
        """Set while claims may be made in this worker's name."""

    async def start(self) -> None:
        """Open the queues, register, and start all loops; raises when Postgres refuses."""
        self._wire()
        try:
            with hushed():
                await self._register()
        except BaseException:
            await self._claims.close()
            await self._settles.close()
            raise
        for name, run in {"settler": self._settler.run, "progress": self._progress.run, "chronicle": self._chronicle.run}.items():
            self._tasks.loop(name, run)
        self._tasks.loop("listener", partial(self._listener.run, self._on_hearing))
        for work in self._work.values():
            self._tasks.loop(f"claimer of {work.queue}", work.claimer.run)
            self._tasks.loop(f"poller of {work.queue}", work.poller.run)
        self._known.set()
        self._presence.start()
        tell_start(self.id, self._totals, self._registry, self._settings.thread_slots)

    async def _register(self) -> None:
        for queue in self._totals:
            await statements.open_queue(self._claims, queue, self._settings.hybrid_poll_cap)
        await self._presence.register(self._settles, encode(self._totals, "queues"))
        usual = Keep(self._settings.keep_completed, self._settings.keep_failed, self._settings.keep_cancelled)
        await statements.keep_jobs(self._settles, self._registry.keeps(usual))

    async def stop(self, grace: timedelta | None = None) -> None:
        """Shut down within the grace and a moment: 1 no new claims, 2 handlers, 3 settlements, 4 retire."""
        if self._stopping:
            return
        self._stopping = True
        self._tasks.expect_ends()
        deadline = time.monotonic() + (self._settings.grace if grace is None else grace).total_seconds()
        latest = deadline + _OVERRUN
        log.info("worker %s stops: %d jobs are running", self.id, len(self._executor.running), extra=log_event("worker.stopping"))
        with hushed():
            await self._stop_in_order(deadline, latest)
        log.info("worker %s has stopped", self.id, extra=log_event("worker.stopped"))

    async def _stop_in_order(self, deadline: float, latest: float) -> None:
        await self._stop_claiming(min(time.monotonic() + 5, latest - 4))
        if not await within(deadline, self._executor.idle()):
            log.warning(
                "worker %s: %d jobs outlast the grace and go back to their queues",
                self.id,
                len(self._executor.running),
                extra=log_event("worker.grace_exceeded"),
            )
            self._executor.stop_all()
            await within(latest - 3, self._executor.idle())
        if not await within(latest - 2, self._settler.drained()):
            log.error(
                "worker %s: Postgres did not take %d outcomes in time",
                self.id,
                self._settler.pending,
                extra=log_event("worker.outcomes_unwritten"),
            )
        await self._tasks.end("")
        self._chronicle.summarise()
        await self._retire(latest)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _stop_claiming(self, latest: float) -> None:
        for work in self._work.values():
            work.claimer.stop()
        claimers = self._tasks.named("claimer")
        if claimers:  # none, if they ended by themselves
            await asyncio.wait(claimers, timeout=max(0.0, latest - time.monotonic()))
        await self._tasks.end("claimer", "poller")
        if not await within(max(latest, time.monotonic() + 0.5), self._leave()):
            log.info("worker %s could not say in time that it leaves", self.id, extra=log_event("worker.leave_failed"))

    async def _leave(self) -> None:
        """Nobody shall count on us any more: what a mute kept quiet, or a ring asked of us alone, is for others."""
        try:
            await self._presence.leave_queues(self._claims)
            await self._listener.get_up()
            for queue, work in self._work.items():
                is_awaited = work.claimer.mode is not Mode.ASLEEP or len(work.members) > EVERYBODY
                await statements.leave_bell(self._claims, queue, self.id, is_muted=is_awaited)
        except RunnerError as error:
            log.info(
                "worker %s could not say that it leaves its queues: %s", self.id, error, extra=log_event("worker.leave_failed")
            )

    def status(self) -> WorkerStatus:
        """A snapshot of everything."""
        return snapshot(
            self.id, self._presence, self._listener, self._executor, self._settler, self._counts, self._contact,
            stopping=self._stopping, ended_loops=self._tasks.ended, queues=[work.status() for work in self._work.values()],
            figures={**self._counts.figures(), **self._presence.gauges.figures()},
        )  # fmt: skip

    async def hearing(self) -> None:
        """Wait until rings arrive."""
        while not self._listener.hearing:
            self._changed.clear()
            await self._changed.wait()

    async def settled(self, count: int) -> None:
        """Wait until so many jobs have ended here, in whatever state."""
        while self._counts.ended() < count:
            self._changed.clear()
            await self._changed.wait()

    async def idle(self) -> None:
        """Wait until there is no reason to look, nothing runs and everything is written down."""
        resting = [work.wake.resting for work in self._work.values()]
        while True:
            for event in resting:
                await event.wait()
            await self._executor.idle()
            await self._settler.drained()
            if all(event.is_set() for event in resting) and not self._executor.running:
                return

    def _wire(self) -> None:
        dsn, settings = self._dsn, self._settings
        self._claims, self._settles, self._courtesies = (
            Link(dsn, named("claims", for_claims(flushed=settings.flush_claims)), contact=self._contact),
            Link(dsn, named("settles", FOR_SETTLING), contact=self._contact),
            Link(dsn, named("courtesies", FOR_SETTLING), contact=self._contact),
        )
        self._kinds = statements.Kinds([(kind.name, kind.max_attempts, kind.timeout) for kind in self._registry])
        total = sum(self._totals.values())
        self._tracing = make_tracing(lambda: self.id)
        self._listener = Listener(settings.listen_dsn or dsn)
        self._publisher = Publisher(self._listener.send, self._tasks.soon)
        self._observers = Observers(self._counts, self._chronicle, self._tracing, self._publisher)
        self._progress = ProgressWriter(partial(statements.record_progress, self._courtesies), self._publisher.note)
        self._callers = Callers(threads=settings.thread_slots, processes=settings.process_slots, report=self._progress.report)
        self._settler = Settler(
            finish=partial(statements.finish_jobs, self._settles),
            requeue=lambda batch: statements.requeue_jobs(self._settles, batch, self._tracing.kept(batch)),
            archived_before=partial(statements.archived_before, self._settles),
            locked=partial(statements.find_locked, self._settles),
            reasons=partial(statements.find_reasons, self._settles),
            wrote=self._on_wrote,
            written=self._on_written,
            gather=settings.gather_outcomes,
            gather_from=settings.awake_from,
            enough=max(1, min(total // 4, _MANY_OUTCOMES)),
        )
        self._executor = Executor(self._registry, self._callers, self._settler.settle, self._progress.report, self._tracing)
        self._work = {
            queue: QueueWork(
                queue, slots, settings,
                worker_id=lambda: self.id,
                kinds=self._kinds.number,
                open_bell=self._open_bell,
                bell=Bell(self._listener, settings.mute),
                hearing=lambda: self._listener.hearing,
                send=self._send,
                cancel=self._cancel,
                beat=lambda: self._presence.soon(),  # noqa: PLW0108  # it is made below
                claim=self._claim,
                session=lambda: self._claims.session,
                release_lost=self._release_lost,
                next_due=partial(statements.next_due, self._claims),
                start=self._executor.start,
                searched=self._observers.searched,
                find_unannounced=partial(statements.find_unannounced, self._courtesies),
                soon=self._tasks.soon,
                missed=self._listener.missed,
                # outcomes that Postgres has not taken yet are bounded too
                room=lambda: max(0, 2 * total - self._settler.pending),
            )
            for queue, slots in self._totals.items()
        }  # fmt: skip
        for queue, work in self._work.items():
            self._listener.hear(channel_of(queue), work.heard)
        self._listener.hear(READERS, self._publisher.heard)

        self._presence = Presence(
            dsn, settings, self._registry, self._totals, self._kinds.number, self.id,
            contact=self._contact,
            running=lambda: self._executor.running,
            by_queue=self._executor.by_queue,
            overdue=self._executor.overdue,
            proof_channel=lambda: self._listener.proof_channel,
            told=self._on_told,
            unheard=self._on_silence,
            stalled=self._executor.mark_stall,
            tracing=self._tracing,
            rescued=self._observers.rescued,
            lagged=self._counts.lagged,
        )  # fmt: skip

    async def _claim(self, queue: str, free: int, lanes: Lanes) -> Taken:
        await self._known.wait()
        await self._presence.confirmed()
        name, number = self.id, self._presence.claim_number()
        taken = await statements.claim_jobs(self._claims, queue, self._kinds, free, name, number, lanes)
        if self.id == name and self._known.is_set():
            return taken
        for claim in taken.claims:  # made in a dead worker's name: it goes back, unless somebody was faster
            self._settler.settle(Requeued(claim, timedelta(0), charged=False, why="release"))
        return Taken([], taken.at)

    async def _release_lost(self, queue: str) -> dict[int, bool]:
        known = [*self._executor.claims, *self._settler.claims()]
        return await statements.release_lost(self._claims, queue, self.id, known)

    async def _introduce(self) -> None:
        """Tell the others that we are here, then ask who they are: in this order two newcomers get to know each other."""
        for queue in self._totals:
            await self._listener.send(channel_of(queue), WorkerCame(self.id))
        self._presence.soon()
        await self._publisher.look(self._listener)

    def _send(self, queue: str, message: QueueMessage) -> None:
        self._tasks.soon(self._listener.send(channel_of(queue), message))

    def _open_bell(self, queue: str) -> None:
        """In the middle of a mute of ours: whoever sleeps may be the one whom it kept from being rung for."""

        async def open_and_ring() -> None:
            with contextlib.suppress(RunnerError):
                await statements.open_bell(self._listener, queue, take_sleep_lock=False)
            await self._listener.send(channel_of(queue), HelpWanted())

        self._tasks.soon(open_and_ring())

    def _on_hearing(self) -> None:
        hearing = self._listener.hearing
        self._changed.set()
        for work in self._work.values():
            work.poller.hears(hearing=hearing)
            work.wake.up(Reason.LISTENER)
        if hearing:
            log.info("listening on %s", ", ".join(self._totals), extra=log_event("listener.started"))
            self._tasks.soon(self._introduce())

    def _on_wrote(self, writing: Writing) -> None:
        self._observers.wrote(writing)
        if not self._listener.hearing:  # nobody will ring us for what was put back
            for queue in {s.claim.queue for s in split(writing.settled)[0]} & self._work.keys():
                self._work[queue].wake.up(Reason.LATER)

    def _on_written(self) -> None:
        self._changed.set()
        for work in self._work.values():
            work.slots.freed()  # a claimer that had no room for outcomes has some now

    def _cancel(self, job_id: int) -> None:
        if self._executor.stop(job_id, Stopped.CANCEL):
            log.info("cancelling was asked for", extra=log_event("job.cancel_requested", job=job_id))

    def _on_told(self, news: list[WorkerNews], asked_at: float, first_claim: int) -> None:
        if first_claim != self._presence.first_claim:
            return  # it speaks of who we were
        if DeclaredDead() in news:
            self._on_declared_dead()
            return
        for queue, work in self._work.items():
            members = [one for one in news if isinstance(one, QueueMember) and one.queue == queue]
            work.met({one.worker_id: one.kinds for one in members}, asked_at)
        for one in news:
            match one:
                case CancelRequested(job_id):
                    self._cancel(job_id)
                case ProofSent(channel):
                    self._listener.expect_proof(channel, asked_at, heard_within(self._settings).total_seconds())
                case MuteExpired() | JobsOverdue() | NextDue():
                    self._work[one.queue].told(one)
                case QueueMember() | DeclaredDead():
                    pass
                case _:
                    assert_never(one)

    def _on_declared_dead(self) -> None:
        if self._stopping:
            self._executor.stop_all()  # others run these jobs again
        elif self._known.is_set():
            self._known.clear()
            self._tasks.soon(self._start_over())

    def _on_silence(self) -> None:
        """The heartbeat got no answer: what else waits for one may have been swallowed by the same network."""
        for link in (self._claims, self._settles, self._courtesies):
            link.suspect(_SWALLOWED)
        self._listener.give_up()
        for work in self._work.values():
            work.claimer.unheard()

    async def _start_over(self) -> None:
        """The others believe us dead and run our jobs again: ours end, and we go on under another name."""
        old, outage = self.id, Outage("registering anew")
        log.error(
            "worker %s was declared dead while it lived: its %d jobs end here",
            old,
            len(self._executor.running),
            extra=log_event("worker.declared_dead"),
        )
        self._executor.stop_all()
        while not self._stopping:
            try:
                await self._presence.register_anew(self._courtesies, encode(self._totals, "queues"))
            except RunnerError as error:
                await outage.pause(error)
                continue
            self.id = self._presence.id
            self._known.set()
            log.warning("worker %s goes on as %s", old, self.id, extra=log_event("worker.reregistered"))
            for queue in self._totals:
                await self._listener.send(channel_of(queue), WorkerLeft(old))
            await self._introduce()
            return

    async def _retire(self, latest: float) -> None:
        for work in self._work.values():
            work.timer.clear()
        self._executor.close()
        await self._callers.close()
        try:
            async with asyncio.timeout(max(0.5, latest - time.monotonic())):
                await self._presence.stop()
                for work in self._work.values():
                    await work.claimer.settle_doubt()
                in_order = not self._executor.running and not self._settler.pending
                await self._presence.retire(self._claims, in_order=in_order)
        except Exception as error:
            log.warning("worker %s could not sign off: %s", self.id, error, extra=log_event("worker.sign_off_failed"))
        await asyncio.gather(*(link.close() for link in (self._claims, self._settles, self._courtesies)))
