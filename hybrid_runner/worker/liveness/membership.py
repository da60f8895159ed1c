"""A worker's row in the table of workers, and the heartbeat that keeps it alive. Runs in the
worker's loop.

In the heartbeat's thread (`heartbeat.py`) run `beats.py`, `upkeep_loop.py` and `watchdog.py`; they
call into the worker's loop through `worker_loop.py` alone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from hybrid_runner.jsontext import encode
from hybrid_runner.settings import Settings
from hybrid_runner.storage import claim_calls, worker_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.version import VERSION
from hybrid_runner.worker.connections import Connections
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.liveness.beats import Beats, HearsBeats
from hybrid_runner.worker.liveness.heartbeat import Heartbeat
from hybrid_runner.worker.liveness.watchdog import Watchdog


class Offer(NamedTuple):
    """What a worker's row says about its work."""

    slots: Mapping[str, int]
    """How many jobs it runs at a time, by queue."""
    kinds: claim_calls.Kinds
    schedules: Sequence[str] = ()
    """Names of those that it declares."""


class Membership:
    """Registers the worker, starts and ends its heartbeat, and signs it off."""

    def __init__(
        self,
        connections: Connections,
        settings: Settings,
        identity: Identity,
        offer: Offer,
        beats: Beats,
        watchdog: Watchdog,
    ) -> None:
        self._connections = connections
        self._lease = settings.work.lease
        self._identity = identity
        self._offer = offer
        self._beats = beats
        self.upkeep = beats.upkeep
        self.watchdog = watchdog
        self.pause = min(settings.work.heartbeat, settings.work.lease / 3).total_seconds()
        """Seconds between two heartbeats."""
        self._heartbeat = Heartbeat(
            self.pause, beats.beat, watchdog.run, *self.upkeep.loops, closing=beats.close
        )

    @property
    def alive(self) -> bool:
        """Whether the heartbeat's thread runs."""
        return self._heartbeat.alive

    async def register(self) -> None:
        """Write the worker's row. Jobs of an earlier worker with this id are rescued after the
        first heartbeat.
        """
        await self._register(self._connections.settles, self._identity.id)

    async def register_anew(self) -> None:
        """Register under a new id, after other workers declared the old one dead."""
        await self._register(self._connections.courtesies, self._identity.new_id())

    async def _register(self, on: Fetches, worker_id: str) -> None:
        host, pid, queues = socket.gethostname(), os.getpid(), encode(self._offer.slots, "queues")
        kinds = self._offer.kinds
        first, took_over = await worker_calls.register_worker(
            on,
            worker_id,
            host,
            pid,
            VERSION,
            queues,
            self._lease,
            kinds.number,
            kinds.names,
            self._offer.schedules,
        )
        self._identity.register(worker_id, first)
        if took_over:
            self.upkeep.rescue_first = True

    async def leave_queues(self) -> None:
        """Take the worker off its queues: others no longer count on it to look."""
        await worker_calls.leave_queues(self._connections.claims, *self._identity.name)

    async def retire(self, *, in_order: bool) -> None:
        """Delete the row; unless `in_order`, leave it to others to rescue the jobs that are
        left.
        """
        await worker_calls.retire_worker(
            self._connections.claims, *self._identity.name, in_order=in_order
        )

    def start(self, heard_by: HearsBeats) -> None:
        """Start the heartbeat; `heard_by` is called in the worker's loop."""
        self._beats.heard_by = heard_by
        self._heartbeat.start()

    def soon(self) -> None:
        """Have a heartbeat sent now."""
        self._heartbeat.soon()

    async def stop(self) -> None:
        """End the heartbeat and what runs beside it; waits up to 5 s for the thread."""
        await self._heartbeat.stop()


def proof_timeout(settings: Settings) -> timedelta:
    """How long the listener may take to hear the proof that a heartbeat sent."""
    return min(timedelta(seconds=5), settings.work.lease / 3)
