"""Sends heartbeats, asks what there is to know, and hands it on. Runs in the heartbeat's thread."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Protocol

from hybrid_runner.errors import NoAnswer, RunnerError
from hybrid_runner.jsontext import encode
from hybrid_runner.model.news import LookAgain, UpkeepNews, WorkerNews
from hybrid_runner.storage import heartbeat_calls
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.connections import Connections
from hybrid_runner.worker.identity import Identity, Name
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.liveness.fleet import Fleet
from hybrid_runner.worker.liveness.questions import Questions
from hybrid_runner.worker.liveness.upkeep_loop import UpkeepLoop
from hybrid_runner.worker.liveness.worker_loop import WorkerLoop
from hybrid_runner.worker.run.executor import Executor

log = logging.getLogger("hybrid_runner.worker")


class HearsBeats(Protocol):
    """What is called in the worker's event loop."""

    def on_news(self, news: list[WorkerNews], name: Name) -> None:
        """What a heartbeat under this name brought."""

    def on_members(self, members: Mapping[str, Mapping[str, str]], name: Name) -> None:
        """Take the kinds of each queue's live workers by id."""

    def on_declared_dead(self, name: Name) -> None:
        """Others believe this worker dead and run its jobs again, or another took its name."""

    def on_proof_sent(self, channel: str, asked_at: float) -> None:
        """A notification was sent to this channel; the listener should hear it now."""

    def on_proof_refused(self) -> None:
        """Postgres takes no notification."""

    def on_silence(self) -> None:
        """A heartbeat got no answer."""


class Beats:
    """Reads only what may be read from another thread."""

    def __init__(
        self,
        connections: Connections,
        identity: Identity,
        fleet: Fleet,
        questions: Questions,
        executor: Executor,
        listener: Listener,
        upkeep: UpkeepLoop,
        worker_loop: WorkerLoop,
    ) -> None:
        self._connections = connections
        self._identity = identity
        self._fleet = fleet
        self._questions = questions
        self._executor = executor
        self._listener = listener
        self.upkeep = upkeep
        self._worker_loop = worker_loop
        self._proofs_refused = False
        self.heard_by: HearsBeats | None = None
        """Written before the thread starts."""

    async def beat(self) -> float | None:
        """Send a heartbeat, then ask. Returns after how many seconds the next one is needed, or
        None for the usual pause. Raises if Postgres did not take it.
        """
        heard_by = self.heard_by
        assert heard_by is not None  # noqa: S101  # nobody beats before the start
        name, began = self._identity.name, time.monotonic()
        if not await self._speak(name, heard_by):
            self._worker_loop.call(heard_by.on_declared_dead, name)
            return None
        self._identity.confirmed_at = began
        wanted: float | None = None
        try:
            async with asyncio.timeout(self._connections.patience):
                await self._send_proof(heard_by)
                wanted = await self._ask_news(name, heard_by)
                await self._ask_queues(name, heard_by)
        except TimeoutError:  # what it asks can wait, the next heartbeat cannot
            self._worker_loop.call(heard_by.on_silence)
        return wanted

    async def close(self) -> None:
        """Close the connections of this thread."""
        await self._connections.heartbeat.close()
        await self.upkeep.close()

    async def _speak(self, name: Name, heard_by: HearsBeats) -> bool:
        running = encode(self._executor.by_queue(), "running")
        try:
            async with asyncio.timeout(self._connections.patience):  # connecting included
                lives = await heartbeat_calls.beat(
                    self._connections.heartbeat, *name, running, self._fleet.longest_gap
                )
        except (NoAnswer, TimeoutError) as error:
            self._worker_loop.call(heard_by.on_silence)
            failure = (
                error
                if isinstance(error, NoAnswer)
                else NoAnswer("Postgres does not answer in time")
            )
            self._connections.reachability.failed(failure)
            raise failure from None
        self._fleet.spoke()
        return lives

    async def _send_proof(self, heard_by: HearsBeats) -> None:
        """A notification that the listener must hear. If Postgres takes none, it takes no rings
        either: then the listener must not be believed.
        """
        channel, asked_at = self._listener.proof_channel, time.monotonic()
        if channel is None:
            return
        refused: object = "there is no room for them"
        try:
            if await heartbeat_calls.send_proof(self._connections.heartbeat, channel):
                self._proofs_refused = False
                self._worker_loop.call(heard_by.on_proof_sent, channel, asked_at)
                return
        except RunnerError as error:
            refused = error
        if not self._proofs_refused:
            log.warning(
                "notifications cannot be sent: %s; jobs are found by polling",
                refused,
                extra=log_event("listener.proof_refused"),
            )
        self._proofs_refused = True
        self._worker_loop.call(heard_by.on_proof_refused)

    async def _ask_queues(self, name: Name, heard_by: HearsBeats) -> None:
        news = await self._questions.ask_queues()
        if for_worker := [one for one in news if isinstance(one, WorkerNews)]:
            self._worker_loop.call(heard_by.on_news, for_worker, name)

    async def _ask_news(self, name: Name, heard_by: HearsBeats) -> float | None:
        asked_at = time.monotonic()
        news = await self._questions.ask_news(name, self._fleet)
        if news is None:
            return self._fleet.longest_pause
        members = self._fleet.seen(news)
        self._worker_loop.call(heard_by.on_members, members, name)
        if for_worker := [one for one in news if isinstance(one, WorkerNews)]:
            self._worker_loop.call(heard_by.on_news, for_worker, name)
        self.upkeep.ticks.hear(news, name.worker_id, asked_at)
        self.upkeep.give([one for one in news if isinstance(one, UpkeepNews)], name)
        again = [one.after.total_seconds() for one in news if isinstance(one, LookAgain)]
        if self._fleet.longest_pause is not None:
            again.append(self._fleet.longest_pause)
        return min(again, default=None)
