"""Sends heartbeats and hands on the news that they bring. Runs in the heartbeat's thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from hybrid_runner.errors import NoAnswer
from hybrid_runner.jsontext import encode
from hybrid_runner.model.news import HeartbeatNews, UpkeepNews, WorkerNews, WorkerSilent
from hybrid_runner.storage import worker_calls
from hybrid_runner.worker.connections import Connections
from hybrid_runner.worker.identity import Identity, Name
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.liveness.upkeep_loop import UpkeepLoop
from hybrid_runner.worker.liveness.worker_loop import WorkerLoop
from hybrid_runner.worker.run.executor import Executor

OnNews = Callable[[list[WorkerNews], float, Name], None]


class Beats:
    """Reads only what may be read from another thread; callbacks run in the worker's loop."""

    def __init__(
        self,
        connections: Connections,
        identity: Identity,
        queues: Sequence[str],
        timeout_grace: timedelta,
        executor: Executor,
        listener: Listener,
        upkeep: UpkeepLoop,
        worker_loop: WorkerLoop,
    ) -> None:
        self._connections = connections
        self._identity = identity
        self._queues = queues
        self._timeout_grace = timeout_grace
        self._executor = executor
        self._listener = listener
        self.upkeep = upkeep
        self._worker_loop = worker_loop
        self.on_news: OnNews = lambda _news, _asked_at, _name: None
        """Called in the worker's loop with the news of a heartbeat, when it was sent, and under
        which name. Written before the thread starts.
        """
        self.on_silence: Callable[[], None] = lambda: None
        """Called in the worker's loop when a heartbeat got no answer. Written before the thread
        starts.
        """

    async def beat(self) -> float | None:
        """Send a heartbeat. Returns after how many seconds the next one is needed, or None for the
        usual pause.
        """
        name, began = self._identity.name, time.monotonic()
        try:
            async with asyncio.timeout(self._connections.patience):  # connecting included
                news = await self._ask(name)
        except (NoAnswer, TimeoutError) as error:
            self._worker_loop.call(self.on_silence)
            failure = (
                error
                if isinstance(error, NoAnswer)
                else NoAnswer("Postgres does not answer in time")
            )
            self._connections.reachability.failed(failure)
            raise failure from None
        self._identity.confirmed_at = time.monotonic()
        self._worker_loop.call(
            self.on_news, [one for one in news if isinstance(one, WorkerNews)], began, name
        )
        upkeep = [one for one in news if isinstance(one, UpkeepNews)]
        self.upkeep.give(upkeep, name)
        return min(
            (one.dead_in.total_seconds() for one in upkeep if isinstance(one, WorkerSilent)),
            default=None,
        )

    async def close(self) -> None:
        """Close the connections of this thread."""
        await self._connections.heartbeat.close()
        await self.upkeep.close()

    async def _ask(self, name: Name) -> list[HeartbeatNews]:
        return await worker_calls.beat(
            self._connections.heartbeat,
            name.worker_id,
            self._executor.claims,
            self._queues,
            name.first_claim,
            self._listener.proof_channel,
            self._timeout_grace,
            encode(self._executor.by_queue(), "running"),
            self.upkeep.duty_names,
        )
