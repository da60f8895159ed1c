"""A connection that listens for notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hybrid_runner.model.messages import Channel, M, Proof
from hybrid_runner.policy.allowance import Allowance
from hybrid_runner.storage.connections import pooler
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.session_settings import FOR_LISTENING
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import query

T = TypeVar("T")

BELL_TIMEOUT = 5.0
_MOST_A_SECOND = 20_000
"""Notifications that are read; if more come for a while the connection is given up. One costs about
3 µs on an idle machine, and several times that on a busy one. A long one counts for several.
"""
_CHECKED_EVERY = 1000
_LONG = 256
"""Characters."""


async def prove_once(dsn: str, channel: Channel[Proof]) -> None:
    """Send a proof from a new session, which ends with it."""
    connection = await connect(dsn)
    try:
        await _translated(
            connection.execute(
                query("send_message"), channel.name, Proof().text, timeout=BELL_TIMEOUT
            )
        )
    finally:
        connection.terminate()


class ListenConnection:
    """A connection that listens, and moves doorbells; messages arrive until `lost` is set."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._busy = asyncio.Lock()
        self.lost = asyncio.Event()
        self.flooded = False
        """Whether it was given up because more notifications came than are read."""
        self._may_read = Allowance(at_once=_MOST_A_SECOND, per_second=_MOST_A_SECOND)
        self._read = 0
        """Notifications since the allowance was last asked."""
        connection.add_termination_listener(lambda _: self.lost.set())

    @classmethod
    async def open(cls, dsn: str) -> ListenConnection:
        """Connect; no channel is listened to yet."""
        return cls(await connect(dsn, FOR_LISTENING))

    @property
    def pooled(self) -> bool:
        """Whether it goes through a pooler, which may give each statement another session."""
        return pooler.is_pooled(self._connection)

    async def listen(self, channel: Channel[M], heard: Callable[[M, int], None]) -> None:
        """Subscribe to one channel; `heard` gets each message and its sender's server process.

        The same message of the same sender is heard once for each turn of the event loop.
        """
        loop, just_heard = asyncio.get_running_loop(), set[tuple[int, str]]()

        def on_ring(_connection: object, pid: int, _channel: str, payload: object) -> None:
            text = str(payload)
            if not self._may_hear(text) or (pid, text) in just_heard:
                return
            if not just_heard:
                loop.call_soon(just_heard.clear)  # before all that the message causes
            just_heard.add((pid, text))
            if (message := channel.read(text)) is not None:
                heard(message, pid)

        async def subscribe() -> None:
            async with asyncio.timeout(BELL_TIMEOUT):
                await self._connection.add_listener(channel.name, on_ring)

        async with self._busy:
            await _translated(subscribe())

    def _may_hear(self, text: str) -> bool:
        """Count a notification; when they are too many, give up the connection: what is not heard
        is found by polling.
        """
        self._read += 1 + len(text) // _LONG
        if self._read >= _CHECKED_EVERY:
            read, self._read = self._read, 0
            now = asyncio.get_running_loop().time()
            if not self._may_read.take(now, read) and not self.lost.is_set():
                self.flooded = True
                self.hang_up()
        return not self.flooded

    async def may_notify(self) -> bool:
        """Whether the server has room for notifications; while it has not, nobody rings."""
        [row] = await self.fetch(query("may_notify"))
        return bool(row[0])

    async def send(self, channel: Channel[M], message: M) -> bool:
        """Send a message from this connection; False: it was not sent, for lack of room."""
        [row] = await self.fetch(query("send_message"), channel.name, message.text)
        return bool(row[0])

    async def fetch(self, statement: str, /, *args: Any) -> Rows:
        """Run one short statement; when it fails the connection is ended, so that its locks are
        certainly released.
        """
        async with self._busy:
            try:
                return await _translated(
                    self._connection.fetch(statement, *args, timeout=BELL_TIMEOUT)
                )
            except Exception:
                await self.close()
                raise

    @property
    def busy(self) -> bool:
        """Whether a statement waits for its answer."""
        return self._busy.locked()

    async def close(self) -> None:
        """`hang_up`, for callers that await."""
        self.hang_up()

    def hang_up(self) -> None:
        """End the connection at once."""
        # Always: when a connection dies during a statement, the driver may know it as closed and
        # never call the termination listener.
        self._connection.terminate()
        self.lost.set()


async def _translated(call: Awaitable[T]) -> T:
    try:
        return await call
    except Exception as error:
        raise translate(error) from error
