"""The part of a worker that belongs to one database: two databases would be two stations."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta

from hybrid_runner.errors import RunnerError
from hybrid_runner.handlers.registry import on_end_in_a_circle
from hybrid_runner.model.jobs import State
from hybrid_runner.model.kinds import DeclaredKind
from hybrid_runner.model.schedules import DeclaredSchedule
from hybrid_runner.policy.doorbell import Mode
from hybrid_runner.storage import kind_calls, tick_calls, worker_calls
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.connections import Connections
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.liveness.membership import Membership
from hybrid_runner.worker.loops import within
from hybrid_runner.worker.queue.queue_station import QueueStation
from hybrid_runner.worker.run.executor import Executor
from hybrid_runner.worker.settle.settlers import Settlers

log = logging.getLogger("hybrid_runner.worker")

_RETRACTION = 0.5
"""Seconds for deleting the row of a worker whose start failed."""


class Station:
    """The parts, and what concerns several of them. Made in `wiring.py`."""

    def __init__(
        self,
        identity: Identity,
        connections: Connections,
        listener: Listener,
        membership: Membership,
        executor: Executor,
        settler: Settlers,
        queues: Mapping[str, QueueStation],
    ) -> None:
        self.identity = identity
        self.connections = connections
        self.listener = listener
        self.membership = membership
        self.executor = executor
        self.settler = settler
        self.queues = queues

    async def register(
        self,
        ring_within: timedelta,
        keeps: Sequence[tuple[State, str, timedelta]],
        kinds: Sequence[DeclaredKind],
        schedules: Sequence[DeclaredSchedule],
    ) -> None:
        """Open the queues, declare kinds and schedules and register the worker; `keeps` says how
        long ended jobs are kept. ConfigurationError if kinds would follow each other's ends for
        ever.
        """
        if circle := await kind_calls.find_circle(self.connections.settles, kinds):
            raise on_end_in_a_circle(circle)
        for name in self.queues:
            await worker_calls.open_queue(self.connections.claims, name, ring_within)
        await kind_calls.declare_kinds(self.connections.settles, kinds)
        # First, since from the registration on they fire.
        held = await tick_calls.declare_schedules(self.connections.settles, schedules)
        self.membership.upkeep.ticks.declare_later(schedules, held)
        await self.membership.register()
        await worker_calls.keep_jobs(self.connections.settles, keeps)
        await worker_calls.add_duties(self.connections.settles, self.membership.upkeep.duties.own)

    async def retract(self) -> None:
        """A start failed: delete the worker's row, if it was written and Postgres answers soon, and
        close.
        """
        if self.identity.is_registered:
            # Unless an earlier worker with this id left jobs behind: others have to rescue them.
            in_order = not self.membership.upkeep.rescue_first
            with contextlib.suppress(RunnerError):
                await within(
                    time.monotonic() + _RETRACTION, self.membership.retire(in_order=in_order)
                )
        await self.close()

    async def idle(self) -> None:
        """Wait until there is no reason to look, nothing runs and all outcomes are written."""
        resting = [queue.wake.resting for queue in self.queues.values()]
        while True:
            for event in resting:
                await event.wait()
            await self.executor.idle()
            await self.settler.drained()
            if all(event.is_set() for event in resting) and not self.executor.running:
                return

    async def leave(self) -> None:
        """Tell the queues' other workers that this one claims no more.

        Jobs that it kept from ringing, or was alone to be rung for, are found by them.
        """
        try:
            await self.membership.leave_queues()
            await self.listener.leave_sleepers()
            for name, queue in self.queues.items():
                is_awaited = queue.claimer.mode is not Mode.ASLEEP or queue.members.is_fleet
                await worker_calls.leave_bell(
                    self.connections.claims, name, self.identity.id, is_muted=is_awaited
                )
        except RunnerError as error:
            log.info(
                "worker %s could not say that it leaves its queues: %s",
                self.identity.id,
                error,
                extra=log_event("worker.leave_failed"),
            )

    async def sign_off(self) -> None:
        """End the heartbeat, put back claims that got no answer, delete the worker's row."""
        await self.membership.stop()
        for queue in self.queues.values():
            await queue.claimer.claims.reconcile()
        in_order = not self.executor.running and not self.settler.pending
        await self.membership.retire(in_order=in_order)

    async def close(self) -> None:
        """Close the connections, once nothing runs any more."""
        await self.connections.close()
