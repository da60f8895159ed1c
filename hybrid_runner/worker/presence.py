"""What a worker is to the others: its row among the workers, and its heartbeat."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from hybrid_runner.errors import NoAnswer
from hybrid_runner.jsontext import encode
from hybrid_runner.news import UpkeepNews, WorkerNews, WorkerSilent
from hybrid_runner.settings import Settings
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import Fetches
from hybrid_runner.version import VERSION
from hybrid_runner.worker.executor import Executor
from hybrid_runner.worker.heartbeat import Heartbeat
from hybrid_runner.worker.identity import Identity, Name
from hybrid_runner.worker.links import Links
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.upkeep_loop import UpkeepLoop
from hybrid_runner.worker.watchdog import Watchdog


class Offer(NamedTuple):
    """What a worker tells the others about itself."""

    slots: Mapping[str, int]
    """By queue: how many jobs it runs at a time."""
    kinds: str
    """A text that is the same for workers that know the same kinds."""


OnNews = Callable[[list[WorkerNews], float, Name], None]


class Presence:
    """Made and registered in the worker's loop; the heartbeat and what runs beside it live in a thread of their own."""

    def __init__(
        self,
        links: Links,
        settings: Settings,
        identity: Identity,
        offer: Offer,
        executor: Executor,
        listener: Listener,
        upkeep: UpkeepLoop,
        watchdog: Watchdog,
    ) -> None:
        self._links = links
        self._settings = settings
        self._identity = identity
        self._offer = offer
        self._executor = executor
        self._listener = listener
        self.upkeep = upkeep
        self.watchdog = watchdog
        self._on_news: OnNews | None = None
        self._on_silence: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self.pause = min(settings.heartbeat, settings.lease / 3).total_seconds()
        """Seconds between two beats."""
        self._heartbeat = Heartbeat(self.pause, self._beat, watchdog.run, *upkeep.loops, closing=self._close)

    @property
    def alive(self) -> bool:
        """Whether the heartbeat goes on."""
        return self._heartbeat.alive

    async def register(self) -> None:
        """Become known; what an earlier worker of this name ran is put back at the first heartbeat."""
        await self._register(self._links.settles, self._identity.id)

    async def register_anew(self) -> None:
        """Under a new name: the others believe the old one dead."""
        await self._register(self._links.courtesies, self._identity.new_id())

    async def _register(self, on: Fetches, worker_id: str) -> None:
        host, pid, queues = socket.gethostname(), os.getpid(), encode(self._offer.slots, "queues")
        first, took_over = await statements.register_worker(
            on, worker_id, host, pid, VERSION, queues, self._settings.lease, self._offer.kinds
        )
        self._identity.register(worker_id, first)
        self.upkeep.rescue_first = self.upkeep.rescue_first or took_over

    async def leave_queues(self) -> None:
        """Nobody shall count on this worker any more."""
        await statements.leave_queues(self._links.claims, *self._identity.name)

    async def retire(self, *, in_order: bool) -> None:
        """Sign off; if not in order, the others look after what is left."""
        await statements.retire_worker(self._links.claims, *self._identity.name, in_order=in_order)

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
        name, began = self._identity.name, time.monotonic()
        try:
            async with asyncio.timeout(self._links.patience):  # connecting included
                news = await statements.beat(
                    self._links.heartbeat, name.worker_id, self._executor.claims, [*self._offer.slots], name.first_claim,
                    self._listener.proof_channel, self._settings.overtime, encode(self._executor.by_queue(), "running"),
                    self.upkeep.duty_names,
                )  # fmt: skip
        except (NoAnswer, TimeoutError) as error:
            self._pass_on(self._on_silence)
            failure = error if isinstance(error, NoAnswer) else NoAnswer("Postgres does not answer in time")
            self._links.contact.failed(failure)
            raise failure from None
        self._identity.confirmed_at = time.monotonic()
        if (on_news := self._on_news) is not None:
            self._pass_on(partial(on_news, [one for one in news if isinstance(one, WorkerNews)], began, name))
        upkeep = [one for one in news if isinstance(one, UpkeepNews)]
        self.upkeep.give(upkeep, name)
        return min((one.dead_in.total_seconds() for one in upkeep if isinstance(one, WorkerSilent)), default=None)

    def _pass_on(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the worker's loop was closed: nobody is left to beat for
            raise asyncio.CancelledError from None

    async def _close(self) -> None:
        await self._links.heartbeat.close()
        await self.upkeep.close()


def heard_within(settings: Settings) -> timedelta:
    """How long after a heartbeat the listener may take to hear the ring that it sent."""
    return min(timedelta(seconds=5), settings.lease / 3)
