"""Hears the rings of this worker's queues, on a connection of its own, and says when it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Any

from hybrid_runner.errors import DatabaseUnavailable, RunnerError
from hybrid_runner.storage.connections import Ear, Rows
from hybrid_runner.worker.loops import Outage

log = logging.getLogger("hybrid_runner.worker")

CHANNEL = "hybrid_runner."
_PROOF_TIMEOUT = 5.0


class Listener:
    """Connected and proved → hearing; lost → deaf, and reconnecting with backoff."""

    def __init__(
        self,
        dsn: str,
        queues: Iterable[str],
        heard: Callable[[str, str, int], None],
        changed: Callable[[], None],
    ) -> None:
        self._dsn = dsn
        self._queues = tuple(queues)
        self._heard = heard
        self._changed = changed
        self._outage = Outage("listener")
        self._ear: Ear | None = None
        self.hearing = False

    async def run(self) -> None:
        """Listen for ever."""
        while True:
            try:
                await self._listen_until_lost()
            except Exception as error:
                await self._outage.pause(error)

    async def _listen_until_lost(self) -> None:
        ear = await Ear.open(self._dsn)
        try:
            for queue in self._queues:
                await ear.listen(CHANNEL + queue, self._ring)
            if not await self._prove(ear):
                return
            self._outage.over()
            self._ear = ear
            self._set(hearing=True)
            await ear.lost.wait()
            log.warning("listener: the connection was lost; polling until it is back")
        finally:
            self._ear = None
            self._set(hearing=False)
            await ear.close()

    async def _prove(self, ear: Ear) -> bool:
        """Ring ourselves: behind a pooler LISTEN succeeds and nothing ever arrives."""
        proof = asyncio.Event()
        channel = CHANNEL + "~proof~" + format(id(ear), "x")
        await ear.listen(channel, lambda _channel, _payload, _pid: proof.set())
        await ear.ring(channel, "proof")
        try:
            await asyncio.wait_for(proof.wait(), _PROOF_TIMEOUT)
        except TimeoutError:
            log.warning(
                "listener: rings do not arrive over this connection (a pooler?): polling only; "
                "set HYBRID_RUNNER_LISTEN_DSN to a direct one"
            )
            await asyncio.sleep(60)
            return False
        return True

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement on the session that listens."""
        if self._ear is None:
            raise DatabaseUnavailable("the listener is not connected")
        return await self._ear.fetch(query, *args)

    async def ring(self, queue: str, payload: str) -> None:
        """Ring the queue's channel; a ring is a hint, so it may be lost."""
        if self._ear is not None:
            with contextlib.suppress(RunnerError):
                await self._ear.ring(CHANNEL + queue, payload)

    def _ring(self, channel: str, payload: str, pid: int) -> None:
        self._heard(channel.removeprefix(CHANNEL), payload, pid)

    def _set(self, *, hearing: bool) -> None:
        if hearing != self.hearing:
            self.hearing = hearing
            self._changed()
