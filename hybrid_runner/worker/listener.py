"""Receives messages on a connection of its own, and says when it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from hybrid_runner.errors import DatabaseUnavailable, RunnerError
from hybrid_runner.model.messages import Channel, M, Proof, proof_channel
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.policy.missed_rings import may_reconnect
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.listen import ListenConnection, prove_once
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.sleepers import Sleepers

log = logging.getLogger("hybrid_runner.worker")

_PROOF_TIMEOUT = 5.0
"""Seconds for the first proof on a new connection."""
_TRY_AGAIN = 60.0
_TRY_POOLER_AGAIN = 3600.0
"""Seconds. Each try leaves a LISTEN in one of the pooler's sessions, and poolers seldom change."""
_PROOF_OVERDUE = 2.0
"""After so many seconds without our own proof /health fails; the connection is dropped later: see
`expect_proof`.
"""
_READ = 0.5
"""Seconds for reading what has arrived, before a proof counts as missing."""
_STEADY = 1.0
"""After a connection that lasted for less seconds there is a pause: reconnecting must not spin.
"""
_FLOODED = GrowingPause(timedelta(seconds=10), timedelta(seconds=60), 2)
"""How long nothing is listened to after more notifications came than are read."""
_SILENCED = 10.0
"""Seconds until it is asked again whether the server has room for notifications."""
_NO_ROOM = "the server's queue of notifications is half full, so nobody rings"
_CALM = 60.0
"""Seconds without a flood after which the next one counts as the first."""


