"""What a queue's channel was told, without waiting for time to pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hybrid_runner.model.messages import Channel, channel_of
from hybrid_runner.storage.connections.connection import Connection, connect

MARKER = "marker"


class Rings:
    """Hears a channel. Notifications arrive in the order of their commits, so a marker shows that
    all before it are there.
    """

    def __init__(self, connection: Connection, channel: str) -> None:
        self._connection = connection
        self._channel = channel
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen(self) -> None:
        """Start to hear."""
        await self._connection.add_listener(self._channel, self._on_ring)

    async def so_far(self) -> list[str]:
        """The payloads since the last call."""
        await self._connection.execute("SELECT pg_notify($1, $2)", self._channel, MARKER)
        payloads = []
        while (payload := await self._heard.get()) != MARKER:
            payloads.append(payload)
        return payloads

    def _on_ring(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        self._heard.put_nowait(str(payload))


@asynccontextmanager
async def listening(dsn: str, on: str | Channel[Any] = "default") -> AsyncIterator[Rings]:
    """What a queue's channel, or another, is told from now on."""
    connection = await connect(dsn)
    try:
        rings = Rings(connection, (on if isinstance(on, Channel) else channel_of(on)).name)
        await rings.listen()
        yield rings
    finally:
        await connection.close()
