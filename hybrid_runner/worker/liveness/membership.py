"""What a worker is to the others: its row among the workers, which a heartbeat keeps alive. Runs in
the worker's loop.

In the heartbeat's thread (`heartbeat.py`) run `beats.py`, `upkeep_loop.py` and `watchdog.py`; they
call into the worker's
loop through `worker_loop.py` alone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple

from hybrid_runner.jsontext import encode
from hybrid_runner.settings import Settings
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.version import VERSION
from hybrid_runner.worker.connections import Connections
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.liveness.beats import Beats, OnNews
from hybrid_runner.worker.liveness.heartbeat import Heartbeat
from hybrid_runner.worker.liveness.watchdog import Watchdog


class Offer(NamedTuple):
    """What a worker tells the others about itself."""

    slots: Mapping[str, int]
    """By queue: how many jobs it runs at a time."""
    kinds: str
    """A text that is the same for workers that know the same kinds."""


class Membership:
    """Registers, starts the heartbeat, ends it and signs off."""

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
        """Whether the heartbeat goes on."""
        return self._heartbeat.alive

    async def register(self) -> None:
        """Become known; what an earlier worker of this name ran is put back after the first
        heartbeat.
        """
        await self._register(self._connections.settles, self._identity.id)

    async def register_anew(self) -> None:
        """Become known under a new name: the others believe the owner of the old one dead."""
        await self._register(self._connections.courtesies, self._identity.new_id())

    async def _register(self, on: Fetches, worker_id: str) -> None:
        host, pid, queues = socket.gethostname(), os.getpid(), encode(self._offer.slots, "queues")
        first, took_over = await worker_calls.register_worker(
            on, worker_id, host, pid, VERSION, queues, self._lease, self._offer.kinds
        )
        self._identity.register(worker_id, first)
        if took_over:
            self.upkeep.rescue_first = True

    async def leave_queues(self) -> None:
        """Tell the others not to count on this worker any more."""
        await worker_calls.leave_queues(self._connections.claims, *self._identity.name)

    async def retire(self, *, in_order: bool) -> None:
        """Sign off; if not in order, the others look after what is left."""
        await worker_calls.retire_worker(
            self._connections.claims, *self._identity.name, in_order=in_order
        )

    def start(self, on_news: OnNews, on_silence: Callable[[], None]) -> None:
        """Start the heartbeat. Both are called in the worker's loop: see `Beats`."""
        self._beats.on_news, self._beats.on_silence = on_news, on_silence
        self._heartbeat.start()

    def soon(self) -> None:
        """Send a heartbeat now."""
        self._heartbeat.soon()

    async def stop(self) -> None:
        """End the heartbeat and what runs beside it; waits up to 5 s for its thread."""
        await self._heartbeat.stop()


def heard_within(settings: Settings) -> timedelta:
    """How long after a heartbeat the listener may take to hear the ring that it sent."""
    return min(timedelta(seconds=5), settings.work.lease / 3)
