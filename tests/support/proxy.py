"""A TCP relay in front of Postgres that a test can cut, refuse, freeze and mend."""

from __future__ import annotations

import asyncio
import re
from typing import Self
from urllib.parse import parse_qs, urlsplit, urlunsplit

from tests.support.ports import free_port

_NAME = re.compile(rb"application_name\0hybrid-runner ?([a-z]*)")


class Relayed:
    """One connection; what it is for is read from its first bytes."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writers = [writer]
        self.purpose: str | None = None
        self.asks, self.answers = asyncio.Event(), asyncio.Event()
        """Set while that direction is forwarded."""
        self.thaw()
        self.held = asyncio.Event()
        """Set once something waits for the thaw."""

    def thaw(self) -> None:
        """Forward both directions."""
        self.asks.set()
        self.answers.set()

    def freeze(self, *, answers_only: bool = False) -> None:
        """Hold what comes from the server, and unless told otherwise what goes to it."""
        self.answers.clear()
        if not answers_only:
            self.asks.clear()

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event
    ) -> None:
        """Forward one direction until it ends."""
        try:
            while chunk := await reader.read(65536):
                if self.purpose is None:
                    found = _NAME.search(chunk)
                    self.purpose = found[1].decode() if found else ""
                if not flows.is_set():
                    self.held.set()
                    await flows.wait()
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass
        await flows.wait()  # the end of a connection is not forwarded either
        writer.transport.abort()


class Proxy:
    """Forwards bytes both ways.

    `cut()` drops every connection and refuses new ones until `mend()`; `freeze()` keeps them open
    and forwards nothing until `thaw()`, which delivers what was held.
    """

    def __init__(self, dsn: str) -> None:
        self._url = urlsplit(dsn)
        self._server: asyncio.Server | None = None
        self._relayed: list[Relayed] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._newcomers_frozen = False
        self.port = free_port()  # nobody else is given it while connections are refused
        self.accepted = 0

    @property
    def dsn(self) -> str:
        """The database, by way of the proxy."""
        user = self._url.username or "postgres"
        password = f":{self._url.password}" if self._url.password else ""
        return urlunsplit(
            (
                "postgresql",
                f"{user}{password}@127.0.0.1:{self.port}",
                self._url.path,
                "sslmode=disable",
                "",
            )
        )

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
        self._newcomers_frozen = False
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def cut(self) -> None:
        """Drop everything, what is held as well."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for relayed in self._relayed:
            for writer in relayed.writers:
                writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        self._relayed.clear()

    def freeze(
        self, purpose: str | None = None, *, newcomers: bool = False, answers_only: bool = False
    ) -> list[Relayed]:
        """Forward nothing on these connections (all, or those for one purpose) from now on; nor on
        new ones, if asked.
        """
        frozen = [relayed for relayed in self._relayed if purpose in (None, relayed.purpose)]
        assert frozen or newcomers, f"there is no connection for {purpose}"
        for relayed in frozen:
            relayed.freeze(answers_only=answers_only)
        self._newcomers_frozen = newcomers
        return frozen

    def thaw(self) -> None:
        """Forward everything again, first what was held."""
        self._newcomers_frozen = False
        for relayed in self._relayed:
            relayed.thaw()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        relayed = Relayed(writer)
        self._relayed.append(relayed)
        if self._newcomers_frozen:
            relayed.freeze()
        try:
            onward_reader, onward_writer = await self._dial()
            relayed.writers.append(onward_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(relayed.pump(reader, onward_writer, relayed.asks))
                group.create_task(relayed.pump(onward_reader, writer, relayed.answers))
        except OSError:
            writer.transport.abort()
        except asyncio.CancelledError:  # cut
            for each in relayed.writers:
                each.transport.abort()
        finally:
            self._tasks.discard(task)
            if relayed in self._relayed:
                self._relayed.remove(relayed)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        folder = parse_qs(self._url.query).get("host")
        if folder:
            port = parse_qs(self._url.query).get("port", ["5432"])[0]
            return await asyncio.open_unix_connection(f"{folder[0]}/.s.PGSQL.{port}")
        return await asyncio.open_connection(self._url.hostname, self._url.port or 5432)
