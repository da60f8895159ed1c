"""A TCP relay in front of Postgres that a test can cut, refuse and mend."""

from __future__ import annotations

import asyncio
from typing import Self
from urllib.parse import parse_qs, urlsplit, urlunsplit


class Proxy:
    """Forwards bytes both ways; `cut()` drops every connection and refuses new ones until `mend()`."""

    def __init__(self, dsn: str) -> None:
        self._url = urlsplit(dsn)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.accepted = 0

    @property
    def dsn(self) -> str:
        """The database, by way of the proxy."""
        user = self._url.username or "postgres"
        password = f":{self._url.password}" if self._url.password else ""
        return urlunsplit(("postgresql", f"{user}{password}@127.0.0.1:{self.port}", self._url.path, "sslmode=disable", ""))

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def mend(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Drop everything."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        try:
            onward_reader, onward_writer = await self._dial()
            self._writers |= {writer, onward_writer}
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, onward_writer))
                group.create_task(_pump(onward_reader, writer))
        except OSError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        folder = parse_qs(self._url.query).get("host")
        if folder:
            port = parse_qs(self._url.query).get("port", ["5432"])[0]
            return await asyncio.open_unix_connection(f"{folder[0]}/.s.PGSQL.{port}")
        return await asyncio.open_connection(self._url.hostname, self._url.port or 5432)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.transport.abort()
