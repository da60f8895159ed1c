"""What a worker does when the listener is lost or back, a heartbeat brings news, or outcomes are
settled.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import assert_never

from hybrid_runner.errors import RunnerError
from hybrid_runner.model import news as brought
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.messages import WorkerCame, WorkerLeft, channel_of
from hybrid_runner.model.settlements import split
from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.identity import Name
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.report.change_feed import ChangeFeed
from hybrid_runner.worker.station import Station
from hybrid_runner.worker.tasks import Tasks

log = logging.getLogger("hybrid_runner.worker")

_ANSWER_LOST = 5.0
"""Seconds that other statements may still wait for answers once a heartbeat got none."""


class Reactions:
    """Callbacks of the worker's loops and of the heartbeat; all run in the worker's event loop."""

    def __init__(
        self,
        station: Station,
        tasks: Tasks,
        change_feed: ChangeFeed,
        observe: Callable[[BatchSettled], None],
        proof_seconds: float,
        wake_waiting: Callable[[], None],
    ) -> None:
        self._station = station
        self._tasks = tasks
        self._change_feed = change_feed
        self._observe = observe
        self._proof_seconds = proof_seconds
        self._wake_waiting = wake_waiting

    # --- the settler

    def on_batch_settled(self, batch: BatchSettled) -> None:
        self._observe(batch)
        if not self._station.listener.hearing:  # no ring will say what was put back
            requeues, repeats, _ = split(batch.settled)
            queues = {each.claim.queue for each in requeues}
            queues |= {each.claim.queue for each in repeats}
            for name in queues & self._station.queues.keys():
                self._station.queues[name].wake.up(Reason.LATER)

    def on_room(self) -> None:
        """The settler has room again: claimers that waited for it may claim."""
        for queue in self._station.queues.values():
            queue.slots.offer()

    # --- the listener

    def on_turn(self) -> None:
        """The listener was lost, or listens again."""
        hearing = self._station.listener.hearing
        for queue in self._station.queues.values():
            queue.poller.hears(hearing=hearing)
            queue.wake.up(Reason.LISTENER)
        self._wake_waiting()
        if hearing:
            log.info(
                "listening on %s",
                ", ".join(self._station.queues),
                extra=log_event("listener.started"),
            )
            self._tasks.insist(self._introduce)

    async def _introduce(self) -> None:
        """Tell the other workers that this one is here, then ask who they are.

        In this order two workers that come at once get to know each other.
        """
        listener, worker_id = self._station.listener, self._station.identity.id
        for name in self._station.queues:
            await listener.send(channel_of(name), WorkerCame(worker_id))
        self._station.membership.soon()
        await self._change_feed.ask_for_readers()

    # --- the heartbeat

    def on_news(self, news: list[brought.WorkerNews], name: Name) -> None:
        """What a heartbeat under `name` brought."""
        if name != self._station.identity.name:
            return  # about an id that this worker has no more
        for one in news:
            match one:
                case brought.CancelRequested(job_id):
                    self._station.executor.cancel(job_id)
                case brought.MuteExpired() | brought.JobsOverdue() | brought.NextDue():
                    self._station.queues[one.queue].on_news(one)
                case _:
                    assert_never(one)

    def on_members(self, members: Mapping[str, Mapping[str, str]], name: Name) -> None:
        """Take the kinds of each queue's live workers by id, as a heartbeat brought them."""
        if name == self._station.identity.name:
            for queue_name, queue in self._station.queues.items():
                queue.update_members(members[queue_name])

    def on_proof_sent(self, channel: str, asked_at: float) -> None:
        """A heartbeat sent a notification to this channel; the listener should hear it now."""
        self._station.listener.expect_proof(channel, asked_at, self._proof_seconds)

    def on_proof_refused(self) -> None:
        """Postgres takes no notification: unless the listener's own proof arrives, no ring does."""
        self._tasks.soon(self._station.listener.prove(self._proof_seconds))

    def on_silence(self) -> None:
        """A heartbeat got no answer: other answers may be lost in the network too."""
        self._station.connections.suspect(_ANSWER_LOST)
        self._station.listener.give_up()
        for queue in self._station.queues.values():
            queue.claimer.budget.unanswered(time.monotonic())

    def on_declared_dead(self, name: Name) -> None:
        """Others believe this worker dead and run its jobs again, or another took its name."""
        if name != self._station.identity.name:
            return
        if self._tasks.ending:
            self._station.executor.stop_all()  # others run these jobs again
        elif self._station.identity.may_claim:
            self._station.identity.forbid_claims()
            self._tasks.insist(self._start_over)

    async def _start_over(self) -> None:
        """Others run this worker's jobs again: stop them here, and go on under another id."""
        station, outage = self._station, Outage("registering anew")
        old = station.identity.id
        log.error(
            "worker %s was declared dead although it lives: its %d jobs are stopped here",
            old,
            len(station.executor.running),
            extra=log_event("worker.declared_dead"),
        )
        station.executor.stop_all()
        while not self._tasks.ending:
            try:
                await station.membership.register_anew()
            except RunnerError as error:
                await outage.pause(error)
                continue
            stopped: bool = self._tasks.ending
            if stopped:  # meanwhile: nothing runs under this id
                with contextlib.suppress(RunnerError):
                    await station.membership.retire(in_order=True)
                return
            station.identity.allow_claims()
            log.warning(
                "worker re-registered: old id %s, new id %s (was declared dead)",
                old,
                station.identity.id,
                extra=log_event("worker.reregistered"),
            )
            for name in station.queues:
                await station.listener.send(channel_of(name), WorkerLeft(old))
            await self._introduce()
            return
