"""Servers on the loopback interface that answer as no good one would."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    port: int
    scheme: str = "http"
    requests: list[bytes] = field(default_factory=list)
    """The heads of all requests."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """A client has hung up in the middle of what it was sent."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/"


@contextlib.asynccontextmanager
async def serving(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Reads the head of a request, then behaves, again and again while the connection lasts."""
    writers: set[asyncio.StreamWriter] = set()

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        try:
            while True:
                server.requests.append(await reader.readuntil(b"\r\n\r\n"))
                await behaviour(reader, writer)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            server.gone.set()
        finally:
            writer.close()

    listening = await asyncio.start_server(on_connection, "127.0.0.1", 0, ssl=tls)
    server = Server(port=listening.sockets[0].getsockname()[1], scheme="https" if tls else "http")
    try:
        yield server
    finally:
        listening.close()
        for writer in writers:
            writer.transport.abort()
        await listening.wait_closed()


def saying(*parts: bytes, then_close: bool = False) -> Behaviour:
    """Exactly these bytes."""

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if then_close:
            raise ConnectionAbortedError

    return behave


def answering(
    body: bytes = b"[]", status: str = "200 OK", headers: dict[str, str] | None = None
) -> Behaviour:
    """A proper answer."""
    return saying(message(body, status, headers))


def message(
    body: bytes = b"[]", status: str = "200 OK", headers: dict[str, str] | None = None
) -> bytes:
    given = {"Content-Length": str(len(body)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def flooding(head: bytes, chunk: bytes) -> Behaviour:
    """That head, and then the same for ever."""

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(0)  # with TLS nothing else may, and the end is not seen

    return behave


def silent(*parts: bytes) -> Behaviour:
    """These bytes, and then nothing, while the other end lives."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
        await writer.drain()
        if not await reader.read(1):
            raise ConnectionResetError

    return behave