class Listener:
    """Connected and proved → hearing; lost → deaf, and reconnecting with backoff."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._subscribe: list[Callable[[ListenConnection], Awaitable[None]]] = []
        self._on_turn: Callable[[], None] = _ignore
        self._outage = Outage("listener")
        self.disturbance: str | None = None
        """What somebody does that keeps it from hearing; None: nobody does."""
        self._floods = 0
        """How many in a row ended the connection."""
        self._connection: ListenConnection | None = None
        self.hearing = False
        self._is_hearing = asyncio.Event()
        self.lost = 0
        """How many connections were lost after they had listened."""
        self.proof_overdue = False
        """Whether a proof should have been heard by now and was not."""
        self._reconnected_at = -math.inf
        self._deaf_since: float | None = time.monotonic()
        self._proof: Channel[Proof] | None = None  # where a proof must be heard while hearing
        self._proved_at = -math.inf
        self._sleepers = Sleepers(self)

    @property
    def deaf(self) -> float | None:
        """Seconds for which no ring could arrive; None: rings arrive."""
        since = self._deaf_since
        return None if since is None else time.monotonic() - since

    @property
    def proof_channel(self) -> str | None:
        """Where a proof that is sent now must be heard; None while it does not listen. May be
        called from any thread.
        """
        proof = self._proof  # read once: the listener's loop writes it at any time
        return None if proof is None else proof.name

    async def until_hearing(self) -> None:
        """Wait until it is connected and messages arrive."""
        await self._is_hearing.wait()

    def hear(self, channel: Channel[M], heard: Callable[[M, int], None]) -> None:
        """Call `heard` with each message of this channel and its sender's process id.

        To be called before `run`.
        """
        self._subscribe.append(lambda connection: connection.listen(channel, heard))

    def hear_where(
        self,
        find: Callable[[ListenConnection], Awaitable[Channel[M]]],
        heard: Callable[[M, int], None],
    ) -> None:
        """As `hear`, on a channel whose name the database is asked for."""

        async def subscribe(connection: ListenConnection) -> None:
            await connection.listen(await find(connection), heard)

        self._subscribe.append(subscribe)

    async def run(self, on_turn: Callable[[], None]) -> None:
        """Listen for ever; `on_turn` is called when hearing begins or ends."""
        self._on_turn = on_turn
        while True:
            try:
                pause = await self._listen_until_lost()
            except Exception as error:
                pause = self._outage.failed(error)
            await asyncio.sleep(pause)

    async def _listen_until_lost(self) -> float:
        """Returns after how many seconds to connect again."""
        connection = await ListenConnection.open(self._dsn)
        try:
            if not await connection.may_notify():
                return self._be_silenced()
            if not await self._prove(connection):
                return 0.0
            # An earlier session may have had the number of this one's process.
            await worker_calls.leave_sleepers(connection)
            for subscribe in self._subscribe:
                await subscribe(connection)
            self._outage.over()
            self.disturbance = None
            self._connection = connection
            self._set(hearing=True)
            heard_from = time.monotonic()
            await connection.lost.wait()
            self.lost += 1
            heard = time.monotonic() - heard_from
            self._floods = (0 if heard > _CALM else self._floods) + connection.flooded
            if connection.flooded:
                return self._let_flood_pass()
            if self._is_silenced():
                return 0.0
            if heard < _STEADY:
                raise DatabaseUnavailable("the connection was lost again")
            log.warning(
                "listener: the connection was lost; trying again at once",
                extra=log_event("listener.lost"),
            )
            return 0.0
        finally:
            self._connection = self._proof = None
            self.proof_overdue = False
            self._set(hearing=False)
            await connection.close()

    def _let_flood_pass(self) -> float:
        self.disturbance = "somebody sends more notifications to this worker than it reads"
        pause = _FLOODED.after(self._floods).total_seconds()
        log.warning(
            "listener: %s: polling only for %d s",
            self.disturbance,
            pause,
            extra=log_event("listener.flooded"),
        )
        return pause

    def _is_silenced(self) -> bool:
        return self.disturbance == _NO_ROOM

    def _be_silenced(self) -> float:
        if not self._is_silenced():
            self.disturbance = _NO_ROOM
            log.warning(
                "listener: %s: polling only until it is emptier; end the session that listens and"
                " has been in a transaction for long",
                self.disturbance,
                extra=log_event("listener.silenced"),
            )
        return _SILENCED

    async def _prove(self, connection: ListenConnection) -> bool:
        """Send ourselves a message: behind a pooler LISTEN succeeds and nothing ever arrives."""
        proved = asyncio.Event()
        channel = proof_channel(uuid.uuid4().hex[:16])

        def on_proof(*_: object) -> None:
            if channel is self._proof:
                self._proved_at = time.monotonic()
                self.proof_overdue = False
            proved.set()

        await connection.listen(channel, on_proof)
        if connection.pooled:
            # From another session: one hears its own messages, whoever has it at that moment.
            await prove_once(self._dsn, channel)
        elif not await connection.send(channel, Proof()):
            return False  # there is no room any more: asked again before the next try
        try:
            async with asyncio.timeout(_PROOF_TIMEOUT):
                await proved.wait()
        except TimeoutError:
            log.warning(
                "listener: rings do not arrive over this connection (a pooler?): polling only; "
                "set HYBRID_RUNNER_LISTEN_DSN to a direct one",
                extra=log_event("listener.unusable"),
            )
            pooled = connection.pooled
            await connection.close()
            await asyncio.sleep(_TRY_POOLER_AGAIN if pooled else _TRY_AGAIN)
            return False
        self._proof = channel
        return True

    async def prove(self, seconds: float) -> None:
        """Send a proof, and give the connection up if it is not heard within so long."""
        channel, asked_at = self._proof, time.monotonic()
        if channel is not None:
            await self.send(channel, Proof())
            self.expect_proof(channel.name, asked_at, seconds)

    def expect_proof(self, channel: str | None, asked_at: float, seconds: float) -> None:
        """Drop the connection if a proof, sent on this channel at `asked_at` or later, is not heard
        in time.
        """
        if channel is None or channel != self.proof_channel:
            return  # of an earlier connection
        loop = asyncio.get_running_loop()

        def is_missing() -> bool:
            return (
                channel == self.proof_channel
                and self._proved_at < asked_at
                and self._connection is not None
            )

        def notice() -> None:
            self.proof_overdue = self.proof_overdue or is_missing()

        def check() -> None:
            if is_missing() and self._connection is not None:
                log.warning(
                    "listener: a ring to ourselves did not arrive: connecting again",
                    extra=log_event("listener.ring_not_heard"),
                )
                self._connection.hang_up()

        # Twice: after a loop that stood still, what has arrived meanwhile is read in between.
        loop.call_later(min(_PROOF_OVERDUE, seconds), lambda: loop.call_later(_READ, notice))
        loop.call_later(seconds, lambda: loop.call_later(_READ, check))

    def missed(self, queue: str, count: int) -> None:
        """Rings of the queue did not arrive, and the next may not either: listen on a new
        connection, at most once a minute.
        """
        now = time.monotonic()
        if self._connection is not None and may_reconnect(now, self._reconnected_at):
            self._reconnected_at = now
            log.warning(
                "%s: %d jobs waited for a poll although a ring was due: listening anew",
                queue,
                count,
                extra=log_event("listener.rings_missed"),
            )
            self._connection.hang_up()

    async def join_sleepers(self, queue: str) -> None:
        """Return once it is committed that this session sleeps on the queue."""
        await self._sleepers.join(queue)

    async def leave_sleepers(self) -> None:
        """Sleep on no queue any more; rings are heard all the same."""
        if self._connection is not None:
            await worker_calls.leave_sleepers(self._connection)

    def give_up(self) -> None:
        """Hang up if a statement waits for its answer: the network may have lost it."""
        if self._connection is not None and self._connection.busy:
            self._connection.hang_up()

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement on the connection that listens."""
        if self._connection is None:
            raise DatabaseUnavailable("the listener is not connected")
        return await self._connection.fetch(query, *args)

    async def send(self, channel: Channel[M], message: M) -> None:
        """Send a message. It may be lost: messages are hints."""
        if self._connection is not None:
            with contextlib.suppress(RunnerError):
                if not await self._connection.send(channel, message):
                    self.silenced()

    def silenced(self) -> None:
        """Something was not sent, for lack of room on the server: nobody rings, so poll."""
        if self._connection is not None:
            self._be_silenced()
            self._connection.hang_up()

    def _set(self, *, hearing: bool) -> None:
        if hearing != self.hearing:
            self.hearing = hearing
            self._deaf_since = None if hearing else time.monotonic()
            (self._is_hearing.set if hearing else self._is_hearing.clear)()
            self._on_turn()


def _ignore() -> None:
    """Stands in until `run` is given a callback."""
